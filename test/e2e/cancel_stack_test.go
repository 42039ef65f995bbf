//go:build stack

package e2e

import (
	"net/http"
	"testing"
	"time"

	"seckill/application"
	"seckill/test/shop"
)

// cancelAgain asks for each regretted purchase until the answer stands, and counts them.
func (c *crowd) cancelAgain(t *testing.T) (cancelled int64) {
	t.Helper()
	for _, p := range c.purchases {
		if !p.regretted {
			continue
		}
		shop.Eventually(t, time.Minute, "an answer to the cancel of "+p.token, func() (bool, string) {
			if !p.cancel.Definite() {
				p.cancel = c.s.Cancel(p.product, p.user, p.token)
			}
			return p.cancel.Definite(), p.cancel.String()
		})
		if p.cancel.Status != http.StatusOK || p.cancel.Text("status") != application.OrderCancelled {
			t.Errorf("cancel of %s, which was accepted: %v", p.token, p.cancel)
		}
		cancelled++
	}
	return cancelled
}

// cancels are the crowd's cancels as its journal has them.
func (c *crowd) cancels() (entries []application.JournalEntry) {
	for _, p := range c.purchases {
		if p.regretted {
			entries = append(entries, application.JournalEntry{Product: p.product, User: p.user, Token: p.token,
				Cancel: true, Answer: application.AnswerAccepted})
		}
	}
	return entries
}

// A sale in which every third buyer thinks better of it, more units being sold than there are, and a kill
// in the middle: what was given back was sold again, once, and the journal knows whose wish it was.
func TestBuyersCancelAmidABurstAndAKill(t *testing.T) {
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile, "SECKILL_RECONCILE__SAFE_AGE=1ms")
		s.Start()
		const total = 300
		product := onSale(t, s, total)
		c := &crowd{s: s, regrets: 3}
		c.letIn(product, 24)
		c.waitAccepted(t, total+50)
		s.Kill()
		c.goHome()
		s.Start()
		s.WaitOpen(product)
		c.askAgain(t)
		cancelled := c.cancelAgain(t)
		bought, refused, _ := c.count()
		t.Logf("%d accepted, %d refused, %d cancelled", bought, refused, cancelled)
		if v := s.HoldsEventually(product); v.Confirmed != bought-cancelled || v.Units != v.Confirmed || v.Confirmed > total {
			t.Errorf("%d orders of %d units, and %d of %d accepted were cancelled", v.Confirmed, v.Units, cancelled, bought)
		}
		a := s.Admin(http.MethodPost, "/admin/v1/reconciliations", map[string]string{"mode": "dry-run", "productId": product})
		if a.Status != http.StatusOK || a.Text("found") != "map[]" {
			t.Errorf("a reconciliation of books in order: %v", a)
		}
		s.Stop()
		if v := s.VerifyJournal(append(c.journal(), c.cancels()...)); !v.Holds {
			t.Errorf("what buyers were told: %+v", v)
		}
		if v := s.VerifyJournal(append(c.journal(), c.cancels()[1:]...)); v.Holds || v.Invariants[3].Broken != 1 {
			t.Errorf("one cancelled that its buyer did not cancel: %+v", v.Invariants[3])
		}
	})
}
