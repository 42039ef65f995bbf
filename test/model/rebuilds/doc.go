// Package rebuilds is the world of one rebuild's inside: two instances that do it at once, and what comes late.
//
// # The world
//
// Redis has just lost its tail. Buyer 0's flow is gone and its message on its way; buyer 1's flow survived
// and is open; others buy when the gate is open again. Two units in all. Each of two instances suspends,
// drains, takes an attempt, prepares the gate, writes rows back without the lock, locks the stock row, writes
// late rows back, counts what is open, writes the numbers, commits and opens. They die, are overtaken by
// the clock, or are paused until their connection and its lock are gone; Redis falls back once more; buyer 1
// cancels before or after the consumer; a message misses the drain, or is parked. The consumer reads and
// commits in two steps, with the guard of the version between them.
//
// # The rules
//
//	OwnEpoch, Lease  without: two rebuilders push each other out for ever, or a dead one leaves it shut
//	CompareFirst     the epoch is raised from the one that was drained under, in one statement; raised first
//	                 and compared afterwards, two instances a drain apart overtake each other for ever
//	WriteBack        without: a release that is on its way is counted twice
//	LockHeld         without: a row applied in between is sold again
//	OneCommit        the database says "open" in the commit of the lock under which the numbers were read;
//	                 without: a late message is applied between the two, and a new buyer pays for it
//	RaiseVersion     without: so does a transaction that read "suspended" and commits after the reopening
//	OpenLast         without: the maker dies, and old messages are applied past an open gate
//	AdoptFirst       without: a late message takes the unit of a buyer of the new epoch
//	DrainPast        without: a late message in the queue waits for the gate, and the next drain for it
//	Mark, Unmoved    behind each other; without both: a parked flow that is released meanwhile leaks
//
// # What is left
//
// A buyer told "accepted" whose flow was lost and whose message misses the drain can be rejected. Should
// the message come while a second loss is being drained, it is applied at once, as that epoch's own are, and
// a buyer of that epoch can be rejected instead. Both take a half that is later than the broker's check window.
// The second is this world's alone: the code parks a message of an epoch before the last open one, and it
// asks the gate after the reopening (application/doc.go).
//
// # Beside the code
//
// The steps are the code's, and CompareFirst and OneCommit were found missing in it by this world. The lease
// by which an instance may sell is not here: the gate alone stands between an instance and a sale, which
// is harder on the rules.
package rebuilds
