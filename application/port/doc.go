// Package port holds what the application needs from the outside, and what the outside
// may ask of it. An interface's comment is its contract: effect, atomicity, what a repeat
// does, which codes come back. One suite in test/contract runs against every adapter of it.
//
// # Decisions
//
// Ports take batches of any product: a lane per product makes batches of one when many
// products sell at once. Replies stand at the index of what they answer. No signature
// names a driver's type. A fault that concerns one item is that item's outcome; an error
// means that nothing is known about the whole call, and that repeating it is harmless.
package port
