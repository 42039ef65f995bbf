//go:build stack

package fault

import (
	"fmt"
	"testing"

	"seckill/domain"
	"seckill/test/shop"
)

// F45: whoever is refused for a repeat or for the limit takes nothing from those who come after.
// (That a return ends "sold out" needs the cancel.)
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
