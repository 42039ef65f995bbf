package contract

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

var applyCases = []ledgerTest{
	{"an applied item has one order, one flow and its units", applyOnce},
	{"a message that comes three times at once counts once", applyThreeTimes},
	{"twenty consumers of one hot product apply all of it", applyHot},
	{"overlapping groups of many products at once keep the books", applyOverlapping},
	{"what no longer fits is rejected in order of arrival", applyBeyondStock},
	{"nothing fits", applyNothingFits},
	{"one product of a group runs out, the others do not notice", applyOneRunsOut},
	{"an older epoch and the plain form must be adopted first", applyStragglers},
	{"while suspended the own form is applied and the plain form waits", applySuspended},
	{"what was left out of the last gate waits while suspended", applyLeftBehind},
	{"a product that is not there", applyUnknown},
	{"keys that differ in case alone are different", applyCase},
	{"a very large group", applyLarge},
	{"what the database refuses takes nothing with it but its group", applyPoison},
	{"after its caller has gone nothing is known", applyGone},
	{"items of one key after the first meet its row", applyDoubles},
}

func applyOnce(c *ledgerCase) {
	before := c.open("p", 10)
	item := c.item("p", "alice", "t1", 2, 1, 7)
	reply := c.apply(item).Replies[0]
	wantEqual(c, reply.Outcome, port.Applied, "outcome")
	order := reply.Order
	wantEqual(c, order.Status(), domain.OrderConfirmed, "status")
	wantEqual(c, order.StockVersion(), before.Version()+1, "stock version")
	wantEqual(c, order.Epoch(), 1, "epoch")
	wantEqual(c, order.Sequence(), 7, "sequence")
	wantEqual(c, order.Attempt(), item.Deduction.Attempt, "attempt")
	wantEqual(c, order.GateTold(), false, "told")
	if age := time.Since(order.CreatedAt()); age < -time.Minute || age > time.Minute {
		c.Fatalf("created %v ago", age)
	}
	wantEqual(c, c.fate(order.Key()), order, "the row as read")

	again := c.apply(item).Replies[0]
	wantEqual(c, again.Outcome, port.Met, "outcome of a repeat")
	wantEqual(c, again.Order, order, "order of a repeat")
	books := c.balanced("p")
	wantEqual(c, books.Stock.Remaining(), 8, "remaining")
	wantEqual(c, books.Stock.Version(), before.Version()+1, "version")
	wantEqual(c, books.FlowRows, 1, "flow rows")
}

func applyThreeTimes(c *ledgerCase) {
	c.open("p", 100)
	items := c.items("p", "u", 40)
	var all sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[port.ApplyOutcome]int{}
	for range 3 {
		all.Go(func() {
			result, err := c.Apply(c.ctx(), items)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c.Errorf("apply: %v", err)
			}
			for _, r := range result.Replies {
				outcomes[r.Outcome]++
			}
		})
	}
	all.Wait()
	wantEqual(c, outcomes[port.Applied], 40, "applied")
	wantEqual(c, outcomes[port.Met], 80, "met")
	wantEqual(c, c.balanced("p").Stock.Remaining(), 60, "remaining")
}

func applyHot(c *ledgerCase) {
	const consumers, each = 20, 100
	c.open("p", consumers*each)
	var all sync.WaitGroup
	for n := range consumers {
		items := c.items("p", fmt.Sprintf("u%d-", n), each)
		all.Go(func() {
			for group := range slices.Chunk(items, 5) {
				result, err := c.Apply(c.ctx(), group)
				if err != nil {
					c.Errorf("apply: %v", err)
					return
				}
				for _, r := range result.Replies {
					if r.Outcome != port.Applied || r.Order.Status() != domain.OrderConfirmed {
						c.Errorf("outcome %v, order %v", r.Outcome, r.Order.Status())
					}
				}
			}
		})
	}
	all.Wait()
	books := c.balanced("p")
	wantEqual(c, books.ConfirmedOrders, consumers*each, "confirmed orders")
	wantEqual(c, books.Stock.Remaining(), 0, "remaining")
}

func applyOverlapping(c *ledgerCase) {
	const products, total = 12, 60
	var pool []port.ApplyItem
	for n := range products {
		product := fmt.Sprintf("p%02d", n)
		c.open(product, total)
		for i := range total + 10 { // ten more than there are
			pool = append(pool, c.item(product, fmt.Sprintf("u%d", i), "t", 1, 1, int64(i+1)))
		}
	}
	var all sync.WaitGroup
	for worker := range 6 {
		random := rand.New(rand.NewPCG(uint64(worker), 1))
		mine := slices.Clone(pool)
		random.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		all.Go(func() {
			for group := range slices.Chunk(mine, 35) {
				if _, err := c.Apply(c.ctx(), group); err != nil {
					c.Errorf("apply: %v", err)
				}
			}
		})
	}
	all.Wait()
	for n := range products {
		books := c.balanced(fmt.Sprintf("p%02d", n))
		wantEqual(c, books.ConfirmedOrders, total, "confirmed orders")
		wantEqual(c, books.RejectedOrders, 10, "rejected orders")
	}
}

func applyBeyondStock(c *ledgerCase) {
	before := c.open("p", 5)
	result := c.apply(
		c.item("p", "late", "t", 1, 1, 40),
		c.item("p", "first", "t", 3, 1, 10),
		c.item("p", "large", "t", 3, 1, 20),
		c.item("p", "second", "t", 2, 1, 30),
	)
	wantEqual(c, result.Replies[0].Order.Status(), domain.OrderRejected, "the last one")
	wantEqual(c, result.Replies[1].Order.Status(), domain.OrderConfirmed, "the first one")
	wantEqual(c, result.Replies[2].Order.Status(), domain.OrderRejected, "the one that is too large")
	wantEqual(c, result.Replies[3].Order.Status(), domain.OrderConfirmed, "the one that fits")
	wantEqual(c, slices.Equal(result.Suspects, []string{"p"}), true, "suspects are p")
	for _, r := range result.Replies {
		wantEqual(c, r.Outcome, port.Applied, "outcome")
		wantEqual(c, c.fate(r.Order.Key()), r.Order, "the row as read")
		wantEqual(c, r.Order.FromBirth(), true, "from birth")
		wantEqual(c, r.Order.StockVersion(), before.Version()+1, "stock version")
	}
	books := c.balanced("p")
	wantEqual(c, books.Stock.Remaining(), 0, "remaining")
	wantEqual(c, books.FlowRows, 2, "flow rows")
	wantEqual(c, books.RejectedOrders, 2, "rejected orders")
	wantEqual(c, len(c.apply(c.item("p", "first", "t", 3, 1, 10)).Suspects), 0, "suspects of a repeat")
}

func applyNothingFits(c *ledgerCase) {
	before := c.open("p", 1)
	result := c.apply(c.item("p", "a", "t", 2, 1, 1), c.item("p", "b", "t", 3, 1, 2))
	for _, r := range result.Replies {
		wantEqual(c, r.Order.Status(), domain.OrderRejected, "status")
		wantEqual(c, c.fate(r.Order.Key()), r.Order, "the row as read")
	}
	wantEqual(c, c.stock("p").Version(), before.Version(), "version")
	wantEqual(c, c.balanced("p").FlowRows, 0, "flow rows")
}

func applyOneRunsOut(c *ledgerCase) {
	for _, p := range []string{"a", "b", "c"} {
		c.open(p, 2)
	}
	c.apply(c.item("b", "early", "t", 1, 1, 1))
	result := c.apply(c.item("a", "u", "t", 2, 1, 2), c.item("b", "u", "t", 2, 1, 2), c.item("c", "u", "t", 2, 1, 2))
	wantEqual(c, result.Replies[0].Order.Status(), domain.OrderConfirmed, "a")
	wantEqual(c, result.Replies[1].Order.Status(), domain.OrderRejected, "b")
	wantEqual(c, result.Replies[2].Order.Status(), domain.OrderConfirmed, "c")
	wantEqual(c, slices.Equal(result.Suspects, []string{"b"}), true, "suspects are b")
	for i, p := range []string{"a", "b", "c"} {
		c.balanced(p)
		wantEqual(c, c.fate(result.Replies[i].Order.Key()), result.Replies[i].Order, "the row as read")
	}
}

func applyStragglers(c *ledgerCase) {
	c.open("p", 10)
	known := c.item("p", "known", "t", 1, 1, 1)
	c.apply(known)
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	c.reopen("p") // epoch 2
	old, plain := c.item("p", "old", "t", 1, 1, 2), c.plain("p", "plain", "t", 1)
	result := c.apply(known, old, plain, c.item("p", "new", "t", 1, 2, 3))
	wantEqual(c, result.Replies[0].Outcome, port.Met, "an old one with a row")
	wantEqual(c, result.Replies[1].Outcome, port.Straggler, "an old one")
	wantEqual(c, result.Replies[2].Outcome, port.Straggler, "a plain one")
	wantEqual(c, result.Replies[3].Outcome, port.Applied, "a new one")
	wantEqual(c, c.fate(old.Deduction.Key).IsZero(), true, "no trace of the old one")
	wantEqual(c, c.stock("p").Remaining(), 8, "remaining")

	old.AdoptedEpoch, plain.AdoptedEpoch = 1, 2
	result = c.apply(old, plain)
	wantEqual(c, result.Replies[0].Outcome, port.Straggler, "adopted by an older epoch")
	wantEqual(c, result.Replies[1].Outcome, port.Applied, "adopted plain one")
	wantEqual(c, result.Replies[1].Order.Epoch(), 0, "epoch of the plain form")
	old.AdoptedEpoch = 2
	wantEqual(c, c.apply(old).Replies[0].Outcome, port.Applied, "adopted old one")
	c.balanced("p")
}

func applySuspended(c *ledgerCase) {
	c.open("p", 10)
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "test", false), "suspend")
	plain := c.plain("p", "plain", "t", 1)
	plain.AdoptedEpoch = 1
	result := c.apply(c.item("p", "own", "t", 1, 1, 3), plain)
	wantEqual(c, result.Replies[0].Outcome, port.Applied, "the own form")
	wantEqual(c, result.Replies[1].Outcome, port.Deferred, "the plain form")
	wantEqual(c, c.fate(plain.Deduction.Key).IsZero(), true, "no trace of the plain one")
	c.balanced("p")
}

// A gate that was built without a message has sold its units again. Should the product be suspended once more, that
// message must not take the unit of a buyer of that gate: it waits, and asks for its units when the product is open.
func applyLeftBehind(c *ledgerCase) {
	c.open("p", 2)
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "first", false), "suspend")
	c.reopen("p") // epoch 2, built without the straggler
	c.ok(c.Suspend(c.ctx(), []string{"p"}, "second", false), "suspend")
	old, adopted := c.item("p", "old", "t", 1, 1, 9), c.item("p", "adopted", "t", 1, 1, 8)
	adopted.AdoptedEpoch = 2
	for range 2 { // before an attempt has raised the epoch, and after
		result := c.apply(old)
		wantEqual(c, result.Replies[0].Outcome, port.Deferred, "one of the epoch before")
		wantEqual(c, c.fate(old.Deduction.Key).IsZero(), true, "no trace of it")
		_, taken, err := c.TakeAttempt(c.ctx(), "p", "tester", c.stock("p").Suspension(), time.Minute)
		c.ok(err, "take attempt")
		wantEqual(c, taken, true, "taken")
	}
	result := c.apply(c.item("p", "drained", "t", 1, 2, 1), adopted)
	for _, r := range result.Replies {
		wantEqual(c, r.Outcome, port.Applied, "what the last gate sold or adopted")
		wantEqual(c, r.Order.Status(), domain.OrderConfirmed, "status")
	}
	c.balanced("p")
}

func applyUnknown(c *ledgerCase) {
	c.open("p", 10)
	result := c.apply(c.item("nowhere", "u", "t", 1, 1, 1), c.item("p", "u", "t", 1, 1, 1))
	wantEqual(c, result.Replies[0].Outcome, port.UnknownProduct, "outcome")
	wantEqual(c, result.Replies[1].Outcome, port.Applied, "the other one")
	result = c.apply(c.item("nowhere", "u", "t", 1, 1, 1))
	wantEqual(c, result.Replies[0].Outcome, port.UnknownProduct, "outcome alone")
	empty, err := c.Apply(c.ctx(), nil)
	c.ok(err, "apply nothing")
	wantEqual(c, len(empty.Replies), 0, "replies to nothing")
}

func applyCase(c *ledgerCase) {
	c.open("Abc", 10)
	c.open("abc", 20)
	var items []port.ApplyItem
	for _, product := range []string{"Abc", "abc"} {
		for _, user := range []string{"Bob", "bob", "BOB"} {
			for _, token := range []string{"T", "t"} {
				items = append(items, c.item(product, user, token, 1, 1, int64(len(items)+1)))
			}
		}
	}
	for _, r := range c.apply(items...).Replies {
		wantEqual(c, r.Outcome, port.Applied, "outcome")
	}
	wantEqual(c, c.balanced("Abc").Stock.Remaining(), 4, "remaining of Abc")
	wantEqual(c, c.balanced("abc").Stock.Remaining(), 14, "remaining of abc")
}

func applyLarge(c *ledgerCase) {
	c.open("p", 3000)
	items := c.items("p", "u", 2500)
	c.apply(items[:100]...)
	result := c.apply(items...)
	wantEqual(c, result.Replies[99].Outcome, port.Met, "one of those before")
	wantEqual(c, result.Replies[2499].Outcome, port.Applied, "the last one")
	wantEqual(c, c.balanced("p").Stock.Remaining(), 500, "remaining")
}

func applyDoubles(c *ledgerCase) {
	c.open("p", 10)
	first, second := c.item("p", "u", "t", 2, 1, 1), c.item("p", "u", "t", 5, 1, 2)
	result := c.apply(first, second, c.plain("p", "u", "t", 1))
	wantEqual(c, result.Replies[0].Outcome, port.Applied, "the first")
	wantEqual(c, result.Replies[1].Outcome, port.Met, "the second")
	wantEqual(c, result.Replies[2].Outcome, port.Met, "the plain one")
	wantEqual(c, result.Replies[1].Order, result.Replies[0].Order, "its order")
	wantEqual(c, c.balanced("p").Stock.Remaining(), 8, "remaining")

	result = c.apply(c.item("p", "v", "t", 9, 1, 3), c.item("p", "v", "t", 9, 1, 4))
	wantEqual(c, result.Replies[1].Order.Status(), domain.OrderRejected, "the row that a double meets")
}

func applyPoison(c *ledgerCase) {
	c.open("p", 10)
	good := c.item("p", "good", "t", 1, 1, 1)
	for name, spoil := range map[string]func(*domain.Deduction){
		"an attempt that is too long": func(d *domain.Deduction) { d.Attempt = strings.Repeat("a", 300) },
		"no units":                    func(d *domain.Deduction) { d.Quantity = 0 },
		"units below zero":            func(d *domain.Deduction) { d.Quantity = -1 },
		"units beyond all bounds":     func(d *domain.Deduction) { d.Quantity = 1 << 62 },
	} {
		bad := c.item("p", "bad", "t", 1, 1, 2)
		spoil(&bad.Deduction)
		_, err := c.Apply(c.ctx(), []port.ApplyItem{good, bad})
		wantEqual(c, domain.CodeOf(err), domain.CodeInvalidRequest, name)
	}
	wantEqual(c, c.fate(good.Deduction.Key).IsZero(), true, "no trace of the group")
	wantEqual(c, c.apply(good).Replies[0].Outcome, port.Applied, "the good one alone")
	wantEqual(c, c.balanced("p").Stock.Remaining(), 9, "remaining")
}

func applyGone(c *ledgerCase) {
	c.open("p", 10)
	gone, cancel := context.WithCancel(c.ctx())
	cancel()
	_, err := c.Apply(gone, c.items("p", "u", 3))
	wantEqual(c, domain.CodeOf(err), domain.CodeUnavailable, "code")
	wantEqual(c, errors.Is(err, context.Canceled), true, "cause")
	wantEqual(c, c.balanced("p").ConfirmedOrders, 0, "orders")
}
