// Package linear checks that purchases of one product look as if they had happened one after another, each at
// some moment between its request and its answer.
//
// # Decisions
//
// A history is what the buyers of one product asked and were told. Model is what a shop is allowed to say: a
// stock, and a state for each token. porcupine looks for an order in which every answer is the model's, and
// says so if there is none.
//
// An answer that did not come, or says "unknown", may have taken effect or not, and at any later time: its
// interval never ends. Where it cannot take effect any more the model lets it do nothing, so "never" is the
// same as "at the very end". Every token is asked once more at the end of a history, until the answer is
// definite. Requests of which nothing ran by the service's own word ("busy", "rebuilding", nobody listens) are
// no operations.
//
// The units of a cancelled order come back to the gate when it has been told, which is not later than the
// answer. Where the answer of a cancel is unknown, its return is an operation of its own whose interval never
// ends. What never ends makes the search for an order long, so there is no more of it than must be.
//
// A loss of Redis is not for this check: what it takes back was seen. The embedded gate is lost with its process, so a
// kill may forget a purchase that was under way and had made others sold out: Forget, an operation beside each
// purchase whose answer is unknown there. What anybody was told stays.
package linear
