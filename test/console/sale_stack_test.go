//go:build stack

package console

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"seckill/test/harness"
	"seckill/test/harness/link"
	"seckill/test/shop"
)

// startFixed prepares a shop whose operators' door is at the same address after a restart.
func startFixed(t *testing.T, profile string, settings ...string) (s *shop.Shop, at string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	s = shop.New(t, profile, append(settings, "SECKILL_ADMIN__ADDR="+address)...)
	s.Start()
	return s, "http://" + address + "/console"
}

// crowd has so many buyers ask for one unit each, a few at a time.
func crowd(s *shop.Shop, product string, buyers int) {
	var asking sync.WaitGroup
	next := make(chan int)
	for range 8 {
		asking.Go(func() {
			for n := range next {
				s.Buy(context.Background(), product, fmt.Sprintf("u-%d", n), fmt.Sprintf("t-%d", n), 1)
			}
		})
	}
	for n := range buyers {
		next <- n
	}
	close(next)
	asking.Wait()
}

// A whole sale as an operator sees and drives it, on the real servers.
func TestAnOperatorDrivesAWholeSaleFromTheConsole(t *testing.T) {
	t.Parallel()
	s, at := startFixed(t, shop.Stack, "SECKILL_RECONCILE__SAFE_AGE=1s")
	b := open(t, at)
	product := "phone-" + harness.UniqueID(t)[:6]

	b.goTo(at)
	b.says("h1", "seckill console")
	b.accessible("sign-in")
	b.signIn(s.OperatorToken())
	b.says("#products-note", "Nothing is on sale yet.")
	if at := eval[string](b, "location.href"); strings.Contains(at, "#") {
		t.Errorf("the secret stays in the address: %s", at)
	}

	b.click("#open-sale")
	b.fill("#ask", "productId", product, "total", "60", "limit", "2")
	b.shot("put-on-sale")
	b.press("#ask", "Put on sale")
	b.says("#ask", product+" has 60 units on sale")
	b.press("#ask", "Close")
	row := "[data-product=" + quoted(product) + "]"
	b.says(row, "open")

	crowd(s, product, 150)
	b.says(row, "sold out")
	b.says("#eq-sold .words", "Yes")
	b.says("#eq-way .words", "Yes")
	for column, want := range map[string]string{"On sale": "60", "Sold": "60", "Confirmed": "60", "In Redis": "0", "In DB": "0", "In flight": "0", "Drift": "0"} {
		if got := b.cell(product, column); got != want {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
	}
	b.says("[data-answer=not-enough]", "90")
	b.accessible("sold-out")

	traceOne(b, product)
	driftFoundAndRepaired(t, b, s, product)
	parkedReplayed(t, b, s)
	stockChanged(b, product)

	b.click("#verify")
	b.says("#books-words", "Yes:")
	b.click("#examine")
	b.says("#findings", "checks are right")
	b.size(390, 844)
	b.accessible("narrow")
	b.size(1440, 1000)
	b.accessible("wide")

	restartedUnderThePage(b, s)
	s.HoldsEventually(product)
	s.Stop()
}

// The database hangs under the open page: what Redis knows stays live, what only the database knows is "?", and the page is
// whole again by itself.
func TestTheDatabaseGoesAwayUnderTheOpenPage(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	dsn, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	line := link.New(t, dsn.Addr)
	dsn.Addr = line.Addr()
	s.Set("SECKILL_DATABASE__DSN=" + dsn.FormatDSN())
	s.Start()
	product := harness.UniqueID(t)
	s.OpenSale(product, 10, 0)
	crowd(s, product, 3)
	b := open(t, s.Operators()+"/console")
	b.excuse("status of 503") // answers of a service without its database
	b.signIn(s.OperatorToken())
	row := "[data-product=" + product + "]"
	b.says(row, "agree at rest")

	calm := line.Disturb("timeout", link.Back, map[string]any{"timeout": 0})
	b.says("#alerts", "The ledger is")
	b.says("#products-note", "The list could not be read: this is that of an earlier look.")
	for column, want := range map[string]string{"On sale": "?", "In DB": "?", "In Redis": "7", "Drift": "?"} {
		if got := b.cell(product, column); got != want {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
	}
	b.says("#parked-list", "What is parked cannot be read now.")
	b.says("#eq-sold .words", "Not known")
	b.live()
	b.shot("database-away")
	calm()
	b.says(row, "agree at rest")
	b.says("#eq-sold .words", "Yes")
	s.HoldsEventually(product)
	s.Stop()
}

// traceOne follows the purchase of whoever came first.
func traceOne(b *tab, product string) {
	b.t.Helper()
	b.key("t")
	b.fill("#trace-form", "productId", product, "uid", "u-0", "token", "t-0")
	b.press("#trace-form", "Trace")
	b.says("#trace-result", "1 unit, confirmed")
	if steps := eval[int](b, "document.querySelectorAll('.line li[data-state=done]').length"); steps < 7 {
		b.t.Errorf("%d steps are done: %s", steps, b.text("#trace-result"))
	}
	b.fill("#trace-form", "uid", "nobody")
	b.excuse("status of 404")
	b.press("#trace-form", "Trace")
	b.says("#trace-result", "There is no such order")
	b.press("#feed", "Trace")
	b.says("#trace-result", "1 unit, confirmed")
}

// driftFoundAndRepaired has Redis believe in three units that nobody has.
func driftFoundAndRepaired(t *testing.T, b *tab, s *shop.Shop, product string) {
	t.Helper()
	gate := redis.NewClient(&redis.Options{Addr: s.Redis})
	defer func() { _ = gate.Close() }()
	if err := gate.HIncrBy(t.Context(), "seckill:{"+product+"}:stock", "remaining", 3).Err(); err != nil {
		t.Fatal(err)
	}
	row := "[data-product=" + quoted(product) + "]"
	b.says(row, "differ at rest")
	b.says("#alerts", product+" differs: Redis has 3 units too many")
	b.says("#eq-sold .words", "No: broken for "+product)
	if got := b.cell(product, "Drift"); got != "+3" {
		t.Errorf("drift %q", got)
	}
	b.accessible("drift")
	b.click("#dry-run")
	b.says("#plan", "stock drift")
	b.press("#plan", "Apply this plan…")
	b.says("#ask", "1 repair (1 × stock drift), 3 units in all")
	b.fill("#ask", "reason", "counted by hand")
	b.shot("apply")
	b.press("#ask", "Apply")
	b.says("#ask", "1 repaired")
	b.press("#ask", "Close")
	b.says("#reports", "counted by hand")
	b.says(row, "agree at rest")
	b.says("#eq-sold .words", "Yes")
}

// parkedReplayed has two orders of a product that nobody knows wait until it is put on sale.
func parkedReplayed(t *testing.T, b *tab, s *shop.Shop) {
	t.Helper()
	product := "late-" + harness.UniqueID(t)[:6]
	for i := range 2 {
		s.Publish(fmt.Appendf(nil, `{"productId":%q,"uid":"u%d","token":"t","quantity":1}`, product, i))
	}
	b.says("#parked-list", product)
	b.says("#alerts", "2 parked messages wait below")
	b.accessible("parked")
	s.OpenSale(product, 5, 0)
	b.filterParked("unknown-product", product)
	b.press("#parked", "Replay all that match…")
	b.fill("#ask", "why", "it is on sale now")
	b.press("#ask", "Replay")
	b.says("#ask", "2 replayed, 0 left as they were")
	b.press("#ask", "Close")
	b.says("#parked-result", "2 replayed, 0 left as they were")
	b.says("#parked-list", "Nothing is parked for unknown-product of "+product)
	b.filterParked("", "")
	b.says("#parked-list", "Nothing is parked: every message could be applied.")
	b.wait("both are sold", fmt.Sprintf("document.querySelector('[data-product=%s] td:nth-child(5)').innerText === '2'", quoted(product)))
	b.says("[data-product="+quoted(product)+"]", "agree at rest")
}

// stockChanged puts five more units on sale, and pauses and resumes the sale.
func stockChanged(b *tab, product string) {
	b.t.Helper()
	row := "[data-product=" + quoted(product) + "]"
	b.press(row, "Stock ±")
	b.fill("#ask", "delta", "5", "reason", "found in the back")
	b.press("#ask", "Change")
	b.says("#ask", "A change of +5 is confirmed")
	b.press("#ask", "Close")
	b.wait("five more units", fmt.Sprintf("document.querySelector('[data-product=%s] td:nth-child(4)').innerText === '65'", quoted(product)))
	b.press(row, "Pause…")
	b.says("#ask", "Buyers are told “closed” at once; 5 units stay in Redis.")
	b.fill("#ask", "reason", "a word with the maker")
	b.press("#ask", "Pause")
	b.says("#ask", product+" is paused")
	b.press("#ask", "Close")
	b.says(row, "paused")
	b.press(row, "Resume…")
	b.fill("#ask", "reason", "all is well")
	b.press("#ask", "Resume")
	b.says("#ask", "no longer paused")
	b.press("#ask", "Close")
	b.press(row, product)
	b.says("#ask tbody tr", "+5")
	b.says("#ask tbody tr", "found in the back")
	b.accessible("product")
	b.press("#ask", "Close")
}

// restartedUnderThePage stops the service and starts it again: the page says so, keeps what it knew as old, and is
// live again by itself.
func restartedUnderThePage(b *tab, s *shop.Shop) {
	b.t.Helper()
	b.excuse("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
	s.Stop()
	b.says("#link", "reconnecting · numbers are")
	b.wait("old numbers are marked", "document.documentElement.classList.contains('stale')")
	if sold := b.text("[data-f=sum-sold]"); sold == "0" || sold == "?" {
		b.t.Errorf("what was known is shown as %q", sold)
	}
	b.accessible("away")
	s.Start()
	b.live()
	b.shot("back")
}
