package contract

import (
	"context"
	"fmt"
	"testing"
	"time"

	"seckill/adapters/system"
	"seckill/application/port"
	"seckill/domain"
)

// LedgerStore is everything that a ledger adapter is asked to be.
type LedgerStore interface { //nolint:interfacebloat // one store serves all of them
	port.Ledger
	port.Changes
	port.Outbox
	port.Catalog
	port.Epochs
	port.Parking
	port.AuditLog
	port.ReportStore
	port.Book
	port.BarrierLog
}

// LedgerSuite is an adapter under test.
type LedgerSuite struct {
	// Open makes an empty ledger that ends with the test.
	Open func(t *testing.T) LedgerStore
}

// RunLedger runs the contract of all ports of LedgerStore.
func RunLedger(t *testing.T, suite LedgerSuite) {
	for _, group := range [][]ledgerTest{applyCases, fateCases, cancelCases, changeCases, epochCases, recordCases} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(&ledgerCase{T: t, LedgerStore: suite.Open(t), ids: system.NewIDs()})
			})
		}
	}
}

type ledgerTest struct {
	name string
	run  func(*ledgerCase)
}

// ledgerCase is one test with a ledger of its own.
type ledgerCase struct {
	*testing.T
	LedgerStore
	ids *system.IDs
}

var operator = port.Audit{Actor: "operator", Action: "test", Reason: "contract"}

func (c *ledgerCase) ctx() context.Context { return c.Context() }

func (c *ledgerCase) ok(err error, doing string) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", doing, err)
	}
}

func wantEqual[T comparable](c *ledgerCase, got, want T, what string) {
	c.Helper()
	if got != want {
		c.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// sale puts total units on sale and leaves the product suspended, as a new one is.
func (c *ledgerCase) sale(product string, total int64) domain.Stock {
	c.Helper()
	sale, err := domain.NewSale(product, total, time.Time{}, time.Time{}, 0)
	c.ok(err, "sale")
	stock, created, err := c.Create(c.ctx(), sale, operator)
	c.ok(err, "create")
	wantEqual(c, created, true, "created")
	return stock
}

// open puts total units on sale and opens the product at epoch 1.
func (c *ledgerCase) open(product string, total int64) domain.Stock {
	c.Helper()
	c.sale(product, total)
	return c.reopen(product)
}

// reopen takes an attempt and opens the product at its epoch.
func (c *ledgerCase) reopen(product string) domain.Stock {
	c.Helper()
	stock, taken, err := c.TakeAttempt(c.ctx(), product, "tester", c.stock(product).Suspension(), time.Minute)
	c.ok(err, "take attempt")
	wantEqual(c, taken, true, "attempt taken")
	reopened, err := c.Locked(c.ctx(), product, stock.Epoch(), port.LockedStock.Reopen)
	c.ok(err, "reopen")
	wantEqual(c, reopened, true, "reopened")
	return c.stock(product)
}

func (c *ledgerCase) stock(product string) domain.Stock {
	c.Helper()
	stocks, err := c.Stocks(c.ctx(), []string{product})
	c.ok(err, "stocks")
	return stocks[0]
}

func (c *ledgerCase) key(product, user, token string) domain.Key {
	c.Helper()
	key, err := domain.NewKey(product, user, token)
	c.ok(err, "key")
	return key
}

// item is a deduction of the service's own form.
func (c *ledgerCase) item(product, user, token string, quantity, epoch, sequence int64) port.ApplyItem {
	c.Helper()
	return port.ApplyItem{Deduction: domain.Deduction{Key: c.key(product, user, token), Quantity: quantity,
		Epoch: epoch, Sequence: sequence, Attempt: c.ids.Attempt(), At: time.Now()}}
}

func (c *ledgerCase) plain(product, user, token string, quantity int64) port.ApplyItem {
	c.Helper()
	item := c.item(product, user, token, quantity, 0, 0)
	item.Plain = true
	return item
}

// items are n single units of one product at epoch 1, of users named by prefix.
func (c *ledgerCase) items(product, prefix string, n int) []port.ApplyItem {
	c.Helper()
	items := make([]port.ApplyItem, n)
	for i := range items {
		items[i] = c.item(product, fmt.Sprintf("%s%d", prefix, i), "t", 1, 1, int64(i+1))
	}
	return items
}

func (c *ledgerCase) apply(items ...port.ApplyItem) port.ApplyResult {
	c.Helper()
	result, err := c.Apply(c.ctx(), items)
	c.ok(err, "apply")
	wantEqual(c, len(result.Replies), len(items), "replies")
	return result
}

func (c *ledgerCase) fate(key domain.Key) domain.Order {
	c.Helper()
	orders, err := c.Fates(c.ctx(), []domain.Key{key})
	c.ok(err, "fates")
	return orders[0]
}

// balanced asserts invariants A to C of the ledger's own books and gives them.
func (c *ledgerCase) balanced(product string) port.BookTotals {
	c.Helper()
	b, err := c.Totals(c.ctx(), product)
	c.ok(err, "totals")
	wantEqual(c, b.Stock.Sold(), b.ConfirmedUnits, "sold units and confirmed units")
	wantEqual(c, b.FlowUnits, b.ConfirmedUnits, "flow units and confirmed units")
	wantEqual(c, b.OrphanOrders+b.OrphanFlows+b.DoubleFlows, 0, "orphans and doubles")
	return b
}
