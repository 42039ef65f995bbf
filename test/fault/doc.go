// Package fault replays what really broke in other flash-sale services, against this one as its
// users run it. Each file is named after its case and stands for the case's whole kind.
//
// # Decisions
//
// A tenth of a case's counts is played, ten at least, unless SECKILLTEST_FULL is set. Cases that
// break nothing share one shop a profile and run side by side in it; a case that stops or delays a
// server has that server, or a proxy in front of it, to itself. Every case ends with A to E of
// its products, and with what each buyer was told held against the orders.
package fault
