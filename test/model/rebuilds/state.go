package rebuilds

// The buyers: 0's flow is lost and its message on its way, 1's flow survived, the others come after the reopening.
const (
	lostBuyer = iota
	openBuyer
	newBuyer
	secondBuyer
	buyers
)

const rebuilders = 2

// More attempts and writes than any number of faults here should need.
const (
	epochsMax    = 7
	sequencesMax = 28
)

// flow is what the gate knows of a buyer's token.
type flow int8

const (
	absent flow = iota
	deducted
	settled
	released // also: refused for good
)

func (f flow) alive() bool { return f == deducted || f == settled }

// row is the database's verdict.
type row int8

const (
	none row = iota
	confirmed
	cancelled // from birth
	rejected
	reversed // confirmed first, then cancelled
)

// flow is the state in which a row is written back.
func (r row) flow() flow {
	if r == confirmed {
		return settled
	}
	return released
}

// gate is the part of Redis that a replica copies.
type gate struct {
	epoch, sequence, remaining, base int8
	building                         int8 // epoch of the attempt that is building it, or 0
	server                           int8 // that the record names
	shut                             bool
	flow                             [buyers]flow
}

// stage is how far a rebuilder has come.
type stage int8

const (
	idle      stage = iota
	draining        // suspended, and waits for what is on its way
	drained         // takes an attempt next
	taken           // prepares the gate next
	prepared        // reads rows without the lock next
	paged           // writes them back next
	unlocked        // takes the lock next
	locked          // writes late rows back and counts what is open next
	counted         // writes the numbers next
	written         // commits, which gives the lock back, next
	committed       // reopens in the database next
	reopened        // opens the gate next
)

// rebuilder is one instance on the road.
type rebuilder struct {
	stage          stage
	drainedUnder   int8 // the database's epoch when it was suspended, or this instance's newest attempt
	epoch          int8 // of the attempt
	rows           [buyers]row
	stock, version int8 // as read
	open           int8 // open flows without a row
	sequence       int8 // of the gate when it was looked at
}

// transaction is what the one consumer is at: what it read when it began. The zero value is none.
type transaction struct {
	buyer     int8 // + 1
	suspended bool
	epoch     int8
	version   int8
}

type state struct {
	gate, replica gate
	copied        bool
	falls         int8
	server        int8 // that answers now

	stock, version, epoch int8
	suspended             bool
	lease                 int8 // of a rebuilder + 1, or 0
	lock                  int8 // likewise
	row                   [buyers]row
	rowVersion            [buyers]int8

	rebuilder [rebuilders]rebuilder

	message   [buyers]bool
	late      bool         // buyer 0's is not yet in a queue
	flowEpoch [buyers]int8 // that the message names
	adopted   [buyers]int8 // epoch of the gate that holds the message's units by adoption
	consumer  transaction
	tell      [buyers]bool // untold, or on its way

	yes    [buyers]bool
	asked  int8 // how many of the new buyers
	wished bool

	deaths, cuts, expiries int8
}

// endless says that the road has been gone too often: the world ends there.
func (s *state) endless() bool {
	return max(s.epoch, s.gate.epoch) >= epochsMax || s.gate.sequence >= sequencesMax
}
