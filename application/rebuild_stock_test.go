package application_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

func TestANewProductIsBuiltAtOnceAndWithoutADrain(t *testing.T) {
	t.Parallel()
	inBubble(t, "open", func(t *testing.T) {
		s := newShop(nil)
		begun := time.Now()
		s.open(t, "p", 10)
		v := s.view(t, "p")
		if v.Shut || v.Remaining != 10 || v.Epoch != 1 || s.stock("p").State() != domain.SaleOpen || !s.lease.MaySell("p") {
			t.Errorf("gate %+v, ledger %s", v, s.stock("p").State())
		}
		if s.drains.count() != 0 || time.Since(begun) != 0 {
			t.Error("waited for something")
		}
	})
	inBubble(t, "an old record of that name is left alone", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		for _, token := range []string{"a", "b", "c"} {
			s.settle(t, s.buy(t, "p", token), domain.OrderConfirmed)
		}
		s.change("p", func(f *domain.StockFields) { f.State, f.Version, f.Epoch = domain.SaleSuspended, 1, 0 }) // a fresh database
		if err := s.repair.BuildNew(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		if s.stock("p").State() != domain.SaleDamaged || s.view(t, "p").Epoch != 1 {
			t.Error("the old record was taken over")
		}
	})
	inBubble(t, "a fault leaves it on the road", func(t *testing.T) {
		s := newShop(nil)
		s.sell("p", 10, domain.SaleSuspended)
		s.fault = once("Locked", domain.ErrUnavailable)
		wantCode(t, s.repair.BuildNew(t.Context(), "p"), domain.CodeUnavailable)
		startRunner(t, s.repair)
		s.idle(t)
		if s.stock("p").State() != domain.SaleOpen || s.view(t, "p").Shut {
			t.Error("not built")
		}
	})
}

// once fails a method one time.
func once(method string, err error) func(string) error {
	return times(1, method, err)
}

func times(n int, method string, err error) func(string) error {
	return func(m string) error {
		if m == method && n > 0 {
			n--
			return err
		}
		return nil
	}
}

// TestAFlushedGateIsRebuiltFromRowsAndWhatIsOpen is the whole road.
func TestAFlushedGateIsRebuiltFromRowsAndWhatIsOpen(t *testing.T) {
	t.Parallel()
	inBubble(t, "flushed", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		confirmed := s.buy(t, "p", "confirmed")
		s.settle(t, confirmed, domain.OrderConfirmed)
		travels := s.buy(t, "p", "travels")
		s.store.Forget("p")
		s.drains.takes = time.Minute
		s.drains.while = func() { s.apply(travels, domain.OrderConfirmed, false) } // the drain brings its message
		startRunner(t, s.repair)
		s.repair.Suspect("p", "flushed")
		synctest.Wait()
		if s.stock("p").State() != domain.SaleSuspended || s.lease.MaySell("p") {
			t.Fatal("not closed at once")
		}
		time.Sleep(3*time.Second - time.Millisecond)
		synctest.Wait()
		if s.drains.count() != 0 {
			t.Error("drains while others may still sell")
		}
		s.idle(t)
		v := s.view(t, "p")
		if v.Remaining != 8 || v.Shut || v.Epoch != 2 || v.OpenFlows != 0 {
			t.Errorf("gate %+v", v)
		}
		if s.state(t, confirmed.Key()) != domain.FlowSettled || s.state(t, travels.Key()) != domain.FlowSettled {
			t.Error("rows are not flows again")
		}
		if rest, _ := s.Untold(t.Context(), 0, "", 10); len(rest) != 0 {
			t.Error("what was written back is not told")
		}
		repeat := port.DeductItem{Command: commandFor(confirmed.Key()), Attempt: "second-click"}
		if s.gate.Deduct(t.Context(), time.Now(), []port.DeductItem{repeat})[0].Outcome != port.DeductRepeat {
			t.Error("an owner's repeat is not known any more")
		}
		if stats := s.repair.Stats(); stats.Rebuilt != 2 || stats.LastClosed < time.Minute || stats.Pending != 0 {
			t.Errorf("stats %+v", stats)
		}
	})
	inBubble(t, "open flows that survive become rows", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		for i := range 5 {
			s.buy(t, "p", fmt.Sprint("open-", i))
		}
		withRow := s.buy(t, "p", "with-row")
		s.apply(withRow, domain.OrderConfirmed, true)
		rejected := s.buy(t, "p", "rejected")
		s.apply(rejected, domain.OrderRejected, false)
		old := s.buy(t, "p", "of-an-older-gate")
		s.defers = func(d domain.Deduction) bool { return d.Key == old.Key() }
		s.store.MoveServer("p") // a failover
		startRunner(t, s.repair)
		s.repair.Suspect("p", "another server")
		s.idle(t)
		if v := s.view(t, "p"); v.Remaining != 9-5-1 || v.OpenFlows != 1 || v.Rewound || s.stock("p").Remaining() != 9-5 {
			t.Errorf("gate %+v", v)
		}
		if s.state(t, withRow.Key()) != domain.FlowSettled || s.state(t, rejected.Key()) != domain.FlowRefused {
			t.Error("a surviving flow did not take its row's state")
		}
		if s.state(t, old.Key()) != domain.FlowDeducted {
			t.Error("a flow that waits for the reopening is open no more")
		}
	})
	inBubble(t, "rows that come while the pages are read", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		for i := range 3 {
			s.settle(t, s.buy(t, "p", fmt.Sprint("early-", i)), domain.OrderConfirmed)
		}
		lost := s.buy(t, "p", "lost")
		refused := s.buy(t, "p", "refused")
		s.store.Forget("p")
		s.late = func(b *books, _ string) {
			b.applyLocked(lost, domain.OrderConfirmed, false)
			old := b.applyLocked(refused, domain.OrderRejected, false)
			for i := range b.rows {
				if b.rows[i].Key == old.Key() {
					b.rows[i].StockVersion = 1 // decided under a version that had been paged
				}
			}
		}
		startRunner(t, s.repair)
		s.repair.Suspect("p", "flushed")
		s.idle(t)
		if v := s.view(t, "p"); v.Remaining != 6 {
			t.Errorf("remaining %d", v.Remaining)
		}
		if s.state(t, lost.Key()) != domain.FlowSettled || s.state(t, refused.Key()) != domain.FlowRefused {
			t.Error("a late row was missed")
		}
	})
	inBubble(t, "more open than there is", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 3)
		for i := range 3 {
			s.buy(t, "p", fmt.Sprint("open-", i))
		}
		s.change("p", func(f *domain.StockFields) { f.Stock -= 2; f.Version++ })
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		s.idle(t)
		if v := s.view(t, "p"); v.Remaining != 0 || v.Shut {
			t.Errorf("gate %+v", v)
		}
	})
}

func TestProductsThatAreSuspectedTogetherShareOneDrain(t *testing.T) {
	t.Parallel()
	inBubble(t, "a loss that shows at several products in turn", func(t *testing.T) {
		s := newShop(nil)
		for _, p := range []string{"p1", "p2", "p3"} {
			s.open(t, p, 10)
			s.store.Forget(p)
		}
		startRunner(t, s.repair)
		for _, p := range []string{"p1", "p2", "p3"} {
			s.repair.Suspect(p, "flushed "+p)
			time.Sleep(time.Second)
		}
		s.idle(t)
		if s.drains.count() != 1 {
			t.Errorf("%d drains", s.drains.count())
		}
	})
	inBubble(t, "one that is suspected during a drain is closed at once and drained by itself", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p1", 10)
		s.open(t, "p2", 10)
		s.drains.takes = time.Minute
		startRunner(t, s.repair)
		s.repair.Suspect("p1", "first")
		time.Sleep(10 * time.Second)
		s.repair.Suspect("p2", "second")
		synctest.Wait()
		if s.stock("p2").State() != domain.SaleSuspended || !s.view(t, "p2").Shut {
			t.Error("not closed during another one's drain")
		}
		s.idle(t)
		if s.drains.count() != 2 || s.stock("p2").State() != domain.SaleOpen {
			t.Errorf("%d drains", s.drains.count())
		}
	})
}

func TestASuspicionDuringTheRoadChangesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, "named again and again", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.drains.while = func() { s.repair.Suspect("p", "still") }
		startRunner(t, s.repair)
		for range 3 {
			s.repair.Suspect("p", "again")
			synctest.Wait()
		}
		s.idle(t)
		if n := s.count("attempt p"); n != 2 { // one of them built it
			t.Errorf("%d attempts", n)
		}
	})
	inBubble(t, "but one about the new gate is heard", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		said := false
		s.fault = func(method string) error {
			if method == "Reopen" && !said {
				said = true
				s.repair.Suspect("p", "the new gate is wrong")
			}
			return nil
		}
		startRunner(t, s.repair)
		s.repair.Suspect("p", "first")
		s.idle(t)
		if n := s.count("attempt p"); n != 3 {
			t.Errorf("%d attempts", n)
		}
	})
}

func TestAnAttemptThatFindsTheGateMovedStartsAgainUnderItsOwnEpoch(t *testing.T) {
	t.Parallel()
	inBubble(t, "flushed once more", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
		s.late = func(*books, string) { s.store.Forget("p") }
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		s.idle(t)
		if v := s.view(t, "p"); v.Epoch != 3 || v.Remaining != 9 || v.Shut || s.drains.count() != 1 {
			t.Errorf("gate %+v after %d drains", v, s.drains.count())
		}
	})
}

func TestAFailureIsTriedAgainWithoutAnotherDrain(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Suspend", "TakeAttempt", "Rows", "Locked"} {
		inBubble(t, method, func(t *testing.T) {
			s := newShop(nil)
			s.open(t, "p", 10)
			s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
			s.fault = times(4, method, domain.ErrUnavailable)
			startRunner(t, s.repair)
			s.repair.Suspect("p", "test")
			s.idle(t)
			if v := s.view(t, "p"); v.Shut || v.Remaining != 9 || s.drains.count() != 1 {
				t.Errorf("gate %+v after %d drains", v, s.drains.count())
			}
			if s.repair.Stats().Failures != 4 {
				t.Errorf("%d failures", s.repair.Stats().Failures)
			}
		})
	}
	inBubble(t, "a drain that fails", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.drains.err = errors.New("broker away")
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		time.Sleep(time.Minute)
		if s.stock("p").State() == domain.SaleOpen || s.drains.count() < 3 {
			t.Fatal("opened without a drain, or gave up")
		}
		s.drains.mu.Lock()
		s.drains.err = nil
		s.drains.mu.Unlock()
		s.idle(t)
		if s.stock("p").State() != domain.SaleOpen {
			t.Error("not opened")
		}
	})
	inBubble(t, "a reopening that did not happen", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.fault = once("Reopen", domain.ErrUnavailable)
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		s.idle(t)
		if s.drains.count() != 1 || s.view(t, "p").Shut {
			t.Errorf("%d drains", s.drains.count())
		}
	})
	inBubble(t, "a reopening that happened, and another suspension before that was known", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		tried := false
		s.fault = func(method string) error {
			if method != "Reopen" || tried {
				return nil
			}
			tried = true
			f := s.stocks["p"]
			f.Version++
			f.Suspension++
			s.stocks["p"] = f
			return domain.ErrUnavailable
		}
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		s.idle(t)
		if s.drains.count() != 2 || s.view(t, "p").Shut {
			t.Errorf("%d drains", s.drains.count())
		}
	})
}

func TestAnotherInstancesRebuildIsLeftAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, "one that dies is overtaken when its lease has run out, without another drain", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.drains.while = func() {
			_, _, _ = s.TakeAttempt(context.Background(), "p", "other", s.stock("p").Suspension(), 30*time.Second)
		}
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		time.Sleep(30 * time.Second)
		if s.count("attempt p") != 2 || s.stock("p").State() != domain.SaleSuspended {
			t.Error("pushed the other out")
		}
		s.idle(t)
		if s.drains.count() != 1 || s.stock("p").State() != domain.SaleOpen || s.view(t, "p").Epoch != 3 {
			t.Errorf("%d drains, %s", s.drains.count(), s.stock("p").State())
		}
	})
	inBubble(t, "opened by the other, whose gate still is shut", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.drains.while = func() { _, _ = s.Locked(context.Background(), "p", 1, port.LockedStock.Reopen) }
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		s.idle(t)
		if s.count("attempt p") != 1 || s.view(t, "p").Shut {
			t.Error("not opened, or rebuilt again")
		}
	})
	inBubble(t, "an attempt from before this suspicion that opens, and another loss", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		ctx := context.Background()
		_ = s.Suspend(ctx, []string{"p"}, "theirs", false)
		theirs, _, _ := s.TakeAttempt(ctx, "p", "other", s.stock("p").Suspension(), time.Minute)
		first := true
		s.drains.while = func() {
			if first {
				first = false
				_, _ = s.Locked(ctx, "p", theirs.Epoch(), port.LockedStock.Reopen)
				_ = s.Suspend(ctx, []string{"p"}, "lost again", false)
			}
		}
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		s.idle(t)
		if s.drains.count() != 2 || s.stock("p").State() != domain.SaleOpen {
			t.Errorf("%d drains: what was sold in between is not drained", s.drains.count())
		}
	})
	inBubble(t, "a suspension that is not the one drained begins anew", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		first := true
		s.drains.while = func() {
			if first { // another instance rebuilds and opens; then the gate is lost again
				first = false
				_, _, _ = s.TakeAttempt(context.Background(), "p", "other", s.stock("p").Suspension(), time.Second)
				_, _ = s.Locked(context.Background(), "p", 2, port.LockedStock.Reopen)
				_ = s.Suspend(context.Background(), []string{"p"}, "lost again", false)
			}
		}
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		s.idle(t)
		if s.drains.count() != 2 || s.stock("p").State() != domain.SaleOpen {
			t.Errorf("%d drains, %s", s.drains.count(), s.stock("p").State())
		}
	})
}

func TestADatabaseThatWentBackIsLeftToAnOperator(t *testing.T) {
	t.Parallel()
	inBubble(t, "restored", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
		s.change("p", func(f *domain.StockFields) { f.Version, f.Stock = 1, 10 })
		startRunner(t, s.repair)
		s.repair.Suspect("p", "test")
		s.idle(t)
		if s.stock("p").State() != domain.SaleDamaged || !s.view(t, "p").Shut || s.count("attempt p") != 1 || s.drains.count() != 0 {
			t.Errorf("%s after %v", s.stock("p").State(), s.calls)
		}
	})
}

func TestStartTakesUpWhatWasLeftSuspended(t *testing.T) {
	t.Parallel()
	inBubble(t, "an earlier process died", func(t *testing.T) {
		s := newShop(nil)
		s.sell("p", 10, domain.SaleSuspended)
		s.sell("damaged", 10, domain.SaleDamaged)
		startRunner(t, s.repair)
		s.idle(t)
		if s.stock("p").State() != domain.SaleOpen || s.stock("damaged").State() != domain.SaleDamaged {
			t.Error("not taken up, or too much was")
		}
	})
	inBubble(t, "cold start: every product, without a lease to wait for", func(t *testing.T) {
		s := newShop(func(c *application.RebuildConfig) { c.ColdStart, c.LeaseWait, c.PendingMax = true, 0, 3 })
		for i := range 8 { // more than fit at once
			s.sell(fmt.Sprint("p-", i), 10, domain.SaleOpen)
		}
		begun := time.Now()
		startRunner(t, s.repair)
		s.idle(t)
		for i := range 8 {
			if v := s.view(t, fmt.Sprint("p-", i)); v.Shut || v.Remaining != 10 || v.Epoch != 1 {
				t.Errorf("gate %+v", v)
			}
		}
		if time.Since(begun) != 0 {
			t.Errorf("waited %s", time.Since(begun))
		}
	})
	t.Run("a ledger that is away ends the start", func(t *testing.T) {
		t.Parallel()
		s := newShop(nil)
		s.fault = once("Suspended", domain.ErrUnavailable)
		wantCode(t, s.repair.Start(t.Context()), domain.CodeUnavailable)
		stopRunner(t, s.repair)
	})
}

func TestSuspectsBeyondTheBoundAreFoundInTheCatalog(t *testing.T) {
	t.Parallel()
	inBubble(t, "overflow", func(t *testing.T) {
		s := newShop(func(c *application.RebuildConfig) { c.PendingMax = 2 })
		for i := range 5 {
			p := fmt.Sprint("p-", i)
			s.open(t, p, 10)
			s.store.Forget(p)
		}
		for i := range 5 {
			s.repair.Suspect(fmt.Sprint("p-", i), "flushed")
		}
		startRunner(t, s.repair)
		s.idle(t)
		for i := range 5 {
			if v := s.view(t, fmt.Sprint("p-", i)); !v.Loaded || v.Shut {
				t.Errorf("gate %+v", v)
			}
		}
	})
}
