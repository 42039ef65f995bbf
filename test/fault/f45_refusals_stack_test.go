//go:build stack

package fault

import (
	"fmt"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/shop"
)

// F45: whoever is refused for a repeat or for the limit takes nothing from those who come after.
func f45RefusalsTakeNothing(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 10, 1)
	clicks := make([]*purchase, tenth(t, 100))
	for i := range clicks {
		clicks[i] = &purchase{product: product, user: "alice", token: fmt.Sprintf("click%d", i), quantity: 1}
	}
	atOnce(s, clicks)
	accepted := 0
	for _, p := range clicks {
		if p.answer.Accepted() {
			accepted++
		} else if p.answer.Code() != domain.CodeLimitReached {
			t.Errorf("%s: %v", p.token, p.answer)
		}
	}
	if accepted != 1 {
		t.Errorf("alice bought %d times", accepted)
	}
	all := clicks
	for i := range 9 {
		p := &purchase{product: product, user: fmt.Sprintf("u%d", i), token: "t", quantity: 1}
		if p.buy(s); !p.answer.Accepted() {
			t.Errorf("%s: %v", p.user, p.answer)
		}
		all = append(all, p)
	}
	late := &purchase{product: product, user: "late", token: "t", quantity: 1}
	if late.buy(s); late.answer.Code() != domain.CodeStockNotEnough {
		t.Errorf("after the last unit: %v", late.answer)
	}
	holds(t, s, product, 10, 10, append(all, late)...)
}

// F45: "sold out" is computed and not remembered: what one buyer gives back, whichever instance takes it, the
// next one gets, at every instance.
func f45AReturnEndsSoldOut(t *testing.T, instances ...*shop.Shop) {
	product := onSale(t, instances[0], 2, 0)
	holders := crowdOf(product, "u", 2)
	for _, p := range holders {
		if p.buy(instances[0]); !p.answer.Accepted() {
			t.Fatalf("%s: %v", p.user, p.answer)
		}
	}
	for round := range 2 * len(instances) {
		giver, seller := instances[round/2%len(instances)], instances[(round+1)%len(instances)]
		next := &purchase{product: product, user: fmt.Sprintf("next%d", round), token: "t", quantity: 1}
		for _, s := range instances {
			if next.buy(s); next.answer.Code() != domain.CodeStockNotEnough {
				t.Fatalf("sold out, and %v", next.answer)
			}
		}
		cancelled(t, giver, holders[0])
		boughtAtLast(t, seller, next)
		holders = append(holders[1:], next)
	}
	holds(t, instances[0], product, 2, 2, holders...)
}

func TestF45AReturnEndsSoldOutOnEveryInstance(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	other := s.Another()
	s.Start()
	other.Start()
	f45AReturnEndsSoldOut(t, s, other)
}

// cancelled cancels a purchase that was accepted; asked again as long as the answer is none that stands.
func cancelled(t *testing.T, s *shop.Shop, p *purchase) {
	t.Helper()
	shop.Eventually(t, time.Minute, "the cancel of "+p.token+" of "+p.user, func() (bool, string) {
		a := s.Cancel(p.product, p.user, p.token)
		if a.Definite() && (!a.Accepted() || a.Text("status") != "cancelled" || a.Text("quantity") != fmt.Sprint(p.quantity)) {
			t.Fatalf("cancel of %s of %s: %v", p.token, p.user, a)
		}
		return a.Definite(), a.String()
	})
}

// boughtAtLast asks with the same token until the purchase is accepted: what a refusal refuses may win later.
func boughtAtLast(t *testing.T, s *shop.Shop, p *purchase) {
	t.Helper()
	shop.Eventually(t, time.Minute, "a unit for "+p.user, func() (bool, string) {
		p.buy(s)
		return p.answer.Accepted(), p.answer.String()
	})
}
