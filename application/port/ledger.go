package port

//go:generate go tool mockgen -source=ledger.go -destination=portmock/ledger.go -package=portmock

import (
	"context"
	"time"

	"seckill/domain"
)

// ApplyItem is one deduction to be applied.
type ApplyItem struct {
	Deduction    domain.Deduction
	Plain        bool  // came in the plain form
	AdoptedEpoch int64 // epoch of the gate that holds its units by adoption; 0 when it was not adopted
}

// ApplyOutcome says what became of one item. The zero value is no outcome.
type ApplyOutcome uint8

// The outcomes. The last three left no trace of the item in the database.
const (
	_              ApplyOutcome = iota
	Applied                     // this call wrote its row (confirmed, or rejected by the stock guard)
	Met                         // the row was there; Order is it
	Straggler                   // of an older epoch, or plain, and not adopted in the product's epoch: adopt first
	Deferred                    // not applied while the product is not open: park it until it is. Plain, or of a gate before the last one that was open
	UnknownProduct              // no such product: park it
)

// ApplyReply answers one item. Order is set for Applied and Met.
type ApplyReply struct {
	Outcome ApplyOutcome
	Order   domain.Order
}

// ApplyResult answers a group.
type ApplyResult struct {
	Replies  []ApplyReply
	Suspects []string // products whose stock guard refused: the gate had too much
}

// FateClaim wants to decide the fate of a key that has none.
type FateClaim struct {
	Key      domain.Key
	Quantity int64
	Status   domain.OrderStatus // OrderCancelled or OrderRejected
	Epoch    int64
	Sequence int64
	Attempt  string
}

// Ledger decides the fate of each key: whoever inserts the row first. Errors have
// CodeUnavailable (try again: nothing is known of the outcome, and a repeat meets its own
// rows) or CodeInvalidRequest (the database will never take this group: split it).
type Ledger interface {
	// Apply writes, in one transaction, an order and a stock flow for each item that has no row
	// and takes the units of exactly those from the stock, under a version lock and a guard
	// against going below zero. Orders that the guard refuses are written rejected. An item whose
	// key is a stock change's is a withdrawal: no stock flow, and its units go off the total, too. Items of
	// one key after the first meet its row. Conflicts are tried again a bounded number of times.
	Apply(ctx context.Context, items []ApplyItem) (ApplyResult, error)

	// Fates reads rows; a zero Order stands for a key without one.
	Fates(ctx context.Context, keys []domain.Key) ([]domain.Order, error)

	// Decide inserts each claim's row where there is none and gives the row that stands. The
	// stock is not touched. A product that does not exist is CodeProductNotFound.
	Decide(ctx context.Context, claims []FateClaim) ([]domain.Order, error)

	// Cancel is Decide for claims of cancelled fates that also reverses, in the same transaction, the
	// orders that are confirmed: each becomes cancelled, untold and no longer from birth, its units go back
	// to the stock with a stock flow of their own, and its stock version is the one that this makes.
	// Once only under any repetition, at once or later: an order that is cancelled or rejected
	// stands as it is. A rejected claim among them is CodeInvalidRequest.
	Cancel(ctx context.Context, claims []FateClaim) ([]domain.Order, error)
}

// Outbox holds the fates that the gate has not acknowledged.
type Outbox interface {
	// Untold gives at most limit rows with an id above after whose fate the gate has not
	// acknowledged and which are older than age, in order of id.
	Untold(ctx context.Context, age time.Duration, after string, limit int) ([]domain.Order, error)

	// MarkTold notes that the gate acknowledged these orders' fates as they stand here; a row whose
	// fate has changed since stays untold.
	MarkTold(ctx context.Context, orders []domain.Order) error
}

// Catalog knows the products.
type Catalog interface {
	// Create puts a sale on record, suspended until its gate is built. Where the product is there
	// already nothing changes, created is false, and the stock as it stands is given.
	Create(ctx context.Context, sale domain.Sale, audit Audit) (stock domain.Stock, created bool, err error)

	// Stocks reads products; a zero Stock stands for one that is not there.
	Stocks(ctx context.Context, products []string) ([]domain.Stock, error)

	// List gives at most limit products with an id above after, in order of id.
	List(ctx context.Context, after string, limit int) ([]domain.Stock, error)

	// SetPaused changes the operator's wish and raises the terms' revision if it differs, with
	// its audit row in the same transaction. Unless only is empty, the product must be of that edition.
	// CodeProductNotFound, CodeEditionOutdated.
	SetPaused(ctx context.Context, product string, paused bool, only string, audit Audit) (domain.Stock, error)
}

// RowCursor walks a product's orders in order of (stock version, id). The zero value is the start.
type RowCursor struct {
	Version int64
	ID      string
}

// LockedStock is a product's stock row under its lock, with reads in the same transaction.
type LockedStock interface {
	Stock() domain.Stock

	// Rows gives at most limit orders after the cursor, and the cursor to go on from.
	Rows(after RowCursor, limit int) ([]domain.Order, RowCursor, error)

	// Fates is Ledger.Fates inside the transaction.
	Fates(keys []domain.Key) ([]domain.Order, error)

	// Untold gives at most limit untold orders of the product.
	Untold(limit int) ([]domain.Order, error)

	// MarkTold is Outbox.MarkTold inside the transaction.
	MarkTold(orders []domain.Order) error

	// Reopen marks the product open, notes how long it was not, frees the rebuild lease and raises the version, in this
	// transaction: whoever waits for the lock, or read the row before, reads it again.
	Reopen() error
}

// Epochs is the ledger's part of suspend, drain, rebuild and reopen.
type Epochs interface {
	// Suspend suspends open products, with the reason, under a number of their own; others stay as they are. damaged marks them as
	// waiting for an operator instead, suspended ones too, so that no rebuild goes on.
	Suspend(ctx context.Context, products []string, reason string, damaged bool) error

	// Accept makes a damaged product a suspended one, under a suspension of its own, with a version above version and an epoch of at least epoch: what
	// the gate was told before the ledger went back. One that is not damaged stays as it is.
	Accept(ctx context.Context, product string, version, epoch int64) error

	// Suspended lists every product that is not open.
	Suspended(ctx context.Context) ([]domain.Stock, error)

	// TakeAttempt raises the epoch of a suspended product by one and takes its rebuild lease for holder, if
	// it is free, run out (by the database's clock) or holder's already. taken is false, and nothing
	// changes, when another holds it, the product is not suspended or its suspension is another one.
	TakeAttempt(ctx context.Context, product, holder string, suspension int64, lease time.Duration) (stock domain.Stock, taken bool, err error)

	// KeepAttempt makes the rebuild lease of an attempt last for lease from now, if the attempt is still the newest
	// one, holder's, and its product suspended.
	KeepAttempt(ctx context.Context, product, holder string, epoch int64, lease time.Duration) (bool, error)

	// Rows is LockedStock.Rows without the lock.
	Rows(ctx context.Context, product string, after RowCursor, limit int) ([]domain.Order, RowCursor, error)

	// Locked calls do with the stock row locked, if its epoch is epoch and it is suspended, and
	// commits; it says whether do was called and returned nil. do's error rolls back and is returned.
	Locked(ctx context.Context, product string, epoch int64, do func(LockedStock) error) (bool, error)
}
