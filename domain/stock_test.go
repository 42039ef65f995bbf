package domain_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seckill/domain"
)

func TestQuantitiesOutsideTheirBoundsAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	key, err := domain.NewKey("p", "u", "t")
	if err != nil {
		t.Fatal(err)
	}
	stock := mustStock(t, domain.StockFields{Product: "p", Total: 10, Stock: 10, State: domain.SaleOpen})
	for _, q := range []int64{0, -1, -5, math.MinInt64, math.MaxInt64, domain.QuantityMax + 1} {
		_, err1 := domain.NewDeductCommand("p", "u", "t", q)
		_, err2 := domain.NewFlow(domain.FlowFields{Key: key, Quantity: q, State: domain.FlowDeducted})
		_, err3 := domain.NewOrder(domain.OrderFields{Key: key, Quantity: q, Status: domain.OrderConfirmed})
		after, err4 := stock.Deduct(q)
		_, err5 := stock.GiveBack(q)
		for i, err := range []error{err1, err2, err3, err4, err5} {
			if domain.CodeOf(err) != domain.CodeInvalidRequest {
				t.Errorf("quantity %d, check %d: %v", q, i, err)
			}
		}
		if after.Remaining() != 10 {
			t.Errorf("quantity %d changed the stock to %d", q, after.Remaining())
		}
	}
}

func TestWhatIsNoStateIsRefused(t *testing.T) {
	t.Parallel()
	key, _ := domain.NewKey("p", "u", "t")
	_, err1 := domain.NewFlow(domain.FlowFields{Key: key, Quantity: 1})
	_, err2 := domain.NewFlow(domain.FlowFields{Key: key, Quantity: 1, State: 99})
	_, err3 := domain.NewOrder(domain.OrderFields{Key: key, Quantity: 1})
	_, err4 := domain.NewStock(domain.StockFields{Product: "p", Total: 1})
	_, err5 := domain.NewStock(domain.StockFields{Product: "p", Total: 1, Stock: 2, State: domain.SaleOpen})
	_, err6 := domain.NewStock(domain.StockFields{Product: "p", Total: 1, Stock: -1, State: domain.SaleOpen})
	_, err7 := domain.NewOrder(domain.OrderFields{Quantity: 1, Status: domain.OrderConfirmed})
	_, err8 := domain.ParseOrderStatus("absent")
	_, err9 := domain.ParseSaleState("")
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9} {
		if !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("case %d was taken: %v", i+1, err)
		}
	}
}

func TestASaleIsRefusedOutsideItsBounds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 2, 10, 0, 0, 0, time.UTC)
	for name, make := range map[string]func() (domain.Sale, error){
		"zero total":     func() (domain.Sale, error) { return domain.NewSale("p", 0, time.Time{}, time.Time{}, 0) },
		"negative total": func() (domain.Sale, error) { return domain.NewSale("p", -1, time.Time{}, time.Time{}, 0) },
		"huge total": func() (domain.Sale, error) {
			return domain.NewSale("p", domain.UnitsMax+1, time.Time{}, time.Time{}, 0)
		},
		"negative limit":      func() (domain.Sale, error) { return domain.NewSale("p", 1, time.Time{}, time.Time{}, -1) },
		"closes at its start": func() (domain.Sale, error) { return domain.NewSale("p", 1, now, now, 0) },
		"bad id":              func() (domain.Sale, error) { return domain.NewSale("p p", 1, time.Time{}, time.Time{}, 0) },
	} {
		if _, err := make(); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%s was taken: %v", name, err)
		}
	}
	sale, err := domain.NewSale("p", 5, now, now.Add(time.Hour), 2)
	if err != nil {
		t.Fatal(err)
	}
	stock := mustStock(t, domain.StockFields{Product: "p", Total: 5, Stock: 3, State: domain.SaleOpen, Terms: sale.Terms()})
	other, _ := domain.NewSale("p", 6, now, now.Add(time.Hour), 2)
	if !stock.OffersAsNew(sale) || stock.OffersAsNew(other) {
		t.Error("a repeat is not told from another sale")
	}
}

func TestDriftIsSeenOnlyWhenNothingMoves(t *testing.T) {
	t.Parallel()
	still := domain.Counts{Product: "p", GateRemaining: 7, LedgerStock: 10, OpenUnits: 2, Version: 4, Epoch: 1, Sequence: 9}
	if drift, ok := domain.SettledDrift(still, still); !ok || drift != -1 {
		t.Errorf("drift %d, %v, want -1", drift, ok)
	}
	moved := still
	moved.Sequence++
	if _, ok := domain.SettledDrift(still, moved); ok {
		t.Error("motion was taken for drift")
	}
	even := domain.Counts{GateRemaining: 8, LedgerStock: 10, OpenUnits: 2}
	if even.Drift() != 0 {
		t.Errorf("drift %d, want 0", even.Drift())
	}
}

// The settling table: once only under any repetition and order, and units are conserved.
func TestTellingAFateTwiceIsTellingItOnce(t *testing.T) {
	t.Parallel()
	key, _ := domain.NewKey("p", "u", "t")
	rapid.Check(t, func(t *rapid.T) {
		fate := domain.Fate{Key: key, Quantity: rapid.Int64Range(1, 5).Draw(t, "quantity"),
			Status:    rapid.SampledFrom([]domain.OrderStatus{domain.OrderConfirmed, domain.OrderCancelled, domain.OrderRejected}).Draw(t, "status"),
			FromBirth: rapid.Bool().Draw(t, "from birth"), StockVersion: rapid.Int64Range(0, 3).Draw(t, "version")}
		state := domain.FlowState(rapid.IntRange(0, 4).Draw(t, "state"))
		base, remaining := rapid.Int64Range(0, 3).Draw(t, "base"), rapid.Int64Range(0, 6).Draw(t, "remaining")
		first := fate.Move(state, base, remaining)
		if remaining+first.Units < 0 {
			t.Fatalf("%v on %v leaves %d units", fate, state, remaining+first.Units)
		}
		if first.Units > 0 && !state.Alive() {
			t.Fatalf("%v on %v gives back units that the flow does not hold", fate, state)
		}
		if first.To.Open() {
			t.Fatalf("%v leaves the flow open", fate)
		}
		second := fate.Move(first.To, base, remaining+first.Units)
		if second.To != first.To || second.Units != 0 {
			t.Fatalf("%v on %v: told twice it moves again: %+v then %+v", fate, state, first, second)
		}
	})
}

func TestALateSettleOvertakenByACancelChangesNothing(t *testing.T) {
	t.Parallel()
	key, _ := domain.NewKey("p", "u", "t")
	cancel := domain.Fate{Key: key, Quantity: 2, Status: domain.OrderCancelled, StockVersion: 5}
	settle := domain.Fate{Key: key, Quantity: 2, Status: domain.OrderConfirmed, FromBirth: true, StockVersion: 4}
	m := cancel.Move(domain.FlowDeducted, 1, 0)
	if m.To != domain.FlowReleased || m.Units != 2 {
		t.Fatalf("a cancel of a deducted flow: %+v", m)
	}
	if late := settle.Move(m.To, 1, 2); late.To != domain.FlowReleased || late.Units != 0 {
		t.Fatalf("the late settle: %+v", late)
	}
}

func mustStock(t *testing.T, f domain.StockFields) domain.Stock {
	t.Helper()
	s, err := domain.NewStock(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
