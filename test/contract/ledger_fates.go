package contract

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

var fateCases = []ledgerTest{
	{"the first row decides, whoever writes it", decideFirst},
	{"a claim and a delivery at once have one winner", decideRace},
	{"no fate of a product that is not there", decideUnknown},
	{"fates stand at the index of their keys", fatesInOrder},
	{"what the gate has not acknowledged is found, in order, a page at a time", untoldPages},
	{"a fate that has changed since stays untold", untoldChanged},
}

func claim(key domain.Key, status domain.OrderStatus) port.FateClaim {
	return port.FateClaim{Key: key, Quantity: 1, Status: status, Epoch: 1, Sequence: 9, Attempt: "a1"}
}

func decideFirst(c *ledgerCase) {
	stock := c.open("p", 10)
	taken := c.item("p", "taken", "t", 1, 1, 1)
	c.apply(taken)
	free := c.key("p", "free", "t")
	orders, err := c.Decide(c.ctx(), []port.FateClaim{
		claim(free, domain.OrderRejected), claim(taken.Deduction.Key, domain.OrderCancelled), claim(free, domain.OrderCancelled)})
	c.ok(err, "decide")
	wantEqual(c, orders[0].Status(), domain.OrderRejected, "the free key")
	wantEqual(c, orders[0].FromBirth(), true, "from birth")
	wantEqual(c, orders[0].StockVersion(), stock.Version()+1, "stock version")
	wantEqual(c, orders[0].GateTold(), false, "told")
	wantEqual(c, orders[0].Epoch(), 1, "epoch")
	wantEqual(c, orders[0].Sequence(), 9, "sequence")
	wantEqual(c, orders[1].Status(), domain.OrderConfirmed, "the taken key")
	wantEqual(c, orders[2], orders[0], "the free key again")
	reply := c.apply(c.item("p", "free", "t", 1, 1, 9)).Replies[0]
	wantEqual(c, reply.Outcome, port.Met, "a delivery afterwards")
	wantEqual(c, reply.Order, orders[0], "its order")
	books := c.balanced("p")
	wantEqual(c, books.Stock.Remaining(), 9, "remaining")
	wantEqual(c, books.Stock.Version(), stock.Version()+1, "version")
	wantEqual(c, books.RejectedOrders, 1, "rejected orders")
	_, err = c.Decide(c.ctx(), []port.FateClaim{claim(c.key("p", "x", "t"), domain.OrderConfirmed)})
	wantEqual(c, domain.CodeOf(err), domain.CodeInvalidRequest, "claim to confirm")
}

func decideRace(c *ledgerCase) {
	c.open("p", 100)
	items := c.items("p", "u", 50)
	claims := make([]port.FateClaim, len(items))
	for i, item := range items {
		claims[i] = claim(item.Deduction.Key, domain.OrderCancelled)
	}
	slices.Reverse(claims)
	var all sync.WaitGroup
	for group := range slices.Chunk(items, 10) {
		all.Go(func() {
			if _, err := c.Apply(c.ctx(), group); err != nil {
				c.Errorf("apply: %v", err)
			}
		})
	}
	for group := range slices.Chunk(claims, 10) {
		all.Go(func() {
			if _, err := c.Decide(c.ctx(), group); err != nil {
				c.Errorf("decide: %v", err)
			}
		})
	}
	all.Wait()
	books := c.balanced("p")
	wantEqual(c, books.ConfirmedOrders+books.CancelledOrders, 50, "orders")
}

func decideUnknown(c *ledgerCase) {
	_, err := c.Decide(c.ctx(), []port.FateClaim{claim(c.key("nowhere", "u", "t"), domain.OrderRejected)})
	wantEqual(c, errors.Is(err, domain.ErrProductNotFound), true, "product not found")
}

func fatesInOrder(c *ledgerCase) {
	c.open("p", 500)
	items := c.items("p", "u", 450)
	c.apply(items...)
	keys := []domain.Key{c.key("p", "nobody", "t")}
	for _, item := range items {
		keys = append(keys, item.Deduction.Key)
	}
	orders, err := c.Fates(c.ctx(), keys)
	c.ok(err, "fates")
	wantEqual(c, orders[0].IsZero(), true, "a key without a row")
	for i, o := range orders[1:] {
		wantEqual(c, o.Key(), keys[i+1], "key")
	}
	none, err := c.Fates(c.ctx(), nil)
	c.ok(err, "fates of nothing")
	wantEqual(c, len(none), 0, "fates of nothing")
}

func untoldPages(c *ledgerCase) {
	c.open("p", 100)
	for _, items := range [][]port.ApplyItem{c.items("p", "a", 7), c.items("p", "b", 8)} {
		c.apply(items...)
	}
	young, err := c.Untold(c.ctx(), time.Hour, "", 100)
	c.ok(err, "untold")
	wantEqual(c, len(young), 0, "untold for an hour")

	var seen []domain.Order
	after := ""
	for {
		page, err := c.Untold(c.ctx(), 0, after, 4)
		c.ok(err, "untold")
		if len(page) == 0 {
			break
		}
		seen, after = append(seen, page...), page[len(page)-1].ID()
	}
	wantEqual(c, len(seen), 15, "untold")
	wantEqual(c, slices.IsSortedFunc(seen, func(a, b domain.Order) int {
		if a.ID() < b.ID() {
			return -1
		}
		return 1
	}), true, "in order of id")
	c.ok(c.MarkTold(c.ctx(), seen[:10]), "mark told")
	c.ok(c.MarkTold(c.ctx(), seen[:10]), "mark told again")
	left, err := c.Untold(c.ctx(), 0, "", 100)
	c.ok(err, "untold")
	wantEqual(c, len(left), 5, "left untold")
	wantEqual(c, c.fate(seen[0].Key()).GateTold(), true, "told")
	wantEqual(c, c.balanced("p").UntoldOrders, 5, "untold in the books")
}

func untoldChanged(c *ledgerCase) {
	c.open("p", 10)
	order := c.apply(c.item("p", "u", "t", 1, 1, 1)).Replies[0].Order
	stale, err := domain.NewOrder(domain.OrderFields{ID: order.ID(), Key: order.Key(), Quantity: 1,
		Status: domain.OrderCancelled, StockVersion: order.StockVersion()})
	c.ok(err, "order")
	c.ok(c.MarkTold(c.ctx(), []domain.Order{stale}), "mark told")
	wantEqual(c, c.fate(order.Key()).GateTold(), false, "told")
	c.ok(c.MarkTold(c.ctx(), nil), "mark nothing told")
}

func (c *ledgerCase) products(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("p%03d", i)
	}
	return names
}
