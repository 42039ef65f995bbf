package purchase

// Rules are what a protocol does beyond the plain one: deduct, send, apply.
type Rules struct {
	HalfFirst bool // the half message goes before the deduct, which is then the local transaction
	Fence     bool // half first: a check-back that finds no flow leaves a tombstone
	Forward   bool // deduct first: a check-back that finds no flow commits
	Relay     bool // what stays open is sent again
	GiveBack  bool // a repair gives units back where it finds a flow and no row
	Arbiter   bool // the row decides every fate: cancels go through it, and after a deduct nobody is refused
	Adopt     bool // a confirmed row whose flow the gate has lost takes its units
	Suspend   bool // a gate that has fallen back answers and takes nothing
	Rebuild   bool // ... until it is built anew from the rows, once messages and callers are through
	Drain     bool // ... and pending halves have been checked
}

// Service is what the service does.
var Service = Rules{Forward: true, Relay: true, Arbiter: true, Adopt: true, Suspend: true, Rebuild: true, Drain: true}

// Faults are what may happen, each at most once unless it is a number.
type Faults struct {
	Crash     bool // an instance dies between any two steps, a reply or a tell is lost
	Duplicate bool // a message is delivered twice
	Network   bool // a half or its acknowledgement, or a commit, is lost
	HalfLost  bool // the broker loses a half that it has acknowledged
	Fallbacks int8 // how often Redis falls back to what a replica had
}

// The violations. B and E of the design show here as an open flow that stays, and as counts that differ.
const (
	Oversold  = "A oversold"
	Vanished  = "V accepted, and no row"
	Refused   = "R accepted, and rejected"
	Ghost     = "G refused, and an order"
	Leaked    = "L open for ever"
	Differs   = "D gate and database differ"
	StaysShut = "E shut for ever"
)
