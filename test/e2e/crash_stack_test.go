//go:build stack

package e2e

import (
	"testing"

	"seckill/test/shop"
)

// A process that dies amid a burst loses nothing: every purchase that was answered 202 is an order, and
// whoever got no answer learns the truth by asking again.
func TestAKilledServiceKeepsWhatItPromised(t *testing.T) {
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile)
		s.Start()
		var crowds []*crowd
		for _, kill := range []struct{ at, total int64 }{{1, 500}, {300, 2000}, {900, 1000}} {
			c := letIn(s, onSale(t, s, kill.total), 48)
			c.waitAccepted(t, kill.at)
			s.Kill()
			c.goHome()
			s.Start()
			s.WaitOpen(c.purchases[0].product)
			_, _, unknown := c.count()
			t.Logf("killed at %d accepted: %d without an answer", c.accepted.Load(), unknown)
			c.askAgain(t)
			crowds = append(crowds, c)
		}
		nothingLost(t, s, crowds...)
	})
}
