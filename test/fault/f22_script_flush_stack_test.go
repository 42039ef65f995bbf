//go:build stack

package fault

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F22: a server that has forgotten the scripts is not noticed by any caller; one that was started
// again has its products rebuilt, and says nothing else until then.
func TestF22ScriptsAreForgottenAndRedisStartsAgain(t *testing.T) {
	t.Parallel()
	servers, err := harness.Start(t.Context(), harness.Parts{Redis: true}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	s := shop.New(t, shop.Stack, "SECKILL_REDIS__ADDRS="+servers.Redis.Addr)
	s.Start()
	client := redis.NewClient(&redis.Options{Addr: servers.Redis.Addr})
	t.Cleanup(func() { _ = client.Close() })
	flush := func() {
		if err := client.ScriptFlush(context.Background()).Err(); err != nil {
			t.Error(err)
		}
	}

	product := onSale(t, s, 10_000, 0)
	var all []*purchase
	accepted := func(p *purchase) {
		if p.answer.Status != http.StatusAccepted {
			t.Errorf("%s: %v", p.user, p.answer)
		}
		all = append(all, p)
	}
	for i := range tenth(t, 100) {
		flush()
		p := &purchase{product: product, user: fmt.Sprintf("one%d", i), token: "t", quantity: 1}
		p.buy(s)
		accepted(p)
	}
	done := make(chan struct{})
	flushed := make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				flushed <- n
				return
			default:
				flush()
			}
		}
	}()
	for round := range tenth(t, 100) { // a crowd of 40 at a time
		crowd := make([]*purchase, 40)
		for i := range crowd {
			crowd[i] = &purchase{product: product, user: fmt.Sprintf("burst%d-%d", round, i), token: "t", quantity: 1}
		}
		atOnce(s, crowd)
		for _, p := range crowd {
			accepted(p)
		}
	}
	close(done)
	t.Logf("flushed %d times during the burst", <-flushed)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := servers.Redis.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	after := &purchase{product: product, user: "after", token: "t", quantity: 1}
	rebuilding := 0
	shop.Eventually(t, 2*time.Minute, "the product is reopened", func() (bool, string) {
		after.buy(s)
		if after.answer.Status == http.StatusServiceUnavailable && after.answer.Code() == domain.CodeRebuilding {
			rebuilding++
		} else if after.answer.Status != http.StatusAccepted {
			t.Errorf("while it is rebuilt: %v", after.answer)
		}
		return after.answer.Accepted(), after.answer.String()
	})
	if rebuilding == 0 {
		t.Error("the restart was not noticed")
	}
	all = append(all, after)
	holds(t, s, product, int64(len(all)), int64(len(all)), all...)
}
