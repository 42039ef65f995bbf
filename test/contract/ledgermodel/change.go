package ledgermodel

import (
	"context"
	"maps"
	"slices"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Cancel implements port.Ledger.
func (l *Ledger) Cancel(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	keys := make([]domain.Key, len(claims))
	products := map[string]bool{}
	for i, c := range claims {
		if c.Status != domain.OrderCancelled || c.Key.IsChange() {
			return nil, domain.NewError(domain.CodeInvalidRequest, "a cancel claims a cancelled fate of an order", nil)
		}
		keys[i] = c.Key
		products[c.Key.Product()] = true
	}
	if err := here(ctx); err != nil {
		return nil, err
	}
	free, err := l.lock(ctx, slices.Sorted(maps.Keys(products)))
	if err != nil {
		return nil, err
	}
	defer free()
	if _, err := l.Decide(ctx, claims); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.reverse(keys)
	l.mu.Unlock()
	return l.Fates(context.WithoutCancel(ctx), keys)
}

// reverse gives back the units of those orders that are confirmed; mu and their products' rows are held.
func (l *Ledger) reverse(keys []domain.Key) {
	moved := map[string]bool{}
	var rows []*orderRow
	for _, k := range keys {
		r := l.byKey[k]
		if r.f.Status != domain.OrderConfirmed {
			continue
		}
		s := l.stocks[k.Product()]
		s.f.Stock += r.f.Quantity
		l.flows = append(l.flows, flowRow{k.Product(), r.f.ID, -r.f.Quantity, r.f.Epoch, r.f.Sequence, time.Now()})
		r.f.Status, r.f.FromBirth, r.f.GateTold, r.updated = domain.OrderCancelled, false, false, time.Now()
		moved[k.Product()], rows = true, append(rows, r)
	}
	for product := range moved {
		l.stocks[product].f.Version++
	}
	for _, r := range rows {
		r.f.StockVersion = l.stocks[r.f.Key.Product()].f.Version
	}
}

// Add implements port.Changes.
func (l *Ledger) Add(ctx context.Context, additions []port.Addition) ([]port.AddReply, error) {
	products := map[string]bool{}
	for _, a := range additions {
		if !a.Key.IsChange() {
			return nil, domain.NewError(domain.CodeInvalidRequest, "only a stock change adds units", nil)
		}
		if err := domain.CheckQuantity("quantity", a.Quantity); err != nil {
			return nil, err
		}
		products[a.Key.Product()] = true
	}
	if err := here(ctx); err != nil {
		return nil, err
	}
	free, err := l.lock(ctx, slices.Sorted(maps.Keys(products)))
	if err != nil {
		return nil, err
	}
	defer free()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fits(additions); err != nil {
		return nil, err
	}
	replies := make([]port.AddReply, len(additions))
	raised := map[string]bool{}
	for i, a := range additions {
		if r := l.byKey[a.Key]; r != nil {
			replies[i].Row = r.order()
			continue
		}
		s := l.stocks[a.Key.Product()]
		if !raised[s.f.Product] {
			s.f.Version++
			raised[s.f.Product] = true
		}
		was, is := port.ChangeStates(a.Key, a.Quantity, s.stock())
		l.audits = append(l.audits, auditRow{a.Audit, s.f.Product, was, is})
		s.f.Stock += a.Quantity
		s.f.Total += a.Quantity
		r := &orderRow{updated: time.Now(), f: domain.OrderFields{ID: l.id(), Key: a.Key, Quantity: a.Quantity, Status: domain.OrderAdded,
			FromBirth: true, StockVersion: s.f.Version, CreatedAt: time.Now()}}
		l.add(r)
		replies[i] = port.AddReply{Row: r.order(), Added: true}
	}
	return replies, nil
}

// fits checks that the additions that are new may be.
func (l *Ledger) fits(additions []port.Addition) error {
	totals := map[string]int64{}
	first := map[domain.Key]bool{}
	for _, a := range additions {
		s := l.stocks[a.Key.Product()]
		if s == nil {
			return domain.NewError(domain.CodeProductNotFound, "there is no product "+a.Key.Product(), nil)
		}
		if l.byKey[a.Key] != nil || first[a.Key] {
			continue
		}
		first[a.Key] = true
		totals[s.f.Product] += a.Quantity
		if s.f.Total+totals[s.f.Product] > domain.UnitsMax {
			return domain.NewError(domain.CodeInvalidRequest, "more than may be on sale", nil)
		}
	}
	return nil
}

// Changes implements port.Changes.
func (l *Ledger) Changes(ctx context.Context, product, before string, limit int) ([]domain.Order, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var changes []domain.Order
	for _, r := range slices.Backward(l.rows) {
		mine := r.f.Key.IsChange() && r.f.Key.Product() == product
		if mine && (before == "" || r.f.ID < before) && len(changes) < limit {
			changes = append(changes, r.order())
		}
	}
	return changes, nil
}

// Asked implements port.Changes.
func (l *Ledger) Asked(ctx context.Context, product string, changes []port.AskedChange) ([]port.Audit, error) {
	if err := here(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	audits := make([]port.Audit, len(changes))
	for _, r := range l.audits {
		if r.product != product || r.Action != port.AuditAdd && r.Action != port.AuditWithdraw {
			continue
		}
		for i, c := range changes {
			if port.ChangeInState(product, r.after) == c {
				audits[i] = r.Audit
			}
		}
	}
	return audits, nil
}
