package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// errGateMoved says that the gate is not what this attempt made of it: flushed, on another server,
// or taken over by a higher epoch. The attempt starts again under an epoch of its own.
var errGateMoved = errors.New("the gate moved during the rebuild")

// untoldPagesMax bounds how often the lock is asked for more untold rows.
const untoldPagesMax = 10_000

// rebuild makes attempts until the product is open, or is another instance's, or something fails.
func (r *RebuildStock) rebuild(ctx context.Context, product string) error {
	defer func() { // what failed is tried again without another drain
		r.mu.Lock()
		defer r.mu.Unlock()
		if p := r.pending[product]; p != nil && p.stage >= building {
			p.stage, p.again = drained, false
		}
	}()
	begun := time.Now()
	for range r.cfg.TriesMax {
		err := r.attempt(ctx, product, begun)
		if !errors.Is(err, errGateMoved) {
			return err
		}
		r.log.Info("a rebuild starts again", "event", "rebuild_again", "product", product, "error", err)
	}
	return fmt.Errorf("gave up for now after %d attempts: %w", r.cfg.TriesMax, errGateMoved)
}

// attempt is one rebuild under an epoch of its own, from the lease to the open gate. It ends with
// its lease, since from then on another instance may begin.
//
// The epoch is raised only from the one that was drained under. Had another attempt come between, it may
// have opened the product and a new loss have closed it again: then what was sold in between has not been
// drained. And had the epoch been raised before that was noticed, the other would find itself
// overtaken in turn: two instances a drain apart would go round for ever.
func (r *RebuildStock) attempt(ctx context.Context, product string, begun time.Time) error {
	under := r.begin(product)
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Lease)
	defer cancel()
	stock, taken, err := r.epochs.TakeAttempt(ctx, product, r.cfg.Holder, under, r.cfg.Lease)
	if err != nil {
		return fmt.Errorf("take the attempt: %w", err)
	}
	if !taken {
		return r.leave(ctx, product)
	}
	r.drainedUnder(product, stock.Epoch())
	if err := r.build(ctx, product, stock.Epoch()); err != nil {
		return err
	}
	return r.open(ctx, product, stock.Epoch(), begun)
}

// begin forgets what was said of the gate that this attempt replaces, and gives the epoch that was drained under.
func (r *RebuildStock) begin(product string) (under int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[product]
	if p == nil {
		return -1
	}
	p.stage, p.again = building, false
	return p.epoch
}

// leave drops a product that another instance rebuilds or has opened, or whose suspension is not the one
// that was drained. WatchGates takes it up again should it stay suspended.
func (r *RebuildStock) leave(ctx context.Context, product string) error {
	stocks, err := r.catalog.Stocks(ctx, []string{product})
	if err != nil {
		return err
	}
	if stocks[0].State() == domain.SaleOpen { // perhaps by this instance, which did not hear the answer
		if _, err := r.gate.Open(ctx, product, stocks[0].Epoch()); err != nil {
			return err
		}
	}
	r.forget(product)
	return r.lease.Refresh(ctx)
}

// drainedUnder notes the epoch that the product's drain holds for.
func (r *RebuildStock) drainedUnder(product string, epoch int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[product]; p != nil {
		p.epoch = epoch
	}
}

// build makes the gate: shut, and with the flows of all rows. The ledger says "open" in the transaction in
// which the gate's numbers are read and written: a message that comes later, however late, asks the gate.
func (r *RebuildStock) build(ctx context.Context, product string, epoch int64) error {
	if err := moved(r.gate.Prepare(ctx, product, epoch)); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	cursor, err := r.writeBackRows(ctx, product, epoch)
	if err != nil {
		return fmt.Errorf("write rows back: %w", err)
	}
	reopening := false
	done, err := r.epochs.Locked(ctx, product, epoch, func(locked port.LockedStock) error {
		if err := r.finish(ctx, locked, cursor); err != nil {
			return err
		}
		reopening = true
		return locked.Reopen()
	})
	switch {
	case err != nil && reopening: // perhaps it is open; if it is found suspended later, that may be another suspension
		r.drainedUnder(product, -1)
		return fmt.Errorf("reopen: %w", err)
	case err == nil && !done:
		return fmt.Errorf("lock the stock row of epoch %d: %w", epoch, errGateMoved)
	}
	return err
}

// writeBackRows writes the rows as they are without a lock, which is nearly all of them.
func (r *RebuildStock) writeBackRows(ctx context.Context, product string, epoch int64) (port.RowCursor, error) {
	var cursor port.RowCursor
	for {
		rows, next, err := r.epochs.Rows(ctx, product, cursor, r.cfg.PageMax)
		if err != nil {
			return cursor, err
		}
		if err := r.writeBack(ctx, product, epoch, rows); err != nil {
			return cursor, err
		}
		if len(rows) < r.cfg.PageMax {
			if len(rows) > 0 {
				cursor = next
			}
			return cursor, nil
		}
		cursor = next
	}
}

func (r *RebuildStock) writeBack(ctx context.Context, product string, epoch int64, rows []domain.Order) error {
	if len(rows) == 0 {
		return nil
	}
	return moved(r.gate.WriteBack(ctx, product, epoch, rows))
}

// moved makes an error of a refused step.
func moved(done bool, err error) error {
	if err == nil && !done {
		return errGateMoved
	}
	return err
}

// finish runs under the lock of the stock row: the rows that came since, what is still open without
// a row, and then the numbers, in one script that refuses if anything moved.
func (r *RebuildStock) finish(ctx context.Context, locked port.LockedStock, cursor port.RowCursor) error {
	stock := locked.Stock()
	product, epoch := stock.Product(), stock.Epoch()
	if err := r.writeBackLate(ctx, locked, cursor); err != nil {
		return fmt.Errorf("write late rows back: %w", err)
	}
	open, err := r.openUnits(ctx, locked)
	if err != nil {
		return fmt.Errorf("count open flows: %w", err)
	}
	views, err := r.gate.View(ctx, []string{product})
	if err != nil {
		return err
	}
	remaining := stock.Remaining() - open
	if remaining < 0 { // the guard in the database rejects those that do not fit
		r.log.Error("the gate has more open units than the ledger has stock; some accepted orders will be rejected",
			"event", "rebuild_overcommitted", "product", product, "stock", stock.Remaining(), "open", open)
		remaining = 0
	}
	r.move([]string{product}, written)
	return moved(r.gate.Rebuild(ctx, port.GatePlan{Product: product, Epoch: epoch, Remaining: remaining,
		Version: stock.Version(), Terms: stock.Terms(), Sequence: views[0].Sequence, Server: views[0].Server}))
}

// writeBackLate writes the rows that came since the unlocked pages, those of the last page's version
// again (ids of several instances are not in order), and those that were never told: a row
// that takes no stock may have been written late under a version that had been paged already.
// What is written back is told.
func (r *RebuildStock) writeBackLate(ctx context.Context, locked port.LockedStock, cursor port.RowCursor) error {
	product, epoch := locked.Stock().Product(), locked.Stock().Epoch()
	for cursor = (port.RowCursor{Version: cursor.Version}); ; {
		rows, next, err := locked.Rows(cursor, r.cfg.PageMax)
		if err != nil {
			return err
		}
		if err := r.writeBack(ctx, product, epoch, rows); err != nil {
			return err
		}
		if len(rows) < r.cfg.PageMax {
			break
		}
		cursor = next
	}
	for range untoldPagesMax {
		rows, err := locked.Untold(r.cfg.PageMax)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		if err := r.writeBack(ctx, product, epoch, rows); err != nil {
			return err
		}
		if err := locked.MarkTold(rows); err != nil {
			return err
		}
		if len(rows) < r.cfg.PageMax {
			return nil
		}
	}
	return fmt.Errorf("more than %d pages of untold rows", untoldPagesMax)
}

// openUnits sums the open flows that have no row, and settles those that have one.
func (r *RebuildStock) openUnits(ctx context.Context, locked port.LockedStock) (units int64, err error) {
	product, epoch := locked.Stock().Product(), locked.Stock().Epoch()
	for after := int64(0); ; {
		flows, err := r.flows.Page(ctx, product, after, r.cfg.PageMax)
		if err != nil {
			return 0, err
		}
		if len(flows) == 0 {
			return units, nil
		}
		orders, err := locked.Fates(keysOfFlows(flows))
		if err != nil {
			return 0, err
		}
		rows := orders[:0:0]
		for i, o := range orders {
			if o.IsZero() {
				units += flows[i].Quantity()
			} else {
				rows = append(rows, o)
			}
		}
		if err := r.writeBack(ctx, product, epoch, rows); err != nil {
			return 0, err
		}
		if len(flows) < r.cfg.PageMax {
			return units, nil
		}
		after = flows[len(flows)-1].Sequence()
	}
}

func keysOfFlows(flows []domain.Flow) []domain.Key {
	keys := make([]domain.Key, len(flows))
	for i, f := range flows {
		keys[i] = f.Key()
	}
	return keys
}

// open lets buyers in, after the ledger, so that no old message meets an open gate while the ledger still
// lets it pass without asking.
func (r *RebuildStock) open(ctx context.Context, product string, epoch int64, begun time.Time) error {
	opened, err := r.gate.Open(ctx, product, epoch)
	if err != nil { // the ledger is open: any instance's watch opens the gate
		r.log.Warn("the gate could not be opened yet", "event", "gate_open_late", "product", product, "error", err)
	}
	r.done(product, epoch, begun)
	if err == nil && !opened {
		r.Suspect(product, "the gate was lost again before it was opened")
	}
	if err := r.lease.Refresh(ctx); err != nil {
		r.log.Warn("the lease could not be renewed after a reopening", "event", "lease_failed", "error", err)
	}
	return nil
}

func (r *RebuildStock) done(product string, epoch int64, begun time.Time) {
	r.mu.Lock()
	closed := time.Duration(0)
	if p := r.pending[product]; p != nil {
		closed = time.Since(p.closed)
	}
	took := time.Since(begun)
	r.stats.Rebuilt++
	r.stats.LastProduct, r.stats.LastClosed, r.stats.LastAttempt = product, closed, took
	r.mu.Unlock()
	r.forget(product)
	r.log.Info("a gate is rebuilt and open", "event", "gate_rebuilt", "product", product, "epoch", epoch,
		"closed", closed, "took", took)
}

// BuildNew builds the gate of a product that was just created, at once: nothing of it was ever sold,
// so there is no lease to wait for and nothing to drain. On an error the product stays
// suspended and is built as soon as that is possible.
func (r *RebuildStock) BuildNew(ctx context.Context, product string) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.BuildMax)
	defer cancel()
	r.mu.Lock()
	if r.pending[product] != nil {
		r.mu.Unlock()
		return domain.NewError(domain.CodeRebuilding, "the product is on the road already", nil)
	}
	r.pending[product] = &suspicion{reason: "new", stage: building, closed: time.Now()}
	r.mu.Unlock()
	err := r.buildNew(ctx, product)
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[product]; p != nil && p.stage == building { // it did not come as far as an attempt
		*p = suspicion{reason: "new, and not built at once"}
	}
	wake(r.wakeSuspend)
	wake(r.wakeRebuild)
	return err
}

func (r *RebuildStock) buildNew(ctx context.Context, product string) error {
	views, err := r.gate.View(ctx, []string{product})
	if err != nil {
		return err
	}
	stocks, err := r.catalog.Stocks(ctx, []string{product})
	if err != nil {
		return err
	}
	if views[0].VersionTold > stocks[0].Version() { // an old record of the same name: not ours to overwrite
		r.forget(product)
		return markDamaged(ctx, r.epochs, r.gate, r.log, product, ledgerWentBack(views[0], stocks[0]))
	}
	r.mu.Lock()
	r.pending[product].epoch = stocks[0].Epoch()
	r.mu.Unlock()
	return r.rebuild(ctx, product)
}
