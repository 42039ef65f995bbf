//go:build stack

package fault

import (
	"context"
	"net/http"
	"testing"

	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F06: a broker that could not flush in time answers without an error; the buyer hears "not known", the
// flow stays open, and once the broker is put right the order appears.
func f06NilError(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	product := onSale(t, s, 100, 0)
	set := func(milliseconds string) {
		t.Helper()
		if err := harness.SetBroker(context.Background(), servers.Broker.Addr, "syncFlushTimeout", milliseconds); err != nil {
			t.Fatal(err)
		}
	}
	set("0")
	crowd := crowdOf(product, "u", tenth(t, 100))
	atOnce(s, crowd)
	for _, p := range crowd {
		if p.answer.Status != http.StatusServiceUnavailable || p.answer.Code() != domain.CodeOutcomeUnknown {
			t.Errorf("while the broker does not flush in time: %v", p.answer)
		}
		if a := s.Order(product, p.user, p.token); a.Text("status") != "pending" {
			t.Errorf("the order: %v", a)
		}
	}
	if v, a := s.Stock(product); v.InFlight == nil || *v.InFlight != int64(len(crowd)) {
		t.Errorf("not every flow is open: %v", a)
	}
	set("5000")
	for _, p := range crowd {
		s.WaitOrder(product, p.user, p.token, "confirmed")
		p.buy(s)
		if p.answer.Status != http.StatusOK {
			t.Errorf("the same token: %v", p.answer)
		}
	}
	holds(t, s, product, int64(len(crowd)), int64(len(crowd)), crowd...)
}
