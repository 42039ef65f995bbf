package echohttp

import (
	"context"
	"net/http"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

func (f *fixture) askOrder(t testing.TB, query string) *http.Request {
	t.Helper()
	return request("GET", "/api/v1/products/p1/orders/k1"+query, "", "Authorization", "Bearer "+f.token(t, "alice", "order:read"))
}

func TestAnOrderIsAwaitedAsLongAsTheBuyerSays(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.RequestTimeout = time.Second })
	var waited time.Duration
	plain := f.await
	f.await = func(ctx context.Context, k domain.Key, wait time.Duration) (application.OrderView, error) {
		waited = wait
		if until, there := ctx.Deadline(); !there || time.Until(until) <= wait {
			t.Errorf("no time is left to answer in: %v", time.Until(until))
		}
		return plain(ctx, k, wait)
	}
	for query, wait := range map[string]time.Duration{"?wait=10s": 10 * time.Second, "?wait=30s": 30 * time.Second, "?wait=250ms": 250 * time.Millisecond,
		"?wait=0s": 0, "": 0} {
		waited = 0
		res := serve(t, f.buyers, f.askOrder(t, query))
		if got := decodeInto[orderBody](t, res); res.StatusCode != 200 || got.Status != "confirmed" || waited != wait {
			t.Errorf("%s: %d %+v, waited %v", query, res.StatusCode, got, waited)
		}
	}
	for _, query := range []string{"?wait=", "?wait=10", "?wait=31s", "?wait=60s", "?wait=-1s", "?wait=1h", "?wait=1.5s", "?wait=1s&wait=2s", "?wait=10000ms", "?wait=now"} {
		p := wantProblem(t, serve(t, f.buyers, f.askOrder(t, query)), 400, domain.CodeInvalidRequest)
		if len(p.Errors) != 1 || p.Errors[0].In != "query" || p.Errors[0].Pointer != "wait" {
			t.Errorf("%s: %+v", query, p.Errors)
		}
	}
	f.await = func(context.Context, domain.Key, time.Duration) (application.OrderView, error) {
		return application.OrderView{}, domain.ErrOrderNotFound
	}
	wantProblem(t, serve(t, f.buyers, f.askOrder(t, "?wait=10s")), 404, domain.CodeOrderNotFound)
}

// Whoever waits when the door is stopped is answered with the order as it is, and holds nothing up.
func TestWaitingEndsWithTheDoor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	entered := make(chan struct{})
	f.await = func(ctx context.Context, k domain.Key, _ time.Duration) (application.OrderView, error) {
		close(entered)
		<-ctx.Done()
		return application.OrderView{Key: k, Quantity: 1, Status: application.OrderPending}, nil
	}
	r := f.askOrder(t, "?wait=30s")
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", listening(t, f)
	told := make(chan string, 1)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			told <- err.Error()
			return
		}
		defer func() { _ = res.Body.Close() }()
		told <- decodeInto[orderBody](t, res).Status
	}()
	<-entered
	if err := f.buyers.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-told; got != application.OrderPending {
		t.Errorf("told %q", got)
	}
}
