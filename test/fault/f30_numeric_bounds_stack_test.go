//go:build stack

package fault

import (
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
