//go:build stack

package fault

import (
	"net/http"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/shop"
)

// F18: a script that ran, and whose reply came late or not at all, has taken its units once; the caller
// hears "accepted", or "not known" and then "accepted" for the same token.
func TestF18ALostReplyOfTheScriptBuysOnce(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	wire := shop.NewWire(t, s.Redis)
	s.Set("SECKILL_REDIS__ADDRS=" + wire.Addr())
	s.Start()
	product := onSale(t, s, 100, 0)
	var all []*purchase
	for _, loss := range []struct {
		user  string
		times int
		hold  time.Duration
		first int // the answer of the first call; 0 where both are true
	}{
		{"cut", 1, 0, http.StatusAccepted},
		{"cutboth", 2, 0, http.StatusServiceUnavailable},
		{"slow", 1, 700 * time.Millisecond, http.StatusAccepted},
		{"late", 1, 3 * time.Second, 0}, // longer than the driver waits
	} {
		before := atRest(t, s, product)
		wire.LoseReplies(loss.user, loss.times, loss.hold)
		p := &purchase{product: product, user: loss.user, token: "t", quantity: 1}
		p.buy(s)
		if loss.first != 0 && p.answer.Status != loss.first {
			t.Errorf("%s: %v", loss.user, p.answer)
		}
		if !p.answer.Accepted() && p.answer.Code() != domain.CodeOutcomeUnknown {
			t.Errorf("%s: %v", loss.user, p.answer)
		}
		shop.Eventually(t, 10*time.Second, "the replies are lost", func() (bool, string) {
			return wire.Lost() == int64(loss.times), loss.user
		})
		converge(t, s, p)
		if !p.answer.Accepted() {
			t.Errorf("%s asks again: %v", loss.user, p.answer)
		}
		after := atRest(t, s, product)
		if after.remaining != before.remaining-1 || after.stock != before.stock-1 || after.epoch != before.epoch {
			t.Errorf("%s: %+v became %+v", loss.user, before, after)
		}
		all = append(all, p)
	}
	holds(t, s, product, int64(len(all)), int64(len(all)), all...)
}
