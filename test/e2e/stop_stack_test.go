//go:build stack

package e2e

import (
	"errors"
	"syscall"
	"testing"

	"seckill/test/shop"
)

// An ordered stop under load answers every caller who is inside; who comes after it finds no one, and
// learns the truth when the service is back.
func TestAnOrderedStopUnderLoadAnswersEveryone(t *testing.T) {
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile)
		s.Start()
		c := letIn(s, onSale(t, s, 1500), 48)
		c.waitAccepted(t, 500)
		s.Signal(syscall.SIGTERM)
		s.WaitEnd() // with exit code 0
		c.goHome()
		torn := map[*purchase]error{} // over a connection that was closed; the request may not have been read
		for _, p := range c.purchases {
			if p.answer.Err != nil && !errors.Is(p.answer.Err, syscall.ECONNREFUSED) {
				torn[p] = p.answer.Err
			}
		}
		s.Start()
		s.WaitOpen(c.purchases[0].product)
		c.askAgain(t)
		for p, err := range torn {
			if p.answer.Header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s was inside and got no answer from a service that stopped in order: %v", p.user, err)
			}
		}
		nothingLost(t, s, c)
	})
}
