package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"seckill/application/port"
	"seckill/domain"
)

// RebuildConfig bounds a rebuild.
type RebuildConfig struct {
	Holder      string        // names this instance in the rebuild lease; one that stays the same over restarts takes its own lease again
	LeaseWait   time.Duration // until nobody sells any more after a suspension; 0 where this instance is alone
	Lease       time.Duration // of an attempt, in the stock row: renewed while rows are written back, and the attempt ends with it
	DrainMargin time.Duration // what a drain may take beyond the broker's check window
	BuildMax    time.Duration // for the gate of a new product
	RetryMin    time.Duration // first pause after a failure, shortened by Chance
	RetryMax    time.Duration // longest pause after a failure
	TriesMax    int           // attempts in a row while the gate moves, before a pause
	PendingMax  int           // products that wait at once; the rest is found again in the catalog
	PageMax     int           // products, rows or flows in one call; at most 1,000
	ParallelMax int           // products rebuilt at once
	ColdStart   bool          // suspect every product at the start
	Chance      Chance
}

// DefaultRebuildConfig suits many instances that share their servers. Holder has to be set.
func DefaultRebuildConfig() RebuildConfig {
	return RebuildConfig{LeaseWait: 3 * time.Second, Lease: 30 * time.Second, DrainMargin: 5 * time.Minute,
		BuildMax: 5 * time.Second, RetryMin: 500 * time.Millisecond, RetryMax: 5 * time.Second, TriesMax: 3,
		PendingMax: 100_000, PageMax: 1000, ParallelMax: 4}
}

// RebuildStats are counts since the start; LastClosed is how long the last rebuilt product could not be bought.
type RebuildStats struct {
	Pending     int
	Rebuilt     int64
	Failures    int64
	LastProduct string
	LastClosed  time.Duration
	LastAttempt time.Duration // of that, without lease and drain
}

// RebuildStock suspends, drains, rebuilds and reopens products whose gate has forgotten something
// or has been proved wrong, and builds the gates of new ones.
//
// One goroutine suspends, so that a product named while another is drained is closed at once; a
// second one drains, once for all that are suspended by then, and rebuilds.
type RebuildStock struct {
	epochs  port.Epochs
	catalog port.Catalog
	gate    port.GateAdmin
	flows   port.OpenFlows
	ledger  port.Ledger
	drainer port.Drainer
	lease   *Lease
	cfg     RebuildConfig
	log     *slog.Logger

	mu       sync.Mutex
	pending  map[string]*suspicion
	all      bool   // every product is suspected; those that found no room in pending are read from the catalog
	allAfter string // as far as that has come
	changed  chan struct{}
	stats    RebuildStats

	wakeSuspend, wakeRebuild chan struct{}
	once                     sync.Once
	cancel                   context.CancelFunc
	workers                  sync.WaitGroup
}

// suspicionStage is how far a product has come.
type suspicionStage uint8

const (
	suspected suspicionStage = iota // has to be suspended
	suspended                       // has to wait for the lease and the drain
	drained                         // has to be rebuilt
	building                        // an attempt is under way
	written                         // its gate's last numbers are being written: what is suspected from here on is about the new gate
)

type suspicion struct {
	reason string
	stage  suspicionStage
	closed time.Time // since when nobody begins to sell it
	again  bool      // suspected again after it was written

	suspension int64 // that was found in the ledger
}

var (
	_ Runner   = (*RebuildStock)(nil)
	_ Suspects = (*RebuildStock)(nil)
)

// NewRebuildStock wires the use case; lease is read again after each reopening.
func NewRebuildStock(epochs port.Epochs, catalog port.Catalog, gate port.GateAdmin, flows port.OpenFlows,
	ledger port.Ledger, drainer port.Drainer, lease *Lease, cfg RebuildConfig, log *slog.Logger) *RebuildStock {
	return &RebuildStock{epochs: epochs, catalog: catalog, gate: gate, flows: flows, ledger: ledger, drainer: drainer,
		lease: lease, cfg: cfg, log: log, pending: make(map[string]*suspicion), changed: make(chan struct{}),
		wakeSuspend: make(chan struct{}, 1), wakeRebuild: make(chan struct{}, 1)}
}

// Name implements Runner.
func (r *RebuildStock) Name() string { return "rebuild" }

// Start takes up what an earlier process left suspended and begins to work. It returns before
// anything is rebuilt: see WaitIdle.
func (r *RebuildStock) Start(ctx context.Context) error {
	stocks, err := r.epochs.Suspended(ctx)
	if err != nil {
		return fmt.Errorf("read which products are suspended: %w", err)
	}
	r.once.Do(func() {
		for _, s := range stocks {
			if s.State() == domain.SaleSuspended {
				r.Suspect(s.Product(), "left suspended: "+s.Reason())
			}
		}
		if r.cfg.ColdStart {
			r.suspectAll()
		}
		workCtx, cancel := context.WithCancel(context.Background())
		r.cancel = cancel
		r.workers.Go(func() { r.work(workCtx, r.wakeSuspend, r.suspendRound) })
		r.workers.Go(func() { r.work(workCtx, r.wakeRebuild, r.rebuildRound) })
	})
	return nil
}

// Stop ends the work. What is left suspended is taken up by whoever starts next or watches.
func (r *RebuildStock) Stop(ctx context.Context) error {
	r.once.Do(func() { r.cancel = func() {} })
	r.cancel()
	done := make(chan struct{})
	go func() { r.workers.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Suspect implements Suspects. What is said of a product that is on the road already concerns the
// gate that is about to be replaced, and changes nothing.
func (r *RebuildStock) Suspect(product, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, known := r.pending[product]; known {
		p.again = p.again || p.stage == written
		return
	}
	if len(r.pending) >= r.cfg.PendingMax {
		r.all, r.allAfter = true, ""
		return
	}
	r.log.Warn("a product is suspected", "event", "product_suspected", "product", product, "reason", reason)
	r.pending[product] = &suspicion{reason: reason}
	wake(r.wakeSuspend)
}

func (r *RebuildStock) suspectAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.allAfter = true, ""
	wake(r.wakeSuspend)
}

// WaitIdle returns nil once nothing is suspected or on the road, or ctx's error. A product that waits
// for an operator is not waited for.
func (r *RebuildStock) WaitIdle(ctx context.Context) error {
	for {
		r.mu.Lock()
		idle, changed := len(r.pending) == 0 && !r.all, r.changed
		r.mu.Unlock()
		if idle {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Stats are the counts.
func (r *RebuildStock) Stats() RebuildStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Pending = len(r.pending)
	return s
}

// work runs rounds whenever it is woken, and again after a pause when one failed. Being woken does
// not shorten a pause, or a crowd of suspects would undo it.
func (r *RebuildStock) work(ctx context.Context, woken <-chan struct{}, round func(context.Context) error) {
	pauses := r.newPauses()
	for {
		if err := r.survive(ctx, round); err != nil && ctx.Err() == nil {
			pause := r.cfg.Chance.shorten(pauses.NextBackOff())
			r.noteFailure(err, pause)
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
				return
			}
		}
		pauses.Reset()
		select {
		case <-woken:
		case <-ctx.Done():
			return
		}
	}
}

func (r *RebuildStock) noteFailure(err error, pause time.Duration) {
	if errors.Is(err, errHeld) {
		r.log.Info("a rebuild waits for another instance's", "event", "rebuild_held", "pause", pause, "error", err)
		return
	}
	r.log.Warn("a rebuild has to be tried again", "event", "rebuild_failed", "pause", pause, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Failures++
}

func (r *RebuildStock) newPauses() *backoff.ExponentialBackOff {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.RandomizationFactor = r.cfg.RetryMin, r.cfg.RetryMax, 0
	return pauses
}

func (r *RebuildStock) survive(ctx context.Context, round func(context.Context) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return round(ctx)
}

// suspendRound closes every product that is suspected, page by page. Those that fail stand before no others.
func (r *RebuildStock) suspendRound(ctx context.Context) error {
	var failed error
	for tried := make(map[string]bool); ; {
		if err := r.fillFromCatalog(ctx); err != nil {
			return errors.Join(failed, err)
		}
		products, reason := r.nextSuspected(tried)
		if len(products) == 0 || ctx.Err() != nil {
			return failed
		}
		if err := r.suspend(ctx, products, reason); err != nil {
			failed = fmt.Errorf("suspend %d products: %w", len(products), err)
			for _, product := range products {
				tried[product] = true
			}
		}
	}
}

// fillFromCatalog names the next products of a suspicion against all.
func (r *RebuildStock) fillFromCatalog(ctx context.Context) error {
	r.mu.Lock()
	all, after := r.all, r.allAfter
	room := min(r.cfg.PendingMax-len(r.pending), r.cfg.PageMax)
	r.mu.Unlock()
	if !all || room < 1 {
		return nil
	}
	stocks, err := r.catalog.List(ctx, after, room)
	if err != nil {
		return fmt.Errorf("list products: %w", err)
	}
	for _, s := range stocks {
		if s.State() != domain.SaleDamaged {
			r.Suspect(s.Product(), "every product is suspected")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.allAfter != after: // suspected anew meanwhile
	case len(stocks) < room:
		r.all, r.allAfter = false, ""
		r.announce()
	default:
		r.allAfter = stocks[len(stocks)-1].Product()
	}
	return nil
}

// nextSuspected gives products that share a reason, in order, without those that were tried in this round.
func (r *RebuildStock) nextSuspected(tried map[string]bool) (products []string, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, product := range slices.Sorted(maps.Keys(r.pending)) {
		p := r.pending[product]
		if p.stage != suspected || tried[product] || len(products) == r.cfg.PageMax || len(products) > 0 && p.reason != reason {
			continue
		}
		products, reason = append(products, product), p.reason
	}
	return products, reason
}

// suspend closes products in the ledger and at the gate. The gate is looked at before the ledger is
// read, so that a gate which was told a newer stock version proves that the ledger went back. What
// counts is the ledger: a gate that cannot be shut is void for everybody within the lease. One that
// cannot be read keeps its product here, and no other.
func (r *RebuildStock) suspend(ctx context.Context, products []string, reason string) error {
	if err := r.epochs.Suspend(ctx, products, reason, false); err != nil {
		return err
	}
	if err := r.lease.Refresh(ctx); err != nil {
		return err
	}
	views, err := r.gate.View(ctx, products)
	if err != nil {
		return err
	}
	stocks, err := r.catalog.Stocks(ctx, products)
	if err != nil {
		return err
	}
	closed := time.Now() // not before the read: it may have found a later suspension than this one
	if err := r.gate.Shut(ctx, products); err != nil {
		r.log.Warn("a gate could not be shut; it is void as soon as the leases are", "event", "shut_failed", "error", err)
	}
	var failed error
	for i, s := range stocks {
		switch {
		case s.IsZero() || s.State() == domain.SaleDamaged:
			r.forget(products[i])
		case views[i].Err != nil:
			failed = fmt.Errorf("look at the gate of %s: %w", products[i], views[i].Err)
		case views[i].VersionTold > s.Version():
			if err := markDamaged(ctx, r.epochs, r.gate, r.log, products[i], ledgerWentBack(views[i], s)); err != nil {
				return err
			}
			r.forget(products[i])
		default:
			r.mu.Lock()
			if p := r.pending[products[i]]; p != nil {
				p.stage, p.suspension, p.closed = suspended, s.Suspension(), closed
			}
			r.mu.Unlock()
		}
	}
	wake(r.wakeRebuild)
	return failed
}

// forget takes a product off the road; one that was suspected again begins anew.
func (r *RebuildStock) forget(product string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[product]; p != nil && p.again {
		*p = suspicion{reason: "suspected again during its rebuild"}
	} else {
		delete(r.pending, product)
	}
	wake(r.wakeSuspend) // also: there is room for one more
	r.announce()
}

// announce tells those who wait for idleness to look again; mu is held.
func (r *RebuildStock) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// rebuildRound rebuilds what failed before, which needs no other drain, and then drains and rebuilds
// what is suspended.
func (r *RebuildStock) rebuildRound(ctx context.Context) error {
	failed := r.rebuildReachable(ctx, r.inStage(drained))
	waiting, err := r.waitForLease(ctx)
	if err != nil || len(waiting) == 0 {
		return errors.Join(failed, err)
	}
	if err := r.drain(ctx); err != nil {
		return errors.Join(failed, fmt.Errorf("drain: %w", err))
	}
	r.move(waiting, drained)
	failed = errors.Join(failed, r.rebuildReachable(ctx, waiting))
	if len(r.inStage(suspended)) > 0 {
		wake(r.wakeRebuild)
	}
	return failed
}

// rebuildReachable leaves out products whose gate does not answer: one look tells for a page of them, where each attempt
// would wait for its own timeouts while others could be opened.
func (r *RebuildStock) rebuildReachable(ctx context.Context, products []string) error {
	var failed error
	for page := range slices.Chunk(products, r.cfg.PageMax) {
		views, err := r.gate.View(ctx, page)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		var reachable []string
		for i, v := range views {
			if v.Err == nil {
				reachable = append(reachable, page[i])
			} else {
				err = fmt.Errorf("look at the gate of %s: %w", page[i], v.Err)
			}
		}
		failed = errors.Join(failed, err, r.rebuildAll(ctx, reachable))
	}
	return failed
}

// rebuildAll rebuilds some products at a time; one that fails keeps none of the others from it.
func (r *RebuildStock) rebuildAll(ctx context.Context, products []string) error {
	failures := make([]error, len(products))
	var group errgroup.Group
	group.SetLimit(r.cfg.ParallelMax)
	for i, product := range products {
		group.Go(func() error {
			failures[i] = r.survive(ctx, func(ctx context.Context) error { return r.rebuild(ctx, product) })
			return nil
		})
	}
	_ = group.Wait() // its members keep their errors
	failed := 0
	var first error
	for i, err := range failures {
		if err == nil {
			continue
		}
		if failed++; first == nil {
			first = fmt.Errorf("rebuild %s: %w", products[i], err)
		}
	}
	if failed > 1 {
		return fmt.Errorf("%d products, first: %w", failed, first)
	}
	return first
}

// waitForLease waits until nobody sells the products that are suspended, those included that are
// suspended while it waits: one loss shows at many products within a second or two, and they
// should share one drain. It waits for latecomers at most as long as twice the lease.
func (r *RebuildStock) waitForLease(ctx context.Context) ([]string, error) {
	for begun := time.Now(); ; {
		products, newest := r.ripe(time.Since(begun) > 2*r.cfg.LeaseWait)
		wait := r.cfg.LeaseWait - time.Since(newest)
		if len(products) == 0 || wait <= 0 {
			return products, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ripe gives the products that are suspended, without those of the last lease time if
// hurry is set, and when the newest of them was suspended.
func (r *RebuildStock) ripe(hurry bool) (products []string, newest time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for product, p := range r.pending {
		if p.stage != suspended || hurry && time.Since(p.closed) < r.cfg.LeaseWait {
			continue
		}
		products = append(products, product)
		if p.closed.After(newest) {
			newest = p.closed
		}
	}
	slices.Sort(products)
	return products, newest
}

func (r *RebuildStock) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.drainer.CheckWindow()+r.cfg.DrainMargin)
	defer cancel()
	return r.drainer.Drain(ctx)
}

func (r *RebuildStock) inStage(stage suspicionStage) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var products []string
	for product, p := range r.pending {
		if p.stage == stage {
			products = append(products, product)
		}
	}
	slices.Sort(products)
	return products
}

func (r *RebuildStock) move(products []string, to suspicionStage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, product := range products {
		if p := r.pending[product]; p != nil {
			p.stage = to
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
