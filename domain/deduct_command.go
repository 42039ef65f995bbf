package domain

import "fmt"

// QuantityMax is the most units that one command may ask for, whatever the sale's own limit says.
const QuantityMax = 1_000_000

// CheckQuantity refuses what is not within 1 and QuantityMax. A quantity of zero or below
// would put stock back, so every layer asks this again.
func CheckQuantity(field string, quantity int64) error {
	if quantity < 1 || quantity > QuantityMax {
		return invalid(field, fmt.Sprintf("must be a whole number from 1 to %d", QuantityMax))
	}
	return nil
}

// DeductCommand is a buyer's wish: quantity units under one key.
type DeductCommand struct {
	key      Key
	quantity int64
}

// NewDeductCommand checks ids and quantity; the error has CodeInvalidRequest and names the field.
func NewDeductCommand(product, user, token string, quantity int64) (DeductCommand, error) {
	key, err := NewKey(product, user, token)
	if err != nil {
		return DeductCommand{}, err
	}
	if err := CheckQuantity("quantity", quantity); err != nil {
		return DeductCommand{}, err
	}
	return DeductCommand{key, quantity}, nil
}

// Key names the deduction.
func (c DeductCommand) Key() Key { return c.key }

// Quantity is the number of units, at least one.
func (c DeductCommand) Quantity() int64 { return c.quantity }
