//go:build stack

package fault

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill/test/harness"
	"seckill/test/shop"
)

// startLimit is longer than the time that a start may take: whatever lived in its context is dead by then.
const startLimit = 20 * time.Second

// F53: the consumer and the tickers outlive the context of the start.
func f53OutlivesTheStart(t *testing.T, s *shop.Shop, started time.Time) {
	shop.Eventually(t, time.Minute, "the service is up for longer than a start may take", func() (bool, string) {
		return time.Since(started) > startLimit, time.Since(started).String()
	})
	product := onSale(t, s, 10, 0)
	p := &purchase{product: product, user: "u", token: "t", quantity: 1}
	p.buy(s)
	s.WaitOrder(product, "u", "t", "confirmed")
	holds(t, s, product, 1, 1, p)
}

// F53: a stop while purchases hang on Redis answers each buyer, or the same token asked again after the
// next start converges.
func f53StopWhileRedisHangs(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	product := onSale(t, s, 1000, 0)
	if err := servers.Redis.Stop(); err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { written.Add(1) }})
	crowd := crowdOf(product, "u", tenth(t, 1000))
	var answered sync.WaitGroup
	for _, p := range crowd {
		answered.Go(func() { p.answer = s.Buy(ctx, p.product, p.user, p.token, p.quantity) })
	}
	shop.Eventually(t, 10*time.Second, "every purchase hangs", func() (bool, string) {
		return written.Load() >= int64(len(crowd)), fmt.Sprint(written.Load())
	})
	s.Signal(syscall.SIGTERM)
	answered.Wait()
	if err := servers.Redis.Cont(); err != nil {
		t.Fatal(err)
	}
	s.WaitEnd()
	torn := 0
	for _, p := range crowd {
		if p.answer.Err != nil {
			torn++
		}
	}
	t.Logf("%d of %d callers have no answer", torn, len(crowd))
	s.Start()
	s.WaitOpen(product)
	for _, p := range crowd {
		converge(t, s, p)
	}
	holds(t, s, product, int64(len(crowd)), int64(len(crowd)), crowd...)
}

// F53: without one of its servers the service does not start: it says why, and ends.
func TestF53NoStartWithoutItsServers(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	for name, setting := range map[string]string{
		"Redis":    "SECKILL_REDIS__ADDRS=" + nobody,
		"broker":   "SECKILL_ROCKETMQ__NAME_SERVERS=" + nobody,
		"database": "SECKILL_DATABASE__DSN=nobody:nothing@tcp(" + nobody + ")/none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shop.New(t, shop.Stack)
			s.Set(setting)
			err := s.TryStart()
			if code := shop.ExitCode(err); code != exitDependency {
				t.Errorf("exit code %d: %.600v", code, err)
			}
		})
	}
}

// exitDependency is the exit code for a dependency that is not reachable.
const exitDependency = 3
