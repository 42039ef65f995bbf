// Package system gives the application what the operating system has: the wall clock and
// randomness.
//
// # Decisions
//
// Row ids are UUIDs of version 7, so that rows of one time lie beside each other in the
// index. An attempt's id is made for every request, so it is a random prefix chosen once a
// process and a counter: unique without a system call, about 14 bytes.
package system
