package contract

import (
	"errors"
	"slices"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

var epochCases = []ledgerTest{
	{"a sale is put on record once, suspended", catalogCreate},
	{"products are listed a page at a time", catalogList},
	{"pausing raises the revision where it differs", catalogPause},
	{"suspend touches open products alone", epochsSuspend},
	{"one rebuilder has the lease", epochsLease},
	{"a lease is renewed by its newest attempt alone", epochsKeep},
	{"each suspension has a number and a length", epochsSuspension},
	{"reopening raises the version and needs the epoch", epochsReopen},
	{"a late message finds what was reopened under the lock open", epochsReopenLate},
	{"the lock needs the epoch and a suspended product", epochsLocked},
	{"what runs under the lock is undone by its error", epochsLockedError},
	{"rows are walked in order, with and without the lock", epochsRows},
}

func catalogCreate(c *ledgerCase) {
	opens := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	sale, err := domain.NewSale("p", 10, opens, opens.Add(time.Minute), 2)
	c.ok(err, "sale")
	stock, created, err := c.Create(c.ctx(), sale, operator)
	c.ok(err, "create")
	wantEqual(c, created, true, "created")
	wantEqual(c, stock.State(), domain.SaleSuspended, "state")
	wantEqual(c, stock.Epoch(), 0, "epoch")
	wantEqual(c, stock.OffersAsNew(sale), true, "offers as new")
	wantEqual(c, c.stock("p"), stock, "the stock as read")

	other, err := domain.NewSale("p", 99, time.Time{}, time.Time{}, 0)
	c.ok(err, "sale")
	again, created, err := c.Create(c.ctx(), other, operator)
	c.ok(err, "create again")
	wantEqual(c, created, false, "created again")
	wantEqual(c, again, stock, "the stock as it stands")
	wantEqual(c, c.stock("nowhere").IsZero(), true, "no such product")
}

func catalogList(c *ledgerCase) {
	names := c.products(7)
	for _, n := range names {
		c.sale(n, 1)
	}
	var seen []string
	after := ""
	for {
		page, err := c.List(c.ctx(), after, 3)
		c.ok(err, "list")
		if len(page) == 0 {
			break
		}
		for _, s := range page {
			seen = append(seen, s.Product())
		}
		after = seen[len(seen)-1]
	}
	wantEqual(c, slices.Equal(seen, names), true, "all, in order")
}

func catalogPause(c *ledgerCase) {
	c.open("p", 10)
	before := c.stock("p")
	paused, err := c.SetPaused(c.ctx(), "p", true, before.Edition(), operator)
	c.ok(err, "pause")
	wantEqual(c, paused.Terms().Paused, true, "paused")
	wantEqual(c, paused.Terms().Revision, before.Terms().Revision+1, "revision")
	wantEqual(c, paused.Version(), before.Version(), "version")
	wantEqual(c, c.stock("p"), paused, "the stock as read")
	again, err := c.SetPaused(c.ctx(), "p", true, "", operator)
	c.ok(err, "pause again")
	wantEqual(c, again, paused, "the stock after a repeat")
	for _, wish := range []bool{true, false} {
		_, err = c.SetPaused(c.ctx(), "p", wish, before.Edition(), operator)
		wantEqual(c, errors.Is(err, domain.ErrEditionOutdated), true, "edition outdated")
	}
	wantEqual(c, c.stock("p"), paused, "the stock after edits of an old edition")
	_, err = c.SetPaused(c.ctx(), "nowhere", true, "", operator)
	wantEqual(c, errors.Is(err, domain.ErrProductNotFound), true, "product not found")
}

func epochsSuspend(c *ledgerCase) {
	c.open("a", 1)
	c.open("b", 1)
	c.sale("new", 1)
	version := c.stock("a").Version()
	c.ok(c.Suspend(c.ctx(), []string{"a", "new", "nowhere"}, "redis forgot", false), "suspend")
	wantEqual(c, c.stock("a").State(), domain.SaleSuspended, "a")
	wantEqual(c, c.stock("a").Reason(), "redis forgot", "reason")
	wantEqual(c, c.stock("a").Version(), version, "version")
	wantEqual(c, c.stock("b").State(), domain.SaleOpen, "b")
	c.ok(c.Suspend(c.ctx(), []string{"a"}, "another", false), "suspend again")
	wantEqual(c, c.stock("a").Reason(), "redis forgot", "the first reason stays")
	c.ok(c.Suspend(c.ctx(), []string{"b"}, "went back", true), "damaged")
	wantEqual(c, c.stock("b").State(), domain.SaleDamaged, "b")
	c.ok(c.Suspend(c.ctx(), []string{"b"}, "again", false), "suspend a damaged one")
	wantEqual(c, c.stock("b").State(), domain.SaleDamaged, "b is still damaged")

	var names []string
	suspended, err := c.Suspended(c.ctx())
	c.ok(err, "suspended")
	for _, s := range suspended {
		names = append(names, s.Product())
	}
	wantEqual(c, slices.Equal(names, []string{"a", "b", "new"}), true, "all that are not open")
	_, taken, err := c.TakeAttempt(c.ctx(), "b", "x", c.stock("b").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, false, "an attempt at a damaged product")
	b := c.stock("b")
	c.ok(c.Accept(c.ctx(), "a", 1000, 1000), "accept one that is not damaged")
	wantEqual(c, c.stock("a").Version(), version, "its version")
	for range 2 { // a repeat changes nothing
		c.ok(c.Accept(c.ctx(), "b", b.Version()+5, b.Epoch()+3), "accept")
		wantEqual(c, c.stock("b").State(), domain.SaleSuspended, "accepted")
		wantEqual(c, c.stock("b").Version() > b.Version()+5, true, "version beyond the gate's")
		wantEqual(c, c.stock("b").Version(), b.Version()+6, "version")
		wantEqual(c, c.stock("b").Epoch(), b.Epoch()+3, "epoch")
	}
	c.ok(c.Suspend(c.ctx(), []string{"b"}, "went back again", true), "damaged again")
	c.ok(c.Accept(c.ctx(), "b", 1, 1), "accept, the ledger ahead")
	wantEqual(c, c.stock("b").Version(), b.Version()+7, "version")
	wantEqual(c, c.stock("b").Epoch(), b.Epoch()+3, "epoch")
}

func epochsLease(c *ledgerCase) {
	c.sale("p", 1)
	first, taken, err := c.TakeAttempt(c.ctx(), "p", "one", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, true, "the first")
	wantEqual(c, first.Epoch(), 1, "epoch")
	_, taken, err = c.TakeAttempt(c.ctx(), "p", "two", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, false, "the second while the first holds it")
	wantEqual(c, c.stock("p").Epoch(), 1, "epoch")
	stale, taken, err := c.TakeAttempt(c.ctx(), "p", "one", c.stock("p").Suspension()-1, time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, false, "for a suspension that is over")
	wantEqual(c, stale.Epoch(), 1, "epoch")
	again, taken, err := c.TakeAttempt(c.ctx(), "p", "one", c.stock("p").Suspension(), -time.Second) // run out at once
	c.ok(err, "take attempt")
	wantEqual(c, taken, true, "the first again")
	wantEqual(c, again.Epoch(), 2, "epoch")
	overtaken, taken, err := c.TakeAttempt(c.ctx(), "p", "two", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, true, "the second once the lease has run out")
	wantEqual(c, overtaken.Epoch(), 3, "epoch")

	reopened, err := c.Locked(c.ctx(), "p", 3, port.LockedStock.Reopen)
	c.ok(err, "reopen")
	wantEqual(c, reopened, true, "reopened")
	_, taken, err = c.TakeAttempt(c.ctx(), "p", "two", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, false, "an attempt at an open product")
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "again", false), "suspend")
	_, taken, err = c.TakeAttempt(c.ctx(), "p", "one", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, true, "the reopening freed the lease")
	_, taken, err = c.TakeAttempt(c.ctx(), "nowhere", "one", c.stock("nowhere").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, false, "an attempt at nothing")
}

func epochsKeep(c *ledgerCase) {
	c.sale("p", 1)
	stock, _, err := c.TakeAttempt(c.ctx(), "p", "one", c.stock("p").Suspension(), -time.Second)
	c.ok(err, "take attempt")
	keep := func(holder string, epoch int64, want bool) {
		c.Helper()
		kept, err := c.KeepAttempt(c.ctx(), "p", holder, epoch, time.Minute)
		c.ok(err, "keep attempt")
		wantEqual(c, kept, want, "kept")
	}
	keep("two", stock.Epoch(), false)
	keep("one", stock.Epoch()-1, false)
	keep("one", stock.Epoch(), true)
	_, taken, err := c.TakeAttempt(c.ctx(), "p", "two", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, false, "taken while the lease was renewed")
	reopened, err := c.Locked(c.ctx(), "p", stock.Epoch(), port.LockedStock.Reopen)
	c.ok(err, "reopen")
	wantEqual(c, reopened, true, "reopened")
	keep("one", stock.Epoch(), false)
}

func epochsSuspension(c *ledgerCase) {
	wantEqual(c, c.sale("p", 10).SuspendedAt().IsZero(), false, "a new product is closed")
	c.reopen("p")
	open := c.stock("p")
	wantEqual(c, open.SuspendedAt().IsZero(), true, "closed while it is open")
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	first := c.stock("p")
	wantEqual(c, first.Suspension(), open.Suspension()+1, "suspension")
	time.Sleep(5 * time.Millisecond) // of the database's clock
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "again", false), "suspend again")
	wantEqual(c, c.stock("p"), first, "a suspension that found one under way")
	c.reopen("p")
	again := c.stock("p")
	wantEqual(c, again.LastClosed() >= 4*time.Millisecond && again.LastClosed() < time.Minute, true, "closed for "+again.LastClosed().String())
	wantEqual(c, again.Suspension(), first.Suspension(), "suspension")
	wantEqual(c, again.SuspendedAt().IsZero(), true, "closed while it is open")
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	wantEqual(c, c.stock("p").Suspension(), first.Suspension()+1, "another suspension")
}

func epochsReopen(c *ledgerCase) {
	created := c.sale("p", 10)
	stock, _, err := c.TakeAttempt(c.ctx(), "p", "one", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	reopened, err := c.Locked(c.ctx(), "p", stock.Epoch()-1, port.LockedStock.Reopen)
	c.ok(err, "reopen by another epoch")
	wantEqual(c, reopened, false, "reopened by another epoch")
	reopened, err = c.Locked(c.ctx(), "p", stock.Epoch(), port.LockedStock.Reopen)
	c.ok(err, "reopen")
	wantEqual(c, reopened, true, "reopened")
	now := c.stock("p")
	wantEqual(c, now.State(), domain.SaleOpen, "state")
	wantEqual(c, now.Reason(), "", "reason")
	wantEqual(c, now.Version(), created.Version()+1, "version")
	reopened, err = c.Locked(c.ctx(), "p", stock.Epoch(), port.LockedStock.Reopen)
	c.ok(err, "reopen again")
	wantEqual(c, reopened, false, "reopened again")
	wantEqual(c, c.stock("p"), now, "the stock after a repeat")
}

// A message of an older epoch that comes while the lock is held, and may have read "suspended" before, finds
// the product open: it has to ask the gate, which was built without it.
func epochsReopenLate(c *ledgerCase) {
	c.open("p", 10)
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	stock, _, err := c.TakeAttempt(c.ctx(), "p", "one", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	late := make(chan port.ApplyOutcome, 1)
	done, err := c.Locked(c.ctx(), "p", stock.Epoch(), func(l port.LockedStock) error {
		begun := make(chan struct{})
		go func() {
			item := c.item("p", "u", "t", 1, 1, 1)
			close(begun)
			result, err := c.Apply(c.ctx(), []port.ApplyItem{item})
			if err != nil {
				c.Errorf("apply: %v", err)
				late <- 0
				return
			}
			late <- result.Replies[0].Outcome
		}()
		<-begun
		wantEqual(c, c.stock("p").State(), domain.SaleSuspended, "state to others")
		return l.Reopen()
	})
	c.ok(err, "locked")
	wantEqual(c, done, true, "reopened")
	wantEqual(c, <-late, port.Straggler, "the late message")
	wantEqual(c, c.stock("p").Remaining(), 10, "stock")
}

func epochsLocked(c *ledgerCase) {
	c.open("p", 10)
	order := c.apply(c.item("p", "u", "t", 1, 1, 1)).Replies[0].Order
	never := func(port.LockedStock) error { c.Error("called"); return nil }
	done, err := c.Locked(c.ctx(), "p", 1, never)
	c.ok(err, "locked while open")
	wantEqual(c, done, false, "locked while open")
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	done, err = c.Locked(c.ctx(), "p", 7, never)
	c.ok(err, "locked by another epoch")
	wantEqual(c, done, false, "locked by another epoch")
	done, err = c.Locked(c.ctx(), "p", 1, func(l port.LockedStock) error {
		wantEqual(c, l.Stock(), c.stock("p"), "stock")
		fates, err := l.Fates([]domain.Key{order.Key(), c.key("p", "nobody", "t")})
		c.ok(err, "fates")
		wantEqual(c, fates[0], order, "fate")
		wantEqual(c, fates[1].IsZero(), true, "no fate")
		untold, err := l.Untold(10)
		c.ok(err, "untold")
		wantEqual(c, len(untold), 1, "untold")
		return l.MarkTold(untold)
	})
	c.ok(err, "locked")
	wantEqual(c, done, true, "locked")
	wantEqual(c, c.fate(order.Key()).GateTold(), true, "told")
}

func epochsLockedError(c *ledgerCase) {
	c.open("p", 10)
	order := c.apply(c.item("p", "u", "t", 1, 1, 1)).Replies[0].Order
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	failure := errors.New("gate moved")
	done, err := c.Locked(c.ctx(), "p", 1, func(l port.LockedStock) error {
		c.ok(l.MarkTold([]domain.Order{order}), "mark told")
		return failure
	})
	wantEqual(c, errors.Is(err, failure), true, "its own error")
	wantEqual(c, done, false, "done")
	wantEqual(c, c.fate(order.Key()).GateTold(), false, "told")
	c.apply(c.item("p", "v", "t", 1, 1, 2)) // the lock is free
}

func epochsRows(c *ledgerCase) {
	c.open("p", 100)
	c.open("other", 100)
	for _, prefix := range []string{"a", "b", "c"} {
		c.apply(append(c.items("p", prefix, 5), c.items("other", prefix, 2)...)...)
	}
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	walk := func(rows func(port.RowCursor, int) ([]domain.Order, port.RowCursor, error)) []domain.Order {
		var all []domain.Order
		var cursor port.RowCursor
		for {
			page, next, err := rows(cursor, 4)
			c.ok(err, "rows")
			if len(page) == 0 {
				wantEqual(c, next, cursor, "the cursor at the end")
				return all
			}
			all, cursor = append(all, page...), next
		}
	}
	free := walk(func(after port.RowCursor, limit int) ([]domain.Order, port.RowCursor, error) {
		return c.Rows(c.ctx(), "p", after, limit)
	})
	wantEqual(c, len(free), 15, "rows")
	for i := 1; i < len(free); i++ {
		a, b := free[i-1], free[i]
		ordered := a.StockVersion() < b.StockVersion() || a.StockVersion() == b.StockVersion() && a.ID() < b.ID()
		wantEqual(c, ordered, true, "in order")
	}
	done, err := c.Locked(c.ctx(), "p", 1, func(l port.LockedStock) error {
		wantEqual(c, slices.Equal(walk(l.Rows), free), true, "the same under the lock")
		return nil
	})
	c.ok(err, "locked")
	wantEqual(c, done, true, "locked")
}
