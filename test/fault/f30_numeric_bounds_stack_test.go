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

// F30: a quantity of zero, below zero or beyond every bound changes nothing; neither does such a total.
func f30QuantitiesOutOfBounds(t *testing.T, s *shop.Shop) {
	bad := []string{`0`, `-0`, `-1`, `-5`, `-9223372036854775808`, `9223372036854775807`, `9223372036854775808`, `2147483648`, `1000001`}
	quantitiesNowhere(t, s, bad)
	f30CancelKnowsNoQuantity(t, s, bad)
	f30StockChanges(t, s, bad)
	product := harness.UniqueID(t)
	for _, total := range []string{`-1`, `-9223372036854775808`, `9223372036854775807`, `2147483648`, `"nan"`, `1.5`, `1e3`} {
		if a := s.Admin(http.MethodPut, "/admin/v1/products/"+product, `{"total":`+total+`}`); a.Code() != domain.CodeInvalidRequest {
			t.Errorf("total %s: %v", total, a)
		}
	}
	if _, a := s.Stock(product); a.Status != http.StatusNotFound {
		t.Errorf("a product that was never put on sale: %v", a)
	}
}

// f30StockChanges: neither an operator nor a message changes the stock by such a number, nor to below nothing.
func f30StockChanges(t *testing.T, s *shop.Shop, quantities []string) {
	t.Helper()
	product := onSale(t, s, 10, 0)
	change := func(delta string) shop.Answer {
		return s.Ask(context.Background(), http.MethodPost, s.Operators()+"/admin/v1/products/"+product+"/stock-changes", s.OperatorToken(),
			`{"delta":`+delta+`,"reason":"a test"}`, "Idempotency-Key", harness.UniqueID(t))
	}
	changesNothing(t, s, product, func() {
		for _, delta := range []string{`0`, `-0`, `1000001`, `-1000001`, `-9223372036854775808`, `9223372036854775807`, `9223372036854775808`, `"nan"`, `1.5`, `1e3`} {
			if a := change(delta); a.Code() != domain.CodeInvalidRequest {
				t.Errorf("delta %s: %v", delta, a)
			}
		}
		for _, delta := range []string{`-11`, `-1000000`} {
			if a := change(delta); a.Code() != domain.CodeStockNotEnough {
				t.Errorf("delta %s: %v", delta, a)
			}
		}
		if s.Profile == shop.Stack {
			var messages []string
			for i, q := range quantities {
				messages = append(messages, fmt.Sprintf(`{"v":1,"kind":"withdraw","id":"b%d","sections":[{"product":%q,"epoch":1,"flows":[{"t":"k%d","q":%s,"a":"a1","s":1,"m":1764633600000}]}]}`,
					i, product, i, q))
			}
			parked(t, s, product, messages...)
		}
	})
}

// f30CancelKnowsNoQuantity: what a cancel gives back is what its order took, whatever the caller writes.
func f30CancelKnowsNoQuantity(t *testing.T, s *shop.Shop, quantities []string) {
	t.Helper()
	product := onSale(t, s, 10, 0)
	p := &purchase{product: product, user: "alice", token: "t", quantity: 3}
	if p.buy(s); !p.answer.Accepted() {
		t.Fatalf("%v", p.answer)
	}
	for _, q := range append(quantities, `1`, `7`) {
		path := "/api/v1/products/" + product + "/orders/" + p.token
		a := s.Ask(context.Background(), http.MethodDelete, s.Buyers()+path+"?quantity="+q, s.Token(p.user), `{"quantity":`+q+`}`)
		if a.Status != http.StatusOK || a.Text("quantity") != "3" || a.Text("status") != "cancelled" {
			t.Errorf("cancel with %s: %v", q, a)
		}
	}
	if b := atRest(t, s, product); b.remaining != 10 || b.stock != 10 {
		t.Errorf("after all cancels: %+v", b)
	}
}
