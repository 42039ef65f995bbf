// Package explore visits every state of a small world: all interleavings of what the service does by itself
// and of what may happen to it.
//
// # Decisions
//
// A state is a small comparable struct without pointers, so that it is its own key. The walk is breadth
// first: the first path to a violation is a shortest one, and a shortest story is the one to read. Moves are
// of two sorts. What the service does by itself must happen in the end: a state in which none of it is left
// is at rest, and is judged by what must hold then. Faults and wishes may happen: nothing is owed to them. A
// state from which no state at rest can be reached without a fault is a violation of its own, so a world that
// goes round in circles for ever is found as well.
//
// Only states, their first predecessors and the steps' targets are kept; labels are made again for the few
// states of a trace.
package explore
