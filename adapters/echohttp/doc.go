// Package echohttp is the service's HTTP side: the buyers' door and the operators' door,
// each with a listener and an http.Server of its own.
//
// # Decisions
//
// Deny by default: a route names the scope that it needs, or says that anyone may use it;
// one that says nothing answers nobody. The buyer is the sub of the bearer token and
// nothing else, so an order of somebody else is as absent as one that never was.
//
// No Echo middleware: Echo builds a chain of closures anew for every request, so what goes
// around a handler (request id, recovery, the cap on requests in flight, authority,
// deadline) is one function per route, composed when the door is built.
//
// Verified tokens are remembered, so many and no more, until they run out: a check was
// four fifths of the cost of a bare purchase, and a buyer asks several times within a
// few seconds (purchase, repeats, the order). Only whole tokens that passed every check count, for as long as they
// last; a change of the key is a new start, which remembers nothing.
//
// What nearly every buyer sends and gets (a quantity, an order, a problem) is read and written by hand, beside
// the JSON library that says what it must be: tests and a fuzzer hold them together. Any other spelling of a
// body goes to the library.
//
// Request bodies are decoded strictly (one document, no unknown or doubled members, whole
// numbers written as such) and by hand-written checks in the domain, not by the OpenAPI
// document; tests hold the document against routes, codes and real answers.
//
// The generated client (adapters/doorclient) has no generated server beside it. A generated interface proves that each operation
// has a method, and no more: not which door has it, nor the scope it needs, and its wrapper would parse parameters by looser
// rules than ours. The one route table says all of that in a line per route, and a test holds it and the document
// against each other, both ways, with the scopes.
//
// The ETag of a product is its edition: what operators have made of it, and not what buyers do to it meanwhile. A tag that
// moved with every purchase would make If-Match useless just while a sale runs. It is for edits, not for caches: answers
// are not stored. A pause and its like are held against the edition under the row's lock; a stock change or a
// rebuild when it begins, since neither overwrites another's wish. Other records have none: nobody edits them.
//
// A buyer who waits for an order (?wait=) is served by looking again, ever more seldom, not by a signal: the instance that
// applies the order is often another one. There is no stream of an order: it has one change, which the wait tells.
//
// A buyer's requests are limited only where it is set, for each instance, by a bounded table of buckets. A limit that
// all instances share would cost a call as dear as the deduction, and the limit that matters, units per buyer, is the gate's.
//
// Ids in a path are unescaped exactly once: Echo hands over the escaped form when the
// request's path was escaped in an unusual way, and the plain one otherwise.
//
// Every error is application/problem+json with a stable code from one table (error.go). A
// part that is away is "rebuilding" to a buyer and "unavailable" to an operator: a buyer
// can do no more with the difference. What went wrong inside is logged once, with the
// request id, and never shown.
//
// The API page and the problem pages are made from the document and the table of codes by html/template, without a
// script and with links relative to where they are served, so that they work behind a proxy's prefix. The document is
// parsed when its page is first asked for: a start does not pay for it.
//
// The console (package console) is mounted by the operators' door, and with it the door's API a second time, below
// /console/api: the same handlers, by a session instead of a bearer token. Its streams have no deadline; they end with
// their reader, their session or the door.
//
// A request has a deadline shorter than the server's write timeout, so that every caller
// gets an answer. A purchase that ends by it is "outcome unknown", never a refusal.
//
// A demo's console buys as well (demo.go): one more route below /console/api, which asks the purchase's own use case by the
// operator's session, with the code of that session. It makes no token for anybody, and no door without a demo has it.
package echohttp
