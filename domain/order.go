package domain

import "time"

// OrderStatus is the fate of one key in the ledger. The zero value is no status: there is no row.
type OrderStatus uint8

// The fates. Pending is not among them: an order without a row has no fate yet.
const (
	OrderAbsent OrderStatus = iota
	OrderConfirmed
	OrderCancelled
	OrderRejected
	OrderAdded // a stock change that added units; never a buyer's
)

var orderStatusNames = [...]string{"absent", "confirmed", "cancelled", "rejected", "added"}

// String names the status.
func (s OrderStatus) String() string {
	if int(s) < len(orderStatusNames) {
		return orderStatusNames[s]
	}
	return "invalid"
}

// ParseOrderStatus is the inverse of String; the error has CodeInvalidRequest.
func ParseOrderStatus(s string) (OrderStatus, error) {
	for i, n := range orderStatusNames {
		if i > 0 && n == s {
			return OrderStatus(i), nil
		}
	}
	return OrderAbsent, invalid("status", "is not the status of an order")
}

// OrderFields are the parts of an Order, for its constructor.
type OrderFields struct {
	ID           string // 32 hexadecimal digits (UUID version 7)
	Key          Key
	Quantity     int64
	Status       OrderStatus
	FromBirth    bool   // the row was born in its status; false for an order that was confirmed first
	Epoch        int64  // of the message that made it; 0 for the plain form
	Sequence     int64  // of the flow that it stands for; 0 where unknown
	StockVersion int64  // version of the stock row when the status was decided
	Attempt      string // of the flow that it stands for
	GateTold     bool   // the gate acknowledged this status
	CreatedAt    time.Time
}

// Order is the row that decides the fate of one key: a purchase's, or a stock change's, where confirmed means
// withdrawn.
type Order struct{ f OrderFields }

// NewOrder checks the parts; the error has CodeInvalidRequest.
func NewOrder(f OrderFields) (Order, error) {
	if f.Key.IsZero() {
		return Order{}, invalid("key", "is missing")
	}
	if err := CheckQuantity("quantity", f.Quantity); err != nil {
		return Order{}, err
	}
	if f.Status == OrderAbsent || f.Status > OrderAdded {
		return Order{}, invalid("status", "is not the status of an order")
	}
	if f.Status == OrderAdded && !f.Key.IsChange() {
		return Order{}, invalid("status", "is that of a stock change")
	}
	if f.Status != OrderCancelled {
		f.FromBirth = true // only a cancelled order can have been something else before
	}
	f.CreatedAt = f.CreatedAt.UTC().Truncate(time.Millisecond)
	return Order{f}, nil
}

// IsZero reports whether there is no such row.
func (o Order) IsZero() bool { return o.f.Status == OrderAbsent }

// ID is the row's own id, 32 hexadecimal digits.
func (o Order) ID() string { return o.f.ID }

// Key names the deduction whose fate this is.
func (o Order) Key() Key { return o.f.Key }

// Quantity is the number of units.
func (o Order) Quantity() int64 { return o.f.Quantity }

// Delta is what a stock change was asked to do to the stock: the quantity if it added, less than zero otherwise.
func (o Order) Delta() int64 {
	if o.f.Status == OrderAdded {
		return o.f.Quantity
	}
	return -o.f.Quantity
}

// Status is the fate.
func (o Order) Status() OrderStatus { return o.f.Status }

// FromBirth is false for an order that was confirmed before it was cancelled.
func (o Order) FromBirth() bool { return o.f.FromBirth }

// Epoch is the epoch that the message named.
func (o Order) Epoch() int64 { return o.f.Epoch }

// Sequence is the sequence of the flow.
func (o Order) Sequence() int64 { return o.f.Sequence }

// StockVersion is the version of the stock row when the status was decided.
func (o Order) StockVersion() int64 { return o.f.StockVersion }

// Attempt is the attempt of the flow.
func (o Order) Attempt() string { return o.f.Attempt }

// GateTold reports whether the gate acknowledged the status.
func (o Order) GateTold() bool { return o.f.GateTold }

// CreatedAt is when the row was written, UTC, in milliseconds.
func (o Order) CreatedAt() time.Time { return o.f.CreatedAt }

// Fate is what the gate has to be told.
func (o Order) Fate() Fate {
	return Fate{Key: o.f.Key, Quantity: o.f.Quantity, Status: o.f.Status, FromBirth: o.f.FromBirth,
		Epoch: o.f.Epoch, Sequence: o.f.Sequence, StockVersion: o.f.StockVersion, At: o.f.CreatedAt}
}
