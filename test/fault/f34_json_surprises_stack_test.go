//go:build stack

package fault

import (
	"net/http"
	"strings"
	"testing"

	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F34: one strict document, or nothing happens.
func f34JSONSurprises(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 10, 0)
	changesNothing(t, s, product, func() {
		for _, body := range []string{`{"quantity":1,"quantity":7}`, `{"quantity":1,"QUANTITY":7}`, `{"QUANTITY":7}`, `{"Quantity":7}`,
			`{"quantity":1}{"quantity":9}`, `{"quantity":1} {`, `{"quantity":null}`, `{}`, `null`, `[]`, `[{"quantity":7}]`, ``, ` `,
			`{"quantity":1,"uid":9007199254740993}`, `{"quantity":1,"productId":"other"}`, `{"quantity":1,"\u0071uantity":7}`,
			"\xef\xbb\xbf" + `{"quantity":7}`, `{"quantity":7`, `{"quantity":1,"x":` + strings.Repeat("[", 1900) + strings.Repeat("]", 1900) + `}`} {
			refused(t, s, product, body, http.StatusBadRequest)
		}
		deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
		refused(t, s, product, deep, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
		refused(t, s, product, `{"quantity":7,"x":`+deep+`}`, http.StatusBadRequest, http.StatusRequestEntityTooLarge)
		// The service does not read such a body to its end, so the client may meet a closed connection first.
		huge := s.Ask(t.Context(), http.MethodPost, s.Buyers()+"/api/v1/products/"+product+"/orders", s.Token("alice"),
			`{"quantity":7}`+strings.Repeat(" ", 10<<20), "Idempotency-Key", "huge")
		if huge.Err == nil && huge.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("10 MB: %v", huge)
		}
		if s.Profile == shop.Stack {
			one := plainMessage(product, "alice", "m1", "1")
			parked(t, s, product, one+one, strings.Replace(one, `"quantity":1`, `"quantity":1,"quantity":7`, 1),
				strings.Replace(one, `"quantity":1`, `"quantity":1,"QUANTITY":7`, 1), strings.Replace(one, `"alice"`, `9007199254740993`, 1),
				strings.Replace(one, `,"quantity":1`, ``, 1), "["+one+"]")
		}
	})
	unknown := harness.UniqueID(t)
	for _, body := range []string{`{"total":5,"total":7}`, `{"total":5,"TOTAL":7}`, `{"total":5}{"total":7}`, `{}`, `null`, `[]`, ``, `{"total":null}`} {
		if a := s.Admin(http.MethodPut, "/admin/v1/products/"+unknown, body); a.Code() != domain.CodeInvalidRequest {
			t.Errorf("put on sale by %q: %v", body, a)
		}
	}
	good := &purchase{product: product, user: "alice", token: "good", quantity: 1}
	good.buy(s)
	holds(t, s, product, 1, 1, good)
}
