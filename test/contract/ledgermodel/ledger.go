package ledgermodel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Flaw is a rule that the ledger is to forget.
type Flaw uint8

// The flaws. The zero value is a sound ledger.
const (
	_           Flaw = iota
	NoUniqueKey      // a second row of a key is written like the first
	NoGuard          // units are taken whether they are there or not
)

// attemptMax is the longest attempt that a row holds.
const attemptMax = 64

// Ledger is everything that a database is asked to be. It is safe for concurrent use.
type Ledger struct {
	flaw Flaw

	mu       sync.Mutex
	next     uint64
	stocks   map[string]*stockRow
	rows     []*orderRow // in order of id
	byKey    map[domain.Key]*orderRow
	flows    []flowRow
	parked   []*parkedRow
	reports  []report
	barriers []barrier
	audits   []auditRow
}

var (
	_ port.Ledger      = (*Ledger)(nil)
	_ port.Changes     = (*Ledger)(nil)
	_ port.Outbox      = (*Ledger)(nil)
	_ port.Catalog     = (*Ledger)(nil)
	_ port.Epochs      = (*Ledger)(nil)
	_ port.Parking     = (*Ledger)(nil)
	_ port.AuditLog    = (*Ledger)(nil)
	_ port.ReportStore = (*Ledger)(nil)
	_ port.Book        = (*Ledger)(nil)
	_ port.BarrierLog  = (*Ledger)(nil)
)

// New makes an empty ledger, with flaws for those who want to see them found.
func New(flaw Flaw) *Ledger {
	return &Ledger{flaw: flaw, stocks: map[string]*stockRow{}, byKey: map[domain.Key]*orderRow{}}
}

type stockRow struct {
	f      domain.StockFields
	opened int64 // put on sale at the start

	openEpoch int64 // under which it is or was last open
	holder    string
	until     time.Time
	lock      chan struct{} // room for one: who has put something in holds the row
}

type orderRow struct {
	f       domain.OrderFields
	updated time.Time
}

// flowRow is a movement of stock; units are taken, or given back where they are negative.
type flowRow struct {
	product, order string
	units          int64
	epoch          int64
	sequence       int64
	at             time.Time
}

func (s *stockRow) stock() domain.Stock { return must(domain.NewStock(s.f)) }
func (r *orderRow) order() domain.Order { return must(domain.NewOrder(r.f)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // this ledger wrote what it cannot read
	}
	return v
}

// id is the next one; mu is held.
func (l *Ledger) id() string {
	l.next++
	return fmt.Sprintf("%032x", l.next)
}

// here reports whether the caller still waits: a database would not have begun.
func here(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return domain.NewError(domain.CodeUnavailable, "the caller has gone", err)
	}
	return nil
}

// lock takes the rows of products, in order, and gives what frees them.
func (l *Ledger) lock(ctx context.Context, products []string) (func(), error) {
	var held []*stockRow
	free := func() {
		for _, s := range held {
			<-s.lock
		}
	}
	for _, p := range products {
		l.mu.Lock()
		s := l.stocks[p]
		l.mu.Unlock()
		if s == nil {
			continue
		}
		select {
		case s.lock <- struct{}{}:
			held = append(held, s)
		case <-ctx.Done():
			free()
			return nil, domain.NewError(domain.CodeUnavailable, "waited for a row", ctx.Err())
		}
	}
	return free, nil
}

// change runs do with a product's row locked; do is not called for a product that is not there.
func (l *Ledger) change(ctx context.Context, product string, do func(*stockRow)) error {
	if err := here(ctx); err != nil {
		return err
	}
	free, err := l.lock(ctx, []string{product})
	if err != nil {
		return err
	}
	defer free()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.stocks[product]; s != nil {
		do(s)
	}
	return nil
}

// standing says what becomes of an item, as the ledger is now; mu is held.
func (l *Ledger) standing(item port.ApplyItem) port.ApplyOutcome {
	s := l.stocks[item.Deduction.Key.Product()]
	switch {
	case l.flaw != NoUniqueKey && l.byKey[item.Deduction.Key] != nil:
		return port.Met
	case s == nil:
		return port.UnknownProduct
	case s.f.State != domain.SaleOpen && (item.Plain || item.Deduction.Epoch < s.openEpoch && item.AdoptedEpoch != s.openEpoch):
		return port.Deferred
	case s.f.State == domain.SaleOpen && (item.Plain || item.Deduction.Epoch < s.f.Epoch) && item.AdoptedEpoch != s.f.Epoch:
		return port.Straggler
	}
	return port.Applied
}

// Apply implements port.Ledger.
func (l *Ledger) Apply(ctx context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
	if err := here(ctx); err != nil {
		return port.ApplyResult{}, err
	}
	for _, item := range items {
		if err := domain.CheckQuantity("quantity", item.Deduction.Quantity); err != nil {
			return port.ApplyResult{}, err
		}
		if len(item.Deduction.Attempt) > attemptMax {
			return port.ApplyResult{}, domain.NewError(domain.CodeInvalidRequest, "the attempt is too long", nil)
		}
	}
	for {
		products := l.touched(items)
		free, err := l.lock(ctx, products)
		if err != nil {
			return port.ApplyResult{}, err
		}
		result, ok := l.applyLocked(items, products)
		free()
		if ok {
			return result, nil
		}
	}
}

// touched are the products of which rows would be written now, in order.
func (l *Ledger) touched(items []port.ApplyItem) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	products := map[string]bool{}
	for _, item := range items {
		if l.standing(item) == port.Applied {
			products[item.Deduction.Key.Product()] = true
		}
	}
	return slices.Sorted(maps.Keys(products))
}

// applyLocked writes what has no row; false when something moved before the locks were held.
func (l *Ledger) applyLocked(items []port.ApplyItem, locked []string) (port.ApplyResult, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	result := port.ApplyResult{Replies: make([]port.ApplyReply, len(items))}
	var chosen []int
	first := map[domain.Key]bool{}
	for i, item := range items {
		d := item.Deduction
		result.Replies[i].Outcome = l.standing(item)
		if result.Replies[i].Outcome != port.Applied {
			continue
		}
		if !slices.Contains(locked, d.Key.Product()) {
			return port.ApplyResult{}, false
		}
		if !first[d.Key] || l.flaw == NoUniqueKey {
			chosen = append(chosen, i)
			first[d.Key] = true
		}
	}
	slices.SortStableFunc(chosen, func(a, b int) int { return items[a].Deduction.Key.Compare(items[b].Deduction.Key) })
	rows := l.write(items, chosen)
	result.Suspects = l.guard(rows)
	for n, i := range chosen {
		result.Replies[i].Order = rows[n].order()
	}
	for i, item := range items {
		if row := l.byKey[item.Deduction.Key]; row != nil && result.Replies[i].Order.IsZero() {
			result.Replies[i] = port.ApplyReply{Outcome: port.Met, Order: row.order()}
		}
	}
	return result, true
}

// write makes confirmed rows.
func (l *Ledger) write(items []port.ApplyItem, chosen []int) []*orderRow {
	rows := make([]*orderRow, len(chosen))
	for n, i := range chosen {
		d := items[i].Deduction
		rows[n] = &orderRow{updated: time.Now(), f: domain.OrderFields{ID: l.id(), Key: d.Key, Quantity: d.Quantity,
			Status: domain.OrderConfirmed, FromBirth: true, Epoch: d.Epoch, Sequence: d.Sequence, Attempt: d.Attempt, CreatedAt: time.Now()}}
		if items[i].Plain {
			rows[n].f.Epoch, rows[n].f.Sequence = 0, 0
		}
		l.add(rows[n])
	}
	return rows
}

func (l *Ledger) add(r *orderRow) {
	l.rows = append(l.rows, r)
	if l.byKey[r.f.Key] == nil {
		l.byKey[r.f.Key] = r
	}
}

// guard takes the units of rows, as the gate took them, rejects those that do not fit, and gives
// the products that had too much.
func (l *Ledger) guard(rows []*orderRow) (suspects []string) {
	arrived := slices.Clone(rows)
	slices.SortStableFunc(arrived, func(a, b *orderRow) int {
		return cmp.Or(strings.Compare(a.f.Key.Product(), b.f.Key.Product()), cmp.Compare(a.f.Epoch, b.f.Epoch), cmp.Compare(a.f.Sequence, b.f.Sequence))
	})
	moved := map[string]bool{}
	for _, r := range arrived {
		s := l.stocks[r.f.Key.Product()]
		if r.f.Quantity > s.f.Stock && l.flaw != NoGuard {
			r.f.Status = domain.OrderRejected
			suspects = append(suspects, s.f.Product)
			continue
		}
		s.f.Stock = max(0, s.f.Stock-r.f.Quantity)
		if r.f.Key.IsChange() { // withdrawn: sold to nobody
			s.f.Total -= r.f.Quantity
		} else {
			l.flows = append(l.flows, flowRow{s.f.Product, r.f.ID, r.f.Quantity, r.f.Epoch, r.f.Sequence, time.Now()})
		}
		moved[s.f.Product] = true
	}
	for product := range moved {
		l.stocks[product].f.Version++
	}
	for _, r := range rows {
		r.f.StockVersion = l.stocks[r.f.Key.Product()].f.Version
	}
	return slices.Compact(suspects)
}

// Fates implements port.Ledger.
func (l *Ledger) Fates(ctx context.Context, keys []domain.Key) ([]domain.Order, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	orders := make([]domain.Order, len(keys))
	for i, k := range keys {
		if r := l.byKey[k]; r != nil {
			orders[i] = r.order()
		}
	}
	return orders, nil
}

// Decide implements port.Ledger.
func (l *Ledger) Decide(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	for _, c := range claims {
		if c.Status != domain.OrderCancelled && c.Status != domain.OrderRejected {
			return nil, domain.NewError(domain.CodeInvalidRequest, "only a cancelled or rejected fate can be claimed", nil)
		}
		if err := domain.CheckQuantity("quantity", c.Quantity); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		if l.stocks[c.Key.Product()] == nil {
			return nil, domain.NewError(domain.CodeProductNotFound, "there is no product "+c.Key.Product(), nil)
		}
	}
	orders := make([]domain.Order, len(claims))
	for i, c := range claims {
		if l.byKey[c.Key] == nil {
			l.add(&orderRow{updated: time.Now(), f: domain.OrderFields{ID: l.id(), Key: c.Key, Quantity: c.Quantity, Status: c.Status,
				FromBirth: true, Epoch: c.Epoch, Sequence: c.Sequence, Attempt: c.Attempt,
				StockVersion: l.stocks[c.Key.Product()].f.Version, CreatedAt: time.Now()}})
		}
		orders[i] = l.byKey[c.Key].order()
	}
	return orders, nil
}

// Untold implements port.Outbox.
func (l *Ledger) Untold(ctx context.Context, age time.Duration, after string, limit int) ([]domain.Order, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var orders []domain.Order
	for _, r := range l.rows {
		if !r.f.GateTold && r.f.ID > after && time.Since(r.updated) >= age && len(orders) < limit {
			orders = append(orders, r.order())
		}
	}
	return orders, nil
}

// MarkTold implements port.Outbox.
func (l *Ledger) MarkTold(ctx context.Context, orders []domain.Order) error {
	if err := here(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.markTold(orders)
	return nil
}

func (l *Ledger) markTold(orders []domain.Order) {
	for _, o := range orders {
		i, found := slices.BinarySearchFunc(l.rows, o.ID(), func(r *orderRow, id string) int { return strings.Compare(r.f.ID, id) })
		if found && l.rows[i].f.Status == o.Status() {
			l.rows[i].f.GateTold = true
		}
	}
}
