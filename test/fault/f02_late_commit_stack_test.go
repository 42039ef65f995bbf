//go:build stack

package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	"seckill/test/harness"
	"seckill/test/shop"
)

// checkWindow is longer than the harness' broker waits before it asks for the fate of a half.
const checkWindow = 4 * time.Second

// F02, second form: the same body twice, with message ids of their own, is one order.
func f02SameBodyTwice(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 1000, 0)
	var bodies [][]byte
	n := tenth(t, 100)
	for i := range n {
		for _, body := range []string{plainMessage(product, fmt.Sprintf("plain%d", i), "t", "1"),
			ownMessage(t, product, fmt.Sprintf("own%d", i), "t", "1")} {
			bodies = append(bodies, []byte(body), []byte(body))
		}
	}
	s.Publish(bodies...)
	for i := range n {
		s.WaitOrder(product, fmt.Sprintf("plain%d", i), "t", "confirmed")
		s.WaitOrder(product, fmt.Sprintf("own%d", i), "t", "confirmed")
	}
	waitLag(t, s)
	holds(t, s, product, int64(2*n), int64(2*n))
}

// F02: Redis stands still for longer than the broker waits, so the check-back and the late commit may
// both commit; whoever was accepted has one order.
func f02LateCommit(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	product := onSale(t, s, 10_000, 0)
	var all []*purchase
	for round := range 2 {
		home, accepted := steady(s, product, fmt.Sprintf("u%d-", round))
		shop.Eventually(t, time.Minute, "a burst under way", func() (bool, string) {
			return accepted() >= 20, fmt.Sprint(accepted())
		})
		pauseRedis(t, servers, checkWindow)
		all = append(all, home()...)
	}
	for _, p := range all {
		converge(t, s, p)
	}
	waitLag(t, s)
	holds(t, s, product, int64(len(all)), int64(len(all)), all...)
}

// pauseRedis holds Redis still for so long: the fault itself.
func pauseRedis(t *testing.T, servers *harness.Stack, long time.Duration) {
	t.Helper()
	if err := servers.Redis.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	<-ctx.Done()
	if err := servers.Redis.Cont(); err != nil {
		t.Fatal(err)
	}
}
