package ledgermodel

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Create implements port.Catalog.
func (l *Ledger) Create(ctx context.Context, sale domain.Sale, _ port.Audit) (domain.Stock, bool, error) {
	if err := here(ctx); err != nil {
		return domain.Stock{}, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.stocks[sale.Product()]; s != nil {
		return s.stock(), false, nil
	}
	s := &stockRow{lock: make(chan struct{}, 1), opened: sale.Total(), f: domain.StockFields{Product: sale.Product(), Total: sale.Total(), Stock: sale.Total(),
		Version: 1, State: domain.SaleSuspended, Reason: "new", Terms: sale.Terms(), SuspendedAt: time.Now()}}
	l.stocks[sale.Product()] = s
	return s.stock(), true, nil
}

// Stocks implements port.Catalog.
func (l *Ledger) Stocks(ctx context.Context, products []string) ([]domain.Stock, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	stocks := make([]domain.Stock, len(products))
	for i, p := range products {
		if s := l.stocks[p]; s != nil {
			stocks[i] = s.stock()
		}
	}
	return stocks, nil
}

// List implements port.Catalog.
func (l *Ledger) List(ctx context.Context, after string, limit int) ([]domain.Stock, error) {
	stocks, err := l.all(ctx, func(s *stockRow) bool { return s.f.Product > after })
	return stocks[:min(len(stocks), limit)], err
}

// all gives the chosen products in order of id.
func (l *Ledger) all(ctx context.Context, chosen func(*stockRow) bool) ([]domain.Stock, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var stocks []domain.Stock
	for _, s := range l.stocks {
		if chosen(s) {
			stocks = append(stocks, s.stock())
		}
	}
	slices.SortFunc(stocks, func(a, b domain.Stock) int { return strings.Compare(a.Product(), b.Product()) })
	return stocks, nil
}

// SetPaused implements port.Catalog.
func (l *Ledger) SetPaused(ctx context.Context, product string, paused bool, only string, _ port.Audit) (stock domain.Stock, err error) {
	outdated := false
	err = l.change(ctx, product, func(s *stockRow) {
		outdated = only != "" && only != s.stock().Edition()
		if !outdated && s.f.Terms.Paused != paused {
			s.f.Terms.Paused = paused
			s.f.Terms.Revision++
		}
		stock = s.stock()
	})
	if err == nil && stock.IsZero() {
		err = domain.NewError(domain.CodeProductNotFound, "there is no product "+product, nil)
	}
	if err == nil && outdated {
		return domain.Stock{}, domain.ErrEditionOutdated
	}
	return stock, err
}

// Suspend implements port.Epochs.
func (l *Ledger) Suspend(ctx context.Context, products []string, reason string, damaged bool) error {
	for _, p := range slices.Sorted(slices.Values(products)) {
		err := l.change(ctx, p, func(s *stockRow) {
			switch {
			case damaged && s.f.State != domain.SaleDamaged:
				s.suspend(domain.SaleDamaged, reason)
			case !damaged && s.f.State == domain.SaleOpen:
				s.suspend(domain.SaleSuspended, reason)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stockRow) suspend(to domain.SaleState, reason string) {
	s.f.State, s.f.Reason = to, reason
	s.f.Suspension++
	if s.f.SuspendedAt.IsZero() {
		s.f.SuspendedAt = time.Now()
	}
}

// Accept implements port.Epochs.
func (l *Ledger) Accept(ctx context.Context, product string, version, epoch int64) error {
	return l.change(ctx, product, func(s *stockRow) {
		if s.f.State != domain.SaleDamaged {
			return
		}
		s.suspend(domain.SaleSuspended, s.f.Reason)
		s.holder, s.until = "", time.Time{}
		s.f.Version, s.f.Epoch = max(s.f.Version, version)+1, max(s.f.Epoch, epoch)
	})
}

// Suspended implements port.Epochs.
func (l *Ledger) Suspended(ctx context.Context) ([]domain.Stock, error) {
	return l.all(ctx, func(s *stockRow) bool { return s.f.State != domain.SaleOpen })
}

// TakeAttempt implements port.Epochs.
func (l *Ledger) TakeAttempt(ctx context.Context, product, holder string, suspension int64, lease time.Duration) (stock domain.Stock, taken bool, err error) {
	err = l.change(ctx, product, func(s *stockRow) {
		free := s.holder == "" || s.holder == holder || !time.Now().Before(s.until)
		if taken = free && s.f.State == domain.SaleSuspended && s.f.Suspension == suspension; taken {
			s.f.Epoch++
			s.holder, s.until = holder, time.Now().Add(lease)
		}
		stock = s.stock()
	})
	return stock, taken && err == nil, err
}

// KeepAttempt implements port.Epochs.
func (l *Ledger) KeepAttempt(ctx context.Context, product, holder string, epoch int64, lease time.Duration) (kept bool, err error) {
	err = l.change(ctx, product, func(s *stockRow) {
		if kept = s.holder == holder && s.f.Epoch == epoch && s.f.State == domain.SaleSuspended; kept {
			s.until = time.Now().Add(lease)
		}
	})
	return kept && err == nil, err
}

// Rows implements port.Epochs.
func (l *Ledger) Rows(ctx context.Context, product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	if err := here(ctx); err != nil {
		return nil, after, err
	}
	orders, next := l.page(product, after, limit)
	return orders, next, nil
}

func (l *Ledger) page(product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var orders []domain.Order
	for _, r := range l.rows {
		v := r.f.StockVersion
		if r.f.Key.Product() == product && (v > after.Version || v == after.Version && r.f.ID > after.ID) {
			orders = append(orders, r.order())
		}
	}
	slices.SortFunc(orders, func(a, b domain.Order) int {
		return cmp.Or(cmp.Compare(a.StockVersion(), b.StockVersion()), strings.Compare(a.ID(), b.ID()))
	})
	orders = orders[:min(len(orders), limit)]
	if n := len(orders); n > 0 {
		after = port.RowCursor{Version: orders[n-1].StockVersion(), ID: orders[n-1].ID()}
	}
	return orders, after
}

// Locked implements port.Epochs. What do marks as told, and that it reopens, is written when it has returned nil.
func (l *Ledger) Locked(ctx context.Context, product string, epoch int64, do func(port.LockedStock) error) (bool, error) {
	if err := here(ctx); err != nil {
		return false, err
	}
	free, err := l.lock(ctx, []string{product})
	if err != nil {
		return false, err
	}
	defer free()
	l.mu.Lock()
	s := l.stocks[product]
	if s == nil || s.f.Epoch != epoch || s.f.State != domain.SaleSuspended {
		l.mu.Unlock()
		return false, nil
	}
	locked := &lockedStock{ledger: l, stock: s.stock(), told: map[string]bool{}}
	l.mu.Unlock()
	if err := do(locked); err != nil {
		return false, err
	}
	if err := here(ctx); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.markTold(locked.marked)
	if locked.reopen {
		s.openEpoch = s.f.Epoch
		s.f.State, s.f.Reason, s.holder = domain.SaleOpen, "", ""
		s.f.LastClosed, s.f.SuspendedAt = time.Since(s.f.SuspendedAt), time.Time{}
		s.f.Version++
	}
	return true, nil
}

// lockedStock is a transaction that holds a stock row: it sees what was committed, and its own marks.
type lockedStock struct {
	ledger *Ledger
	stock  domain.Stock
	marked []domain.Order
	told   map[string]bool // ids in marked
	reopen bool
}

func (l *lockedStock) Stock() domain.Stock { return l.stock }

func (l *lockedStock) Rows(after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	orders, next := l.ledger.page(l.stock.Product(), after, limit)
	return orders, next, nil
}

func (l *lockedStock) Fates(keys []domain.Key) ([]domain.Order, error) {
	return l.ledger.Fates(context.Background(), keys)
}

func (l *lockedStock) Untold(limit int) ([]domain.Order, error) {
	l.ledger.mu.Lock()
	defer l.ledger.mu.Unlock()
	var orders []domain.Order
	for _, r := range l.ledger.rows {
		if r.f.Key.Product() == l.stock.Product() && !r.f.GateTold && !l.told[r.f.ID] && len(orders) < limit {
			orders = append(orders, r.order())
		}
	}
	return orders, nil
}

func (l *lockedStock) MarkTold(orders []domain.Order) error {
	l.marked = append(l.marked, orders...)
	for _, o := range orders {
		l.told[o.ID()] = true
	}
	return nil
}

func (l *lockedStock) Reopen() error { l.reopen = true; return nil }

// Totals implements port.Book.
func (l *Ledger) Totals(ctx context.Context, product string) (t port.BookTotals, err error) {
	if err := here(ctx); err != nil {
		return t, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stocks[product]
	if s == nil {
		return t, domain.NewError(domain.CodeProductNotFound, "there is no product "+product, nil)
	}
	t.Stock, t.OpenedWith = s.stock(), s.opened
	taken, given := map[string]int64{}, map[string]int64{} // flow rows by order
	for _, f := range l.flows {
		if f.product == product {
			t.FlowRows++
			t.FlowUnits += f.units
			if f.units > 0 {
				taken[f.order]++
			} else {
				given[f.order]++
			}
		}
	}
	for _, r := range l.rows {
		switch {
		case r.f.Key.Product() != product:
		case r.f.Key.IsChange():
			countChange(&t, r)
		default:
			countRow(&t, r, taken[r.f.ID], given[r.f.ID])
			delete(taken, r.f.ID)
			delete(given, r.f.ID)
		}
	}
	t.OrphanFlows = int64(len(taken) + len(given))
	return t, nil
}

// Movements implements port.Book.
func (l *Ledger) Movements(ctx context.Context, orders []domain.Order) ([][]port.Movement, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	movements := make([][]port.Movement, len(orders))
	for i, o := range orders {
		for _, f := range l.flows { // what is given back was appended later
			if f.product != o.Key().Product() || f.order != o.ID() {
				continue
			}
			m := port.Movement{OpType: port.OpSale, Quantity: f.units, Epoch: f.epoch, Sequence: f.sequence, At: f.at}
			if f.units < 0 {
				m.OpType, m.Quantity = port.OpCancel, -f.units
			}
			movements[i] = append(movements[i], m)
		}
	}
	return movements, nil
}

func countChange(t *port.BookTotals, r *orderRow) {
	switch r.f.Status {
	case domain.OrderAdded:
		t.AddedUnits += r.f.Quantity
	case domain.OrderConfirmed:
		t.WithdrawnUnits += r.f.Quantity
	default:
	}
	if !r.f.GateTold {
		t.UntoldChanges++
	}
}

func countRow(t *port.BookTotals, r *orderRow, taken, given int64) {
	reversed := r.f.Status == domain.OrderCancelled && !r.f.FromBirth
	switch r.f.Status {
	case domain.OrderConfirmed:
		t.ConfirmedOrders++
		t.ConfirmedUnits += r.f.Quantity
	case domain.OrderCancelled:
		t.CancelledOrders++
	case domain.OrderRejected:
		t.RejectedOrders++
	default:
	}
	if reversed {
		t.ReversedOrders++
	}
	if (r.f.Status == domain.OrderConfirmed || reversed) && taken == 0 || reversed && given == 0 {
		t.OrphanOrders++
	}
	if taken > 1 {
		t.DoubleFlows++
	}
	if !r.f.GateTold {
		t.UntoldOrders++
	}
}
