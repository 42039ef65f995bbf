// Package simulation plays whole sales with everything that can break, exactly repeatable.
//
// A run is one bubble of virtual time. In it are the real use cases of two or three instances, wired as
// bootstrap wires them; the real scripts on miniredis, reached by pipes through the real driver; a ledger
// in memory that passes the ledger's contract (test/contract/ledgermodel); a broker with RocketMQ's
// manners; and a crowd. A seed decides everything else.
//
// # Decisions
//
// One thing happens at a time. Every call of every port parks, and a scheduler releases the one that is due,
// waits until no goroutine of the bubble can move, takes in what was parked meanwhile in an order
// that does not depend on goroutines, and goes on. So Go's scheduler decides nothing. Where it would
// have, there is one more stop: the lane's sender is asked for the size of each purchase before the
// purchase is handed over, and that question parks as well.
//
// Faults come at the wire, so that adapters/redislua meets them with its own repeats: a request or a
// reply is lost, a connection refused, a call delayed, or carried out late; the instance that made the
// call dies before or after it; Redis falls back to an earlier state, is flushed, restarts; a server is
// away for seconds; halves are lost; verdicts on halves come late, twice, or not at all; messages come in any
// order and again. A deduct that is carried out after its caller has given up comes within milliseconds:
// the driver resets a connection that it gives up. Everything else may be a second or two late, and a verdict
// twenty.
//
// After the faults everything has two minutes to come to rest; then application.VerifyBooks checks A to E
// with what each buyer was told. The promise leaves out a buyer whose flow Redis lost and of whose
// message nothing had reached the broker when the drain looked what there is: the world, which sees both, takes exactly those out
// and counts them.
//
// A run of many seeds also has to meet each case that a rule is for (truth.go), and a service with one
// rule taken away (variants.go) has to be caught. A seed that once failed stays in testdata/seeds.
package simulation
