//go:build stack

package fault

import (
	"net/http"
	"testing"

	"seckill/domain"
	"seckill/test/shop"
)

// F36: of identical purchases one wins and the others get its order; another quantity is a conflict,
// another product or user is a purchase of its own.
func f36SameToken(t *testing.T, s *shop.Shop) {
	product, other := onSale(t, s, 10, 0), onSale(t, s, 10, 0)
	identical := make([]*purchase, tenth(t, 100))
	for i := range identical {
		identical[i] = &purchase{product: product, user: "alice", token: "click", quantity: 2}
	}
	atOnce(s, identical)
	first := 0
	for _, p := range identical {
		if !p.answer.Accepted() || p.answer.Text("quantity") != "2" || p.answer.Text("token") != "click" {
			t.Errorf("an identical click: %v", p.answer)
		}
		if p.answer.Header.Get("Idempotency-Replayed") == "" {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d clicks bought", first)
	}
	changesNothing(t, s, product, func() {
		for _, quantity := range []int64{1, 3, 100} { // also more than there is: the token is looked at first
			p := &purchase{product: product, user: "alice", token: "click", quantity: quantity}
			if p.buy(s); p.answer.Status != http.StatusUnprocessableEntity || p.answer.Code() != domain.CodeTokenReused {
				t.Errorf("the same token for %d: %v", quantity, p.answer)
			}
		}
		again := &purchase{product: product, user: "alice", token: "click", quantity: 2}
		if again.buy(s); again.answer.Status != http.StatusOK || again.answer.Text("status") != "confirmed" {
			t.Errorf("a repeat of what is decided: %v", again.answer)
		}
	})
	elsewhere := &purchase{product: other, user: "alice", token: "click", quantity: 1}
	someone := &purchase{product: product, user: "bob", token: "click", quantity: 1}
	for _, p := range []*purchase{elsewhere, someone} {
		if p.buy(s); p.answer.Status != http.StatusAccepted || p.answer.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("the token of another: %v", p.answer)
		}
	}
	holds(t, s, product, 2, 3, identical[0], someone)
	holds(t, s, other, 1, 1, elsewhere)
}
