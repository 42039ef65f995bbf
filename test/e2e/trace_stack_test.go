//go:build stack

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/application"
	"seckill/test/shop"
)

func trace(t *testing.T, s *shop.Shop, product, user, token string) (v application.TraceView) {
	t.Helper()
	a := s.Admin(http.MethodGet, "/admin/v1/trace?productId="+product+"&uid="+user+"&token="+token, nil)
	if a.Status != http.StatusOK || json.Unmarshal(a.Body, &v) != nil {
		t.Fatalf("trace: %v", a)
	}
	return v
}

// stepsDone is each step that is done, in order, with a "!" where its time is not known.
func stepsDone(v application.TraceView) string {
	var done []string
	for _, step := range v.Steps {
		if step.State == application.TraceDone {
			name := step.Step
			if step.At == nil {
				name += "!"
			}
			done = append(done, name)
		}
	}
	return strings.Join(done, " ")
}

// An operator follows one purchase from the gate to the ledger and back, and through its cancel.
func TestAPurchaseIsTracedThroughEveryPart(t *testing.T) {
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile)
		s.Start()
		product := onSale(t, s, 10)
		if a := s.Buy(t.Context(), product, "alice", "t1", 2); !a.Accepted() {
			t.Fatal(a)
		}
		const whole = "deducted stored! committed! delivered! order-row stock-flow settled!"
		var v application.TraceView
		shop.Eventually(t, time.Minute, "the purchase is finished", func() (bool, string) {
			v = trace(t, s, product, "alice", "t1")
			return strings.HasPrefix(v.Next, "Nothing"), v.Next
		})
		if stepsDone(v) != whole || v.Status != application.OrderConfirmed || len(v.Missing)+len(v.Unread) != 0 {
			t.Errorf("%s: %+v", stepsDone(v), v)
		}
		if *v.Flow.From != 10 || *v.Flow.To != 8 || v.Flow.Change != -2 || v.Flow.Attempt == "" || v.Flow.Attempt != v.Order.Attempt ||
			v.Flow.Sequence != v.Order.Sequence || len(v.Order.StockFlows) != 1 || v.Order.StockFlows[0].OpType != "SECKILL" {
			t.Errorf("flow %+v, order %+v", v.Flow, v.Order)
		}
		if a := s.Cancel(product, "alice", "t1"); a.Status != http.StatusOK {
			t.Fatal(a)
		}
		shop.Eventually(t, time.Minute, "the cancel is finished", func() (bool, string) {
			v = trace(t, s, product, "alice", "t1")
			return strings.HasPrefix(v.Next, "Nothing"), v.Next
		})
		if want := strings.Replace(whole, "settled", "given-back settled", 1); stepsDone(v) != want || v.Status != application.OrderCancelled {
			t.Errorf("%s: %+v", stepsDone(v), v)
		}
		if a := s.Admin(http.MethodGet, "/admin/v1/trace?productId="+product+"&uid=alice&token=t2", nil); a.Code() != "order-not-found" {
			t.Error(a)
		}
		if a := s.Admin(http.MethodGet, "/admin/v1/trace?productId=nothing&uid=alice&token=t1", nil); a.Code() != "product-not-found" {
			t.Error(a)
		}
		if a := s.Admin(http.MethodGet, "/admin/v1/products?limit=1", nil); !strings.Contains(string(a.Body), product) {
			t.Error(a)
		}
		s.HoldsEventually(product)
		s.Stop()
	})
}
