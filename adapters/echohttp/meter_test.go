package echohttp

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// tally is a meter that remembers.
type tally struct {
	mu    sync.Mutex
	notes map[string]int
}

func (m *tally) Route(method, route string) func(int, time.Duration) {
	return func(status int, took time.Duration) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if took < 0 {
			panic("time runs backwards")
		}
		m.notes[fmt.Sprint(method, " ", route, " ", status)]++
	}
}

// Whatever a client makes up, it cannot make a route or a method of its own.
func TestEveryAnswerIsMeteredOnceUnderItsRouteOrAsUnmatched(t *testing.T) {
	t.Parallel()
	m := &tally{notes: map[string]int{}}
	f := newFixture(t, func(c *Config) { c.Meter = m })
	serve(t, f.buyers, f.purchase(t, "p1", "t1", `{"quantity":1}`))
	serve(t, f.buyers, f.purchase(t, "p2", "", `{"quantity":1}`))
	serve(t, f.buyers, request("GET", "/api/v1/products/p1/orders/t1/", ""))
	serve(t, f.buyers, request("GET", "/made/up", ""))
	serve(t, f.buyers, request("GET", "/made/up/too", ""))
	serve(t, f.buyers, request("BREW", "/healthz", ""))
	serve(t, f.buyers, request("DELETE", "/healthz", ""))
	serve(t, f.operators, request("GET", "/metrics", ""))
	serve(t, f.operators, request("GET", "/metrics", "", "Authorization", "Bearer "+f.token(t, "ops", "ops:read")))
	want := map[string]int{
		"POST /api/v1/products/{productId}/orders 202":        1,
		"POST /api/v1/products/{productId}/orders 400":        1,
		"GET /api/v1/products/{productId}/orders/{token} 404": 1,
		"GET unmatched 404":    2,
		"_OTHER unmatched 405": 1,
		"DELETE unmatched 405": 1,
		"GET /metrics 401":     1,
		"GET /metrics 200":     1,
	}
	if fmt.Sprint(m.notes) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", m.notes, want)
	}
	if n := f.buyers.InFlight(); n != 0 {
		t.Errorf("%d requests at work", n)
	}
}
