// Package drive sells while something breaks: the one driver of the fault plan's layers.
//
// # Decisions
//
// Buyers come in an open loop, at a rate that nothing slows down, and each one asks again with the same
// token until its answer stands, after pauses that grow to three seconds. The fault is injected in the middle by the caller's function,
// which also ends it. Then nobody does anything: A to E have to come back by themselves, and the time
// until they do, counted from the end of the fault or the last arrival, whichever is later, is
// the settle time. At last `verify` judges the buyers' journal, in a process of its own.
//
// An answer that does not stand is "unknown" under its code: a 503 of any code, a torn connection, a
// timeout. Whoever was told accepted and is told otherwise later is a violation of D.
package drive
