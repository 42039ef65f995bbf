// Command bench measures a whole service from outside, beside bare Echo under the same load
// in the same run: purchases accepted, rows reaching the database, refusals, the size of the
// deduct batches, on one product and on many at once. It times nothing for a test to fail on.
//
// # Decisions
//
// The load is a closed loop over kept connections: it finds the most that a service does, not
// how long a crowd would wait; `seckill rehearse --rate` shows that. The client is fasthttp,
// since on the same machine every microsecond of the client is one less for the service.
//
// The yardstick is the buyers' door itself with a use case that accepts everything, in a
// process of its own: same routes, same token check, same JSON. What the service costs beyond
// it is the purchase.
//
// Bearer tokens are signed beforehand, and more of them than the door's cache of verified
// tokens holds: in a real sale nearly every buyer is a new one. Each purchase has a token
// (Idempotency-Key) of its own. A 503 is asked again with the same one.
//
// A run of sales is followed until nothing is on its way any more, and its products are
// verified: speed that was bought with a broken invariant is no result. Scenarios take turns
// in each round, so that a noisy minute hits all of them; reported are median, least and most.
package main
