package rebuilds

// Rules are those inside of suspend, drain, rebuild, reopen.
type Rules struct {
	OwnEpoch       bool // an attempt takes an epoch of its own in the database; gate and reopening take only that
	Lease          bool // ... if nobody else holds the rebuild lease
	SameSuspension bool // ... and if no other attempt came since this suspension was drained
	CompareFirst   bool // ... which is looked at before the epoch is raised, in one statement
	Mark           bool // a gate that is being built is marked: it takes no tells and gives no units
	WriteBack      bool // every row is written back as a flow
	LockHeld       bool // the numbers are read and written under the stock row's lock
	Unmoved        bool // they are written only if the gate's sequence has not moved since it was read
	OpenLast       bool // the gate is written shut and opens after the database
	OneCommit      bool // the database says "open" in the commit that gives the lock back
	RaiseVersion   bool // reopening raises the stock version: who read "suspended" misses its guard
	AdoptFirst     bool // a message of an older epoch without a row asks the gate for its units first
	DrainPast      bool // ... but is applied at once while the product is suspended
}

// Service is what the service does.
var Service = Rules{OwnEpoch: true, Lease: true, SameSuspension: true, CompareFirst: true, Mark: true, WriteBack: true, LockHeld: true,
	Unmoved: true, OpenLast: true, OneCommit: true, RaiseVersion: true, AdoptFirst: true, DrainPast: true}

// Faults are what may happen, and what the first two buyers may do.
type Faults struct {
	Falls    int8 // how often Redis falls back once more
	Deaths   int8 // how often a rebuilder dies
	Cuts     int8 // how often a rebuilder's database connection is cut, and with it the lock is gone
	Expiries int8 // how often a lease runs out while its holder is only slow
	Cancel   bool // buyer 1 cancels
	Second   bool // a second new buyer comes after the first
	Late     bool // buyer 0's message may miss the drain; once it is in a queue it is waited for
	Told     bool // buyer 0 was told "accepted"
	Parked   bool // buyer 1's message is parked: nothing waits for it
}

// The violations.
const (
	Oversold    = "A oversold"
	BelowZero   = "A gate below zero"
	Above       = "B gate above database"
	Below       = "B gate below database"
	NewRejected = "D new buyer accepted, and rejected"
	OldRejected = "D old buyer accepted, and rejected"
	Vanished    = "D accepted, and no row"
	StaysShut   = "E shut for ever"
	EndlessRoad = "E rebuilt again and again"
)
