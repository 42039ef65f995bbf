//go:build stack

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/shop"
)

const l10 = "messages delivered three times and in any order; cancels and stock changes twice and beside the consumer"

// startReachable starts a shop so that the test can reach behind its doors.
func startReachable(s *shop.Shop) {
	if s.Profile == shop.Embedded {
		s.StartHere()
		return
	}
	s.Start()
}

// L10: every message three times and in any order is an order once, whichever form it has.
func TestL10ThreeTimesAndShuffled(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			layer := campaign.Open(t, "L10", l10)
			s := shop.New(t, profile)
			startReachable(s)
			n := campaign.Size(t, 1000, 10_000)
			product := onSale(t, s, int64(n), 0)
			var users []string
			var bodies [][]byte
			for i := range n / 4 { // of another producer: nobody has taken their units
				users = append(users, fmt.Sprint("plain", i))
				bodies = append(bodies, []byte(plainMessage(product, users[i], "t", "1")))
			}
			for len(users) < n {
				some, theirs := takenAlone(t, s, product, fmt.Sprint("own", len(users), "-"), min(500, n-len(users)))
				users, bodies = append(users, some...), append(bodies, theirs...)
			}
			bodies = slices.Concat(bodies, bodies, bodies)
			rand.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
			var wg sync.WaitGroup
			for some := range slices.Chunk(bodies, (len(bodies)+7)/8) {
				wg.Go(func() { s.Publish(some...) })
			}
			wg.Wait()
			layer.Add(campaign.Figures{Faults: map[string]int64{"message delivered again": int64(2 * n)}})
			waitLag(t, s)
			journal := make([]application.JournalEntry, n)
			for i, user := range users {
				journal[i] = application.JournalEntry{Product: product, User: user, Token: "t", Quantity: 1, Answer: application.AnswerAccepted}
			}
			judged(t, s, layer, product, journal, int64(n))
		})
	}
}

// judged waits for A to E, has the journal verified, wants so many confirmed orders, and keeps the figures.
func judged(t *testing.T, s *shop.Shop, layer *campaign.Layer, product string, journal []application.JournalEntry, confirmed int64) {
	t.Helper()
	begun := time.Now()
	s.HoldsEventually(product)
	layer.Add(campaign.Figures{Settle: []float64{time.Since(begun).Seconds()}, Accepted: confirmed})
	v := s.VerifyJournalOf(product, journal)
	for _, i := range v.Invariants {
		layer.Add(campaign.Figures{Violations: map[string]int64{i.Name: i.Broken}})
	}
	if !v.Holds {
		t.Errorf("%+v", v)
	}
	if v.Confirmed != confirmed {
		t.Errorf("%d confirmed orders, want %d", v.Confirmed, confirmed)
		layer.Add(campaign.Figures{Violations: map[string]int64{"C": 1}})
	}
}

// echoes hands each message to the inner handler three times, mixed with others and in any order.
type echoes struct {
	port.DeliveryHandler
	again atomic.Int64

	mu   sync.Mutex
	pool []port.Delivery // each as often as it has yet to come
}

// Handle gives what came, and some of what came before.
func (e *echoes) Handle(ctx context.Context, deliveries []port.Delivery) error {
	if slices.ContainsFunc(deliveries, func(d port.Delivery) bool { return d.Batch.Kind == domain.BatchBarrier }) {
		return e.DeliveryHandler.Handle(ctx, deliveries) // it proves an order, and comes alone
	}
	e.mu.Lock()
	rand.Shuffle(len(e.pool), func(i, j int) { e.pool[i], e.pool[j] = e.pool[j], e.pool[i] })
	old := e.pool[:min(len(e.pool), 2*len(deliveries)+8)]
	e.pool = append(slices.Clone(e.pool[len(old):]), slices.Concat(deliveries, deliveries)...)
	e.mu.Unlock()
	e.again.Add(int64(len(old)))
	mixed := slices.Concat(deliveries, old)
	rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return e.DeliveryHandler.Handle(ctx, mixed)
}

// L10: the same with the service's own messages, while it sells and buyers cancel.
func TestL10OwnMessagesAgain(t *testing.T) {
	t.Parallel()
	layer := campaign.Open(t, "L10", l10)
	s := shop.New(t, shop.Embedded)
	e := &echoes{}
	s.StartHere(fx.Decorate(func(h port.DeliveryHandler) port.DeliveryHandler {
		e.DeliveryHandler = h
		return e
	}))
	drive.Sell(t, drive.Sale{Doors: []*shop.Shop{s}, Requests: campaign.Size(t, 600, 10_000), Rate: 300, CancelEvery: 3, Figures: layer})
	layer.Add(campaign.Figures{Faults: map[string]int64{"message delivered again": e.again.Load()}})
	if e.again.Load() == 0 {
		t.Error("no message came again")
	}
}

// L10: cancels beside the purchase, beside the consumer and beside each other, and stock changes beside
// themselves: each counts once.
func TestL10Races(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			layer := campaign.Open(t, "L10", l10)
			s := shop.New(t, profile)
			startReachable(s)
			r := newRaces(t, s, campaign.Size(t, 100, 1000))
			r.run(layer)
			waitLag(t, s)
			r.judge(layer)
		})
	}
}

// races are contests of requests about one key.
type races struct {
	t       *testing.T
	s       *shop.Shop
	product string
	total   int64 // at first
	all     []*race
}

type race struct {
	kind    string
	user    string // and key of a stock change
	body    []byte
	buy     *purchase // nil: none through the door
	cancels [2]shop.Answer
	delta   int64
}

// The kinds.
const (
	raceCancels    = "two cancels of an order"
	racePurchase   = "a purchase and two cancels"
	raceConsumer   = "a message and two cancels"
	raceAddition   = "an addition twice"
	raceWithdrawal = "a withdrawal twice"
)

func newRaces(t *testing.T, s *shop.Shop, n int) *races {
	t.Helper()
	r := &races{t: t, s: s, total: int64(2 * n)}
	r.product = onSale(t, s, r.total, 0)
	kinds := []string{raceCancels, racePurchase, raceConsumer, raceAddition, raceWithdrawal}
	n -= n % len(kinds)
	users, bodies := takenAlone(t, s, r.product, "taken", n/len(kinds))
	for i := range n {
		c := &race{kind: kinds[i%len(kinds)], user: fmt.Sprint("racer", i)}
		switch c.kind {
		case raceConsumer:
			c.user, c.body = users[i/len(kinds)], bodies[i/len(kinds)]
		case raceAddition:
			c.delta = 2
		case raceWithdrawal:
			c.delta = -1
		}
		r.all = append(r.all, c)
	}
	return r
}

// run runs some at a time.
func (r *races) run(layer *campaign.Layer) {
	work := make(chan *race)
	var runners sync.WaitGroup
	for range 8 {
		runners.Go(func() {
			for c := range work {
				r.race(c)
				layer.Fault(c.kind)
			}
		})
	}
	for _, c := range r.all {
		work <- c
	}
	close(work)
	runners.Wait()
}

func (r *races) race(c *race) {
	var wg sync.WaitGroup
	defer wg.Wait()
	switch c.kind {
	case raceAddition, raceWithdrawal:
		for range 2 {
			wg.Go(func() { r.change(c) })
		}
		return
	case raceConsumer:
		wg.Go(func() { r.s.Publish(c.body) })
	default:
		c.buy = &purchase{product: r.product, user: c.user, token: "t", quantity: 1}
		if c.kind == raceCancels {
			r.buyOnce(c.buy)
		} else {
			wg.Go(func() { r.buyOnce(c.buy) })
		}
	}
	for i := range c.cancels {
		wg.Go(func() { c.cancels[i] = r.cancel(c.user) })
	}
}

// buyOnce asks until the answer stands; unlike converge it may run beside the test's goroutine.
func (r *races) buyOnce(p *purchase) {
	for range 600 {
		if p.buy(r.s); p.answer.Definite() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Errorf("%s has no answer: %v", p.user, p.answer)
}

func (r *races) cancel(user string) (a shop.Answer) {
	for range 600 {
		if a = r.s.Cancel(r.product, user, "t"); a.Definite() {
			return a
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Errorf("the cancel of %s has no answer: %v", user, a)
	return a
}

// change asks until the stock change is decided.
func (r *races) change(c *race) {
	var a shop.Answer
	for range 600 {
		a = r.s.Ask(context.Background(), http.MethodPost, r.s.Operators()+"/admin/v1/products/"+r.product+"/stock-changes", r.s.OperatorToken(),
			map[string]any{"delta": c.delta, "reason": "a race"}, "Idempotency-Key", c.user)
		if a.Definite() && a.Status != http.StatusAccepted {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if a.Status != http.StatusOK && a.Status != http.StatusCreated {
		r.t.Errorf("stock change %s by %d: %v", c.user, c.delta, a)
	}
}

// judge wants each key to have one end that every answer about it fits, and the books to agree.
func (r *races) judge(layer *campaign.Layer) {
	r.t.Helper()
	confirmed, total := int64(0), r.total
	var journal []application.JournalEntry
	for _, c := range r.all {
		total += c.delta
		if c.delta != 0 {
			continue
		}
		cancel := application.AnswerRefused
		if slices.ContainsFunc(c.cancels[:], func(a shop.Answer) bool { return a.Text("status") == application.OrderCancelled }) {
			cancel = application.AnswerAccepted
		}
		if c.kind != racePurchase && cancel != application.AnswerAccepted {
			r.t.Errorf("%s: nobody could cancel %s: %v", c.kind, c.user, c.cancels)
		}
		want := application.OrderCancelled
		if cancel == application.AnswerRefused {
			want = application.OrderConfirmed
			confirmed++
		}
		r.s.WaitOrder(r.product, c.user, "t", want)
		entry := application.JournalEntry{Product: r.product, User: c.user, Token: "t", Quantity: 1, Answer: application.AnswerAccepted}
		if c.buy != nil && c.buy.answer.Text("status") == application.OrderCancelled {
			entry.Answer = application.AnswerRefused
		}
		journal = append(journal, entry, application.JournalEntry{Product: r.product, User: c.user, Token: "t", Cancel: true, Answer: cancel})
	}
	judged(r.t, r.s, layer, r.product, journal, confirmed)
	if v, a := r.s.Stock(r.product); v.Total != total || v.Ledger == nil || v.Ledger.Stock != total-confirmed || v.Gate == nil || v.Gate.Remaining != total-confirmed {
		r.t.Errorf("put on sale %d, %d confirmed, and the books say %v", total, confirmed, a)
	}
}
