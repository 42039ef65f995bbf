//go:build stack

package fault

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/shop"
)

// F03: a message is asked about while the deduct of its token is still on its way. Whoever is first at the gate
// decides: a tombstone that refuses the token for good, or a flow that commits the message. (Only a
// message of another producer can come before its deduct: the service's own are sent after it.)
func TestF03ACheckBackThatComesBeforeTheDeduct(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Start()
	races := tenth(t, 100)
	product := onSale(t, s, int64(10*races), 0)
	crowd := crowdOf(product, "race", races)
	late := &purchase{product: product, user: "late", token: "t", quantity: 1}
	early := &purchase{product: product, user: "early", token: "t", quantity: 1}
	early.buy(s)
	for _, p := range append([]*purchase{late, early}, crowd...) {
		s.LeaveHalf([]byte(plainMessage(product, p.user, p.token, "1")))
	}
	var all sync.WaitGroup
	for i, p := range crowd {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Second / time.Duration(races)) // over the time in which they are asked about
			p.buy(s)
		})
	}
	all.Wait()
	s.WaitOrder(product, late.user, late.token, "rejected")
	late.buy(s)
	if late.answer.Status != http.StatusConflict || late.answer.Code() != domain.CodeTokenRefused {
		t.Errorf("a token whose message was rolled back: %v", late.answer)
	}
	orders := int64(0)
	for _, p := range append(crowd, early) {
		converge(t, s, p)
		if p.answer.Accepted() {
			orders++
			s.WaitOrder(product, p.user, p.token, "confirmed")
		} else {
			s.WaitOrder(product, p.user, p.token, "rejected")
		}
	}
	v := s.HoldsEventually(product)
	if v.Confirmed != orders || !early.answer.Accepted() {
		t.Errorf("%d orders, %d accepted; early: %v", v.Confirmed, orders, early.answer)
	}
	t.Logf("%d of %d races went to the buyer", orders-1, races)
}
