//go:build stack

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"seckill/test/shop"
)

// F19: whenever a caller leaves, the purchase either was not made or is finished without him, and the
// same token tells which.
func f19CallersThatLeave(t *testing.T, s *shop.Shop) {
	n := tenth(t, 1000)
	product := onSale(t, s, int64(n), 0)
	crowd := make([]*purchase, n)
	var wg sync.WaitGroup
	for i := range crowd {
		p := &purchase{product: product, user: fmt.Sprintf("u%d", i), token: "t", quantity: 1}
		crowd[i] = p
		wg.Go(func() {
			patience := time.Duration(rand.IntN(int(50 * time.Millisecond))) // #nosec G404: a test's dice
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			p.answer = s.Buy(ctx, product, p.user, p.token, 1)
		})
	}
	wg.Wait()
	left := 0
	for _, p := range crowd {
		if p.answer.Err != nil {
			left++
		}
		p.answer = shop.Answer{}
		converge(t, s, p)
		if p.answer.Status != http.StatusAccepted && p.answer.Status != http.StatusOK {
			t.Errorf("%s asks again: %v", p.user, p.answer)
		}
	}
	if left == 0 {
		t.Error("nobody left")
	}
	holds(t, s, product, int64(n), int64(n), crowd...)
}
