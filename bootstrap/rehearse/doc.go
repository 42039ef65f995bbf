// Package rehearse is the engine of `seckill rehearse`: a crowd of buyers against a running
// service through its two HTTP doors, and a verdict on the invariants at the end.
//
// # Decisions
//
// It sees the service only as its clients do: it puts fresh products on sale at the operators'
// door, buys at the buyers' door, and reads every order back. What the service says about
// itself (verification) is merged with what the buyers were told, and either side alone can
// break an invariant: a service that lies to its operators is still caught by its buyers.
//
// Ids follow from a buyer's number, so that a buyer costs one byte while the rehearsal runs.
// Bearer tokens are signed before the clock starts, at most presignMax of them; the buyers
// beyond have theirs signed when it is their turn, before the latency clock of their request.
//
// Latency is what a buyer waits for a definite answer, asking again included. In the open loop
// it counts from the planned time, so that a service that stands still is charged for everyone
// who would have come meanwhile. A generator that falls behind its own plan says so and stops;
// what it has done by then is settled and judged all the same.
//
// How long an accepted purchase waited for its row is read after the load, from the service's own trace of a sample: polling
// every order would be a load of its own. It is the service's word, and no verdict hangs on it.
//
// A threshold says what must not be; one that could not be measured is missed. The page has no script and names no
// address, so it can be attached and opened anywhere.
//
// 503, 429, other 5xx, a timeout and a torn connection are no answers: the same token asks
// again, a few times at once, then after the load until the settle time is over. net/http would
// itself repeat a request that carries an Idempotency-Key; that is turned off, so that torn
// connections are counted.
//
// A refusal writes nothing, so a token that was refused may win later: only a refusal after
// an acceptance, or a confirmed order behind a last answer that refused, is untruthful.
//
// Orders behind refusals are read back completely up to refusedChecks of them, a sample beyond;
// but completely again as soon as the service counts more confirmed orders than buyers hold.
package rehearse
