//go:build stack

package fault

import (
	"fmt"
	"testing"

	"seckill/domain"
	"seckill/test/shop"
)

// F44: of all who want the last unit one gets it; mixed quantities never take more than there is.
func f44LastUnit(t *testing.T, s *shop.Shop) {
	for _, sale := range []struct{ stock, most int64 }{{1, 1}, {7, 3}} {
		product := onSale(t, s, sale.stock, 0)
		crowd := make([]*purchase, tenth(t, 500))
		for i := range crowd {
			crowd[i] = &purchase{product: product, user: fmt.Sprintf("u%d", i), token: "t", quantity: 1 + int64(i)%sale.most}
		}
		atOnce(s, crowd)
		var orders, units int64
		for _, p := range crowd {
			switch {
			case p.answer.Accepted():
				orders++
				units += p.quantity
			case p.answer.Code() != domain.CodeStockNotEnough:
				t.Errorf("%s: %v", p.user, p.answer)
			}
		}
		if units != sale.stock { // there are enough who want one
			t.Errorf("%d of %d units sold", units, sale.stock)
		}
		holds(t, s, product, orders, units, crowd...)
	}
}
