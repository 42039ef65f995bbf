package port

//go:generate go tool mockgen -source=change.go -destination=portmock/change.go -package=portmock

import (
	"context"

	"seckill/domain"
)

// Addition puts units on sale under a stock change's key.
type Addition struct {
	Key      domain.Key
	Quantity int64
	Audit    Audit
}

// AddReply answers one addition. Added is true for the call that wrote the row; otherwise Row is the
// one that stood, which may be another change under the same token.
type AddReply struct {
	Row   domain.Order
	Added bool
}

// Changes keeps the stock changes of a sale. A withdrawal's row is written by Ledger.Apply, or by
// Ledger.Decide where it took nothing; an addition's here. Whoever writes the row of a key first
// decides, whichever of the two it is.
type Changes interface {
	// Add writes, in one transaction, a row for each key that has none, puts its units on sale (stock and total,
	// guarded by the version, which is raised) and appends its audit row with the stock before and after.
	// The gate has yet to be told. CodeProductNotFound; otherwise as Ledger's, a total beyond
	// domain.UnitsMax being CodeInvalidRequest: then nothing of the call was written.
	Add(ctx context.Context, additions []Addition) ([]AddReply, error)

	// Changes gives at most limit rows of a product with an id below before (empty: the newest), newest first. A
	// withdrawal that is on its way has none. CodeUnavailable.
	Changes(ctx context.Context, product, before string, limit int) ([]domain.Order, error)
}
