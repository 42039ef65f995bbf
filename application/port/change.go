package port

//go:generate go tool mockgen -source=change.go -destination=portmock/change.go -package=portmock

import (
	"context"
	"encoding/json"
	"fmt"

	"seckill/domain"
)

// What the audit log calls stock changes. A withdrawal is written down as it is asked; its row says what became of it.
const (
	AuditAdd      = "add-stock"
	AuditWithdraw = "ask-withdrawal"
)

// ChangeStates are the before and after of a stock change in its audit row.
func ChangeStates(key domain.Key, delta int64, before domain.Stock) (was, is string) {
	was = fmt.Sprintf(`{"total":%d,"stock":%d}`, before.Total(), before.Remaining())
	is = fmt.Sprintf(`{"key":%q,"delta":%d,"total":%d,"stock":%d}`, key.Token(), delta, before.Total()+delta, before.Remaining()+delta)
	return was, is
}

// ChangeInState reads which change of a product an audit row is of, from its after; a zero one where that says nothing of it.
func ChangeInState(product, is string) AskedChange {
	var state struct {
		Key   string
		Delta int64
	}
	if json.Unmarshal([]byte(is), &state) != nil {
		return AskedChange{}
	}
	key, err := domain.ChangeKey(product, state.Key)
	if err != nil {
		return AskedChange{}
	}
	return AskedChange{key, state.Delta}
}

// AskedChange names a stock change that was asked for. Under one key others may have been asked before, and refused.
type AskedChange struct {
	Key   domain.Key
	Delta int64
}

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

	// Asked reads from the audit log who asked last for each of a product's changes, and why; a zero Audit stands
	// for one that is not on record. CodeUnavailable.
	Asked(ctx context.Context, product string, changes []AskedChange) ([]Audit, error)
}
