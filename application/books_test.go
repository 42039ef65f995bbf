package application_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/contract/gatemodel"
)

// books is the ledger in memory: as much of the ports' contracts as a rebuild, a watch, a
// reconciliation and a verification can tell from a database.
type books struct {
	mu     sync.Mutex
	stocks map[string]domain.StockFields
	opened map[string]int64
	rows   []domain.OrderFields
	flows  map[domain.Key]int // flow rows
	holder map[string]string
	until  map[string]time.Time
	calls  []string                    // of what changes something
	fault  func(method string) error   // nil: none
	late   func(*books, string)        // called once, when the stock row is locked
	defers func(domain.Deduction) bool // what has to wait for the reopening; nil: nothing
}

func newBooks() *books {
	return &books{stocks: map[string]domain.StockFields{}, opened: map[string]int64{}, flows: map[domain.Key]int{}, holder: map[string]string{}, until: map[string]time.Time{}}
}

func (b *books) enter(method string) error {
	b.mu.Lock()
	if b.fault != nil {
		if err := b.fault(method); err != nil {
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

func (b *books) note(format string, args ...any) {
	b.calls = append(b.calls, fmt.Sprintf(format, args...))
}

func (b *books) count(prefix string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// sell puts a product on record, open or not.
func (b *books) sell(product string, total int64, state domain.SaleState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened[product] = total
	b.stocks[product] = domain.StockFields{Product: product, Total: total, Stock: total, Version: 1, State: state,
		Terms: domain.Terms{Revision: 1}}
}

// apply writes a row as the consumer would.
func (b *books) apply(f domain.Flow, status domain.OrderStatus, told bool) domain.Order {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.applyLocked(f, status, told)
}

func (b *books) applyLocked(f domain.Flow, status domain.OrderStatus, told bool) domain.Order {
	s := b.stocks[f.Key().Product()]
	switch change := f.Key().IsChange(); {
	case status == domain.OrderAdded:
		s.Stock, s.Total, s.Version = s.Stock+f.Quantity(), s.Total+f.Quantity(), s.Version+1
	case status == domain.OrderConfirmed && change:
		s.Stock, s.Total, s.Version = s.Stock-f.Quantity(), s.Total-f.Quantity(), s.Version+1
	case status == domain.OrderConfirmed:
		s.Stock, s.Version = s.Stock-f.Quantity(), s.Version+1
		b.flows[f.Key()]++
	}
	b.stocks[f.Key().Product()] = s
	row := domain.OrderFields{ID: fmt.Sprintf("%032d", len(b.rows)+1), Key: f.Key(), Quantity: f.Quantity(), Status: status,
		FromBirth: true, Epoch: f.Epoch(), Sequence: f.Sequence(), StockVersion: s.Version, GateTold: told,
		Attempt: f.Attempt(), CreatedAt: time.Now()}
	b.rows = append(b.rows, row)
	return must(domain.NewOrder(row))
}

// change edits a stock row.
func (b *books) change(product string, edit func(*domain.StockFields)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stocks[product]
	edit(&s)
	b.stocks[product] = s
}

// changeRow edits the row of a key.
func (b *books) changeRow(k domain.Key, edit func(*domain.OrderFields)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.rows {
		if b.rows[i].Key == k {
			edit(&b.rows[i])
		}
	}
}

func (b *books) stock(product string) domain.Stock {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stockLocked(product)
}

func (b *books) stockLocked(product string) domain.Stock {
	if f, ok := b.stocks[product]; ok {
		return must(domain.NewStock(f))
	}
	return domain.Stock{}
}

// Fates implements port.Ledger.
func (b *books) Fates(_ context.Context, keys []domain.Key) ([]domain.Order, error) {
	if err := b.enter("Fates"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	return b.fatesLocked(keys), nil
}

func (b *books) fatesLocked(keys []domain.Key) []domain.Order {
	orders := make([]domain.Order, len(keys))
	for i, k := range keys {
		for _, row := range b.rows {
			if row.Key == k {
				orders[i] = must(domain.NewOrder(row))
			}
		}
	}
	return orders
}

// Apply implements port.Ledger, for messages in the service's own form.
func (b *books) Apply(_ context.Context, items []port.ApplyItem) (r port.ApplyResult, err error) {
	if err := b.enter("Apply"); err != nil {
		return r, err
	}
	defer b.mu.Unlock()
	for _, item := range items {
		d := item.Deduction
		s := b.stocks[d.Key.Product()]
		if met := b.fatesLocked([]domain.Key{d.Key})[0]; !met.IsZero() {
			r.Replies = append(r.Replies, port.ApplyReply{Outcome: port.Met, Order: met})
			continue
		}
		if b.defers != nil && b.defers(d) {
			r.Replies = append(r.Replies, port.ApplyReply{Outcome: port.Deferred})
			continue
		}
		if s.State == domain.SaleOpen && d.Epoch < s.Epoch && item.AdoptedEpoch < s.Epoch {
			r.Replies = append(r.Replies, port.ApplyReply{Outcome: port.Straggler})
			continue
		}
		status := domain.OrderConfirmed
		if s.Stock < d.Quantity {
			status = domain.OrderRejected
			r.Suspects = append(r.Suspects, d.Key.Product())
		}
		f := must(domain.NewFlow(domain.FlowFields{Key: d.Key, Quantity: d.Quantity, State: domain.FlowDeducted,
			Epoch: d.Epoch, Sequence: d.Sequence, Attempt: d.Attempt, At: d.At}))
		r.Replies = append(r.Replies, port.ApplyReply{Outcome: port.Applied, Order: b.applyLocked(f, status, false)})
	}
	return r, nil
}

// Decide implements port.Ledger.
func (b *books) Decide(_ context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	if err := b.enter("Decide"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	orders := make([]domain.Order, len(claims))
	for i, c := range claims {
		if orders[i] = b.fatesLocked([]domain.Key{c.Key})[0]; orders[i].IsZero() {
			f := must(domain.NewFlow(domain.FlowFields{Key: c.Key, Quantity: c.Quantity, State: domain.FlowDeducted, Epoch: c.Epoch, Sequence: c.Sequence}))
			orders[i] = b.applyLocked(f, c.Status, false)
		}
	}
	return orders, nil
}

// Cancel implements port.Ledger.
func (b *books) Cancel(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	orders, err := b.Decide(ctx, claims)
	for i, o := range orders {
		if o.Status() == domain.OrderConfirmed {
			b.change(o.Key().Product(), func(s *domain.StockFields) { s.Stock += o.Quantity(); s.Version++ })
			version := b.stock(o.Key().Product()).Version()
			b.changeRow(o.Key(), func(f *domain.OrderFields) {
				f.Status, f.FromBirth, f.GateTold, f.StockVersion = domain.OrderCancelled, false, false, version
			})
			orders[i] = must(b.Fates(ctx, []domain.Key{o.Key()}))[0]
		}
	}
	return orders, err
}

// Untold implements port.Outbox.
func (b *books) Untold(_ context.Context, age time.Duration, after string, limit int) ([]domain.Order, error) {
	if err := b.enter("Untold"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	var orders []domain.Order
	for _, row := range b.rows {
		if !row.GateTold && row.ID > after && time.Since(row.CreatedAt) >= age && len(orders) < limit {
			orders = append(orders, must(domain.NewOrder(row)))
		}
	}
	return orders, nil
}

// MarkTold implements port.Outbox.
func (b *books) MarkTold(_ context.Context, orders []domain.Order) error {
	if err := b.enter("MarkTold"); err != nil {
		return err
	}
	defer b.mu.Unlock()
	b.markLocked(orders)
	return nil
}

func (b *books) markLocked(orders []domain.Order) {
	for _, o := range orders {
		for i := range b.rows {
			if b.rows[i].Key == o.Key() && b.rows[i].Status == o.Status() {
				b.rows[i].GateTold = true
			}
		}
	}
}

// Create implements port.Catalog.
func (b *books) Create(_ context.Context, sale domain.Sale, _ port.Audit) (domain.Stock, bool, error) {
	if err := b.enter("Create"); err != nil {
		return domain.Stock{}, false, err
	}
	defer b.mu.Unlock()
	if s := b.stockLocked(sale.Product()); !s.IsZero() {
		return s, false, nil
	}
	b.opened[sale.Product()] = sale.Total()
	b.stocks[sale.Product()] = domain.StockFields{Product: sale.Product(), Total: sale.Total(), Stock: sale.Total(),
		Version: 1, State: domain.SaleSuspended, Reason: "new", Terms: sale.Terms()}
	return b.stockLocked(sale.Product()), true, nil
}

// Stocks implements port.Catalog.
func (b *books) Stocks(_ context.Context, products []string) ([]domain.Stock, error) {
	if err := b.enter("Stocks"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	stocks := make([]domain.Stock, len(products))
	for i, p := range products {
		stocks[i] = b.stockLocked(p)
	}
	return stocks, nil
}

// List implements port.Catalog.
func (b *books) List(_ context.Context, after string, limit int) ([]domain.Stock, error) {
	if err := b.enter("List"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	var stocks []domain.Stock
	for p := range b.stocks {
		if p > after {
			stocks = append(stocks, b.stockLocked(p))
		}
	}
	slices.SortFunc(stocks, func(x, y domain.Stock) int { return cmp.Compare(x.Product(), y.Product()) })
	return stocks[:min(len(stocks), limit)], nil
}

// SetPaused implements port.Catalog.
func (b *books) SetPaused(_ context.Context, product string, paused bool, only string, _ port.Audit) (domain.Stock, error) {
	if err := b.enter("SetPaused"); err != nil {
		return domain.Stock{}, err
	}
	defer b.mu.Unlock()
	s, ok := b.stocks[product]
	if !ok {
		return domain.Stock{}, domain.NewError(domain.CodeProductNotFound, product, nil)
	}
	if only != "" && only != b.stockLocked(product).Edition() {
		return domain.Stock{}, domain.ErrEditionOutdated
	}
	if s.Terms.Paused != paused {
		s.Terms.Paused = paused
		s.Terms.Revision++
		b.stocks[product] = s
	}
	return b.stockLocked(product), nil
}

// Suspend implements port.Epochs.
func (b *books) Suspend(_ context.Context, products []string, reason string, damaged bool) error {
	if err := b.enter("Suspend"); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, p := range products {
		s, ok := b.stocks[p]
		switch {
		case !ok:
		case damaged && s.State != domain.SaleDamaged:
			s.State, s.Reason = domain.SaleDamaged, reason
			s.Suspension++
			b.note("damaged %s", p)
		case s.State == domain.SaleOpen:
			s.State, s.Reason, s.SuspendedAt = domain.SaleSuspended, reason, time.Now()
			s.Suspension++
			b.note("suspend %s", p)
		}
		if ok {
			b.stocks[p] = s
		}
	}
	return nil
}

// Accept implements port.Epochs.
func (b *books) Accept(_ context.Context, product string, version, epoch int64) error {
	if err := b.enter("Accept"); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if s := b.stocks[product]; s.State == domain.SaleDamaged {
		s.Suspension++
		s.State, s.Version, s.Epoch = domain.SaleSuspended, max(s.Version, version)+1, max(s.Epoch, epoch)
		b.stocks[product] = s
	}
	return nil
}

// Suspended implements port.Epochs.
func (b *books) Suspended(context.Context) ([]domain.Stock, error) {
	if err := b.enter("Suspended"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	var stocks []domain.Stock
	for p, s := range b.stocks {
		if s.State != domain.SaleOpen {
			stocks = append(stocks, b.stockLocked(p))
		}
	}
	return stocks, nil
}

// TakeAttempt implements port.Epochs.
func (b *books) TakeAttempt(_ context.Context, product, holder string, suspension int64, lease time.Duration) (domain.Stock, bool, error) {
	if err := b.enter("TakeAttempt"); err != nil {
		return domain.Stock{}, false, err
	}
	defer b.mu.Unlock()
	s := b.stocks[product]
	if s.State != domain.SaleSuspended || s.Suspension != suspension || b.holder[product] != holder && time.Now().Before(b.until[product]) {
		return b.stockLocked(product), false, nil
	}
	s.Epoch++
	b.stocks[product], b.holder[product], b.until[product] = s, holder, time.Now().Add(lease)
	b.note("attempt %s %d", product, s.Epoch)
	return b.stockLocked(product), true, nil
}

// KeepAttempt implements port.Epochs.
func (b *books) KeepAttempt(_ context.Context, product, holder string, epoch int64, lease time.Duration) (bool, error) {
	if err := b.enter("KeepAttempt"); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	s := b.stocks[product]
	if s.State != domain.SaleSuspended || s.Epoch != epoch || b.holder[product] != holder {
		return false, nil
	}
	b.until[product] = time.Now().Add(lease)
	b.note("keep %s %d", product, epoch)
	return true, nil
}

// Rows implements port.Epochs.
func (b *books) Rows(_ context.Context, product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	if err := b.enter("Rows"); err != nil {
		return nil, after, err
	}
	defer b.mu.Unlock()
	orders, next := b.rowsLocked(product, after, limit)
	return orders, next, nil
}

func (b *books) rowsLocked(product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor) {
	var orders []domain.Order
	for _, row := range b.rows {
		if row.Key.Product() == product && (row.StockVersion > after.Version || row.StockVersion == after.Version && row.ID > after.ID) {
			orders = append(orders, must(domain.NewOrder(row)))
		}
	}
	slices.SortFunc(orders, func(x, y domain.Order) int {
		return cmp.Or(cmp.Compare(x.StockVersion(), y.StockVersion()), cmp.Compare(x.ID(), y.ID()))
	})
	orders = orders[:min(len(orders), limit)]
	if len(orders) > 0 {
		last := orders[len(orders)-1]
		after = port.RowCursor{Version: last.StockVersion(), ID: last.ID()}
	}
	return orders, after
}

// Locked implements port.Epochs. The lock is the books' own.
func (b *books) Locked(_ context.Context, product string, epoch int64, do func(port.LockedStock) error) (bool, error) {
	if err := b.enter("Locked"); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	if late := b.late; late != nil {
		b.late = nil
		late(b, product)
	}
	if s := b.stocks[product]; s.Epoch != epoch || s.State != domain.SaleSuspended {
		return false, nil
	}
	before := slices.Clone(b.rows)
	if err := do(lockedBooks{b, product}); err != nil {
		b.rows = before
		return false, err
	}
	return true, nil
}

// Totals implements port.Book.
func (b *books) Totals(_ context.Context, product string) (t port.BookTotals, err error) {
	if err := b.enter("Totals"); err != nil {
		return t, err
	}
	defer b.mu.Unlock()
	t.Stock, t.OpenedWith = b.stockLocked(product), b.opened[product]
	if t.Stock.IsZero() {
		return t, domain.NewError(domain.CodeProductNotFound, product, nil)
	}
	for _, row := range b.rows {
		if row.Key.Product() != product {
			continue
		}
		if row.Key.IsChange() {
			countChange(&t, row)
			continue
		}
		n := b.flows[row.Key]
		t.FlowRows += int64(n)
		if row.Status == domain.OrderConfirmed { // what a cancel gives back is a flow row of its own
			t.FlowUnits += int64(n) * row.Quantity
		}
		switch row.Status {
		case domain.OrderConfirmed:
			t.ConfirmedOrders++
			t.ConfirmedUnits += row.Quantity
			if n == 0 {
				t.OrphanOrders++
			}
		case domain.OrderCancelled:
			t.CancelledOrders++
			if !row.FromBirth { // its return has a flow row, too
				t.ReversedOrders++
				t.FlowRows++
			}
		case domain.OrderRejected:
			t.RejectedOrders++
		case domain.OrderAbsent, domain.OrderAdded:
		}
		if n > 1 {
			t.DoubleFlows++
		}
		if !row.GateTold {
			t.UntoldOrders++
		}
	}
	return t, nil
}

// Movements implements port.Book.
func (b *books) Movements(_ context.Context, orders []domain.Order) ([][]port.Movement, error) {
	if err := b.enter("Movements"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	movements := make([][]port.Movement, len(orders))
	for i, o := range orders {
		for range b.flows[o.Key()] {
			movements[i] = append(movements[i], port.Movement{OpType: port.OpSale, Quantity: o.Quantity(), At: o.CreatedAt()})
		}
		if o.Status() == domain.OrderCancelled && !o.FromBirth() {
			movements[i] = append(movements[i], port.Movement{OpType: port.OpCancel, Quantity: o.Quantity(), At: o.CreatedAt()})
		}
	}
	return movements, nil
}

func countChange(t *port.BookTotals, row domain.OrderFields) {
	switch row.Status {
	case domain.OrderAdded:
		t.AddedUnits += row.Quantity
	case domain.OrderConfirmed:
		t.WithdrawnUnits += row.Quantity
	case domain.OrderAbsent, domain.OrderCancelled, domain.OrderRejected:
	}
	if !row.GateTold {
		t.UntoldChanges++
	}
}

// Add implements port.Changes.
func (b *books) Add(_ context.Context, additions []port.Addition) ([]port.AddReply, error) {
	if err := b.enter("Add"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	replies := make([]port.AddReply, len(additions))
	for i, a := range additions {
		if b.stockLocked(a.Key.Product()).IsZero() {
			return nil, domain.NewError(domain.CodeProductNotFound, a.Key.Product(), nil)
		}
		if replies[i].Row = b.fatesLocked([]domain.Key{a.Key})[0]; replies[i].Row.IsZero() {
			f := must(domain.NewFlow(domain.FlowFields{Key: a.Key, Quantity: a.Quantity, State: domain.FlowSettled}))
			replies[i] = port.AddReply{Row: b.applyLocked(f, domain.OrderAdded, false), Added: true}
		}
	}
	return replies, nil
}

// Changes implements port.Changes.
func (b *books) Changes(_ context.Context, product, before string, limit int) ([]domain.Order, error) {
	if err := b.enter("Changes"); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	var rows []domain.Order
	for _, row := range slices.Backward(b.rows) {
		if row.Key.Product() == product && row.Key.IsChange() && (before == "" || row.ID < before) && len(rows) < limit {
			rows = append(rows, must(domain.NewOrder(row)))
		}
	}
	return rows, nil
}

// Asked implements port.Changes; these books keep no audit log.
func (b *books) Asked(_ context.Context, _ string, changes []port.AskedChange) ([]port.Audit, error) {
	return make([]port.Audit, len(changes)), nil
}

// lockedBooks is a stock row under its lock.
type lockedBooks struct {
	b       *books
	product string
}

func (l lockedBooks) Stock() domain.Stock { return l.b.stockLocked(l.product) }

func (l lockedBooks) Rows(after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	orders, next := l.b.rowsLocked(l.product, after, limit)
	return orders, next, nil
}

func (l lockedBooks) Fates(keys []domain.Key) ([]domain.Order, error) {
	return l.b.fatesLocked(keys), nil
}

func (l lockedBooks) Untold(limit int) ([]domain.Order, error) {
	var orders []domain.Order
	for _, row := range l.b.rows {
		if row.Key.Product() == l.product && !row.GateTold && len(orders) < limit {
			orders = append(orders, must(domain.NewOrder(row)))
		}
	}
	return orders, nil
}

func (l lockedBooks) MarkTold(orders []domain.Order) error { l.b.markLocked(orders); return nil }

func (l lockedBooks) Reopen() error {
	if l.b.fault != nil {
		if err := l.b.fault("Reopen"); err != nil {
			return err
		}
	}
	s := l.b.stocks[l.product]
	s.State, s.Reason = domain.SaleOpen, ""
	if !s.SuspendedAt.IsZero() {
		s.LastClosed, s.SuspendedAt = time.Since(s.SuspendedAt), time.Time{}
	}
	s.Version++
	l.b.stocks[l.product] = s
	delete(l.b.until, l.product)
	l.b.note("reopen %s %d", l.product, s.Epoch)
	return nil
}

// drains counts drains and may take its time.
type drains struct {
	mu    sync.Mutex
	n     int
	err   error
	takes time.Duration
	while func()
}

func (d *drains) Drain(ctx context.Context) error {
	d.mu.Lock()
	d.n++
	err, while := d.err, d.while
	d.mu.Unlock()
	if while != nil {
		while()
	}
	select {
	case <-time.After(d.takes):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *drains) CheckWindow() time.Duration { return time.Minute }

func (d *drains) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n
}

// shop is a gate, a ledger and what looks after both.
type shop struct {
	*books
	store  *gatemodel.Store
	gate   *gatemodel.Gate
	drains *drains
	lease  *application.Lease
	repair *application.RebuildStock
	eyes   application.StockEyes
}

func newShop(change func(*application.RebuildConfig)) *shop {
	s := &shop{books: newBooks(), store: gatemodel.NewStore("server-1"), drains: &drains{}}
	s.gate = gatemodel.New(s.store)
	s.lease = application.NewLease(s.books, application.DefaultLeaseConfig(), quietLog)
	cfg := application.DefaultRebuildConfig()
	cfg.Holder, cfg.PageMax = "me", 2
	if change != nil {
		change(&cfg)
	}
	s.repair = application.NewRebuildStock(s.books, s.books, s.gate, s.gate, s.books, s.drains, s.lease, cfg, quietLog)
	s.eyes = application.StockEyes{Catalog: s.books, Gate: s.gate, Admin: s.gate, Flows: s.gate, Ledger: s.books, Outbox: s.books}
	return s
}

// renew makes this a process that has seen nothing of the gate.
func (s *shop) renew() {
	s.gate = gatemodel.New(s.store)
	s.eyes.Gate, s.eyes.Admin, s.eyes.Flows = s.gate, s.gate, s.gate
}

// open puts a product on sale, gate and all.
func (s *shop) open(t *testing.T, product string, total int64) {
	t.Helper()
	s.sell(product, total, domain.SaleSuspended)
	if err := s.repair.BuildNew(t.Context(), product); err != nil {
		t.Fatal(err)
	}
}

// buy takes one unit at the gate.
func (s *shop) buy(t *testing.T, product, token string) domain.Flow {
	t.Helper()
	reply := s.ask(t, product, token)
	if reply.Outcome != port.DeductAccepted {
		t.Fatalf("the gate answers %v to %s", reply.Outcome, token)
	}
	return reply.Flow
}

func (s *shop) ask(t *testing.T, product, token string) port.DeductReply {
	t.Helper()
	item := port.DeductItem{Command: commandFor(keyIn(product, token)), Attempt: "a-" + token}
	return s.gate.Deduct(t.Context(), time.Now(), []port.DeductItem{item})[0]
}

// settle writes the row and tells the gate.
func (s *shop) settle(t *testing.T, f domain.Flow, status domain.OrderStatus) {
	t.Helper()
	o := s.apply(f, status, true)
	s.gate.Tell(t.Context(), []domain.Fate{o.Fate()})
}

func (s *shop) view(t *testing.T, product string) port.GateView {
	t.Helper()
	return must(s.gate.View(t.Context(), []string{product}))[0]
}

func (s *shop) state(t *testing.T, k domain.Key) domain.FlowState {
	t.Helper()
	return must(s.gate.Check(t.Context(), []domain.Key{k}))[0].Flow.State()
}

// idle waits until nothing is on the road to a rebuild.
func (s *shop) idle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble's time
	defer cancel()
	if err := s.repair.WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
}
