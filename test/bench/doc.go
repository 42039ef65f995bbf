// Command bench holds every figure of the table of targets (figures.go) against what it is to reach, on the real servers, with
// everything on this machine. A figure is a ratio inside one round; reported are the median over the rounds, the least and
// the most. It ends with an error where an invariant is broken or a measurement fails, never for a target that is missed;
// what was not run is listed as not run.
//
//	bench --binary bin/seckill                    all figures, a service of its own on the servers that SECKILLTEST_… name
//	bench --binary bin/seckill --figures 1,3,5    some
//	bench --target URL --admin URL                a running service: what needs its process or its servers is not run
//
// result.json has the figures, detail.json what they were made of: rates, latencies, batch sizes, CPU seconds a process.
//
// # Decisions
//
// Yardsticks are in this tree, so that anyone can measure a ratio again. Bare is the buyers' door itself with a use case
// that accepts everything, in a process of its own. Literal is the source design done literally and without mistakes, in a
// process of its own behind the same door; its tables have no index more than it needs, and its rows are checked too. Raw
// parts do one stage's work without the code around it: the gate's own script called by a bare client (the call is copied
// from what the gate sent last), a half and its commit, a group's statements by database/sql.
//
// What is held against bare Echo stands between two half windows of it, since such a machine changes its speed within
// seconds. What several figures share (sales, literal) is measured once in each round, and measurements take turns, so that a
// noisy minute hits all of them. What takes minutes (10, 9, 13c, 14) is played in the first round alone. The broker's
// JVM is slow for a minute: sales go before the first round, unrecorded.
//
// Closed loops find the most that a service does. Latency is taken at a steady rate and from the time for which a request
// was intended, so that a slow answer also counts for those that had to wait behind it; raw halves are sent beside it, a
// few a second, and timed alike.
// The client is fasthttp, since on the same machine every microsecond of the client is one less for the service. Histograms
// keep three digits.
//
// Bearer tokens are signed beforehand, and more of them than the door's cache of verified tokens holds: in a real sale
// nearly every buyer is a new one. Each purchase has a token (Idempotency-Key) of its own; a 503 is asked again with the same one.
//
// The consumer alone: the service is frozen by SIGSTOP while its gate and its topic are filled, as an instance leaves them that died
// after its sends, then let go; the clock runs until the last row. Nothing of the service is switched off for it, its relay neither.
// The literal consumer's backlog outlasts its window.
//
// CPU seconds come from /proc/PID/stat. The servers' processes are found by the address on which they listen, so that
// nobody has to hand over their ids.
//
// A run of sales is followed until nothing is on its way any more, and its products are verified: speed that was bought with
// a broken invariant is no result, and none is written.
package main
