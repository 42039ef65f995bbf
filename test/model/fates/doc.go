// Package fates is the world of tells: what the gate learns of rows, late, twice, out of order or not at all.
//
// # The world
//
// Two buyers (three in some cells) and one unit; an addition makes it two. Buyers ask again with the same
// token, and cancel before the consumer or after it. Messages come twice or in one; tells wait, overtake each
// other and get lost; an instance dies before its send. Redis falls back, up to twice. A rebuild is one step
// (the rebuilds' world has its inside) and comes when no message is left: tells, cancels and open flows may
// still be about.
//
// # The rules
//
//	Reverse    without: a cancelled order's unit never comes back to the gate
//	Base       without: an addition that the rebuild counted is counted again by its late tell
//	WriteBack  without: a later cancel meets no flow, and a token buys twice or is refused what it bought
//	Outbox     without: a lost tell of a cancel or an addition is never made good
//	MeetTells  a consumer or a relay that finds the row tells its fate: a second line behind the outbox;
//	           without both, a lost settle leaves its flow open for ever
//	Keep       without: the token of a flow that expired deducts again
//	Identity   notices every fallback. Here all callers share one memory, which is as good: the losses'
//	           world shows that real ones are not
//	EveryWrite without it and identity: a lost release or addition is never noticed
//
// # Beside the code
//
// Every row is untold until the gate has acknowledged the status that it has now, confirmed ones too. A gate
// that fell back takes no tells; one that was only proved wrong takes them until its rebuild begins. What a
// rebuild writes back counts as told. An open flow without a row is not waited for: its units are kept back,
// and the relay, which leaves suspended products alone, sends it after the reopening. An addition is a row
// like the others, known to the gate by its id. A withdrawal is an ordinary deduction.
package fates
