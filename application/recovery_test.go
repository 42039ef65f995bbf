package application_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// mailbag carries flows to the consumer, each after a time of its own, and loses none.
type mailbag struct {
	mu      sync.Mutex
	waiting map[int]bool
	next    int
}

func (m *mailbag) send(f domain.Flow, delay time.Duration, handle func(domain.Deduction) error) {
	m.mu.Lock()
	id := m.next
	m.next++
	m.waiting[id] = true
	m.mu.Unlock()
	go func() {
		time.Sleep(delay)
		for handle(domain.DeductionOf(f)) != nil {
			time.Sleep(100 * time.Millisecond)
		}
		m.mu.Lock()
		delete(m.waiting, id)
		m.mu.Unlock()
	}()
}

// drain waits until everything that was sent before is finished.
func (m *mailbag) drain() {
	m.mu.Lock()
	upTo := m.next
	m.mu.Unlock()
	for {
		m.mu.Lock()
		left := 0
		for id := range m.waiting {
			if id < upTo {
				left++
			}
		}
		m.mu.Unlock()
		if left == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// sale is a shop with a crowd, a consumer and everything that looks after it.
type sale struct {
	*shop
	bag     *mailbag
	settler *application.SettleDeductions
	mu      sync.Mutex
	journal []application.JournalEntry
}

func newSale(t *testing.T) *sale {
	s := &sale{shop: newShop(func(c *application.RebuildConfig) { c.PageMax = 7 }), bag: &mailbag{waiting: map[int]bool{}}}
	s.drains.while = s.bag.drain
	ctrl := gomock.NewController(t)
	s.settler = application.NewSettleDeductions(s.books, s.gate, s.books, portmock.NewMockParking(ctrl), portmock.NewMockBarrierLog(ctrl),
		s.repair, portmock.NewMockIDs(ctrl), wallClock{}, nil, application.DefaultSettleConfig(), quietLog)
	return s
}

func (s *sale) handle(d domain.Deduction) error {
	return s.settler.Handle(context.Background(), []port.Delivery{{Batch: domain.Batch{ID: "b", Kind: domain.BatchDeduct, Items: []domain.Deduction{d}}}})
}

// buyOne is one buyer, who notes what he was told.
func (s *sale) buyOne(product, token string, delay time.Duration) {
	if !s.lease.MaySell(product) {
		return
	}
	item := port.DeductItem{Command: commandFor(keyIn(product, token)), Attempt: "a-" + token}
	reply := s.gate.Deduct(context.Background(), time.Now(), []port.DeductItem{item})[0]
	answer := application.AnswerUnknown
	switch reply.Outcome {
	case port.DeductAccepted:
		answer = application.AnswerAccepted
		s.bag.send(reply.Flow, delay, s.handle)
	case port.DeductNotEnough:
		answer = application.AnswerRefused
	case port.DeductRewound, port.DeductNotLoaded:
		s.repair.Suspect(product, "met at a purchase")
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = append(s.journal, application.JournalEntry{Product: product, User: "u-" + token, Token: token, Quantity: 1, Answer: answer})
}

// TestWhateverRedisForgetsTheBooksAgreeInTheEnd sells while the gate is flushed, fails over to a stale
// replica and changes its server, again and again, and then checks A to E with every buyer's answer.
func TestWhateverRedisForgetsTheBooksAgreeInTheEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		inBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			s := newSale(t)
			products := []string{"p", "q"}
			for _, p := range products {
				s.open(t, p, 50)
			}
			watch := application.NewWatchGates(s.books, s.books, s.gate, s.repair, application.DefaultWatchConfig(), quietLog)
			for _, r := range []application.Runner{s.lease, s.repair, watch} {
				startRunner(t, r)
			}
			stale := map[string]func(){}
			for i := range 600 {
				p := products[dice.IntN(2)]
				s.buyOne(p, fmt.Sprintf("t%d", i), time.Duration(dice.IntN(20_000))*time.Millisecond)
				time.Sleep(time.Duration(dice.IntN(200)) * time.Millisecond)
				switch dice.IntN(60) {
				case 0:
					s.store.Forget(p)
				case 1:
					s.store.MoveServer(p)
				case 2:
					stale[p] = s.store.Picture(p)
				case 3:
					if back := stale[p]; back != nil {
						back()
						s.store.MoveServer(p)
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := s.verifier().WaitDrained(ctx, ""); err != nil {
				t.Fatal(err)
			}
			if v := s.verify(t, s.journal...); !v.Holds || v.Units < 20 {
				t.Errorf("%s: %+v", verdicts(v), v)
			}
		})
	}
}
