// Package purchase is the world of one purchase: from the deduct to the told gate, under everything that can
// happen to it once.
//
// # The world
//
// Two buyers (three in the full run) ask once each for one unit of a product. The instance deducts, sends the
// half, verifies, commits and answers, and may die between any two steps; the broker checks back on what
// nobody ended, and may lose a half that it acknowledged; commits and acknowledgements get lost; messages come
// twice; Redis falls back to what a replica had, which is noticed at once. A buyer may cancel before the
// consumer has come.
//
// # The protocols
//
// The table in the test compares the service's rules with the plain protocol, with variants that were
// considered, and with its own after one rule is taken away. Read as: accepted and vanished (V), accepted and
// rejected (R), refused and an order (G), leaked (L), gate and database differ (D), shut for ever (E).
//
//	Relay     without: an instance that dies between deduct and send leaves a flow open for ever
//	Arbiter   without: a send that seemed to fail is undone and refused, and its message comes all the same
//	Suspend   without: a gate that fell back sells what is sold, and takes what a buyer was promised
//	Rebuild   without: the gate that noticed stays shut
//	Drain     without: a half that was pending during the rebuild finds its unit sold
//	Forward   without: a check-back that finds no flow rolls back what a buyer was told
//	GiveBack  the repair that gives back what has no row breaks the plain protocol with no fault at all:
//	          the message was on its way
//
// Half first cannot tell "not yet deducted" from "lost" after a fallback: with every rule it still loses
// accepted orders, or waits for a check-back that nobody may answer.
//
// # What is left
//
// One cell of the service's own is not clean: a flow that Redis lost, whose half the broker lost as well, is an
// order that vanished. Nothing is oversold, and nobody else pays for it.
//
// # Beside the code
//
// As in the code, a local transaction that finds no flow says unknown and leaves the commit to the
// check-back, a gate that has fallen back takes no tells, and a rebuild does not wait for tells: their rows
// are written back. How a loss is noticed, what a rebuild does inside, cancels after the consumer and
// additions have worlds of their own.
package purchase
