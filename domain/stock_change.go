package domain

import "fmt"

// StockChange is an operator's wish during a sale: so many units more, or fewer. It is signed and never absolute,
// so that it says the same whatever is sold meanwhile.
type StockChange struct {
	key   Key
	delta int64
}

// NewStockChange checks ids and delta, which lies within QuantityMax and is not zero; the error has
// CodeInvalidRequest and names the field.
func NewStockChange(product, token string, delta int64) (StockChange, error) {
	key, err := ChangeKey(product, token)
	if err != nil {
		return StockChange{}, err
	}
	if delta == 0 || delta < -QuantityMax || delta > QuantityMax {
		return StockChange{}, invalid("delta", fmt.Sprintf("must be a whole number from %d to %d, and not 0", -QuantityMax, QuantityMax))
	}
	return StockChange{key, delta}, nil
}

// Key names the change.
func (c StockChange) Key() Key { return c.key }

// Delta is the signed number of units, never zero.
func (c StockChange) Delta() int64 { return c.delta }

// Adds reports whether it is an addition; the others are withdrawals.
func (c StockChange) Adds() bool { return c.delta > 0 }

// Quantity is the number of units, at least one.
func (c StockChange) Quantity() int64 {
	if c.delta < 0 {
		return -c.delta
	}
	return c.delta
}

// Is reports whether a row is what this change became, and not another change under its token.
func (c StockChange) Is(row Order) bool { return row.Key() == c.key && row.Delta() == c.delta }
