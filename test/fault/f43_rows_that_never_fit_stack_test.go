//go:build stack

package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill/application"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F43: a message whose row can never be written is decided once, gives back what it holds, and blocks
// no queue.
func f43RowsThatNeverFit(t *testing.T, s *shop.Shop) {
	product, other := onSale(t, s, 10, 0), onSale(t, s, 10, 0)
	unknown, long := harness.UniqueID(t), strings.Repeat("t", 300)
	bad := []string{plainMessage(product, "greedy", "plain", "11"), plainMessage(unknown, "u", "t", "1"),
		plainMessage(product, "long", long, "1"), ownMessage(t, product, "long", long, "1")}
	var bodies [][]byte
	for _, body := range bad {
		for range queues {
			bodies = append(bodies, []byte(body))
		}
	}
	for i := range queues {
		bodies = append(bodies, []byte(plainMessage(product, fmt.Sprintf("good%d", i), "t", "1")))
	}
	s.Publish(bodies...)
	for i := range queues {
		s.WaitOrder(product, fmt.Sprintf("good%d", i), "t", "confirmed")
	}
	s.WaitOrder(product, "greedy", "plain", application.OrderRejected)
	parked(t, s, unknown, bad[1])
	parked(t, s, product, bad[2:]...)
	holds(t, s, product, queues, queues)

	// In the service's own form it says that the gate gave more than there was: the gate is rebuilt.
	s.Publish([]byte(ownMessage(t, other, "greedy", "own", "11")))
	s.WaitOrder(other, "greedy", "own", application.OrderRejected)
	shop.Eventually(t, 90*time.Second, "the gate is rebuilt", func() (bool, string) {
		v, a := s.Stock(other)
		return v.Epoch > 1 && v.State == "open" && v.Gate != nil && !v.Gate.Shut, a.String()
	})
	p := &purchase{product: other, user: "after", token: "t", quantity: 10}
	p.buy(s)
	converge(t, s, p)
	holds(t, s, other, 1, 10, p)
}
