//go:build stack

package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill/test/harness"
	"seckill/test/shop"
)

// F12: bodies that are no message are parked where an operator sees them, and hold up nobody: the good
// message behind them on each queue is applied.
func f12Poison(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 100, 0)
	unknown := harness.UniqueID(t)
	poison := []string{ // the broker itself refuses a body of no bytes
		" ", "null", "[]", `"text"`, "\x00\xff\xfe", `{"productId":"` + product + `","uid":`,
		plainMessage(product, "poison", "text", `"1"`), plainMessage(product, "poison", "none", "null"),
		plainMessage(unknown, "poison", "unknown", "1"), ownMessage(t, unknown, "poison", "unknown", "1"),
		`{"v":1,"kind":"deduct"}`, `{"v":99,"kind":"deduct","id":"` + unknown + `","sections":[]}`,
		`{"v":1,"kind":"no-such-kind","id":"` + unknown + `"}`,
		strings.Repeat("{", 1<<20), strings.Repeat("[", 1<<20),
	}
	var bodies [][]byte
	for _, body := range poison {
		for range queues { // one after another, so each queue gets one
			bodies = append(bodies, []byte(body))
		}
	}
	for i := range queues {
		bodies = append(bodies, []byte(plainMessage(product, fmt.Sprintf("good%d", i), "t", "1")))
	}
	s.Publish(bodies...)
	// A half that is no message stops no check-back of those behind it.
	leaveHalves(t, s, "half", "null", "[]", plainMessage(product, "poison", "half", `"1"`), ownMessage(t, product, "good", "half", "1"))
	for i := range queues {
		s.WaitOrder(product, fmt.Sprintf("good%d", i), "t", "confirmed")
	}
	shop.Eventually(t, 30*time.Second, "all poison is listed", func() (bool, string) {
		listed := parkedBodies(t, s)
		for _, body := range poison {
			shown := strings.ToValidUTF8(body[:min(len(body), 1024)], "\uFFFD")
			if listed[shown] < queues { // halves that are no message are parked as well
				return false, fmt.Sprintf("%.80q is parked %d times", body, listed[shown])
			}
		}
		return true, ""
	})
	s.WaitOrder(product, "good", "half", "confirmed")
	waitLag(t, s)
	holds(t, s, product, queues+1, queues+1)
}
