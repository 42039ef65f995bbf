//go:build stack

package fault

import (
	"context"
	"net/http"
	"testing"

	"seckill/domain"
	"seckill/test/shop"
)

// F31: user a:b with token c and user a with token b:c are two purchases; what could join ids in
// another way is refused.
func f31IDsJoined(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 10, 0)
	pair := []*purchase{{product: product, user: "a:b", token: "c", quantity: 1}, {product: product, user: "a", token: "b:c", quantity: 1}}
	for _, p := range pair {
		if p.buy(s); p.answer.Status != http.StatusAccepted || p.answer.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s of %s: %v", p.token, p.user, p.answer)
		}
	}
	changesNothing(t, s, product, func() {
		url := s.Buyers() + "/api/v1/products/" + product + "/orders"
		for _, token := range []string{"a|b", "a/b", "a%3Ab", "a%0Ab", "|", "/", "a b", `"a`, ":a", "-a"} {
			if a := s.Ask(context.Background(), http.MethodPost, url, s.Token("a"), `{"quantity":1}`, "Idempotency-Key", token); a.Code() != domain.CodeInvalidRequest {
				t.Errorf("token %q: %v", token, a)
			}
		}
		for _, sub := range []string{"a|b", "a/b", "a%3Ab", "a\nb", "a b", ":a", ""} {
			if a := s.Ask(context.Background(), http.MethodPost, url, s.TokenOf(sub), `{"quantity":1}`, "Idempotency-Key", "c"); a.Status != http.StatusUnauthorized {
				t.Errorf("sub %q: %v", sub, a)
			}
		}
		for _, path := range []string{product + "%7Cb", product + "%2Fb", product + "%253Ab", product + "%0Ab", product + "%20", product + "%00"} {
			a := s.Ask(context.Background(), http.MethodPost, s.Buyers()+"/api/v1/products/"+path+"/orders", s.Token("a"), `{"quantity":1}`, "Idempotency-Key", "c")
			if a.Code() != domain.CodeInvalidRequest {
				t.Errorf("product %q: %v", path, a)
			}
		}
		if s.Profile == shop.Stack {
			parked(t, s, product, plainMessage(product, "a", "b|c", "1"), plainMessage(product, "a|b", "c", "1"),
				plainMessage(product+"/b", "a", "c", "1"), plainMessage(product, "a\n", "c", "1"))
		}
	})
	holds(t, s, product, 2, 2, pair...)
}
