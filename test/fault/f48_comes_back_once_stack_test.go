//go:build stack

package fault

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F48: fifty cancels of one order at once return its units once, and the buyer's limit with them; so does a
// cancel that comes again later, and the token stays what it was.
func f48ComesBackOnce(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 4, 2)
	mine := &purchase{product: product, user: "bob", token: "first", quantity: 2}
	other := &purchase{product: product, user: "alice", token: "t", quantity: 2}
	mine.buy(s)
	other.buy(s)
	s.WaitOrder(product, "bob", "first", "confirmed")
	late := &purchase{product: product, user: "late", token: "t", quantity: 1}
	if late.buy(s); late.answer.Code() != domain.CodeStockNotEnough {
		t.Fatalf("sold out: %v", late.answer)
	}
	cancels := make([]shop.Answer, 50)
	var wg sync.WaitGroup
	for i := range cancels {
		wg.Go(func() { cancels[i] = s.Cancel(product, "bob", "first") })
	}
	wg.Wait()
	for _, a := range cancels {
		if a.Status != http.StatusOK || a.Text("status") != "cancelled" || a.Text("quantity") != "2" || string(a.Body) != string(cancels[0].Body) {
			t.Errorf("cancel: %v", a)
		}
	}
	again := &purchase{product: product, user: "bob", token: "second", quantity: 2} // his limit is free again
	boughtAtLast(t, s, again)
	if late.buy(s); late.answer.Code() != domain.CodeStockNotEnough {
		t.Errorf("the units came back more than once: %v", late.answer)
	}
	changesNothing(t, s, product, func() { // an hour later, as far as anything here counts hours
		if a := s.Cancel(product, "bob", "first"); string(a.Body) != string(cancels[0].Body) {
			t.Errorf("cancelled again: %v", a)
		}
		if a := s.Order(product, "bob", "first"); string(a.Body) != string(cancels[0].Body) {
			t.Errorf("the order: %v", a)
		}
		a := s.Buy(context.Background(), product, "bob", "first", 2)
		if a.Status != http.StatusOK || a.Text("status") != "cancelled" || a.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("bought again with the token: %v", a)
		}
	})
	holds(t, s, product, 2, 4, other, again, late)
}

// F48: a cancel of nothing is 404, for a stranger's order, too, and keeps nobody from buying.
func f48NothingToCancel(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 2, 0)
	mine := &purchase{product: product, user: "bob", token: "t", quantity: 1}
	if mine.buy(s); !mine.answer.Accepted() {
		t.Fatalf("%v", mine.answer)
	}
	changesNothing(t, s, product, func() {
		for _, p := range [][3]string{{product, "alice", "t"}, {product, "bob", "T"}, {product, "bob", "later"}, {harness.UniqueID(t), "bob", "t"}} {
			if a := s.Cancel(p[0], p[1], p[2]); a.Code() != domain.CodeOrderNotFound {
				t.Errorf("cancel of %v: %v", p, a)
			}
		}
	})
	later := &purchase{product: product, user: "bob", token: "later", quantity: 1}
	if later.buy(s); later.answer.Status != http.StatusAccepted {
		t.Errorf("a purchase whose token was cancelled before: %v", later.answer)
	}
	holds(t, s, product, 2, 2, mine, later)
}

// takenAlone takes a unit for each of n buyers at the gate, as an instance that dies at once after: the
// message that the consumer will apply is in the test's hands.
func takenAlone(t *testing.T, s *shop.Shop, product, name string, n int) (users []string, bodies [][]byte) {
	t.Helper()
	items := make([]port.DeductItem, n)
	for i := range items {
		users = append(users, fmt.Sprint(name, i))
		command, err := domain.NewDeductCommand(product, users[i], "t", 1)
		if err != nil {
			t.Fatal(err)
		}
		items[i] = port.DeductItem{Command: command, Attempt: harness.UniqueID(t)}
	}
	for _, reply := range s.Gate().Deduct(context.Background(), time.Now(), items) {
		if reply.Outcome != port.DeductAccepted {
			t.Fatalf("deduct: %v %v", reply.Outcome, reply.Err)
		}
		body, err := wire.Encode(domain.Batch{ID: harness.UniqueID(t), Kind: domain.BatchDeduct,
			Items: []domain.Deduction{domain.DeductionOf(reply.Flow)}})
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	return users, bodies
}

// F48: a cancel before the consumer has applied the deduct, and one beside it, return the unit once.
func TestF48CancelBeforeTheConsumerAndBesideIt(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			s := shop.New(t, profile, "SECKILL_RELAY__OPEN_AGE=1h")
			if profile == shop.Embedded {
				s.StartHere()
			} else {
				s.Start()
			}
			races := tenth(t, 200)
			product := onSale(t, s, int64(races+2), 0)
			early, bodies := takenAlone(t, s, product, "early", 2)
			for _, user := range early {
				if a := s.Order(product, user, "t"); a.Text("status") != "pending" {
					t.Errorf("before the consumer: %v", a)
				}
				cancelled(t, s, &purchase{product: product, user: user, token: "t", quantity: 1})
			}
			last := &purchase{product: product, user: "last", token: "t", quantity: int64(races + 2)} // all of it is back
			boughtAtLast(t, s, last)
			cancelled(t, s, last)
			s.Publish(append(bodies, bodies...)...)

			racers, bodies := takenAlone(t, s, product, "racer", races)
			var wg sync.WaitGroup
			wg.Go(func() { s.Publish(bodies...) })
			for _, user := range racers {
				wg.Go(func() { cancelled(t, s, &purchase{product: product, user: user, token: "t", quantity: 1}) })
			}
			wg.Wait()
			waitLag(t, s)
			holds(t, s, product, 0, 0)
			for _, user := range append(early, racers...) {
				if a := s.Order(product, user, "t"); a.Text("status") != "cancelled" {
					t.Errorf("%s: %v", user, a)
				}
			}
			if b := atRest(t, s, product); b.remaining != int64(races+2) || b.stock != int64(races+2) || b.epoch != 1 {
				t.Errorf("after %d races: %+v", races, b)
			}
		})
	}
}

// deafGate loses what it is told of cancels, until it hears.
type deafGate struct {
	port.Gate
	hears *atomic.Bool
	lost  *atomic.Int64
}

func (g deafGate) Tell(ctx context.Context, fates []domain.Fate) []port.TellOutcome {
	for _, f := range fates {
		if f.Status == domain.OrderCancelled && !g.hears.Load() {
			g.lost.Add(1)
			return make([]port.TellOutcome, len(fates))
		}
	}
	return g.Gate.Tell(ctx, fates)
}

// F48: the tell of a cancel is lost, again and again: the buyer has the answer all the same, and the units
// are back once the gate hears.
func TestF48ALostTellIsToldAgain(t *testing.T) {
	t.Parallel()
	var hears atomic.Bool
	var lost atomic.Int64
	s := shop.New(t, shop.Embedded)
	s.StartHere(fx.Decorate(func(g port.Gate) port.Gate { return deafGate{g, &hears, &lost} }))
	product := onSale(t, s, 1, 0)
	p := &purchase{product: product, user: "bob", token: "t", quantity: 1}
	p.buy(s)
	s.WaitOrder(product, "bob", "t", "confirmed")
	cancelled(t, s, p)
	next := &purchase{product: product, user: "next", token: "t", quantity: 1}
	if next.buy(s); next.answer.Code() != domain.CodeStockNotEnough {
		t.Errorf("the gate cannot know: %v", next.answer)
	}
	shop.Eventually(t, time.Minute, "the relay tells", func() (bool, string) { return lost.Load() >= 3, fmt.Sprint(lost.Load()) })
	if a := s.Order(product, "bob", "t"); a.Text("status") != "cancelled" {
		t.Errorf("the order meanwhile: %v", a)
	}
	hears.Store(true)
	boughtAtLast(t, s, next)
	holds(t, s, product, 1, 1, next)
}

// F48: Redis is gone while an order is cancelled. The row decides and the buyer has the answer; what the
// gate should know of a token is not guessed; the units are back once Redis is.
func f48RedisAway(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	product := onSale(t, s, 2, 0)
	mine := crowdOf(product, "u", 2)
	atOnce(s, mine)
	for _, p := range mine {
		s.WaitOrder(product, p.user, p.token, "confirmed")
	}
	if err := servers.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	cancelled(t, s, mine[0])
	if a := s.Order(product, mine[0].user, "t"); a.Text("status") != "cancelled" {
		t.Errorf("the order: %v", a)
	}
	if a := s.Cancel(product, mine[0].user, "unheard-of"); a.Code() != domain.CodeBusy {
		t.Errorf("cancel of a token that only the gate could know: %v", a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := servers.Redis.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	next := &purchase{product: product, user: "next", token: "t", quantity: 1}
	boughtAtLast(t, s, next)
	late := &purchase{product: product, user: "late", token: "t", quantity: 1}
	converge(t, s, late)
	holds(t, s, product, 2, 2, mine[1], next, late)
}

// F48: the service is killed at the very edges of the row's transaction: the buyer, whose connection is torn,
// finds the order as it was or cancelled, and its units are sold again by whoever comes next.
func TestF48KilledBesideTheRow(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		for point, status := range map[string]string{"cancel.before": "confirmed", "cancel.after": "cancelled"} {
			t.Run(profile+"/"+point, func(t *testing.T) {
				t.Parallel()
				s := shop.New(t, profile, "SECKILL_FAULT__ALLOWED=true")
				arm(s, point+"=kill")
				s.Start()
				product := onSale(t, s, 1, 0)
				p := &purchase{product: product, user: "bob", token: "t", quantity: 1}
				p.buy(s)
				s.WaitOrder(product, "bob", "t", "confirmed")
				if a := s.Cancel(product, "bob", "t"); a.Err == nil {
					t.Errorf("from a service that is killed: %v", a)
				}
				s.WaitDead(time.Minute)
				arm(s)
				s.Start()
				s.WaitOpen(product)
				if a := s.Order(product, "bob", "t"); a.Text("status") != status {
					t.Errorf("the order: %v", a)
				}
				if status == "confirmed" {
					cancelled(t, s, p)
				}
				next := &purchase{product: product, user: "next", token: "t", quantity: 1}
				boughtAtLast(t, s, next)
				cancelled(t, s, p)
				holds(t, s, product, 1, 1, next)
			})
		}
	}
}

// F48: the consumer has written the orders and waits for the stock row when two of them are cancelled. Whatever
// these are told meanwhile, in the end they are cancelled, and the others are not touched.
func f48BesideAConsumerThatWaits(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 10, 0)
	db := database(t, s)
	release := holdStock(t, db, product)
	crowd := crowdOf(product, "u", 10)
	atOnce(s, crowd)
	consumer := waitingForStock(t, db)
	regretted := crowd[:2]
	var asked sync.WaitGroup
	for _, p := range regretted {
		asked.Go(func() {
			a := s.Cancel(product, p.user, p.token)
			if a.Text("status") != "cancelled" && a.Code() != domain.CodeOutcomeUnknown && a.Code() != domain.CodeBusy {
				t.Errorf("while the consumer waits: %v", a)
			}
		})
	}
	gone(t, db, consumer) // its lock wait has timed out
	release()
	asked.Wait()
	for _, p := range regretted {
		cancelled(t, s, p)
	}
	waitLag(t, s)
	holds(t, s, product, 8, 8, crowd[2:]...)
	if b := atRest(t, s, product); b.remaining != 2 || b.stock != 2 || b.epoch != 1 {
		t.Errorf("two came back: %+v", b)
	}
}
