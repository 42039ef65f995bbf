package explore

import (
	"fmt"
	"slices"
	"strings"
)

// World is a small world: where it starts, what can happen next, and what must hold.
type World[S comparable] struct {
	Start S
	// Next adds every move that is possible in a state.
	Next func(s S, moves *Moves[S])
	// Always reports what is wrong with a state, whatever may still happen.
	Always func(s S, report func(violation string))
	// Rest reports what is wrong with a state in which nothing moves by itself.
	Rest func(s S, report func(violation string))
	// Alike, if set, gives one and the same state for all that differ only in who is who. Fewer states are
	// visited, and in a trace the names may change hands from one line to the next.
	Alike func(s S) S
}

// NeverRests is the violation that Explore finds by itself: a state from which no state at rest can be reached
// without a fault.
const NeverRests = "E never comes to rest"

// Moves gathers what can happen in one state.
type Moves[S comparable] struct {
	from    S
	to      []S
	must    []bool
	labels  []string
	narrate bool // labels cost most of the time, so they are only made for a trace
}

// Must adds a step that the service takes by itself. One that changes nothing is left out.
func (m *Moves[S]) Must(to S, label string, args ...any) { m.add(to, true, label, args) }

// May adds a fault, or a wish of a buyer or an operator: it may happen and need not.
func (m *Moves[S]) May(to S, label string, args ...any) { m.add(to, false, label, args) }

func (m *Moves[S]) add(to S, must bool, label string, args []any) {
	if to == m.from {
		return
	}
	m.to, m.must = append(m.to, to), append(m.must, must)
	if m.narrate {
		m.labels = append(m.labels, fmt.Sprintf(label, args...))
	}
}

func (m *Moves[S]) begin(from S) {
	m.from, m.to, m.must, m.labels = from, m.to[:0], m.must[:0], m.labels[:0]
}

// Result is what an exploration saw.
type Result struct {
	States int
	Found  map[string][]string // violation → its shortest trace
}

// Violations are the found ones, in order.
func (r Result) Violations() []string {
	found := make([]string, 0, len(r.Found))
	for v := range r.Found {
		found = append(found, v)
	}
	slices.Sort(found)
	return found
}

// Trace tells how a violation comes about, a line a step.
func (r Result) Trace(violation string) string {
	return violation + ":\n    " + strings.Join(r.Found[violation], "\n    ")
}

// exploration is one walk, breadth first, so that the first path to a state is a shortest one.
type exploration[S comparable] struct {
	world  World[S]
	moves  Moves[S]
	states []S
	parent []int32
	known  map[S]int32
	first  []int32 // where a state's steps begin in steps
	steps  []int32 // targets of the steps that are no faults, by source
	rest   []int32 // states where nothing moves by itself
	found  map[string]int32
}

// Explore visits every state. It panics beyond statesMax: a world that large is a mistake in the test.
func Explore[S comparable](world World[S], statesMax int) Result {
	e := &exploration[S]{world: world, known: map[S]int32{}, found: map[string]int32{}}
	e.visit(world.Start, -1)
	for i := int32(0); int(i) < len(e.states); i++ {
		if len(e.states) > statesMax {
			panic(fmt.Sprintf("more than %d states", statesMax))
		}
		e.expand(i)
	}
	e.first = append(e.first, int32(len(e.steps)))
	if i := e.restless(); i >= 0 {
		e.found[NeverRests] = i
	}
	result := Result{States: len(e.states), Found: map[string][]string{}}
	for v, i := range e.found {
		result.Found[v] = e.trace(i)
	}
	return result
}

func (e *exploration[S]) visit(s S, parent int32) int32 {
	s = e.named(s)
	i, known := e.known[s]
	if !known {
		i = int32(len(e.states))
		e.known[s] = i
		e.states, e.parent = append(e.states, s), append(e.parent, parent)
	}
	return i
}

func (e *exploration[S]) named(s S) S {
	if e.world.Alike == nil {
		return s
	}
	return e.world.Alike(s)
}

func (e *exploration[S]) expand(i int32) {
	s := e.states[i]
	report := func(v string) {
		if _, known := e.found[v]; !known {
			e.found[v] = i
		}
	}
	e.world.Always(s, report)
	e.first = append(e.first, int32(len(e.steps)))
	e.moves.begin(s)
	e.world.Next(s, &e.moves)
	moving := false
	for n, to := range e.moves.to {
		j := e.visit(to, i)
		if e.moves.must[n] {
			moving = true
			e.steps = append(e.steps, j)
		}
	}
	if !moving {
		e.rest = append(e.rest, i)
		e.world.Rest(s, report)
	}
}

// restless gives the first state from which no state at rest can be reached without a fault, or -1. It walks
// the steps backwards from the states at rest.
func (e *exploration[S]) restless() int32 {
	n := len(e.states)
	begin := make([]int32, n+1) // sources by target, by a counting sort
	for _, to := range e.steps {
		begin[to+1]++
	}
	for i := range n {
		begin[i+1] += begin[i]
	}
	next, sources := slices.Clone(begin), make([]int32, len(e.steps))
	for from := range n {
		for _, to := range e.steps[e.first[from]:e.first[from+1]] {
			sources[next[to]] = int32(from)
			next[to]++
		}
	}
	calm := make([]bool, n)
	todo := slices.Clone(e.rest)
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if calm[i] {
			continue
		}
		calm[i] = true
		todo = append(todo, sources[begin[i]:begin[i+1]]...)
	}
	return int32(slices.Index(calm, false))
}

// trace walks from the start to a state and asks the world for the labels.
func (e *exploration[S]) trace(i int32) []string {
	var path []int32
	for ; i >= 0; i = e.parent[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	moves := Moves[S]{narrate: true}
	var lines []string
	for n := 1; n < len(path); n++ {
		moves.begin(e.states[path[n-1]])
		e.world.Next(e.states[path[n-1]], &moves)
		step := slices.IndexFunc(moves.to, func(to S) bool { return e.named(to) == e.states[path[n]] })
		lines = append(lines, moves.labels[step])
	}
	return lines
}
