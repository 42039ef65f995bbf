// Package domain holds the words and the rules of a flash sale, and nothing else:
// it imports the standard library only, knows no clock, no storage and no wire form.
//
// # Vocabulary
//
// A buyer sends a DeductCommand: so many units of a product, under a token of the
// buyer's choice. (product, user, token) is its Key. The gate deducts the units and
// records a Flow. The flow travels to the ledger, where the first row written under its
// key decides its fate: an Order that is confirmed, cancelled or rejected. Telling the
// gate that fate settles the flow (confirmed), releases it (cancelled) or refuses it
// for good (rejected, a tombstone). Stock is the ledger's record of one product: how
// much there is, under which epoch, and whether the product is on sale.
//
// An operator sends a StockChange: so many units more or fewer, under a token. Its Key has
// ChangeUser where a buyer would stand. A withdrawal is a flow like a purchase, and its row
// takes the units off sale instead of selling them. An addition begins with its row
// (OrderAdded); its settled flow says that the gate has counted it.
//
// # Invariants
//
// A, no oversell: confirmed quantities never exceed what was put on sale, and no count
// is ever below zero. B, no leak: what the gate has left equals the ledger's stock, and
// what was put on sale less the stock equals the confirmed orders and the stock flows.
// C, once: one order and one flow row for each accepted key. D, truthful: accepted means
// the order appears, refused means it never does. E, live: all of it by itself.
//
// # Decisions
//
// States are closed types whose zero value is not a state. Fields are private and
// constructors refuse, so that a value that exists is a value that is right; the moves
// that the rules allow are methods, and there are no others.
package domain
