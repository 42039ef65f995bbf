//go:build stack

package fault

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F06: a broker that could not flush in time answers without an error; the buyer hears "not known", the
// flow stays open, and once the broker is put right the order appears. The broker's flush races its own
// deadline, so a purchase may be accepted all the same; the case goes on until enough were not.
func f06NilError(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	product := onSale(t, s, int64(10*tenth(t, 100)), 0)
	set := func(milliseconds string) {
		t.Helper()
		if err := harness.SetBroker(context.Background(), servers.Broker.Addr, "syncFlushTimeout", milliseconds); err != nil {
			t.Fatal(err)
		}
	}
	set("0")
	var crowd, unknown []*purchase
	for n := tenth(t, 100); len(unknown) < n && len(crowd) < 10*n; {
		p := &purchase{product: product, user: fmt.Sprint("u", len(crowd)), token: "t", quantity: 1}
		p.buy(s)
		crowd = append(crowd, p)
		switch {
		case p.answer.Status == http.StatusServiceUnavailable && p.answer.Code() == domain.CodeOutcomeUnknown:
			unknown = append(unknown, p)
			if a := s.Order(product, p.user, p.token); a.Text("status") != "pending" {
				t.Errorf("the order: %v", a)
			}
		case !p.answer.Accepted():
			t.Errorf("while the broker does not flush in time: %v", p.answer)
		}
	}
	if len(unknown) == 0 {
		t.Errorf("the broker flushed %d halves within no time", len(crowd))
	}
	set("5000")
	for _, p := range unknown {
		s.WaitOrder(product, p.user, p.token, "confirmed")
		p.buy(s)
		if p.answer.Status != http.StatusOK {
			t.Errorf("the same token: %v", p.answer)
		}
	}
	holds(t, s, product, int64(len(crowd)), int64(len(crowd)), crowd...)
}
