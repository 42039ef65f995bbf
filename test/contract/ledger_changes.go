package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

var changeCases = []ledgerTest{
	{"an addition puts units on sale once", addOnce},
	{"fifty additions under one token at once count once", addParallel},
	{"additions beside a sale lose nothing", addBesideSale},
	{"a batch of additions, some of them known", addBatch},
	{"an addition that cannot be leaves no trace", addRefused},
	{"a withdrawal takes units off sale and sells none", withdrawOnce},
	{"a withdrawal that no longer fits is rejected", withdrawBeyondStock},
	{"withdrawals and purchases at once never go below what is sold", withdrawBesideSale},
	{"withdrawals of several products, one of which moved", withdrawSeveral},
	{"the first row of a token decides, whether it adds or withdraws", changeArbiter},
	{"rows of both tables are walked in one order", changesAndOrdersInOrder},
	{"a rebuild sees stock changes", changesLocked},
	{"stock changes are listed newest first", changesListed},
	{"who asked last for a stock change, and why, is read from the audit log", changesAsked},
}

func (c *ledgerCase) changeKey(product, token string) domain.Key {
	c.Helper()
	key, err := domain.ChangeKey(product, token)
	c.ok(err, "change key")
	return key
}

func (c *ledgerCase) add(product, token string, quantity int64) port.AddReply {
	c.Helper()
	replies, err := c.Add(c.ctx(), []port.Addition{{Key: c.changeKey(product, token), Quantity: quantity, Audit: operator}})
	c.ok(err, "add")
	return replies[0]
}

// withdrawal is an item of a message of epoch 1.
func (c *ledgerCase) withdrawal(product, token string, quantity, sequence int64) port.ApplyItem {
	c.Helper()
	return port.ApplyItem{Deduction: domain.Deduction{Key: c.changeKey(product, token), Quantity: quantity, Epoch: 1,
		Sequence: sequence, Attempt: c.ids.Attempt(), At: time.Now()}}
}

// onSale asserts that what is on sale is what was, with the changes, and the invariants.
func (c *ledgerCase) onSale(product string, opened, added, withdrawn int64) port.BookTotals {
	c.Helper()
	b := c.balanced(product)
	wantEqual(c, b.OpenedWith, opened, "opened with")
	wantEqual(c, b.AddedUnits, added, "added units")
	wantEqual(c, b.WithdrawnUnits, withdrawn, "withdrawn units")
	wantEqual(c, b.Stock.Total(), opened+added-withdrawn, "total")
	return b
}

func addOnce(c *ledgerCase) {
	before := c.open("p", 10)
	c.apply(c.item("p", "u", "t", 4, 1, 1))
	reply := c.add("p", "k", 5)
	row := reply.Row
	wantEqual(c, reply.Added, true, "added")
	wantEqual(c, row.Status(), domain.OrderAdded, "status")
	wantEqual(c, row.Delta(), 5, "delta")
	wantEqual(c, row.GateTold(), false, "told")
	wantEqual(c, row.StockVersion(), before.Version()+2, "stock version")
	wantEqual(c, c.fate(row.Key()), row, "the row as read")
	again := c.add("p", "k", 7)
	wantEqual(c, again.Added, false, "added by a repeat")
	wantEqual(c, again.Row, row, "row of a repeat")
	books := c.onSale("p", 10, 5, 0)
	wantEqual(c, books.Stock.Remaining(), 11, "remaining")
	wantEqual(c, books.Stock.Version(), before.Version()+2, "version")
	wantEqual(c, books.UntoldChanges, 1, "untold changes")
	c.ok(c.MarkTold(c.ctx(), []domain.Order{row}), "mark told")
	wantEqual(c, c.fate(row.Key()).GateTold(), true, "told")
	wantEqual(c, c.onSale("p", 10, 5, 0).UntoldChanges, 0, "untold changes")
}

func addParallel(c *ledgerCase) {
	c.open("p", 10)
	var added atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			replies, err := c.Add(c.ctx(), []port.Addition{{Key: c.changeKey("p", "k"), Quantity: 5, Audit: operator}})
			if err != nil {
				c.Errorf("add: %v", err)
				return
			}
			if replies[0].Added {
				added.Add(1)
			}
			if replies[0].Row.Status() != domain.OrderAdded || replies[0].Row.StockVersion() == 0 {
				c.Errorf("row %+v", replies[0].Row)
			}
		})
	}
	all.Wait()
	wantEqual(c, added.Load(), 1, "calls that added")
	wantEqual(c, c.onSale("p", 10, 5, 0).Stock.Remaining(), 15, "remaining")
}

func addBesideSale(c *ledgerCase) {
	c.open("p", 200)
	var all sync.WaitGroup
	for n := range 4 {
		items := c.items("p", fmt.Sprintf("u%d-", n), 50)
		all.Go(func() {
			for group := range slices.Chunk(items, 10) {
				if _, err := c.Apply(c.ctx(), group); err != nil {
					c.Errorf("apply: %v", err)
				}
			}
		})
		all.Go(func() {
			for i := range 10 {
				addition := port.Addition{Key: c.changeKey("p", fmt.Sprintf("k%d-%d", n, i)), Quantity: 3, Audit: operator}
				if _, err := c.Add(c.ctx(), []port.Addition{addition}); err != nil {
					c.Errorf("add: %v", err)
				}
			}
		})
	}
	all.Wait()
	books := c.onSale("p", 200, 120, 0)
	wantEqual(c, books.ConfirmedUnits, 200, "confirmed units")
	wantEqual(c, books.Stock.Remaining(), 120, "remaining")
}

func addBatch(c *ledgerCase) {
	c.open("p", 10)
	c.open("q", 10)
	c.add("q", "known", 1)
	of := func(product, token string, quantity int64) port.Addition {
		return port.Addition{Key: c.changeKey(product, token), Quantity: quantity, Audit: operator}
	}
	replies, err := c.Add(c.ctx(), []port.Addition{of("q", "new", 2), of("q", "known", 9), of("p", "k", 3), of("p", "k", 4), of("p", "a", 5)})
	c.ok(err, "add")
	for i, want := range []bool{true, false, true, false, true} {
		wantEqual(c, replies[i].Added, want, fmt.Sprintf("added %d", i))
	}
	wantEqual(c, replies[3].Row, replies[2].Row, "the same key again")
	c.onSale("p", 10, 8, 0)
	c.onSale("q", 10, 3, 0)
	none, err := c.Add(c.ctx(), nil)
	c.ok(err, "add nothing")
	wantEqual(c, len(none), 0, "replies to nothing")
}

func addRefused(c *ledgerCase) {
	c.open("p", domain.UnitsMax-5)
	for name, bad := range map[string]port.Addition{
		"beyond all bounds":    {Key: c.changeKey("p", "k"), Quantity: 6},
		"nothing":              {Key: c.changeKey("p", "k"), Quantity: 0},
		"less than nothing":    {Key: c.changeKey("p", "k"), Quantity: -1},
		"more than may be":     {Key: c.changeKey("p", "k"), Quantity: domain.QuantityMax + 1},
		"the key of a buyer's": {Key: c.key("p", "u", "k"), Quantity: 1},
	} {
		_, err := c.Add(c.ctx(), []port.Addition{{Key: c.changeKey("p", "good"), Quantity: 1, Audit: operator}, bad})
		wantEqual(c, domain.CodeOf(err), domain.CodeInvalidRequest, name)
	}
	_, err := c.Add(c.ctx(), []port.Addition{{Key: c.changeKey("nowhere", "k"), Quantity: 1, Audit: operator}})
	wantEqual(c, errors.Is(err, domain.ErrProductNotFound), true, "product not found")
	wantEqual(c, c.fate(c.changeKey("nowhere", "k")).IsZero(), true, "no trace")
	c.onSale("p", domain.UnitsMax-5, 0, 0)
}

func withdrawOnce(c *ledgerCase) {
	before := c.open("p", 10)
	c.apply(c.item("p", "u", "t", 4, 1, 1))
	item := c.withdrawal("p", "k", 5, 2)
	reply := c.apply(item).Replies[0]
	wantEqual(c, reply.Outcome, port.Applied, "outcome")
	row := reply.Order
	wantEqual(c, row.Status(), domain.OrderConfirmed, "status")
	wantEqual(c, row.Delta(), -5, "delta")
	wantEqual(c, row.Sequence(), 2, "sequence")
	wantEqual(c, row.Attempt(), item.Deduction.Attempt, "attempt")
	wantEqual(c, row.StockVersion(), before.Version()+2, "stock version")
	wantEqual(c, c.fate(row.Key()), row, "the row as read")
	again := c.apply(item, c.item("p", "v", "t", 1, 1, 3), item)
	wantEqual(c, again.Replies[0].Outcome, port.Met, "outcome of a repeat")
	wantEqual(c, again.Replies[0].Order, row, "row of a repeat")
	books := c.onSale("p", 10, 0, 5)
	wantEqual(c, books.Stock.Remaining(), 0, "remaining")
	wantEqual(c, books.ConfirmedUnits, 5, "confirmed units")
	wantEqual(c, books.FlowRows, 2, "flow rows")
	wantEqual(c, books.UntoldChanges, 1, "untold changes")
}

func withdrawBeyondStock(c *ledgerCase) {
	c.open("p", 10)
	result := c.apply(c.withdrawal("p", "late", 5, 4), c.item("p", "u", "t", 4, 1, 1), c.withdrawal("p", "first", 5, 2),
		c.item("p", "v", "t", 1, 1, 3))
	wantEqual(c, result.Replies[0].Order.Status(), domain.OrderRejected, "the late withdrawal")
	for _, i := range []int{1, 2, 3} {
		wantEqual(c, result.Replies[i].Order.Status(), domain.OrderConfirmed, "what fits")
	}
	for _, r := range result.Replies {
		wantEqual(c, c.fate(r.Order.Key()), r.Order, "the row as read")
	}
	wantEqual(c, slices.Equal(result.Suspects, []string{"p"}), true, "suspects are p")
	wantEqual(c, c.onSale("p", 10, 0, 5).Stock.Remaining(), 0, "remaining")
}

func withdrawBesideSale(c *ledgerCase) {
	const total = 200
	c.open("p", total)
	var all sync.WaitGroup
	for n := range 4 {
		items := c.items("p", fmt.Sprintf("u%d-", n), 40)
		for i := range 10 {
			items = append(items, c.withdrawal("p", fmt.Sprintf("k%d-%d", n, i), 3, int64(100+i)))
		}
		all.Go(func() {
			for group := range slices.Chunk(items, 7) {
				if _, err := c.Apply(c.ctx(), group); err != nil {
					c.Errorf("apply: %v", err)
				}
			}
		})
	}
	all.Wait()
	b := c.balanced("p")
	wantEqual(c, b.Stock.Total(), total-b.WithdrawnUnits, "total")
	wantEqual(c, b.Stock.Remaining(), total-b.WithdrawnUnits-b.ConfirmedUnits, "remaining")
	if b.Stock.Remaining() >= 3 {
		c.Fatalf("%d left, and something was rejected for want of stock", b.Stock.Remaining())
	}
}

func withdrawSeveral(c *ledgerCase) {
	for _, p := range []string{"a", "b", "c"} {
		c.open(p, 10)
	}
	c.add("b", "k0", 1) // other versions than the others
	result := c.apply(c.withdrawal("a", "k", 2, 1), c.item("b", "u", "t", 1, 1, 1), c.withdrawal("b", "k", 3, 2), c.item("c", "u", "t", 1, 1, 1))
	for _, r := range result.Replies {
		wantEqual(c, r.Order.Status(), domain.OrderConfirmed, "status")
		wantEqual(c, c.fate(r.Order.Key()), r.Order, "the row as read")
	}
	wantEqual(c, c.onSale("a", 10, 0, 2).Stock.Remaining(), 8, "a")
	wantEqual(c, c.onSale("b", 10, 1, 3).Stock.Remaining(), 7, "b")
	wantEqual(c, c.onSale("c", 10, 0, 0).Stock.Remaining(), 9, "c")
}

func changeArbiter(c *ledgerCase) {
	c.open("p", 10)
	c.add("p", "added", 5)
	met := c.apply(c.withdrawal("p", "added", 5, 1)).Replies[0]
	wantEqual(c, met.Outcome, port.Met, "a withdrawal under the token of an addition")
	wantEqual(c, met.Order.Status(), domain.OrderAdded, "its row")
	c.apply(c.withdrawal("p", "taken", 2, 1))
	wantEqual(c, c.add("p", "taken", 2).Row.Status(), domain.OrderConfirmed, "an addition under the token of a withdrawal")
	orders, err := c.Decide(c.ctx(), []port.FateClaim{claim(c.changeKey("p", "void"), domain.OrderRejected),
		claim(c.changeKey("p", "added"), domain.OrderCancelled), claim(c.key("p", "u", "void"), domain.OrderCancelled)})
	c.ok(err, "decide")
	wantEqual(c, orders[0].Status(), domain.OrderRejected, "the free token")
	wantEqual(c, orders[1].Status(), domain.OrderAdded, "the taken token")
	wantEqual(c, orders[2].Status(), domain.OrderCancelled, "the buyer's of the same token")
	wantEqual(c, c.apply(c.withdrawal("p", "void", 1, 1)).Replies[0].Outcome, port.Met, "a delivery afterwards")
	c.onSale("p", 10, 5, 2)
}

func changesAndOrdersInOrder(c *ledgerCase) {
	c.open("p", 100)
	for i := range 5 {
		c.apply(c.items("p", fmt.Sprintf("u%d-", i), 3)...)
		c.add("p", fmt.Sprintf("add%d", i), 1)
		c.apply(c.withdrawal("p", fmt.Sprintf("take%d", i), 1, int64(i+1)), c.item("p", fmt.Sprintf("v%d", i), "t", 1, 1, 9))
	}
	seen := map[string]bool{}
	cursor := port.RowCursor{}
	for {
		rows, next, err := c.Rows(c.ctx(), "p", cursor, 4)
		c.ok(err, "rows")
		for _, o := range rows {
			wantEqual(c, seen[o.ID()], false, "seen before")
			seen[o.ID()] = true
			if o.StockVersion() < cursor.Version {
				c.Fatalf("version %d after %d", o.StockVersion(), cursor.Version)
			}
		}
		if len(rows) < 4 {
			break
		}
		cursor = next
	}
	wantEqual(c, len(seen), 30, "rows")
	var untold []domain.Order
	for after := ""; ; {
		page, err := c.Untold(c.ctx(), 0, after, 4)
		c.ok(err, "untold")
		if len(page) == 0 {
			break
		}
		untold, after = append(untold, page...), page[len(page)-1].ID()
	}
	wantEqual(c, len(untold), 30, "untold")
	wantEqual(c, slices.IsSortedFunc(untold, func(a, b domain.Order) int { return strings.Compare(a.ID(), b.ID()) }), true, "in order of id")
	c.ok(c.MarkTold(c.ctx(), untold), "mark told")
	left, err := c.Untold(c.ctx(), 0, "", 100)
	c.ok(err, "untold")
	wantEqual(c, len(left), 0, "left untold")
}

func changesLocked(c *ledgerCase) {
	c.open("p", 10)
	c.add("p", "added", 5)
	c.apply(c.item("p", "u", "t", 1, 1, 1))
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	c.add("p", "meanwhile", 2)
	wantEqual(c, c.apply(c.withdrawal("p", "taken", 3, 2)).Replies[0].Outcome, port.Applied, "a withdrawal of the drain")
	stock, taken, err := c.TakeAttempt(c.ctx(), "p", "tester", c.stock("p").Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, true, "taken")
	done, err := c.Locked(c.ctx(), "p", stock.Epoch(), func(l port.LockedStock) error {
		wantEqual(c, l.Stock().Total(), 14, "total")
		rows, _, err := l.Rows(port.RowCursor{}, 100)
		c.ok(err, "rows")
		wantEqual(c, len(rows), 4, "rows")
		untold, err := l.Untold(3)
		c.ok(err, "untold")
		wantEqual(c, len(untold), 3, "a page of untold rows")
		fates, err := l.Fates([]domain.Key{c.changeKey("p", "taken"), c.changeKey("p", "nothing"), c.changeKey("p", "added")})
		c.ok(err, "fates")
		wantEqual(c, fates[0].Status(), domain.OrderConfirmed, "taken")
		wantEqual(c, fates[1].IsZero(), true, "nothing")
		wantEqual(c, fates[2].Status(), domain.OrderAdded, "added")
		return l.MarkTold(rows)
	})
	c.ok(err, "locked")
	wantEqual(c, done, true, "done")
	books := c.onSale("p", 10, 7, 3)
	wantEqual(c, books.UntoldOrders+books.UntoldChanges, 0, "untold")
}

func changesListed(c *ledgerCase) {
	c.open("p", 10)
	c.open("q", 10)
	for i := range 5 {
		c.add("p", fmt.Sprint("k", i), 1)
	}
	c.add("q", "k", 1)
	page, err := c.Changes(c.ctx(), "p", "", 3)
	c.ok(err, "changes")
	wantEqual(c, len(page), 3, "the first page")
	wantEqual(c, page[0].Key().Token(), "k4", "the newest")
	page, err = c.Changes(c.ctx(), "p", page[2].ID(), 3)
	c.ok(err, "changes")
	wantEqual(c, len(page), 2, "the last page")
	wantEqual(c, page[1].Key().Token(), "k0", "the oldest")
}

func changesAsked(c *ledgerCase) {
	c.open("p", 10)
	c.open("q", 10)
	by := func(actor, action string) port.Audit {
		return port.Audit{Actor: actor, Action: action, Reason: "because " + actor + " says so"}
	}
	asks := func(product, token string, delta int64, audit port.Audit) {
		was, is := port.ChangeStates(c.changeKey(product, token), delta, c.stock(product))
		c.ok(c.Record(c.ctx(), audit, product, was, is), "record")
	}
	_, err := c.Add(c.ctx(), []port.Addition{{Key: c.changeKey("p", "a"), Quantity: 5, Audit: by("ann", port.AuditAdd)},
		{Key: c.changeKey("q", "a"), Quantity: 5, Audit: by("eve", port.AuditAdd)}})
	c.ok(err, "add")
	asks("p", "w", -3, by("bob", port.AuditWithdraw)) // was refused
	asks("p", "w", -3, by("cat", port.AuditWithdraw))
	asks("p", "w", -4, by("dan", port.AuditWithdraw)) // another change under the same token
	asks("p", "a", 5, by("mal", "another-action"))
	c.ok(c.Record(c.ctx(), by("mal", port.AuditWithdraw), "p", "", "no state"), "record")
	for i := range 600 { // more than anybody reads at once
		asks("p", fmt.Sprint("later", i), 1, by("ann", port.AuditWithdraw))
	}
	of := func(product, token string, delta int64) port.AskedChange {
		return port.AskedChange{Key: c.changeKey(product, token), Delta: delta}
	}
	changes := []port.AskedChange{of("p", "w", -3), of("p", "unknown", 1), of("p", "a", 5), of("p", "w", -4), of("p", "w", -3), of("p", "a", 6)}
	audits, err := c.Asked(c.ctx(), "p", changes)
	c.ok(err, "asked")
	wantEqual(c, len(audits), len(changes), "audits")
	for i, want := range []port.Audit{by("cat", port.AuditWithdraw), {}, by("ann", port.AuditAdd), by("dan", port.AuditWithdraw), by("cat", port.AuditWithdraw), {}} {
		wantEqual(c, audits[i], want, fmt.Sprint("audit ", i))
	}
	audits, err = c.Asked(c.ctx(), "q", []port.AskedChange{of("q", "a", 5)})
	c.ok(err, "asked")
	wantEqual(c, audits[0], by("eve", port.AuditAdd), "the other product's")
	audits, err = c.Asked(c.ctx(), "nowhere", nil)
	c.ok(err, "asked for nothing")
	wantEqual(c, len(audits), 0, "audits of nothing")
}
