// Package wire is the form of a message: versioned JSON, shared by every broker adapter.
//
// The service's own form is
//
//	{"v":1,"kind":"deduct","id":"…","sections":[
//	  {"product":"…","epoch":3,"flows":[{"u":"…","t":"…","q":1,"a":"…","s":17,"m":1764633600000}]}]}
//
// with user, token, quantity, attempt, sequence and time in milliseconds in each flow; a withdrawal of
// stock (kind withdraw) is the same without a user. Another
// producer may write the plain form, {"productId","uid","token","quantity"}, one purchase a message.
//
// # Decisions
//
// Names are short only where they repeat, in the flows, so that a purchase takes about 120
// bytes and a person can still read a message.
//
// A body is hostile until the contrary is shown: unknown and duplicate members, trailing data,
// fractions, exponents and numbers in strings are refused by the parser, ids and quantities by
// the domain, and a body that is longer than BodyMax is not parsed at all.
//
// Encode spells its JSON out, and Decode first reads exactly that spelling, without a parser: one costs more than all
// else that is done with a message here, and nearly every message is of our own writing. What is spelled in any
// other way goes to the parser; tests and a fuzzer hold both against it.
//
// The reserved user of stock changes is never written, and "u" is read by the rules for buyers, so no message
// can name a stock change by its user; a message of one kind holds nothing of the other.
//
// Every kind has the same shape. A version or a kind that this code does not know is an error,
// so that the message is parked with its copy and a newer version can replay it.
package wire
