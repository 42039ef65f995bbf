package losses

// Rules are those by which a loss of Redis' tail is noticed, and those that hold what was not.
type Rules struct {
	Identity   bool // the record names its server
	Sequence   bool // a caller passes the highest sequence that it has seen
	Own        bool // ... and its own newest flow
	EpochEnds  bool // a memory ends with its epoch
	Tick       bool // every instance makes the same comparison each second
	Floor      bool // a tell never takes units that are not there: it suspends
	EveryWrite bool // every script that changes something raises the sequence
}

// Service is what the service does.
var Service = Rules{Identity: true, Sequence: true, Own: true, EpochEnds: true, Tick: true, Floor: true, EveryWrite: true}

// Faults are how often Redis falls back and an instance restarts, which then remembers nothing.
type Faults struct{ Falls, Restarts int8 }

// The violations.
const (
	Oversold    = "A oversold"
	BelowZero   = "A gate below zero"
	Above       = "B gate above database"
	Below       = "B gate below database"
	Vanished    = "D accepted, and no row"
	Rejected    = "D accepted, and rejected"
	StaysShut   = "E shut for ever"
	EndlessRoad = "E rebuilt again and again"
)
