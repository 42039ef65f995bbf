package contract

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

var cancelCases = []ledgerTest{
	{"a cancelled order gives its units back once", cancelConfirmed},
	{"a cancel without a row decides the fate from birth", cancelUnborn},
	{"what is rejected stands", cancelRejected},
	{"what cannot be cancelled", cancelRefused},
	{"fifty cancels of one order at once", cancelFifty},
	{"a cancel and a delivery at once end cancelled, whoever is first", cancelOrApply},
	{"a batch of several products", cancelBatch},
	{"batches that share orders, beside deliveries, keep the books", cancelOverlapping},
	{"a rebuild's lock sees a cancel whole or not at all", cancelUnderLock},
}

func cancelOf(items ...port.ApplyItem) []port.FateClaim {
	claims := make([]port.FateClaim, len(items))
	for i, item := range items {
		d := item.Deduction
		claims[i] = port.FateClaim{Key: d.Key, Quantity: d.Quantity, Status: domain.OrderCancelled, Epoch: d.Epoch,
			Sequence: d.Sequence, Attempt: d.Attempt}
	}
	return claims
}

func (c *ledgerCase) cancel(items ...port.ApplyItem) []domain.Order {
	c.Helper()
	orders, err := c.Cancel(c.ctx(), cancelOf(items...))
	c.ok(err, "cancel")
	wantEqual(c, len(orders), len(items), "orders")
	return orders
}

func cancelConfirmed(c *ledgerCase) {
	c.open("p", 10)
	item := c.item("p", "u", "t", 3, 1, 7)
	confirmed := c.apply(item, c.item("p", "other", "t", 2, 1, 8)).Replies[0].Order
	c.ok(c.MarkTold(c.ctx(), []domain.Order{confirmed}), "mark told")
	before := c.stock("p")
	order := c.cancel(item)[0]
	wantEqual(c, order.ID(), confirmed.ID(), "the row")
	wantEqual(c, order.Status(), domain.OrderCancelled, "status")
	wantEqual(c, order.FromBirth(), false, "from birth")
	wantEqual(c, order.GateTold(), false, "told")
	wantEqual(c, order.StockVersion(), before.Version()+1, "stock version")
	wantEqual(c, order.Sequence(), 7, "sequence")
	wantEqual(c, order.CreatedAt(), confirmed.CreatedAt(), "created at")
	wantEqual(c, c.fate(order.Key()), order, "the row as read")
	c.ok(c.MarkTold(c.ctx(), []domain.Order{confirmed}), "mark the fate before as told")
	wantEqual(c, c.fate(order.Key()).GateTold(), false, "told of the new fate")

	wantEqual(c, c.cancel(item)[0], order, "a repeat")
	wantEqual(c, c.apply(item).Replies[0].Order, order, "what a late delivery meets")
	books := c.balanced("p")
	wantEqual(c, books.Stock.Remaining(), 8, "remaining")
	wantEqual(c, books.Stock.Version(), before.Version()+1, "version")
	wantEqual(c, books.FlowRows, 3, "flow rows")
	wantEqual(c, books.CancelledOrders, 1, "cancelled orders")
	wantEqual(c, books.ReversedOrders, 1, "reversed orders")

	c.ok(c.MarkTold(c.ctx(), []domain.Order{order}), "mark told")
	wantEqual(c, c.cancel(item)[0].GateTold(), true, "a repeat leaves it told")
}

func cancelUnborn(c *ledgerCase) {
	before := c.open("p", 10)
	item := c.item("p", "u", "t", 3, 1, 7)
	order := c.cancel(item, item)[1]
	wantEqual(c, order.Status(), domain.OrderCancelled, "status")
	wantEqual(c, order.FromBirth(), true, "from birth")
	wantEqual(c, order.Quantity(), 3, "quantity")
	wantEqual(c, order.StockVersion(), before.Version(), "stock version")
	wantEqual(c, order.Attempt(), item.Deduction.Attempt, "attempt")
	reply := c.apply(item).Replies[0]
	wantEqual(c, reply.Outcome, port.Met, "a delivery afterwards")
	wantEqual(c, reply.Order, order, "its order")
	books := c.balanced("p")
	wantEqual(c, books.Stock, before, "the stock")
	wantEqual(c, books.FlowRows, 0, "flow rows")
	wantEqual(c, books.ReversedOrders, 0, "reversed orders")
}

func cancelRejected(c *ledgerCase) {
	c.open("p", 1)
	item := c.item("p", "u", "t", 2, 1, 1)
	rejected := c.apply(item).Replies[0].Order
	wantEqual(c, c.cancel(item)[0], rejected, "the order")
	wantEqual(c, c.balanced("p").Stock.Remaining(), 1, "remaining")
}

func cancelRefused(c *ledgerCase) {
	c.open("p", 10)
	_, err := c.Cancel(c.ctx(), cancelOf(c.item("nowhere", "u", "t", 1, 1, 1)))
	wantEqual(c, errors.Is(err, domain.ErrProductNotFound), true, "product not found")
	_, err = c.Cancel(c.ctx(), []port.FateClaim{claim(c.key("p", "u", "t"), domain.OrderRejected)})
	wantEqual(c, domain.CodeOf(err), domain.CodeInvalidRequest, "a rejected claim")
	for _, quantity := range []int64{0, -1, -9223372036854775808, 9223372036854775807} {
		_, err = c.Cancel(c.ctx(), cancelOf(c.item("p", "u", "t", quantity, 1, 1)))
		wantEqual(c, domain.CodeOf(err), domain.CodeInvalidRequest, "a quantity that cannot be")
	}
	none, err := c.Cancel(c.ctx(), nil)
	c.ok(err, "cancel nothing")
	wantEqual(c, len(none), 0, "orders of nothing")
	wantEqual(c, c.fate(c.key("p", "u", "t")).IsZero(), true, "no trace")
}

func cancelFifty(c *ledgerCase) {
	c.open("p", 10)
	item := c.item("p", "u", "t", 3, 1, 1)
	c.apply(item, c.item("p", "other", "t", 1, 1, 2))
	version := c.stock("p").Version()
	answers := make([]domain.Order, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			orders, err := c.Cancel(c.ctx(), cancelOf(item))
			if err != nil {
				c.Errorf("cancel: %v", err)
				return
			}
			answers[i] = orders[0]
		})
	}
	all.Wait()
	for _, a := range answers {
		wantEqual(c, a, answers[0], "one answer for all")
	}
	books := c.balanced("p")
	wantEqual(c, books.Stock.Remaining(), 9, "remaining")
	wantEqual(c, books.Stock.Version(), version+1, "version")
	wantEqual(c, books.FlowRows, 3, "flow rows")
}

func cancelOrApply(c *ledgerCase) {
	const rounds = 40
	c.open("p", 10)
	reversed := int64(0)
	for n := range rounds {
		item := c.item("p", fmt.Sprint("u", n), "t", 2, 1, int64(n+1))
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := c.Apply(c.ctx(), []port.ApplyItem{item}); err != nil {
					c.Errorf("apply: %v", err)
				}
			})
			all.Go(func() {
				orders, err := c.Cancel(c.ctx(), cancelOf(item))
				if err != nil || orders[0].Status() != domain.OrderCancelled {
					c.Errorf("cancel: %v %v", orders, err)
				}
			})
		}
		all.Wait()
		order := c.fate(item.Deduction.Key)
		wantEqual(c, order.Status(), domain.OrderCancelled, "status")
		if !order.FromBirth() {
			reversed++
		}
		wantEqual(c, c.balanced("p").Stock.Remaining(), 10, "remaining")
	}
	books := c.balanced("p")
	wantEqual(c, books.CancelledOrders, rounds, "cancelled orders")
	wantEqual(c, books.ReversedOrders, reversed, "reversed orders")
}

func cancelBatch(c *ledgerCase) {
	for _, p := range []string{"a", "b", "c"} {
		c.open(p, 10)
	}
	a1, a2, b1 := c.item("a", "u1", "t", 1, 1, 1), c.item("a", "u2", "t", 2, 1, 2), c.item("b", "u", "t", 3, 1, 1)
	c.apply(b1, a2, a1)
	unborn, large := c.item("c", "u", "t", 4, 1, 1), c.item("c", "large", "t", 11, 1, 2)
	c.apply(large)
	versions := map[string]int64{}
	for _, p := range []string{"a", "b", "c"} {
		versions[p] = c.stock(p).Version()
	}
	orders := c.cancel(unborn, b1, a2, large, a1, b1)
	for i, want := range []struct {
		item    port.ApplyItem
		status  domain.OrderStatus
		birth   bool
		version int64
	}{
		{unborn, domain.OrderCancelled, true, versions["c"]}, {b1, domain.OrderCancelled, false, versions["b"] + 1},
		{a2, domain.OrderCancelled, false, versions["a"] + 1}, {large, domain.OrderRejected, true, versions["c"]},
		{a1, domain.OrderCancelled, false, versions["a"] + 1}, {b1, domain.OrderCancelled, false, versions["b"] + 1},
	} {
		wantEqual(c, orders[i].Key(), want.item.Deduction.Key, "key")
		wantEqual(c, orders[i].Status(), want.status, "status")
		wantEqual(c, orders[i].FromBirth(), want.birth, "from birth")
		wantEqual(c, orders[i].StockVersion(), want.version, "stock version")
	}
	for p, version := range versions {
		books := c.balanced(p)
		wantEqual(c, books.Stock.Remaining(), 10, "remaining of "+p)
		if p != "c" {
			version++
		}
		wantEqual(c, books.Stock.Version(), version, "version of "+p)
	}
}

func cancelOverlapping(c *ledgerCase) {
	const products, each = 6, 20
	var items []port.ApplyItem
	for n := range products {
		product := fmt.Sprint("p", n)
		c.open(product, each)
		items = append(items, c.items(product, "u", each)...)
	}
	var all sync.WaitGroup
	work := func(seed uint64, do func([]port.ApplyItem) error) {
		mine := slices.Clone(items)
		rand.New(rand.NewPCG(seed, 2)).Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		all.Go(func() {
			for group := range slices.Chunk(mine, 15) {
				if err := do(group); err != nil {
					c.Error(err)
				}
			}
		})
	}
	for w := range uint64(3) {
		work(w, func(group []port.ApplyItem) error {
			result, err := c.Apply(c.ctx(), group)
			if err != nil {
				return fmt.Errorf("apply: %w", err)
			}
			orders := make([]domain.Order, len(group))
			for i, r := range result.Replies {
				orders[i] = r.Order
			}
			return c.MarkTold(c.ctx(), orders) // as the consumer does, which locks the same rows
		})
		work(w+10, func(group []port.ApplyItem) error {
			_, err := c.Cancel(c.ctx(), cancelOf(group...))
			return err
		})
	}
	all.Wait()
	for n := range products {
		books := c.balanced(fmt.Sprint("p", n))
		wantEqual(c, books.CancelledOrders, each, "cancelled orders")
		wantEqual(c, books.Stock.Remaining(), each, "remaining")
	}
}

// cancelUnderLock races cancels with what a rebuild does under its lock. Whatever their order, the lock is never
// broken by them, what it saw as confirmed is cancelled at a newer version than its own and stays
// untold, and what it saw as cancelled was in its stock.
func cancelUnderLock(c *ledgerCase) {
	const rounds, orders = 10, 8
	c.open("p", orders)
	for n := range rounds {
		items := c.items("p", fmt.Sprint("r", n, "-"), orders)
		for i := range items {
			items[i].Deduction.Epoch = c.stock("p").Epoch()
		}
		c.apply(items...)
		c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
		stock, taken, err := c.TakeAttempt(c.ctx(), "p", "tester", c.stock("p").Suspension(), time.Minute)
		c.ok(err, "take attempt")
		wantEqual(c, taken, true, "taken")

		var all sync.WaitGroup
		cancels := func(items []port.ApplyItem) {
			for _, item := range items {
				all.Go(func() {
					if _, err := c.Cancel(c.ctx(), cancelOf(item)); err != nil {
						c.Errorf("cancel: %v", err)
					}
				})
			}
		}
		seen := map[string]domain.Order{}
		var base int64
		cancels(items[:orders/2])
		done, err := c.Locked(c.ctx(), "p", stock.Epoch(), func(l port.LockedStock) error {
			cancels(items[orders/2:])
			base = l.Stock().Version()
			untold, err := l.Untold(100)
			c.ok(err, "untold")
			for _, o := range untold {
				seen[o.ID()] = o
			}
			return l.MarkTold(untold)
		})
		c.ok(err, "locked")
		wantEqual(c, done, true, "locked")
		all.Wait()
		wantEqual(c, len(seen), orders, "untold orders under the lock")
		for _, item := range items {
			after := c.fate(item.Deduction.Key)
			before := seen[after.ID()]
			wantEqual(c, after.Status(), domain.OrderCancelled, "status")
			wantEqual(c, after.GateTold(), before.Status() == domain.OrderCancelled, "told under the lock")
			wantEqual(c, after.StockVersion() > base, before.Status() == domain.OrderConfirmed, "newer than the lock's version")
		}
		wantEqual(c, c.balanced("p").Stock.Remaining(), orders, "remaining")
		left, err := c.Untold(c.ctx(), 0, "", 100)
		c.ok(err, "untold")
		c.ok(c.MarkTold(c.ctx(), left), "mark told")
		reopened, err := c.Locked(c.ctx(), "p", stock.Epoch(), port.LockedStock.Reopen)
		c.ok(err, "reopen")
		wantEqual(c, reopened, true, "reopened")
	}
}
