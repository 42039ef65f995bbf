// Package bootstrap is the one place that sees fx, the environment and every adapter: it turns
// settings into a graph of use cases and adapters, starts it in order, and has the commands.
//
// # Decisions
//
// Constructors know nothing of fx; this package annotates them. Each module is named after what it
// provides. The profiles differ in three modules (gate, broker, ledger) and in nothing else. What
// runs is a member of one group, and one list says in which order it starts (lifecycle.go); the graph
// asks for that group, so a constructor that nothing asks for shows when the graph is validated.
//
// What is not reachable is found before any door is bound, with its address: the database when its
// store is opened, Redis and the broker by the first starts.
//
// Who suspects a gate also feeds the broker that the rebuilder drains: a circle. laterSuspects
// breaks it; it is the only thing in the graph that is completed after it was made.
//
// The metrics around four ports and the fault points before them are one decorator a port (modules_fault.go), since
// fx takes no second one. They are part of the service alone: a command that opens the servers itself counts nothing.
package bootstrap
