//go:build stack

package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// relayOff keeps the relay from sending open flows again while the story lasts.
const relayOff = "SECKILL_RELAY__OPEN_AGE=1h"

// onBoth plays a story on each profile.
func onBoth(t *testing.T, play func(t *testing.T, profile string)) {
	t.Helper()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		t.Run(profile, func(t *testing.T) { play(t, profile) })
	}
}

// onSale is a new product on sale.
func onSale(t *testing.T, s *shop.Shop, total int64) string {
	t.Helper()
	product := harness.UniqueID(t)
	s.OpenSale(product, total, 0)
	return product
}

// keyOf is a key that must be valid.
func keyOf(t *testing.T, product, user, token string) domain.Key {
	t.Helper()
	key, err := domain.NewKey(product, user, token)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// purchase is one buyer's wish for one unit, and the last answer to it.
type purchase struct {
	product, user, token string
	answer               shop.Answer
	regretted            bool // the buyer cancels it
	cancel               shop.Answer
}

// bought reports whether the buyer was told that the order appears.
func (p *purchase) bought() bool {
	return p.answer.Accepted() && p.answer.Text("status") != application.OrderRejected
}

func (p *purchase) entry() application.JournalEntry {
	e := application.JournalEntry{Product: p.product, User: p.user, Token: p.token, Quantity: 1, Answer: application.AnswerUnknown}
	switch {
	case p.bought():
		e.Answer = application.AnswerAccepted
	case p.answer.Definite():
		e.Answer = application.AnswerRefused
	}
	return e
}

// crowd are buyers who come one after another over so many connections, until they are sent home.
type crowd struct {
	s        *shop.Shop
	accepted atomic.Int64
	home     chan struct{}
	gone     sync.WaitGroup
	regrets  int64 // one buyer in so many cancels at once what it has bought; 0: none does

	mu        sync.Mutex
	purchases []*purchase
}

// letIn opens the doors to a crowd that buys one unit each of the product.
func letIn(s *shop.Shop, product string, connections int) *crowd {
	c := &crowd{s: s}
	c.letIn(product, connections)
	return c
}

func (c *crowd) letIn(product string, connections int) {
	c.home = make(chan struct{})
	var number atomic.Int64
	for range connections {
		c.gone.Go(func() {
			for {
				select {
				case <-c.home:
					return
				default:
				}
				n := number.Add(1)
				p := &purchase{product: product, user: fmt.Sprintf("u%d", n), token: fmt.Sprintf("t%d", n)}
				c.ask(p)
				if p.regretted = c.regrets > 0 && n%c.regrets == 0 && p.bought(); p.regretted {
					p.cancel = c.s.Cancel(p.product, p.user, p.token)
				}
				c.mu.Lock()
				c.purchases = append(c.purchases, p)
				c.mu.Unlock()
				if p.answer.Err != nil {
					return // there is nobody behind the door any more
				}
			}
		})
	}
}

func (c *crowd) ask(p *purchase) {
	p.answer = c.s.Buy(context.Background(), p.product, p.user, p.token, 1)
	if p.bought() {
		c.accepted.Add(1)
	}
}

// waitAccepted waits until so many were told that they have bought.
func (c *crowd) waitAccepted(t *testing.T, n int64) {
	t.Helper()
	shop.Eventually(t, time.Minute, "a burst under way", func() (bool, string) {
		got := c.accepted.Load()
		return got >= n, fmt.Sprintf("%d accepted", got)
	})
}

// goHome ends the crowd and waits for the last answers.
func (c *crowd) goHome() {
	close(c.home)
	c.gone.Wait()
}

// unknown are those who have no answer that stands.
func (c *crowd) unknown() (all []*purchase) {
	for _, p := range c.purchases {
		if !p.answer.Definite() {
			all = append(all, p)
		}
	}
	return all
}

// askAgain asks for each unknown one with the same token until the answer stands.
func (c *crowd) askAgain(t *testing.T) {
	t.Helper()
	waiting := c.unknown()
	shop.Eventually(t, time.Minute, "answers that stand", func() (bool, string) {
		work := make(chan *purchase)
		var done sync.WaitGroup
		for range 16 {
			done.Go(func() {
				for p := range work {
					c.ask(p)
				}
			})
		}
		for _, p := range waiting {
			work <- p
		}
		close(work)
		done.Wait()
		if waiting = c.unknown(); len(waiting) == 0 {
			return true, ""
		}
		return false, fmt.Sprintf("%d have none, one of them %v", len(waiting), waiting[0].answer)
	})
}

func (c *crowd) journal() []application.JournalEntry {
	entries := make([]application.JournalEntry, len(c.purchases))
	for i, p := range c.purchases {
		entries[i] = p.entry()
	}
	return entries
}

// count is how many were told that they have bought, and how many that they have not.
func (c *crowd) count() (bought, refused, unknown int64) {
	for _, p := range c.purchases {
		switch {
		case p.bought():
			bought++
		case p.answer.Definite():
			refused++
		default:
			unknown++
		}
	}
	return bought, refused, unknown
}

// nothingLost wants, of a running service whose crowds all have answers that stand: A to E hold by the
// service's own word and, once it has stopped, with what buyers were told; as many orders as
// accepted purchases.
func nothingLost(t *testing.T, s *shop.Shop, crowds ...*crowd) {
	t.Helper()
	var journal []application.JournalEntry
	for _, c := range crowds {
		bought, refused, unknown := c.count()
		v := s.HoldsEventually(c.purchases[0].product)
		if v.Confirmed != bought || v.Units != bought || unknown != 0 {
			t.Errorf("%d orders of %d units, and buyers were told %d accepted, %d refused, %d unknown", v.Confirmed, v.Units, bought, refused, unknown)
		}
		t.Logf("%d accepted, %d refused", bought, refused)
		journal = append(journal, c.journal()...)
	}
	s.Stop()
	if v := s.VerifyJournal(journal); !v.Holds {
		t.Errorf("what buyers were told: %+v", v)
	}
}
