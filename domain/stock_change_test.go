package domain_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"seckill/domain"
)

func TestAStockChangeIsRefusedOutsideItsBounds(t *testing.T) {
	t.Parallel()
	for _, delta := range []int64{0, domain.QuantityMax + 1, -domain.QuantityMax - 1, math.MinInt64, math.MaxInt64} {
		if _, err := domain.NewStockChange("p", "k", delta); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("delta %d: %v", delta, err)
		}
	}
	for _, ids := range [][2]string{{"", "k"}, {"p", ""}, {"+p", "k"}, {"p", "+stock"}, {"p", "a|b"}, {"p", strings.Repeat("k", 65)}} {
		if _, err := domain.NewStockChange(ids[0], ids[1], 1); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("ids %q: %v", ids, err)
		}
	}
	for _, delta := range []int64{1, -1, domain.QuantityMax, -domain.QuantityMax} {
		c, err := domain.NewStockChange("p", "k", delta)
		if err != nil || c.Delta() != delta || c.Quantity() < 1 || c.Adds() != (delta > 0) || !c.Key().IsChange() {
			t.Errorf("delta %d: %+v, %v", delta, c, err)
		}
	}
}

func TestNoBuyerCanPassForAStockChange(t *testing.T) {
	t.Parallel()
	if _, err := domain.NewKey("p", domain.ChangeUser, "t"); !errors.Is(err, domain.ErrInvalidRequest) {
		t.Errorf("a buyer's key with the reserved user: %v", err)
	}
	if _, err := domain.NewDeductCommand("p", domain.ChangeUser, "t", 1); !errors.Is(err, domain.ErrInvalidRequest) {
		t.Errorf("a purchase by the reserved user: %v", err)
	}
	change, _ := domain.ChangeKey("p", "t")
	stored, err := domain.StoredKey(change.Product(), change.User(), change.Token())
	if err != nil || stored != change || change.IsZero() {
		t.Errorf("read back as %v, %v", stored, err)
	}
	buyer, _ := domain.NewKey("p", "u", "t")
	if stored, err := domain.StoredKey("p", "u", "t"); err != nil || stored != buyer || buyer.IsChange() {
		t.Errorf("read back as %v, %v", stored, err)
	}
	if _, err := domain.NewOrder(domain.OrderFields{Key: buyer, Quantity: 1, Status: domain.OrderAdded}); !errors.Is(err, domain.ErrInvalidRequest) {
		t.Errorf("a buyer's row that adds: %v", err)
	}
	if kind := (domain.Deduction{Key: change}).Kind(); kind != domain.BatchWithdraw {
		t.Errorf("kind %s", kind)
	}
	if kind := (domain.Deduction{Key: buyer}).Kind(); kind != domain.BatchDeduct {
		t.Errorf("kind %s", kind)
	}
}

func TestAChangeKnowsItsRow(t *testing.T) {
	t.Parallel()
	key, _ := domain.ChangeKey("p", "k")
	row := func(status domain.OrderStatus, quantity int64) domain.Order {
		o, err := domain.NewOrder(domain.OrderFields{Key: key, Quantity: quantity, Status: status})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	more, _ := domain.NewStockChange("p", "k", 3)
	fewer, _ := domain.NewStockChange("p", "k", -3)
	for _, c := range []struct {
		row         domain.Order
		more, fewer bool
	}{
		{row(domain.OrderAdded, 3), true, false}, {row(domain.OrderAdded, 4), false, false},
		{row(domain.OrderConfirmed, 3), false, true}, {row(domain.OrderRejected, 3), false, true},
		{row(domain.OrderCancelled, 3), false, true}, {row(domain.OrderConfirmed, 2), false, false}, {domain.Order{}, false, false},
	} {
		if more.Is(c.row) != c.more || fewer.Is(c.row) != c.fewer {
			t.Errorf("%s of %d: %v %v", c.row.Status(), c.row.Quantity(), more.Is(c.row), fewer.Is(c.row))
		}
	}
}

func TestWhatIsSoldStaysSoldUnderStockChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		stock, err := domain.NewStock(domain.StockFields{Product: "p", Total: 20, Stock: 20, State: domain.SaleOpen})
		if err != nil {
			t.Fatal(err)
		}
		opened, sold, added, withdrawn := stock.Total(), int64(0), int64(0), int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			quantity := rapid.Int64Range(-1, 12).Draw(t, "quantity")
			before := stock
			var err error
			switch rapid.SampledFrom([]string{"sell", "add", "withdraw"}).Draw(t, "step") {
			case "sell":
				if stock, err = stock.Deduct(quantity); err == nil {
					sold += quantity
				}
			case "add":
				if stock, err = stock.Add(quantity); err == nil {
					added += quantity
				}
			case "withdraw":
				if stock, err = stock.Withdraw(quantity); err == nil {
					withdrawn += quantity
				}
			}
			if err != nil && stock != before {
				t.Fatalf("a refusal changed %+v to %+v", before, stock)
			}
			if err == nil && stock.Version() != before.Version()+1 {
				t.Fatalf("version %d after %d", stock.Version(), before.Version())
			}
			if stock.Remaining() < 0 || stock.Sold() != sold || stock.Total() != opened+added-withdrawn || stock.Total() < sold {
				t.Fatalf("sold %d, added %d, withdrawn %d: %+v", sold, added, withdrawn, stock)
			}
		}
	})
}

func TestNoMoreThanTheMostIsPutOnSale(t *testing.T) {
	t.Parallel()
	stock := mustStock(t, domain.StockFields{Product: "p", Total: domain.UnitsMax - 1, Stock: 0, State: domain.SaleOpen})
	if _, err := stock.Add(2); !errors.Is(err, domain.ErrInvalidRequest) {
		t.Errorf("two more: %v", err)
	}
	if after, err := stock.Add(1); err != nil || after.Total() != domain.UnitsMax || after.Remaining() != 1 {
		t.Errorf("one more: %+v, %v", after, err)
	}
}

// The settling table's cells of an addition.
func TestAnAdditionIsCountedOnceAndOnlyIfNewer(t *testing.T) {
	t.Parallel()
	key, _ := domain.ChangeKey("p", "k")
	fate := func(version int64) domain.Fate {
		return domain.Fate{Key: key, Quantity: 3, Status: domain.OrderAdded, FromBirth: true, StockVersion: version}
	}
	for _, c := range []struct {
		state   domain.FlowState
		version int64
		want    domain.Move
	}{
		{domain.FlowAbsent, 11, domain.Move{To: domain.FlowSettled, Units: 3}},
		{domain.FlowAbsent, 10, domain.Move{To: domain.FlowSettled}},
		{domain.FlowAbsent, 9, domain.Move{To: domain.FlowSettled}},
		{domain.FlowSettled, 11, domain.Move{To: domain.FlowSettled}},
		{domain.FlowSettled, 9, domain.Move{To: domain.FlowSettled}},
		{domain.FlowDeducted, 11, domain.Move{To: domain.FlowDeducted, Suspect: true}},
		{domain.FlowReleased, 11, domain.Move{To: domain.FlowReleased, Suspect: true}},
		{domain.FlowRefused, 11, domain.Move{To: domain.FlowRefused, Suspect: true}},
	} {
		if got := fate(c.version).Move(c.state, 10, 5); got != c.want {
			t.Errorf("%s, version %d: %+v, want %+v", c.state, c.version, got, c.want)
		}
	}
}

// Additions, withdrawals and purchases told in any order, again and again, and gates rebuilt in between, leave a gate
// that has what the ledger has.
func TestAGateEndsWithWhatTheLedgerHasHoweverItIsTold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newTellWorld(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"add", "take", "apply", "tell", "rebuild"}).Draw(t, "step") {
			case "add":
				w.add(rapid.Int64Range(1, 5).Draw(t, "units"))
			case "take":
				w.take(rapid.Int64Range(1, 5).Draw(t, "units"), rapid.Bool().Draw(t, "withdrawal"))
			case "apply":
				w.apply()
			case "tell":
				if len(w.rows) > 0 {
					w.tell(rapid.IntRange(0, len(w.rows)-1).Draw(t, "row"))
				}
			case "rebuild":
				w.rebuild()
			}
		}
		for len(w.open()) > 0 {
			w.apply()
		}
		for i := range w.rows {
			w.tell(i)
		}
		if w.remaining != w.stock.Remaining() {
			t.Fatalf("the gate has %d, the ledger %d", w.remaining, w.stock.Remaining())
		}
	})
}

// tellWorld is a gate and a ledger of one product, where nothing is lost and anything is told late.
type tellWorld struct {
	*rapid.T
	stock     domain.Stock
	rows      []domain.Order
	flows     map[domain.Key]domain.FlowState
	units     map[domain.Key]int64
	remaining int64
	base      int64
	number    int
}

func newTellWorld(t *rapid.T) *tellWorld {
	stock, err := domain.NewStock(domain.StockFields{Product: "p", Total: 10, Stock: 10, Version: 1, State: domain.SaleOpen})
	if err != nil {
		t.Fatal(err)
	}
	return &tellWorld{T: t, stock: stock, flows: map[domain.Key]domain.FlowState{}, units: map[domain.Key]int64{}, remaining: 10, base: 1}
}

func (w *tellWorld) key(change bool) domain.Key {
	w.number++
	token := strings.Repeat("t", w.number)
	key, err := domain.NewKey("p", "u", token)
	if change {
		key, err = domain.ChangeKey("p", token)
	}
	if err != nil {
		w.Skip("more keys than this world has")
	}
	return key
}

func (w *tellWorld) row(key domain.Key, units int64, status domain.OrderStatus) {
	row, err := domain.NewOrder(domain.OrderFields{Key: key, Quantity: units, Status: status, StockVersion: w.stock.Version()})
	if err != nil {
		w.Fatal(err)
	}
	w.rows = append(w.rows, row)
}

func (w *tellWorld) add(units int64) {
	w.stock, _ = w.stock.Add(units)
	w.row(w.key(true), units, domain.OrderAdded)
}

func (w *tellWorld) take(units int64, withdrawal bool) {
	if key := w.key(withdrawal); w.remaining >= units {
		w.remaining -= units
		w.flows[key], w.units[key] = domain.FlowDeducted, units
	}
}

// open are the flows without a row, in order.
func (w *tellWorld) open() (keys []domain.Key) {
	decided := map[domain.Key]bool{}
	for _, r := range w.rows {
		decided[r.Key()] = true
	}
	for n := range w.number + 1 {
		for key, state := range w.flows {
			if state.Open() && len(key.Token()) == n && !decided[key] {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func (w *tellWorld) apply() {
	keys := w.open()
	if len(keys) == 0 {
		return
	}
	key, move := keys[0], domain.Stock.Deduct
	if key.IsChange() {
		move = domain.Stock.Withdraw
	}
	after, err := move(w.stock, w.units[key])
	if err != nil {
		w.Fatalf("the gate gave what the ledger does not have: %v", err)
	}
	w.stock = after
	w.row(key, w.units[key], domain.OrderConfirmed)
}

func (w *tellWorld) tell(i int) {
	row := w.rows[i]
	move := row.Fate().Move(w.flows[row.Key()], w.base, w.remaining)
	if move.Suspect {
		w.Fatalf("%s on %s is a suspect", row.Status(), w.flows[row.Key()])
	}
	w.flows[row.Key()] = move.To
	w.remaining += move.Units
}

// rebuild writes rows back and counts what is open; the gate forgets nothing else.
func (w *tellWorld) rebuild() {
	w.remaining, w.base = w.stock.Remaining(), w.stock.Version()
	for _, key := range w.open() {
		w.remaining -= w.units[key]
	}
	for _, row := range w.rows {
		w.flows[row.Key()] = row.Status().FlowState()
	}
}
