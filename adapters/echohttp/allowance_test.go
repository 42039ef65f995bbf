package echohttp

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestABuyerWhoAsksTooOftenIsToldSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.BuyerRate, c.BuyerBurst = 5, 10 })
		ask := func(who string) *http.Response {
			r := request("GET", "/api/v1/products/p1/orders/k1", "", "Authorization", "Bearer "+f.token(t, who, "order:read"))
			return serve(t, f.buyers, r)
		}
		for i := range 10 {
			res := ask("alice")
			if want := fmt.Sprintf(`"buyer";r=%d;t=%d`, 9-i, 1+i/5); res.StatusCode != 200 || res.Header.Get("RateLimit") != want ||
				res.Header.Get("RateLimit-Policy") != `"buyer";q=10;w=2` {
				t.Fatalf("request %d: %d %s, want %s", i, res.StatusCode, res.Header, want)
			}
		}
		res := ask("alice")
		wantProblem(t, res, 429, codeTooManyRequests)
		if after := res.Header.Get("Retry-After"); after != "1" && after != "2" && after != "3" || res.Header.Get("RateLimit") != `"buyer";r=0;t=2` {
			t.Errorf("%v", res.Header)
		}
		if res := ask("bob"); res.StatusCode != 200 {
			t.Errorf("another buyer: %d", res.StatusCode)
		}
		time.Sleep(time.Second)
		for range 5 {
			if res := ask("alice"); res.StatusCode != 200 {
				t.Errorf("a second later: %d", res.StatusCode)
			}
		}
		wantProblem(t, ask("alice"), 429, codeTooManyRequests)
		anonymous := serve(t, f.buyers, request("GET", "/api/v1/products/p1", ""))
		if anonymous.StatusCode != 200 || anonymous.Header.Get("RateLimit") != "" {
			t.Errorf("without a token: %d %v", anonymous.StatusCode, anonymous.Header)
		}
		operators := f.operate(t, "GET", "/admin/v1/pipeline", "")
		if operators.Header.Get("RateLimit") != "" {
			t.Error("operators are limited")
		}
	})
}

func TestNobodyIsLimitedUnlessItIsSet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 200 {
		res := serve(t, f.buyers, f.purchase(t, "p1", "k1", `{"quantity":1}`))
		if res.StatusCode != 202 || res.Header.Get("RateLimit") != "" {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
	}
}

func TestCallersAreForgottenBeyondABound(t *testing.T) {
	t.Parallel()
	a := newAllowance(1, 1)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range callersKept/2 + 100 {
				if err := a.admit(http.Header{}, fmt.Sprint(w, "-", i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if kept := a.callers.Len(); kept != callersKept {
		t.Errorf("%d callers are kept", kept)
	}
	if err := a.admit(http.Header{}, "3-1"); err != nil {
		t.Errorf("whoever was forgotten begins anew: %v", err)
	}
	if err := a.admit(http.Header{}, "3-1"); err == nil || problemOf(err).Code != codeTooManyRequests {
		t.Errorf("%v", err)
	}
}
