package application

import (
	"cmp"
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

// errHeld says that another instance holds the product's rebuild lease.
var errHeld = errors.New("another instance rebuilds the product")

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
// It is taken only for the suspension that was drained. Had another instance opened the product in between and a
// new loss closed it again, what was sold meanwhile has not been drained. Were the epoch raised before
// that is noticed, the other would find itself overtaken in turn: two instances a drain apart would
// go round for ever.
func (r *RebuildStock) attempt(ctx context.Context, product string, begun time.Time) error {
	suspension := r.begin(product)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lease := &attemptLease{until: time.AfterFunc(r.cfg.Lease, cancel), taken: time.Now()}
	defer lease.until.Stop()
	stock, taken, err := r.epochs.TakeAttempt(ctx, product, r.cfg.Holder, suspension, r.cfg.Lease)
	if err != nil {
		return fmt.Errorf("take the attempt: %w", err)
	}
	if !taken {
		return r.leave(ctx, product, suspension)
	}
	if err := r.build(ctx, stock, lease); err != nil {
		return err
	}
	return r.open(ctx, product, stock.Epoch(), begun)
}

// attemptLease is how long an attempt may go on; the ledger's clock says the same. It is renewed while rows are
// applied and written back, so that a product may have any number of them. Under the lock of the stock row nobody
// else can begin, and there is little left to do, so one lease has to do.
type attemptLease struct {
	until *time.Timer
	taken time.Time
}

func (r *RebuildStock) renewInTime(ctx context.Context, lease *attemptLease, stock domain.Stock) error {
	if time.Since(lease.taken) <= r.cfg.Lease/3 {
		return nil
	}
	begun := time.Now()
	kept, err := r.epochs.KeepAttempt(ctx, stock.Product(), r.cfg.Holder, stock.Epoch(), r.cfg.Lease)
	if err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	if !kept {
		return fmt.Errorf("renew the lease of epoch %d: %w", stock.Epoch(), errGateMoved)
	}
	lease.until.Reset(r.cfg.Lease - time.Since(begun))
	lease.taken = begun
	return nil
}

// begin forgets what was said of the gate that this attempt replaces, and gives the suspension that was drained.
func (r *RebuildStock) begin(product string) (suspension int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[product]
	if p == nil {
		return -1
	}
	p.stage, p.again = building, false
	return p.suspension
}

// leave drops a product that another instance has opened. While another one rebuilds it, it waits: should that one
// not come to its end, the drain that is done need not be done again. Another suspension begins anew.
func (r *RebuildStock) leave(ctx context.Context, product string, drained int64) error {
	stocks, err := r.catalog.Stocks(ctx, []string{product})
	if err != nil {
		return err
	}
	stock := stocks[0]
	switch {
	case stock.State() == domain.SaleSuspended && stock.Suspension() == drained:
		return errHeld
	case stock.State() == domain.SaleSuspended:
		r.beginAnew(product)
		return nil
	case stock.State() == domain.SaleOpen: // perhaps by this instance, which did not hear the answer
		if _, err := r.gate.Open(ctx, product, stock.Epoch()); err != nil {
			return err
		}
	}
	r.forget(product)
	return r.lease.Refresh(ctx)
}

func (r *RebuildStock) beginAnew(product string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[product]; p != nil {
		*p = suspicion{reason: "it was opened and suspended again between drain and rebuild"}
	}
	wake(r.wakeSuspend)
}

// build makes the gate: shut, and with the flows of all rows. The ledger says "open" in the transaction in
// which the gate's numbers are read and written: a message that comes later, however late, asks the gate.
func (r *RebuildStock) build(ctx context.Context, stock domain.Stock, lease *attemptLease) error {
	product, epoch := stock.Product(), stock.Epoch()
	if err := moved(r.gate.Prepare(ctx, product, epoch)); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if err := r.applyOpen(ctx, stock, lease); err != nil {
		return fmt.Errorf("apply what is open: %w", err)
	}
	cursor, err := r.writeBackRows(ctx, stock, lease)
	if err != nil {
		return fmt.Errorf("write rows back: %w", err)
	}
	done, err := r.epochs.Locked(ctx, product, epoch, func(locked port.LockedStock) error {
		if err := r.finish(ctx, locked, cursor); err != nil {
			return err
		}
		return locked.Reopen()
	})
	if err == nil && !done {
		return fmt.Errorf("lock the stock row of epoch %d: %w", epoch, errGateMoved)
	}
	return err // perhaps it is open all the same: the next attempt finds out
}

// applyOpen makes rows of the flows that the gate has kept and no message has brought, as their messages would. Were
// they carried over into the new gate, a second loss could take them before their messages come, and those could then
// not be told from stragglers whose units were sold again. What is of a gate before the last one is such a
// straggler: it stays open, and asks for its units after the reopening.
func (r *RebuildStock) applyOpen(ctx context.Context, stock domain.Stock, lease *attemptLease) error {
	for after := int64(0); ; {
		if err := r.renewInTime(ctx, lease, stock); err != nil {
			return err
		}
		flows, err := r.flows.Page(ctx, stock.Product(), after, r.cfg.PageMax)
		if err != nil || len(flows) == 0 {
			return err
		}
		items := make([]port.ApplyItem, len(flows))
		for i, f := range flows {
			items[i].Deduction = domain.DeductionOf(f)
		}
		if _, err := r.ledger.Apply(ctx, items); err != nil {
			return err
		}
		if len(flows) < r.cfg.PageMax {
			return nil
		}
		after = flows[len(flows)-1].Sequence()
	}
}

// writeBackRows writes the rows as they are without a lock, which is nearly all of them. A page is read while the one
// before it is written: neither server waits for the other.
func (r *RebuildStock) writeBackRows(ctx context.Context, stock domain.Stock, lease *attemptLease) (port.RowCursor, error) {
	var cursor port.RowCursor
	before := make(chan error, 1) // how the page before was written
	before <- nil
	for {
		rows, next, err := r.nextRows(ctx, stock, lease, cursor)
		if err := cmp.Or(<-before, err); err != nil {
			return cursor, err
		}
		if len(rows) > 0 {
			cursor = next
		}
		if len(rows) < r.cfg.PageMax {
			return cursor, r.writeBack(ctx, stock.Product(), stock.Epoch(), rows)
		}
		go func() { before <- r.writeBack(ctx, stock.Product(), stock.Epoch(), rows) }()
	}
}

func (r *RebuildStock) nextRows(ctx context.Context, stock domain.Stock, lease *attemptLease, after port.RowCursor) (
	[]domain.Order, port.RowCursor, error) {
	if err := r.renewInTime(ctx, lease, stock); err != nil {
		return nil, after, err
	}
	return r.epochs.Rows(ctx, stock.Product(), after, r.cfg.PageMax)
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
	r.done(product, epoch, begun, r.closedFor(ctx, product))
	if err == nil && !opened {
		r.Suspect(product, "the gate was lost again before it was opened")
	}
	if err := r.lease.Refresh(ctx); err != nil {
		r.log.Warn("the lease could not be renewed after a reopening", "event", "lease_failed", "error", err)
	}
	return nil
}

// closedFor is how long the product was closed, as the ledger says; where it cannot be asked, since this instance
// found it suspended.
func (r *RebuildStock) closedFor(ctx context.Context, product string) time.Duration {
	stocks, err := r.catalog.Stocks(ctx, []string{product})
	if err == nil && stocks[0].State() == domain.SaleOpen {
		return stocks[0].LastClosed()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[product]; p != nil {
		return time.Since(p.closed)
	}
	return 0
}

func (r *RebuildStock) done(product string, epoch int64, begun time.Time, closed time.Duration) {
	took := time.Since(begun)
	r.mu.Lock()
	r.stats.Rebuilt++
	r.stats.LastProduct, r.stats.LastClosed, r.stats.LastAttempt = product, closed, took
	r.mu.Unlock()
	r.forget(product)
	r.log.Info("a gate is rebuilt and open", "event", "gate_rebuilt", "product", product, "epoch", epoch,
		"closed", closed, "took", took, "check_window", r.drainer.CheckWindow())
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
	r.pending[product].suspension = stocks[0].Suspension()
	r.mu.Unlock()
	return r.rebuild(ctx, product)
}
