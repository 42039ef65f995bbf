// Package losses is the world of noticing: Redis loses its tail, and nobody who knew what it held need be there.
//
// # The world
//
// Three buyers in order, one or two units, two instances that remember only what they saw and remember
// nothing after a restart, and a replica that Redis falls back to, once or twice, at any moment. Messages are
// never lost, the drain is perfect, and the rebuild is one step (the rebuilds' world has its inside).
//
// # The rules
//
//	Identity   without: one fallback, and an instance that had not seen what was lost, are enough to accept
//	           a buyer who is rejected later; no crash is needed
//	Tick       without: a product that nobody asks for stays wrong
//	EpochEnds  without: a memory of before the rebuild takes the rebuilt gate for a rewound one, again and again
//	Sequence, Own  the callers' memory: a second line that shortens what Identity ends. With Identity, every
//	           cell is clean without it
//	Floor      a tell never takes what is not there: without it and Identity, the gate goes below zero
//	EveryWrite what the memory's second line compares moves with every script
//
// # Beside the code
//
// An instance that restarts knows nothing, not even the database's epoch. A record of another server takes no
// tells. The consumer's guard suspends the product when it refuses. What is not here: an old master that
// still takes writes. Identity does not see it; the lease's world does.
package losses
