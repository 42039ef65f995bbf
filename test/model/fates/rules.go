package fates

// Rules are those about telling the gate what became of a flow, and about what a rebuild leaves to be told.
type Rules struct {
	Reverse    bool // a cancelled order's settled flow is released, and its units come back
	Base       bool // units of a settled or absent flow count only if the row is newer than the gate's base version
	WriteBack  bool // a rebuild writes every row back as a flow
	Outbox     bool // a fate or an addition that the gate has not acknowledged is told again
	MeetTells  bool // a consumer or a relay that finds the row tells its fate
	Keep       bool // a flow stays as long as its product is on sale
	Identity   bool // the record names its server, so that every fallback is noticed
	EveryWrite bool // every script that changes something raises the sequence: the second line behind Identity
}

// Service is what the service does.
var Service = Rules{Reverse: true, Base: true, WriteBack: true, Outbox: true, MeetTells: true, Keep: true,
	Identity: true, EveryWrite: true}

// Faults are what may happen, and what buyers and operators may wish.
type Faults struct {
	Fallbacks, Losses, Duplicates, Deaths int8 // how often
	Again                                 int8 // how often a buyer asks again with the same token
	Cancel                                bool // each buyer may cancel, before the consumer or after it
	Addition                              bool // the operator adds a unit
	Batch                                 bool // both flows may travel in one message
	Expiry                                bool // flows expire, unless they are kept
}

// The violations.
const (
	Oversold      = "A oversold"
	BelowZero     = "A gate below zero"
	Above         = "B gate above database"
	Below         = "B gate below database"
	Contradiction = "D answers contradict"
	Vanished      = "D accepted, and no row"
	Rejected      = "D accepted, and rejected"
	Ghost         = "D refused, and an order"
	StaysOpen     = "E open for ever"
	StaysShut     = "E shut for ever"
)
