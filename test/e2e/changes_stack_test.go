//go:build stack

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/gormmysql"
	"seckill/adapters/redislua"
	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// stockChange is one change of a product's stock, and the last answer to it.
type stockChange struct {
	product, key string
	delta        int64
	answer       shop.Answer
}

func (c *stockChange) ask(s *shop.Shop) {
	c.answer = s.Ask(context.Background(), http.MethodPost, s.Operators()+"/admin/v1/products/"+c.product+"/stock-changes",
		s.OperatorToken(), map[string]any{"delta": c.delta, "reason": "a test"}, "Idempotency-Key", c.key)
}

func (c *stockChange) show(s *shop.Shop) shop.Answer {
	return s.Admin(http.MethodGet, "/admin/v1/products/"+c.product+"/stock-changes/"+c.key, nil)
}

// eachThrice asks for each change three times at once, all of them side by side.
func eachThrice(s *shop.Shop, changes []*stockChange) {
	var all sync.WaitGroup
	for _, c := range changes {
		for range 2 {
			again := *c
			all.Go(func() { again.ask(s) })
		}
		all.Go(func() { c.ask(s) })
	}
	all.Wait()
}

// settleChanges asks for each change with the same key until the answer stands, and gives the units that were added and
// withdrawn in the end.
func settleChanges(t *testing.T, s *shop.Shop, changes []*stockChange) (added, withdrawn int64) {
	t.Helper()
	shop.Eventually(t, time.Minute, "changes that are decided", func() (bool, string) {
		for _, c := range changes {
			if c.answer.Definite() && c.answer.Text("status") != application.OrderPending {
				continue
			}
			if c.ask(s); !c.answer.Definite() || c.answer.Text("status") == application.OrderPending {
				return false, c.key + ": " + c.answer.String()
			}
		}
		return true, ""
	})
	for _, c := range changes {
		shown := c.show(s)
		switch {
		case c.answer.Code() == domain.CodeStockNotEnough:
			if shown.Code() != domain.CodeChangeNotFound {
				t.Errorf("%s was refused, and is %v", c.key, shown)
			}
			continue
		case !c.answer.Accepted() || c.answer.Text("status") != application.OrderConfirmed:
			t.Errorf("%s of %d: %v", c.key, c.delta, c.answer)
			continue
		case shown.Status != http.StatusOK || shown.Text("status") != application.OrderConfirmed || shown.Text("delta") != fmt.Sprint(c.delta):
			t.Errorf("%s was answered %v, and is %v", c.key, c.answer, shown)
		}
		if c.delta > 0 {
			added += c.delta
		} else {
			withdrawn -= c.delta
		}
	}
	return added, withdrawn
}

// wantOnSale wants, at rest, what is on sale and what is left on both sides.
func wantOnSale(t *testing.T, s *shop.Shop, product string, total, bought int64) {
	t.Helper()
	s.HoldsEventually(product)
	v, a := s.Stock(product)
	if v.Gate == nil || v.Ledger == nil || v.Total != total || v.Ledger.Stock != total-bought || v.Gate.Remaining != total-bought {
		t.Errorf("want %d on sale, %d of them sold: %v", total, bought, a)
	}
}

// Stock is changed while 200 buyers buy: every change counts once, however often it is asked, and no unit is
// both withdrawn and sold.
func TestStockIsChangedDuringASale(t *testing.T) {
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile)
		s.Start()
		const opened = 2000
		product := onSale(t, s, opened)
		var changes []*stockChange
		for i := range 12 {
			changes = append(changes, &stockChange{product: product, key: fmt.Sprint("add", i), delta: 15})
			changes = append(changes, &stockChange{product: product, key: fmt.Sprint("take", i), delta: -20})
		}
		c := letIn(s, product, 200)
		c.waitAccepted(t, 50)
		eachThrice(s, changes)
		added, withdrawn := settleChanges(t, s, changes)
		if added != 12*15 {
			t.Errorf("%d units were added", added)
		}
		shop.Eventually(t, time.Minute, "the last unit is sold", func() (bool, string) {
			v, a := s.Stock(product)
			return v.Gate != nil && v.Gate.Remaining == 0, a.String()
		})
		c.goHome()
		c.askAgain(t)
		wantOnSale(t, s, product, opened+added-withdrawn, opened+added-withdrawn)
		t.Logf("%d added, %d withdrawn", added, withdrawn)
		tooLate := &stockChange{product: product, key: "too-late", delta: -1}
		if tooLate.ask(s); tooLate.answer.Code() != domain.CodeStockNotEnough {
			t.Errorf("a withdrawal of what is sold: %v", tooLate.answer)
		}
		nothingLost(t, s, c)
	})
}

// A service that is killed while stock is changed finishes every change that it began, once.
func TestAKilledServiceFinishesTheStockChangesThatItBegan(t *testing.T) {
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile)
		s.Start()
		const opened = 50_000
		var crowds []*crowd
		for _, atLeast := range []int64{1, 40, 200} {
			product := onSale(t, s, opened)
			var changes []*stockChange
			for i := range 60 {
				delta := int64(i + 1)
				if i%2 == 0 {
					delta = -delta
				}
				changes = append(changes, &stockChange{product: product, key: fmt.Sprint("k", i), delta: delta})
			}
			c := letIn(s, product, 48)
			c.waitAccepted(t, atLeast)
			killedAmid(t, s, changes)
			c.goHome()
			s.Start()
			s.WaitOpen(product)
			added, withdrawn := settleChanges(t, s, changes)
			c.askAgain(t)
			if added != 930 || withdrawn != 900 {
				t.Errorf("%d added, %d withdrawn", added, withdrawn)
			}
			bought, _, _ := c.count()
			wantOnSale(t, s, product, opened+added-withdrawn, bought)
			crowds = append(crowds, c)
		}
		nothingLost(t, s, crowds...)
	})
}

// killedAmid kills the service while the changes are being asked for.
func killedAmid(t *testing.T, s *shop.Shop, changes []*stockChange) {
	t.Helper()
	var all sync.WaitGroup
	var accepted atomic.Int64
	next := make(chan *stockChange, len(changes))
	for _, c := range changes {
		next <- c
	}
	close(next)
	for range 8 {
		all.Go(func() {
			for c := range next {
				if c.ask(s); c.answer.Accepted() {
					accepted.Add(1)
				}
			}
		})
	}
	shop.Eventually(t, time.Minute, "some changes are accepted", func() (bool, string) {
		return accepted.Load() >= 5, fmt.Sprint(accepted.Load())
	})
	s.Kill()
	all.Wait()
	unknown := 0
	for _, c := range changes {
		if !c.answer.Definite() {
			unknown++
		}
	}
	t.Logf("killed with %d changes accepted, %d without an answer", accepted.Load(), unknown)
}

// Redis forgets everything between the two sides of stock changes that another instance left half done: what has a
// row counts once, and what has none never was.
func TestRedisForgetsEverythingAmidStockChanges(t *testing.T) {
	servers, err := harness.Start(t.Context(), harness.Parts{Redis: true}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	s := shop.New(t, shop.Stack, "SECKILL_REDIS__ADDRS="+servers.Redis.Addr)
	s.Redis = servers.Redis.Addr
	s.Start()
	const opened, sold = 100, 20
	left := leftHalfDone{t: t, s: s, store: s.Store(), gate: s.Gate()}
	untold, unsent, unsettled := left.onSale(opened, sold), left.onSale(opened, sold), left.onSale(opened, sold)
	left.taken(unsent)
	deduction := left.taken(unsettled)
	left.applied(deduction)
	left.added(untold)
	client := redis.NewClient(&redis.Options{Addr: s.Redis})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	wantOnSale(t, s, untold, opened+halfDone, sold)
	wantOnSale(t, s, unsettled, opened-halfDone, sold)
	wantOnSale(t, s, unsent, opened, sold)

	for _, c := range []struct {
		product string
		delta   int64
		status  int
		total   int64
	}{{untold, halfDone, http.StatusOK, opened + halfDone}, {unsettled, -halfDone, http.StatusOK, opened - halfDone},
		{unsent, -halfDone, http.StatusAccepted, opened - halfDone}} {
		again := &stockChange{product: c.product, key: "k", delta: c.delta}
		if again.ask(s); again.answer.Status != c.status {
			t.Errorf("%d asked again: %v", c.delta, again.answer)
		}
		wantOnSale(t, s, c.product, c.total, sold)
	}
	relayed := left.onSale(opened, sold)
	left.taken(relayed)
	wantOnSale(t, s, relayed, opened-halfDone, sold) // the relay has sent what was never sent
	s.Stop()
}

// halfDone is the units of each change that is left half done, under the key "k".
const halfDone = 10

// leftHalfDone does a part of a stock change, as an instance that dies after it.
type leftHalfDone struct {
	t     *testing.T
	s     *shop.Shop
	store *gormmysql.Store
	gate  *redislua.Gate
}

// onSale is a new product of which some units are sold.
func (l leftHalfDone) onSale(total, sold int64) string {
	l.t.Helper()
	product := onSale(l.t, l.s, total)
	if a := l.s.Buy(context.Background(), product, "early", "t", sold); !a.Accepted() {
		l.t.Fatal(a)
	}
	l.s.WaitOrder(product, "early", "t", application.OrderConfirmed)
	return product
}

func (l leftHalfDone) key(product string) domain.Key {
	l.t.Helper()
	key, err := domain.ChangeKey(product, "k")
	if err != nil {
		l.t.Fatal(err)
	}
	return key
}

// added writes an addition's row, and does not tell the gate.
func (l leftHalfDone) added(product string) {
	l.t.Helper()
	_, err := l.store.Add(context.Background(), []port.Addition{{Key: l.key(product), Quantity: halfDone, Audit: port.Audit{Actor: "test", Action: "test"}}})
	if err != nil {
		l.t.Fatal(err)
	}
}

// taken takes a withdrawal's units at the gate, and sends nothing.
func (l leftHalfDone) taken(product string) domain.Deduction {
	l.t.Helper()
	item := port.AdoptItem{Key: l.key(product), Quantity: halfDone, Attempt: "a"}
	if r := l.gate.Adopt(context.Background(), time.Now(), []port.AdoptItem{item})[0]; r.Outcome != port.AdoptHeld {
		l.t.Fatalf("adopt: %+v", r)
	}
	replies, err := l.gate.Check(context.Background(), []domain.Key{item.Key})
	if err != nil {
		l.t.Fatal(err)
	}
	return domain.DeductionOf(replies[0].Flow)
}

// applied writes a withdrawal's row, and does not tell the gate.
func (l leftHalfDone) applied(d domain.Deduction) {
	l.t.Helper()
	result, err := l.store.Apply(context.Background(), []port.ApplyItem{{Deduction: d}})
	if err != nil || result.Replies[0].Outcome != port.Applied {
		l.t.Fatalf("apply: %+v, %v", result, err)
	}
}
