//go:build stack

package fault

import (
	"context"
	"net/http"
	"testing"

	"seckill/domain"
	"seckill/test/shop"
)

// F32: ids are compared byte by byte, on the way and in the ledger; what no id can hold is refused.
func f32IDsThatLookAlike(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 20, 0)
	other := "T" + product[1:] // differs by case alone
	s.OpenSale(other, 20, 0)
	var own, others []*purchase
	for _, user := range []string{"bob", "Bob"} {
		for _, token := range []string{"Abc", "abc", "ABC", "abc."} {
			own = append(own, &purchase{product: product, user: user, token: token, quantity: 1})
			others = append(others, &purchase{product: other, user: user, token: token, quantity: 2})
		}
	}
	atOnce(s, append(append([]*purchase{}, own...), others...))
	for _, p := range append(append([]*purchase{}, own...), others...) {
		if p.answer.Status != http.StatusAccepted || p.answer.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s of %s: %v", p.token, p.user, p.answer)
		}
	}
	changesNothing(t, s, product, func() {
		url := s.Buyers() + "/api/v1/products/" + product + "/orders"
		for _, token := range []string{"Ábc", `"abc "`, "😀", "😎", "\u00e9", "e\u0301", "abc\u200b", "ａbc"} {
			if a := s.Ask(context.Background(), http.MethodPost, url, s.Token("bob"), `{"quantity":1}`, "Idempotency-Key", token); a.Code() != domain.CodeInvalidRequest {
				t.Errorf("token %q: %v", token, a)
			}
			if a := s.Ask(context.Background(), http.MethodPost, url, s.TokenOf(token), `{"quantity":1}`, "Idempotency-Key", "abc"); a.Status != http.StatusUnauthorized {
				t.Errorf("sub %q: %v", token, a)
			}
		}
		if s.Profile == shop.Stack {
			parked(t, s, product, plainMessage(product, "bob", "abc ", "1"), plainMessage(product, "bob ", "abc", "1"),
				plainMessage(product, "bob", "Ábc", "1"), plainMessage(product, "bob", "😀", "1"), plainMessage(product+" ", "bob", "abc", "1"))
		}
	})
	orders := int64(len(own))
	if s.Profile == shop.Stack { // the other road in: two that differ by case, and one that is known already
		s.Publish([]byte(plainMessage(product, "carol", "Abc", "1")), []byte(plainMessage(product, "carol", "abc", "1")),
			[]byte(plainMessage(product, "bob", "Abc", "1")))
		orders += 2
		for _, token := range []string{"Abc", "abc"} {
			s.WaitOrder(product, "carol", token, "confirmed")
		}
	}
	holds(t, s, product, orders, orders, own...)
	holds(t, s, other, int64(len(others)), 2*int64(len(others)), others...)
}
