package application_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/contract/gatemodel"
)

// frozen are the ports of an instance that stands still for a time before its next call of a method, as a process
// does that is stopped. Its clock goes on.
type frozen struct {
	port.Epochs
	port.GateAdmin

	mu     sync.Mutex
	at     string
	length time.Duration
}

func (f *frozen) freeze(at string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.length = at, d
}

func (f *frozen) enter(method string) {
	f.mu.Lock()
	d := f.length
	if f.at != method {
		d = 0
	} else {
		f.at = ""
	}
	f.mu.Unlock()
	time.Sleep(d)
}

func (f *frozen) TakeAttempt(ctx context.Context, product, holder string, suspension int64, lease time.Duration) (domain.Stock, bool, error) {
	f.enter("TakeAttempt")
	return f.Epochs.TakeAttempt(ctx, product, holder, suspension, lease)
}

func (f *frozen) Rows(ctx context.Context, product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	f.enter("Rows")
	if err := ctx.Err(); err != nil {
		return nil, after, err
	}
	return f.Epochs.Rows(ctx, product, after, limit)
}

func (f *frozen) Locked(ctx context.Context, product string, epoch int64, do func(port.LockedStock) error) (bool, error) {
	f.enter("Locked")
	return f.Epochs.Locked(ctx, product, epoch, do)
}

func (f *frozen) Prepare(ctx context.Context, product string, epoch int64) (bool, error) {
	f.enter("Prepare")
	return f.GateAdmin.Prepare(ctx, product, epoch)
}

func (f *frozen) WriteBack(ctx context.Context, product string, epoch int64, orders []domain.Order) (bool, error) {
	f.enter("WriteBack")
	return f.GateAdmin.WriteBack(ctx, product, epoch, orders)
}

func (f *frozen) Open(ctx context.Context, product string, epoch int64) (bool, error) {
	f.enter("Open")
	return f.GateAdmin.Open(ctx, product, epoch)
}

// instance is one of several on the same shop, with a memory of its own.
type instance struct {
	*frozen
	gate   *gatemodel.Gate
	lease  *application.Lease
	repair *application.RebuildStock
}

// join starts an instance.
func (s *shop) join(t *testing.T, holder string) *instance {
	t.Helper()
	gate := gatemodel.New(s.store)
	i := &instance{frozen: &frozen{Epochs: s.books, GateAdmin: gate}, gate: gate}
	i.lease = application.NewLease(s.books, application.DefaultLeaseConfig(), quietLog)
	cfg := application.DefaultRebuildConfig()
	cfg.Holder, cfg.PageMax = holder, 2
	i.repair = application.NewRebuildStock(i.frozen, s.books, i.frozen, gate, s.books, s.drains, i.lease, cfg, quietLog)
	watch := application.NewWatchGates(s.books, s.books, gate, i.repair, application.DefaultWatchConfig(), quietLog)
	for _, r := range []application.Runner{i.lease, i.repair, watch} {
		startRunner(t, r)
	}
	return i
}

// Whatever step a rebuilder sleeps in, for longer than its lease: another instance opens the product, and when the
// sleeper wakes it disturbs nothing, also if the gate was lost again meanwhile.
func TestARebuilderThatSleepsIsOvertakenAndDisturbsNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"TakeAttempt", "Prepare", "Rows", "WriteBack", "Locked", "Open"} {
		for _, again := range []bool{false, true} {
			inBubble(t, fmt.Sprint(step, ", lost again ", again), func(t *testing.T) {
				s := newShop(nil)
				s.open(t, "p", 20)
				for i := range 5 {
					s.settle(t, s.buy(t, "p", fmt.Sprint("early", i)), domain.OrderConfirmed)
				}
				travels := s.buy(t, "p", "travels")
				s.store.Forget("p")
				s.drains.takes = 10 * time.Second
				var arrives sync.Once
				s.drains.while = func() { arrives.Do(func() { s.apply(travels, domain.OrderConfirmed, false) }) }
				sleeper := s.join(t, "sleeper")
				sleeper.freeze(step, 3*time.Minute)
				time.Sleep(5 * time.Second)
				s.join(t, "other")
				time.Sleep(100 * time.Second)
				if step != "Open" && s.stock("p").State() != domain.SaleOpen {
					t.Fatal("not overtaken")
				}
				if again {
					s.store.Forget("p")
				}
				time.Sleep(5 * time.Minute) // the sleeper wakes
				v := s.view(t, "p")
				if s.stock("p").State() != domain.SaleOpen || v.Shut || v.Rewound || v.Epoch != s.stock("p").Epoch() ||
					v.Remaining != s.stock("p").Remaining() || v.Remaining != 14 {
					t.Errorf("gate %+v, ledger %s of epoch %d, stock %d", v, s.stock("p").State(), s.stock("p").Epoch(), s.stock("p").Remaining())
				}
			})
		}
	}
}

// slowly gives a page of rows in a time.
type slowly struct {
	port.Epochs
	page time.Duration
}

func (s slowly) Rows(ctx context.Context, product string, after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
	time.Sleep(s.page)
	if err := ctx.Err(); err != nil {
		return nil, after, err
	}
	return s.Epochs.Rows(ctx, product, after, limit)
}

func TestARebuildOfManyRowsKeepsItsLease(t *testing.T) {
	t.Parallel()
	inBubble(t, "longer than a lease", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 100)
		for i := range 60 {
			s.settle(t, s.buy(t, "p", fmt.Sprint("t", i)), domain.OrderConfirmed)
		}
		s.store.Forget("p")
		cfg := application.DefaultRebuildConfig()
		cfg.Holder, cfg.PageMax = "slow", 2
		s.repair = application.NewRebuildStock(slowly{s.books, 4 * time.Second}, s.books, s.gate, s.gate, s.books, s.drains, s.lease, cfg, quietLog)
		startRunner(t, s.repair)
		s.repair.Suspect("p", "flushed")
		time.Sleep(time.Minute)
		if _, taken, _ := s.TakeAttempt(t.Context(), "p", "other", s.stock("p").Suspension(), time.Minute); taken {
			t.Error("the lease was not renewed")
		}
		s.idle(t)
		if v := s.view(t, "p"); v.Shut || v.Remaining != 40 || s.count("attempt p") != 2 {
			t.Errorf("gate %+v after %d attempts", v, s.count("attempt p"))
		}
	})
}
