package domain

import (
	"fmt"
	"time"
)

// UnitsMax is the most units that one product may have on sale.
const UnitsMax = 1_000_000_000

// SaleState is whether the ledger lets a product be sold. The zero value is no state.
type SaleState uint8

// The states. Pausing is a wish of the operator's and kept apart from them, so that it outlives a rebuild.
const (
	_             SaleState = iota
	SaleOpen                // on sale, within its window
	SaleSuspended           // the gate is being rebuilt
	SaleDamaged             // the ledger itself went back behind the gate: waits for an operator
)

var saleStateNames = [...]string{"", "open", "suspended", "damaged"}

// String names the state.
func (s SaleState) String() string {
	if s > 0 && int(s) < len(saleStateNames) {
		return saleStateNames[s]
	}
	return "invalid"
}

// ParseSaleState is the inverse of String; the error has CodeInvalidRequest.
func ParseSaleState(s string) (SaleState, error) {
	for i, n := range saleStateNames {
		if i > 0 && n == s {
			return SaleState(i), nil
		}
	}
	return 0, invalid("state", "is not the state of a sale")
}

// Terms are what an operator decides about a sale and may change.
type Terms struct {
	OpensAt       time.Time // zero: open from the start
	ClosesAt      time.Time // zero: until sold or paused
	LimitPerBuyer int64     // zero: no limit
	Paused        bool
	Revision      int64 // raised by each change; a gate takes terms only from a newer revision
}

// Sale is what an operator puts on sale.
type Sale struct {
	product string
	total   int64
	terms   Terms
}

// NewSale checks id, total (1 to UnitsMax), window and limit; the error has CodeInvalidRequest.
func NewSale(product string, total int64, opensAt, closesAt time.Time, limitPerBuyer int64) (Sale, error) {
	if err := CheckID("productId", product); err != nil {
		return Sale{}, err
	}
	if total < 1 || total > UnitsMax {
		return Sale{}, invalid("total", fmt.Sprintf("must be a whole number from 1 to %d", UnitsMax))
	}
	if limitPerBuyer < 0 || limitPerBuyer > UnitsMax {
		return Sale{}, invalid("limitPerBuyer", fmt.Sprintf("must be a whole number from 0 to %d", UnitsMax))
	}
	if !opensAt.IsZero() && !closesAt.IsZero() && !closesAt.After(opensAt) {
		return Sale{}, invalid("closesAt", "must be after opensAt")
	}
	t := Terms{OpensAt: toMillis(opensAt), ClosesAt: toMillis(closesAt), LimitPerBuyer: limitPerBuyer, Revision: 1}
	return Sale{product, total, t}, nil
}

func toMillis(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}

// Product is the product's id.
func (s Sale) Product() string { return s.product }

// Total is how many units go on sale.
func (s Sale) Total() int64 { return s.total }

// Terms are window and limit, at revision 1.
func (s Sale) Terms() Terms { return s.terms }

// StockFields are the parts of a Stock, for its constructor.
type StockFields struct {
	Product string
	Total   int64 // put on sale, additions and withdrawals included
	Stock   int64 // what the ledger has left
	Version int64 // raised by every change of the row's stock and by every reopening
	Epoch   int64 // raised by every rebuild attempt
	State   SaleState
	Reason  string // why the product is not open
	Terms   Terms

	Suspension  int64         // raised when an open product is suspended: two suspensions are never taken for one
	SuspendedAt time.Time     // since when it is not open, by the ledger's clock; zero while it is
	LastClosed  time.Duration // how long it was not open before it was opened last
}

// Stock is the ledger's record of one product.
type Stock struct{ f StockFields }

// NewStock checks the parts; the error has CodeInvalidRequest.
func NewStock(f StockFields) (Stock, error) {
	if err := CheckID("productId", f.Product); err != nil {
		return Stock{}, err
	}
	if f.Stock < 0 || f.Total < f.Stock || f.Total > UnitsMax {
		return Stock{}, invalid("stock", "must lie between 0 and the total")
	}
	if f.Version < 0 || f.Epoch < 0 {
		return Stock{}, invalid("version", "must not be negative")
	}
	if f.State == 0 || f.State > SaleDamaged {
		return Stock{}, invalid("state", "is not the state of a sale")
	}
	return Stock{f}, nil
}

// Product is the product's id.
func (s Stock) Product() string { return s.f.Product }

// Total is what was put on sale.
func (s Stock) Total() int64 { return s.f.Total }

// Remaining is what the ledger has left.
func (s Stock) Remaining() int64 { return s.f.Stock }

// Sold is what the ledger has given away.
func (s Stock) Sold() int64 { return s.f.Total - s.f.Stock }

// Version is the version that guards the row.
func (s Stock) Version() int64 { return s.f.Version }

// Epoch is the newest rebuild attempt.
func (s Stock) Epoch() int64 { return s.f.Epoch }

// State is whether the ledger lets the product be sold.
func (s Stock) State() SaleState { return s.f.State }

// Reason says why the product is not open.
func (s Stock) Reason() string { return s.f.Reason }

// Suspension names the suspension that is under way, or the last one.
func (s Stock) Suspension() int64 { return s.f.Suspension }

// SuspendedAt is since when the product is not open, by the ledger's clock; zero while it is.
func (s Stock) SuspendedAt() time.Time { return s.f.SuspendedAt }

// LastClosed is how long the product was not open before it was opened last.
func (s Stock) LastClosed() time.Duration { return s.f.LastClosed }

// Terms are the operator's.
func (s Stock) Terms() Terms { return s.f.Terms }

// Edition names the product as operators have made it: terms, total, state and epoch. What buyers do does not change
// it, so that an operator's edit during a sale can depend on it.
func (s Stock) Edition() string {
	return fmt.Sprintf("%d.%d.%s.%d", s.f.Terms.Revision, s.f.Total, s.f.State, s.f.Epoch)
}

// IsZero reports whether there is no such product.
func (s Stock) IsZero() bool { return s.f.Product == "" }

// Deduct takes quantity units and raises the version; the error has CodeStockNotEnough or CodeInvalidRequest.
func (s Stock) Deduct(quantity int64) (Stock, error) {
	if err := CheckQuantity("quantity", quantity); err != nil {
		return s, err
	}
	if s.f.Stock < quantity {
		return s, NewError(CodeStockNotEnough, fmt.Sprintf("%d asked, %d left", quantity, s.f.Stock), nil)
	}
	s.f.Stock -= quantity
	s.f.Version++
	return s, nil
}

// Withdraw takes quantity units off sale and raises the version; what is sold stays sold. The error has
// CodeStockNotEnough or CodeInvalidRequest.
func (s Stock) Withdraw(quantity int64) (Stock, error) {
	after, err := s.Deduct(quantity)
	if err != nil {
		return s, err
	}
	after.f.Total -= quantity
	return after, nil
}

// Add puts quantity units more on sale and raises the version; a total beyond UnitsMax is refused.
func (s Stock) Add(quantity int64) (Stock, error) {
	if err := CheckQuantity("quantity", quantity); err != nil {
		return s, err
	}
	if s.f.Total+quantity > UnitsMax {
		return s, invalid("delta", fmt.Sprintf("would put more than %d units on sale", UnitsMax))
	}
	s.f.Stock += quantity
	s.f.Total += quantity
	s.f.Version++
	return s, nil
}

// GiveBack returns quantity units of a cancelled order and raises the version; more than was sold is refused.
func (s Stock) GiveBack(quantity int64) (Stock, error) {
	if err := CheckQuantity("quantity", quantity); err != nil {
		return s, err
	}
	if s.f.Stock+quantity > s.f.Total {
		return s, invalid("quantity", "is more than was sold")
	}
	s.f.Stock += quantity
	s.f.Version++
	return s, nil
}

// OffersAsNew reports whether putting sale on sale again would be a repeat of what is there.
func (s Stock) OffersAsNew(sale Sale) bool {
	a, b := s.f.Terms, sale.terms
	return s.f.Total == sale.total && a.LimitPerBuyer == b.LimitPerBuyer &&
		a.OpensAt.Equal(b.OpensAt) && a.ClosesAt.Equal(b.ClosesAt)
}
