package simulation

import (
	"context"
	"fmt"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// desk is a use case's way to the ledger: each of its calls goes through the scheduler.
type desk struct {
	w    *world
	inst *instance
	who  string
}

// ask makes a call that gives something. Late copies write to nobody.
func ask[T any](ctx context.Context, d desk, what string, effect bool, args any, do func(context.Context) (T, error)) (T, error) {
	var got T
	var err error
	c := &call{inst: d.inst, to: toLedger, who: d.who, what: what, args: fmt.Sprintf("%v", args), effect: effect}
	if effect {
		c.late = func() { _, _ = do(context.Background()) }
	}
	if lost := d.w.pass(ctx, c, func() { got, err = do(ctx) }); lost != nil {
		var none T
		return none, lost
	}
	if err != nil {
		d.w.note("  %s %s: %v", d.who, what, err)
	}
	return got, err
}

func tellOnly(err error) (struct{}, error) { return struct{}{}, err }

func keysText(orders []domain.Order) []string {
	keys := make([]string, len(orders))
	for i, o := range orders {
		keys[i] = o.Key().String() + o.Status().String()
	}
	return keys
}

// Apply implements port.Ledger.
func (d desk) Apply(ctx context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
	if d.w.bad.adoptOff {
		items = d.w.pretendAdopted(items)
	}
	args := make([]string, len(items))
	for i, item := range items {
		args[i] = fmt.Sprint(item.Deduction.Key, item.Deduction.Epoch, item.AdoptedEpoch, item.Plain)
	}
	result, err := ask(ctx, d, "apply", true, args, func(ctx context.Context) (port.ApplyResult, error) { return d.w.ledger.Apply(ctx, items) })
	if err == nil {
		d.w.seen.applied(items, result)
		for i, r := range result.Replies {
			d.w.note("  applied %s %d %s", items[i].Deduction.Key, r.Outcome, r.Order.Status())
		}
	} else {
		d.w.seen.unheard(items)
	}
	return result, err
}

// Fates implements port.Ledger.
func (d desk) Fates(ctx context.Context, keys []domain.Key) ([]domain.Order, error) {
	return ask(ctx, d, "fates", false, keys, func(ctx context.Context) ([]domain.Order, error) { return d.w.ledger.Fates(ctx, keys) })
}

// Decide implements port.Ledger.
func (d desk) Decide(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	args := make([]string, len(claims))
	for i, c := range claims {
		args[i] = c.Key.String() + c.Status.String()
	}
	return ask(ctx, d, "decide", true, args, func(ctx context.Context) ([]domain.Order, error) { return d.w.ledger.Decide(ctx, claims) })
}

// Cancel implements port.Ledger.
func (d desk) Cancel(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	args := make([]string, len(claims))
	for i, c := range claims {
		args[i] = c.Key.String()
	}
	return ask(ctx, d, "cancel", true, args, func(ctx context.Context) ([]domain.Order, error) { return d.w.ledger.Cancel(ctx, claims) })
}

// Add implements port.Changes.
func (d desk) Add(ctx context.Context, additions []port.Addition) ([]port.AddReply, error) {
	args := make([]string, len(additions))
	for i, a := range additions {
		args[i] = a.Key.String()
	}
	return ask(ctx, d, "add", true, args, func(ctx context.Context) ([]port.AddReply, error) { return d.w.ledger.Add(ctx, additions) })
}

// Changes implements port.Changes.
func (d desk) Changes(ctx context.Context, product, before string, limit int) ([]domain.Order, error) {
	return d.w.ledger.Changes(ctx, product, before, limit)
}

// Asked implements port.Changes.
func (d desk) Asked(ctx context.Context, product string, changes []port.AskedChange) ([]port.Audit, error) {
	return d.w.ledger.Asked(ctx, product, changes)
}

// Record implements port.AuditLog.
func (d desk) Record(ctx context.Context, audit port.Audit, product, before, after string) error {
	_, err := ask(ctx, d, "audit", true, product, func(ctx context.Context) (struct{}, error) {
		return tellOnly(d.w.ledger.Record(ctx, audit, product, before, after))
	})
	return err
}

// Untold implements port.Outbox.
func (d desk) Untold(ctx context.Context, age time.Duration, after string, limit int) ([]domain.Order, error) {
	return ask(ctx, d, "untold", false, after, func(ctx context.Context) ([]domain.Order, error) {
		return d.w.ledger.Untold(ctx, age, after, limit)
	})
}

// MarkTold implements port.Outbox.
func (d desk) MarkTold(ctx context.Context, orders []domain.Order) error {
	_, err := ask(ctx, d, "mark-told", true, keysText(orders), func(ctx context.Context) (struct{}, error) {
		return tellOnly(d.w.ledger.MarkTold(ctx, orders))
	})
	return err
}

// Create implements port.Catalog.
func (d desk) Create(ctx context.Context, sale domain.Sale, audit port.Audit) (domain.Stock, bool, error) {
	return d.w.ledger.Create(ctx, sale, audit)
}

// Stocks implements port.Catalog.
func (d desk) Stocks(ctx context.Context, products []string) ([]domain.Stock, error) {
	return ask(ctx, d, "stocks", false, products, func(ctx context.Context) ([]domain.Stock, error) { return d.w.ledger.Stocks(ctx, products) })
}

// List implements port.Catalog.
func (d desk) List(ctx context.Context, after string, limit int) ([]domain.Stock, error) {
	return ask(ctx, d, "list", false, after, func(ctx context.Context) ([]domain.Stock, error) { return d.w.ledger.List(ctx, after, limit) })
}

// SetPaused implements port.Catalog.
func (d desk) SetPaused(ctx context.Context, product string, paused bool, only string, audit port.Audit) (domain.Stock, error) {
	return ask(ctx, d, "set-paused", true, fmt.Sprint(product, paused), func(ctx context.Context) (domain.Stock, error) {
		return d.w.ledger.SetPaused(ctx, product, paused, only, audit)
	})
}

// Suspend implements port.Epochs.
func (d desk) Suspend(ctx context.Context, products []string, reason string, damaged bool) error {
	_, err := ask(ctx, d, "suspend", true, fmt.Sprint(products, reason, damaged), func(ctx context.Context) (struct{}, error) {
		return tellOnly(d.w.ledger.Suspend(ctx, products, reason, damaged))
	})
	return err
}

// Accept implements port.Epochs.
func (d desk) Accept(ctx context.Context, product string, version, epoch int64) error {
	_, err := ask(ctx, d, "accept", true, fmt.Sprint(product, version, epoch), func(ctx context.Context) (struct{}, error) {
		return tellOnly(d.w.ledger.Accept(ctx, product, version, epoch))
	})
	return err
}

// Suspended implements port.Epochs.
func (d desk) Suspended(ctx context.Context) ([]domain.Stock, error) {
	return ask(ctx, d, "suspended", false, "", func(ctx context.Context) ([]domain.Stock, error) { return d.w.ledger.Suspended(ctx) })
}

type attempt struct {
	stock domain.Stock
	taken bool
}

// TakeAttempt implements port.Epochs.
func (d desk) TakeAttempt(ctx context.Context, product, holder string, suspension int64, lease time.Duration) (domain.Stock, bool, error) {
	a, err := ask(ctx, d, "take-attempt", true, fmt.Sprint(product, holder, suspension), func(ctx context.Context) (a attempt, err error) {
		a.stock, a.taken, err = d.w.ledger.TakeAttempt(ctx, product, holder, suspension, lease)
		return a, err
	})
	return a.stock, a.taken, err
}

type rowsPage struct {
	rows []domain.Order
	next port.RowCursor
}

// Rows implements port.Epochs.
func (d desk) Rows(ctx context.Context, product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	p, err := ask(ctx, d, "rows", false, fmt.Sprint(product, after), func(ctx context.Context) (p rowsPage, err error) {
		p.rows, p.next, err = d.w.ledger.Rows(ctx, product, after, limit)
		return p, err
	})
	return p.rows, p.next, err
}

// Locked implements port.Epochs: taking the lock is one call, and the commit another.
func (d desk) Locked(ctx context.Context, product string, epoch int64, do func(port.LockedStock) error) (bool, error) {
	if _, err := ask(ctx, d, "lock", false, fmt.Sprint(product, epoch), func(context.Context) (struct{}, error) { return struct{}{}, nil }); err != nil {
		return false, err
	}
	unheard := false
	done, err := d.w.ledger.Locked(ctx, product, epoch, func(locked port.LockedStock) error {
		if err := do(locked); err != nil {
			return err
		}
		committed := false
		c := &call{inst: d.inst, to: toLedger, who: d.who, what: "commit", args: fmt.Sprint(product, epoch), effect: true}
		err := d.w.pass(ctx, c, func() { committed = true })
		if unheard = committed && err != nil; committed {
			return nil
		}
		return err
	})
	if unheard {
		return false, errLost
	}
	return done, err
}

// KeepAttempt implements port.Epochs.
func (d desk) KeepAttempt(ctx context.Context, product, holder string, epoch int64, lease time.Duration) (bool, error) {
	return ask(ctx, d, "keep-attempt", true, fmt.Sprint(product, holder, epoch), func(ctx context.Context) (bool, error) {
		return d.w.ledger.KeepAttempt(ctx, product, holder, epoch, lease)
	})
}

// Park implements port.Parking.
func (d desk) Park(ctx context.Context, messages []port.Parked) error {
	args := make([]string, len(messages))
	for i, m := range messages {
		args[i] = fmt.Sprint(m.ID, m.Reason, m.Origin.MessageID)
	}
	d.w.seen.hit("parked message")
	_, err := ask(ctx, d, "park", true, args, func(ctx context.Context) (struct{}, error) {
		return tellOnly(d.w.ledger.Park(ctx, messages))
	})
	return err
}

// ListParked implements port.Parking.
func (d desk) ListParked(ctx context.Context, reason port.ParkReason, product, before string, limit int) ([]port.Parked, error) {
	return d.w.ledger.ListParked(ctx, reason, product, before, limit)
}

// FindParked implements port.Parking.
func (d desk) FindParked(ctx context.Context, reason port.ParkReason, product, after string, limit int) ([]port.Parked, error) {
	return d.w.ledger.FindParked(ctx, reason, product, after, limit)
}

// ReadParked implements port.Parking.
func (d desk) ReadParked(ctx context.Context, ids []string) ([]port.Parked, error) {
	return d.w.ledger.ReadParked(ctx, ids)
}

// CountParked implements port.Parking.
func (d desk) CountParked(ctx context.Context) (int64, error) { return d.w.ledger.CountParked(ctx) }

// Replayable implements port.Parking.
func (d desk) Replayable(ctx context.Context, limit int) ([]port.Parked, error) {
	return ask(ctx, d, "replayable", false, "", func(ctx context.Context) ([]port.Parked, error) { return d.w.ledger.Replayable(ctx, limit) })
}

// MarkReplayed implements port.Parking.
func (d desk) MarkReplayed(ctx context.Context, ids []string) error {
	_, err := ask(ctx, d, "mark-replayed", true, ids, func(ctx context.Context) (struct{}, error) {
		return tellOnly(d.w.ledger.MarkReplayed(ctx, ids))
	})
	return err
}

// MarkBarrier implements port.BarrierLog.
func (d desk) MarkBarrier(ctx context.Context, id, place string) error {
	return d.w.ledger.MarkBarrier(ctx, id, place)
}

// BarrierPlaces implements port.BarrierLog.
func (d desk) BarrierPlaces(ctx context.Context, id string) ([]string, error) {
	return d.w.ledger.BarrierPlaces(ctx, id)
}

// ForgetBarriers implements port.BarrierLog.
func (d desk) ForgetBarriers(ctx context.Context, age time.Duration) error {
	return d.w.ledger.ForgetBarriers(ctx, age)
}
