// Package faultpoint breaks the service at a named place between two steps of its protocol. It is
// for tests: nothing of it is wired unless fault.allowed is set and fault.points name a point.
//
// # Decisions
//
// The points are the edges of calls to ports, so the use cases know nothing of them: a decorator of
// the port stands before the adapter, for the calls by which something becomes true. "before" is the
// edge at which the call has not reached the adapter, "after" the one at which it has taken
// effect and nobody has heard of it. Failing at "after" is a swallowed reply.
//
//	deduct     units taken in the gate               confirm    the local transaction of a stored half
//	send       half stored, confirmed, committed     apply      the ledger's transaction of a group
//	decide     a cancelled or rejected row           cancel     a buyer's cancelled row, units back
//	tell       the gate told of fates                told       the row marked as told
//	claim      the relay's claim of a product
//	prepare, write-back, rebuild, open               the steps of a rebuild in the gate
//	reopen     the transaction at whose end the ledger calls the product open; rebuild is inside it
//
// Clock is a clock that is wrong, set by fault.clock_offset.
//
// A point is armed as "apply.after=kill@3": kill, fail or sleep:DURATION, at the third hit; without
// @, at each. kill is SIGKILL to the own process, and nothing behind the point runs any more.
package faultpoint
