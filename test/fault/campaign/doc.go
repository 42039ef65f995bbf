// Package campaign says how much of a fault test is played, and keeps what it showed.
//
// # Decisions
//
// SECKILLTEST_SCALE is the share of a full run's counts: 1 for all of them, empty for the small
// size of a continuous integration. A small run breaks the same kinds of things, fewer times.
//
// Each layer of the fault plan (L4, L5, …) has one file of figures, out/L4.json beside the tests.
// A test opens its layer, and what it counts is merged with that of the layer's other tests in the
// same process when it ends, whether it passed or not. A run of the layer begins a new file: figures
// of different commits are never added up.
package campaign
