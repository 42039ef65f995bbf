//go:build stack

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/test/harness"
	"seckill/test/shop"
)

// nowhere is an address where nobody listens.
const nowhere = "127.0.0.1:1"

// A server that is away at the start is named by its address; the service ends with exit code 3 and
// has opened no door.
func TestAServerAwayAtTheStartIsNamed(t *testing.T) {
	t.Parallel()
	for part, setting := range map[string]string{
		"redis":    "SECKILL_REDIS__ADDRS=" + nowhere,
		"broker":   "SECKILL_ROCKETMQ__NAME_SERVERS=" + nowhere,
		"database": "SECKILL_DATABASE__DSN=u:p@tcp(" + nowhere + ")/nothing",
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			s := shop.New(t, shop.Stack)
			s.Set(setting)
			err := s.TryStart()
			if shop.ExitCode(err) != 3 || !strings.Contains(err.Error(), nowhere) {
				t.Fatalf("exit code %d, want 3 and the address: %v", shop.ExitCode(err), err)
			}
			if strings.Contains(err.Error(), `"event":"serving"`) {
				t.Errorf("a door was opened: %v", err)
			}
		})
	}
}

// Redis away later: buyers are told to come again and when, readiness names the part, and all comes back by itself.
func TestARedisAwayLaterComesBackByItself(t *testing.T) {
	t.Parallel()
	own, err := harness.Start(t.Context(), harness.Parts{Redis: true}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	s := shop.New(t, shop.Stack, "SECKILL_REDIS__ADDRS="+own.Redis.Addr)
	s.Start()
	product := onSale(t, s, 10)
	c := &crowd{s: s}
	buy := func(user string) *purchase {
		p := &purchase{product: product, user: user, token: "t"}
		c.ask(p)
		c.purchases = append(c.purchases, p)
		return p
	}
	if p := buy("before"); !p.bought() {
		t.Fatal(p.answer)
	}
	s.WaitOrder(product, "before", "t", "confirmed")
	if err := own.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if p := buy("during"); p.answer.Status != http.StatusServiceUnavailable || p.answer.Header.Get("Retry-After") == "" {
		t.Errorf("without Redis: %v, header %v", p.answer, p.answer.Header)
	}
	waitReady(t, s, http.StatusServiceUnavailable, "gate:false")
	if err := own.Redis.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	waitReady(t, s, http.StatusOK, "gate:true")
	s.WaitOpen(product)
	c.askAgain(t)
	if p := buy("after"); !p.bought() {
		t.Error(p.answer)
	}
	nothingLost(t, s, c)
}

// waitReady waits until readiness has that status, and says "part:ok" of that part.
func waitReady(t *testing.T, s *shop.Shop, status int, part string) {
	name, ok, _ := strings.Cut(part, ":")
	shop.Eventually(t, time.Minute, "readiness "+part, func() (bool, string) {
		a := s.Ask(context.Background(), http.MethodGet, s.Buyers()+"/readyz", "", nil)
		return a.Status == status && strings.Contains(string(a.Body), fmt.Sprintf("%q:{\"ok\":%s", name, ok)), a.String()
	})
}
