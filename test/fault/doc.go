// Package fault replays what really broke in other flash-sale services, against this one as its
// users run it (f01_… to f53_…: field cases), and plays the layers of the fault plan (l04_… to l12_…:
// the service killed at named points, Redis, the broker, the database, the network and the clocks broken,
// messages repeated and shuffled, all of it for a long time). Each file is named after its case or
// layer and stands for its whole kind.
//
// # Decisions
//
// A tenth of a case's counts is played, ten at least; SECKILLTEST_SCALE=1 plays them all, 0.25 a
// quarter. A layer is the tests named TestL4…, TestL5… and so on. They sell through the one driver in
// drive, and keep figures by campaign, one file a layer in out; `go run ./test/fault/table` prints
// them, and `make fault` plays every layer in full, goes on after one that fails, and prints the table.
//
// Cases that break nothing share one shop a profile and run side by side in it; a case that stops or
// delays a server has that server, or a proxy in front of it, to itself. Every case ends with A to E
// of its products, and with what each buyer was told held against the orders.
//
// The service is killed between two steps by a fault point of its own (adapters/faultpoint), not by a
// signal that comes when it comes: the step is then known, and none is missed.
package fault
