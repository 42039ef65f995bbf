//go:build stack

package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"seckill/application"
)

// The faults that consoles of this kind shipped with, and bad input.

func TestAReadingThatFailedIsAQuestionMarkAndNeverZeroOrHealthy(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.show(func(v *application.Overview) {
		v.Pipeline.LagMessages, v.Pipeline.OpenFlows, v.Pipeline.Parked, v.Pipeline.UntoldOrders = nil, nil, nil, nil
		v.Parts["broker"] = application.PartStatus{AgeSeconds: -1, Detail: "not reachable"}
		v.Products = append(v.Products, application.ProductLine{Product: "unread", State: application.StockUnknown, Balance: application.VerdictUnknown, BalanceNote: "unread"})
	})
	b := s.play(t, "all")
	b.says("[data-product=unread]", "unread")
	for _, field := range []string{"lag", "flight", "parked", "untold", "oldest", "sum-sold", "sum-gate", "sum-ledger"} {
		if got := b.text("[data-f=" + field + "]"); got != "?" {
			t.Errorf("%s: %q", field, got)
		}
	}
	for _, column := range []string{"On sale", "Sold", "In Redis", "In DB", "In flight", "Oldest", "Drift"} {
		if got := b.cell("unread", column); got != "?" {
			t.Errorf("%s: %q", column, got)
		}
	}
	b.says("#alerts", "The broker is not reachable; last seen never. What it knows is shown as “?”.")
	b.says("#parked-list", "What is parked cannot be read now.")
	b.says("#eq-sold .words", "Not known: holds for 1 of 2; unread for 1")
	if marks := eval[int](b, "document.querySelectorAll('.equation[data-verdict=holds], [data-product=unread] .good').length"); marks != 0 {
		t.Errorf("%d marks say that all is well", marks)
	}
	b.accessible("unread")
}

func TestOnePartThatFailsBlanksNoOther(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.on("GET parked", refusal(503, "unavailable", "A part of the service is away"))
	s.on("GET reconciliations", func(asked) (int, any) { return 500, nil })
	b := open(t, s.at)
	b.excuse("status of 503", "status of 500")
	b.signIn("all")
	b.says("#parked-list", "A part of the service is away")
	b.says("#reports", "The service answered 500")
	if got := b.cell("phone", "Sold"); got != "40" {
		t.Errorf("sold %q", got)
	}
	b.says("#eq-sold .words", "Yes")
}

func TestAStockFigureThatWasReadEarlierIsNeverWrittenBack(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.on("POST products/phone/pause", func(asked) (int, any) { return 200, map[string]any{"productId": "phone", "paused": true} })
	s.on("POST products/phone/stock-changes", func(asked) (int, any) { return 201, map[string]any{"delta": -2, "status": "confirmed"} })
	b := s.play(t, "all")
	b.press("[data-product=phone]", "Stock ±")
	s.show(func(v *application.Overview) { v.Products[0] = lineOf("phone", 100, 99) }) // sold meanwhile
	b.fill("#ask", "delta", "-2", "reason", "damaged")
	b.press("#ask", "Change")
	b.says("#ask", "A change of -2 is confirmed")
	b.press("#ask", "Close")
	b.press("[data-product=phone]", "Pause…")
	b.fill("#ask", "reason", "a word")
	b.press("#ask", "Pause")
	b.says("#ask", "is paused")
	sent := s.called()
	if len(sent) != 2 || fmt.Sprint(sent[0].body) != "map[delta:-2 reason:damaged]" || fmt.Sprint(sent[1].body) != "map[reason:a word]" {
		t.Errorf("sent %v", sent)
	}
}

func TestAProductsPageSaysWhoChangedItsStockAndWhy(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.on("GET products/phone", func(asked) (int, any) {
		return 200, map[string]any{"productId": "phone", "state": "open", "total": 118, "limitPerBuyer": 2, "confirmed": 40, "inFlight": 0, "lastClosedSeconds": 0.4,
			"gate": map[string]any{"remaining": 78, "epoch": 1}, "ledger": map[string]any{"stock": 78, "version": 44}}
	})
	change := func(delta int, status, actor, reason string) map[string]any {
		c := map[string]any{"productId": "phone", "key": fmt.Sprintf("0198c5d2-77aa-7f%02d-8d7f-3f3e6c1d2b4a", delta+50), "delta": delta, "status": status, "createdAt": "2026-01-02T03:04:05.000Z"}
		if actor != "" {
			c["actor"], c["reason"] = actor, reason
		}
		return c
	}
	s.on("GET products/phone/stock-changes", func(asked) (int, any) {
		return 200, items(change(20, "confirmed", "ann", "<b>found</b> in the back of the second warehouse, behind the chairs"), change(-2, "confirmed", "an-operator-with-a-long-name@example.org", "damaged"),
			change(-30, "rejected", "bob", "a promise to another shop"), change(-1, "pending", "", ""))
	})
	b := s.play(t, "reader")
	b.press("[data-product=phone]", "phone")
	for row, want := range [][]string{{"+20", "ann", "<b>found</b> in the back"}, {"-2", "an-operator-with", "damaged"}, {"-30", "rejected", "a promise"}, {"-1", "pending", "?"}} {
		for _, text := range want {
			b.says(fmt.Sprintf("#ask tbody tr:nth-child(%d)", row+1), text)
		}
	}
	b.accessible("movements")
	b.size(390, 844)
	b.accessible("movements-narrow")
	if wide := eval[bool](b, "document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll('#ask, #ask .scroll')].some((x) => x.scrollWidth > x.clientWidth)"); wide {
		t.Error("has to be moved sideways")
	}
}

// Each legend is one line beside its neighbours, also when much is sold.
func TestTheChartsLegendsKeepToOneLine(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	b := s.play(t, "reader")
	b.wait("two pictures", "document.querySelector('[data-f=accepted-rate]').innerText === '0'")
	s.show(func(v *application.Overview) {
		v.Answers[0].Count, v.Answers[1].Count = 60_000, 150_000
		v.Pipeline.OpenFlows, v.Pipeline.LagMessages = new(int64(123_456)), new(int64(1_234_567))
		v.Times = &application.AnswerTimes{P50: 1.2345, P99: 12.345}
	})
	b.wait("thousands", "/[0-9]{2},[0-9]{3}/.test(document.querySelector('#chart-rates .u-legend').innerText)")
	for _, id := range []string{"chart-rates", "chart-times", "chart-way"} {
		if lines := eval[int](b, "new Set([...document.querySelectorAll('#"+id+" .u-series')].map((x) => x.offsetTop)).size"); lines != 1 {
			t.Errorf("the legend of %s has %d lines", id, lines)
		}
	}
	b.accessible("legends")
}

func TestNothingThatCannotBeCalledBackHappensWithoutAQuestion(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.on("POST products/phone/rebuild", func(asked) (int, any) { return 202, map[string]any{} })
	b := s.play(t, "all")
	b.press("[data-product=phone]", "Rebuild…")
	b.says("#ask", "off sale until its gate is built anew")
	b.fill("#ask", "reason", "to be sure")
	if !eval[bool](b, "document.querySelector('#ask .danger').disabled") {
		t.Error("may be pressed before the product was typed")
	}
	b.accessible("question")
	b.key(kb.Escape)
	b.wait("the question is gone", "!document.querySelector('#ask').open")
	if sent := s.called(); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
	b.press("[data-product=phone]", "Rebuild…")
	b.fill("#ask", "typed", "phone", "reason", "to be sure")
	b.press("#ask", "Rebuild")
	b.says("#ask", "phone is being rebuilt")
	if sent := s.called(); len(sent) != 1 || sent[0].body["reason"] != "to be sure" {
		t.Errorf("sent %v", sent)
	}
}

// parkedItem is one message that waits.
func parkedItem(n int) any {
	return map[string]any{"id": fmt.Sprintf("m%03d", n), "reason": "poison", "detail": "a row that does not fit", "productId": "phone", "body": "{}", "bodyBytes": 2,
		"origin": map[string]any{"deliveries": 2}, "parkedAt": "2026-01-02T03:04:05.000Z"}
}

func replayed(ids []any) map[string]any {
	results := []any{}
	for _, id := range ids {
		results = append(results, map[string]any{"id": id, "outcome": "replayed"})
	}
	return items(results...)
}

func TestSelectionAndPauseEndWithTheActionTheyWereFor(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.show(func(v *application.Overview) { v.Pipeline.Parked = new(int64(2)) })
	s.on("GET parked", func(asked) (int, any) { return 200, items(parkedItem(1), parkedItem(2)) })
	s.on("POST parked/replay", func(a asked) (int, any) { return 200, replayed(a.body["ids"].([]any)) })
	b := s.play(t, "all")
	b.click("#parked-list tbody input[type=checkbox]")
	b.click("#hold")
	b.says("#link", "paused")
	b.press("#parked", "Replay 1 chosen…")
	b.fill("#ask", "why", "the row fits now")
	b.press("#ask", "Replay")
	b.says("#ask", "1 replayed, 0 left as they were.")
	b.press("#ask", "Close")
	b.wait("nothing is chosen", "!document.querySelector('#parked-list input:checked') && document.querySelector('#parked-list button').disabled")
	b.wait("the picture moves again", "document.querySelector('#hold').getAttribute('aria-pressed') === 'false'")
	if sent := s.called(); len(sent) != 1 || fmt.Sprint(sent[0].body) != "map[ids:[m001] why:the row fits now]" {
		t.Errorf("sent %v", sent)
	}
}

// filterParked narrows the list of parked messages.
func (b *tab) filterParked(reason, product string) {
	b.t.Helper()
	eval[string](b, "document.querySelector('#parked-filter [name=reason]').value = "+quoted(reason))
	if product == "" {
		eval[string](b, "document.querySelector('#parked-filter [name=productId]').value = ''")
	} else {
		b.fill("#parked-filter", "productId", product)
	}
	b.press("#parked-filter", "Filter")
}

func TestParkedMessagesAreFilteredByReasonAndProductAndReplayedByWhatMatches(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.show(func(v *application.Overview) { v.Pipeline.Parked = new(int64(4)) })
	var mu sync.Mutex
	var queries []string
	s.on("GET parked", func(a asked) (int, any) {
		mu.Lock()
		queries = append(queries, a.query.Encode())
		mu.Unlock()
		reason, product := a.query.Get("reason"), a.query.Get("productId")
		list := []any{}
		for n := range 4 {
			item := parkedItem(n).(map[string]any)
			item["reason"], item["productId"] = []string{"poison", "conflict"}[n%2], []string{"phone", "<b>tv</b>"}[n/2]
			if (reason == "" || reason == item["reason"]) && (product == "" || product == item["productId"]) {
				list = append(list, item)
			}
		}
		return 200, items(list...)
	})
	s.on("POST parked/replay", func(asked) (int, any) { return 200, replayed([]any{"m002"}) })
	b := s.play(t, "all")
	rows := func(n int) {
		b.t.Helper()
		b.wait(fmt.Sprint(n, " rows"), fmt.Sprintf("document.querySelectorAll('#parked-list tbody tr').length === %d", n))
	}
	rows(4)
	b.click("#parked-list thead input")
	b.says("#parked-list", "Replay 4 chosen…")
	b.click("#parked-list tbody input")
	b.says("#parked-list", "Replay 3 chosen…")
	if !eval[bool](b, "document.querySelector('#parked-list thead input').indeterminate") {
		t.Error("all are marked as chosen, and one is not")
	}
	b.filterParked("poison", "")
	rows(2)
	b.says("#parked-list", "Replay 0 chosen…") // what is no longer shown is no longer chosen
	b.filterParked("poison", "<b>tv</b>")
	rows(1)
	b.accessible("filtered")
	b.press("#parked", "Replay all that match…")
	b.says("#ask", "Tries again all that are parked for poison of <b>tv</b>, shown or not, of 4 parked")
	b.fill("#ask", "why", "mended")
	b.press("#ask", "Replay")
	b.says("#ask", "1 replayed, 0 left as they were.")
	b.press("#ask", "Close")
	b.filterParked("malformed", "nobody")
	b.says("#parked-list", "Nothing is parked for malformed of nobody.")
	b.filterParked("", "")
	rows(4)
	b.size(390, 844)
	b.accessible("filter-narrow")
	if sent := s.called(); len(sent) != 1 || fmt.Sprint(sent[0].body) != "map[productId:<b>tv</b> reason:poison why:mended]" {
		t.Errorf("sent %v", sent)
	}
	mu.Lock()
	defer mu.Unlock()
	if last := queries[len(queries)-1]; last != "limit=50" || !slices.Contains(queries, "limit=50&productId=nobody&reason=malformed") {
		t.Errorf("asked %v", queries)
	}
}

func TestAllThatMatchIsNotWhatIsOnTheScreen(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.show(func(v *application.Overview) { v.Pipeline.Parked = new(int64(120)) })
	s.on("GET parked", func(asked) (int, any) {
		list := items()
		for n := range 50 {
			list["items"] = append(list["items"].([]any), parkedItem(n))
		}
		list["next"] = "m049"
		return 200, list
	})
	s.on("POST parked/replay", func(a asked) (int, any) {
		first, count := 0, 100
		if a.body["after"] == "m099" {
			first, count = 100, 20
		}
		var ids []any
		for n := range count {
			ids = append(ids, fmt.Sprintf("m%03d", first+n))
		}
		answer := replayed(ids)
		if first == 0 {
			answer["next"] = "m099"
		}
		return 200, answer
	})
	b := s.play(t, "all")
	b.says("#parked-list", "The newest 50 are shown; “all that match” means all, shown or not.")
	if !eval[bool](b, "[...document.querySelectorAll('#parked button')].find((x) => x.innerText === 'Replay all that match…').disabled") {
		t.Error("everything matches without a filter")
	}
	b.filterParked("poison", "")
	b.press("#parked", "Replay all that match…")
	b.says("#ask", "Tries again all that are parked for poison, shown or not, of 120 parked")
	b.fill("#ask", "why", "mended")
	b.press("#ask", "Replay")
	b.says("#ask", "120 replayed, 0 left as they were.")
	if sent := s.called(); len(sent) != 2 || sent[0].body["reason"] != "poison" || sent[1].body["after"] != "m099" {
		t.Errorf("sent %v", sent)
	}
}

func TestAPausedPageStaysAsItIsAlsoWhenItIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	b := s.play(t, "all")
	b.says("[data-product=phone]", "40")
	b.key("p")
	b.says("#link", "paused")
	s.show(func(v *application.Overview) { v.Products[0] = lineOf("phone", 100, 77) })
	eval[bool](b, "(addEventListener('x', () => {}), dispatchEvent(new Event('focus')), document.dispatchEvent(new Event('visibilitychange')), dispatchEvent(new Event('pageshow')))")
	b.wait("three more pictures", fmt.Sprintf("performance.getEntriesByType('resource') && Date.now() > %d", time.Now().Add(3*time.Second).UnixMilli()))
	if got := b.cell("phone", "Sold"); got != "40" {
		t.Errorf("sold %q while paused", got)
	}
	b.key("p")
	b.wait("the newest picture", "document.querySelector('[data-product=phone] td:nth-child(5)').innerText === '77'")
}

func TestLargeNumbersKeepTheirDigitsAndNoTimeIsNegative(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.show(func(v *application.Overview) {
		v.Products[0] = lineOf("phone", 9_007_199_254_740_991, 9_007_199_254_740_990)
		v.Products[0].InFlight, v.Products[0].OldestOpen = new(int64(3)), new(-4.5)
		v.Pipeline.OpenFlows, v.Pipeline.OldestOpenSecond = new(int64(3)), new(-4.5)
		v.Answers[0].Count = 1_234_567_890
	})
	b := s.play(t, "reader")
	for column, want := range map[string]string{"On sale": "9,007,199,254,740,991", "Sold": "9,007,199,254,740,990", "In Redis": "1", "Oldest": "0 s"} {
		if got := b.cell("phone", column); got != want {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
	}
	if got := b.text("[data-f=oldest]"); got != "0 s" {
		t.Errorf("the oldest has waited for %q", got)
	}
	b.says("[data-answer=accepted]", "1,234,567,890")
}

func TestAnswerTimesAreShownInMillisecondsAndNeverAsZeroWhereNothingWasAnswered(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	b := s.play(t, "reader")
	b.says("[data-f=p99]", "–")
	s.show(func(v *application.Overview) {
		v.Times = &application.AnswerTimes{P50: 0.00214, P99: 0.2504}
		v.Answers[0].Count++
	})
	b.says("[data-f=p50]", "2.1 ms")
	b.says("[data-f=p99]", "250 ms")
	b.click("#twin summary")
	b.wait("the table of the charts", "document.querySelector('#twin-rows td:nth-child(4)').innerText === '2.1' && document.querySelector('#twin-rows td:nth-child(5)').innerText === '250'")
	b.says("#chart-times", "p99")
	b.accessible("times")
	s.show(func(v *application.Overview) { v.Times = nil })
	b.says("[data-f=p50]", "–")
}

func TestWhatWasAcceptedLastIsTracedByOneButtonAndStandsStillUnderIt(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.on("GET trace", func(asked) (int, any) {
		return 200, map[string]any{"status": "confirmed", "quantity": 2, "unread": []string{}, "steps": []any{map[string]any{"step": "deducted", "state": "done"}}}
	})
	buys := func(v *application.Overview, users ...string) {
		v.Latest = nil
		for i, user := range users {
			v.Latest = append(v.Latest, application.AcceptedPurchase{Product: "phone", User: user, Token: "t-" + user, Quantity: 2,
				At: time.UnixMilli(1_700_000_000_000 - int64(i)*150)})
		}
	}
	s.show(func(v *application.Overview) { buys(v, "<b>ann</b>", "bob") })
	b := s.play(t, "reader")
	b.says("#feed-rows tr:first-child", "<b>ann</b>")
	b.says("#feed-rows tr:first-child", "2 × phone")
	b.says("#feed-rows tr:nth-child(2)", "accepted")
	b.click("#feed-rows tr:nth-child(2) button")
	b.says("#trace-result", "2 units, confirmed")
	if got := eval[string](b, "[...new FormData(document.querySelector('#trace-form')).values()].join(' ')"); got != "phone bob t-bob" {
		t.Errorf("traced %q", got)
	}
	b.size(390, 844)
	b.accessible("feed-narrow")
	b.size(1440, 1000)
	b.accessible("feed")
	s.show(func(v *application.Overview) { buys(v, "eve", "<b>ann</b>"); v.Answers[0].Count = 77 })
	b.says("[data-answer=accepted]", "77")
	b.says("#feed-rows tr:first-child", "<b>ann</b>") // the pointer is still there
	b.click("#trace-form [name=uid]")
	b.says("#feed-rows tr:first-child", "eve")
	if got := eval[int](b, "document.querySelectorAll('#feed-rows tr').length"); got != 2 {
		t.Errorf("%d rows", got)
	}
}

func TestWhatDoesNotExistIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	missing := refusal(404, "product-not-found", "There is no such product")
	for _, what := range []string{"GET products/nothing", "GET products/nothing/stock-changes", "GET trace", "POST products/phone/pause"} {
		s.on(what, missing)
	}
	b := open(t, s.at)
	b.excuse("status of 404")
	b.signIn("all")
	b.key("/")
	b.fill("#search", "q", "nothing")
	b.key(kb.Enter)
	b.says("#ask", "There is no such product.")
	b.press("#ask", "Close")
	b.fill("#search", "q", "nothing/u1/t1")
	b.key(kb.Enter)
	b.says("#trace-result", "There is no such product.")
	b.press("[data-product=phone]", "Pause…")
	b.fill("#ask", "reason", "r")
	b.press("#ask", "Pause")
	b.says("#ask", "There is no such product.")
	b.press("#ask", "Cancel")
	s.show(func(v *application.Overview) { v.Products = nil })
	b.says("#products-note", "Nothing is on sale yet.")
	b.wait("its row is gone", "!document.querySelector('[data-product=phone]')")
}

func TestAPlanThatNoLongerFitsIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	report := map[string]any{"id": "plan-1", "mode": "dry-run", "products": 1, "flowsChecked": 3, "ordersChecked": 4, "repaired": 0, "capped": false,
		"found":     map[string]any{"stock-drift": 1},
		"anomalies": []any{map[string]any{"kind": "stock-drift", "productId": "phone", "units": 3, "action": "rebuilt", "evidence": "the gate has 3, the ledger 0", "done": false}}}
	s.on("POST reconciliations", func(a asked) (int, any) {
		if a.body["mode"] == "dry-run" {
			return 200, report
		}
		return refusal(409, "plan-outdated", "The plan no longer fits, make a new dry run")(a)
	})
	b := open(t, s.at)
	b.excuse("status of 409")
	b.signIn("all")
	b.key("r")
	b.press("#plan", "Apply this plan…")
	b.press("#ask", "Apply") // the browser asks for a reason first
	if sent := s.called(); len(sent) != 1 {
		t.Errorf("sent %v without a reason", sent)
	}
	b.fill("#ask", "reason", "counted by hand")
	b.accessible("apply")
	b.press("#ask", "Apply")
	b.says("#ask", "The plan no longer fits: something that it lists has changed since. Nothing was done. Make a new dry run")
	if sent := s.called(); len(sent) != 2 || sent[1].body["planId"] != "plan-1" || sent[1].body["reason"] != "counted by hand" {
		t.Errorf("sent %v", sent)
	}
}

func TestALinkThatHasRunOutAndATokenWithoutTheScopeAreToldInPlainWords(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	b := open(t, s.at)
	for token, words := range map[string]string{"yesterday": "The link or token has run out", "buyer": "It needs the scope ops:read"} {
		b.goTo("about:blank")
		b.goTo(s.at + "#t=" + token)
		b.says("[role=alert]", words)
		b.says("main", `seckill token --sub me --scope "stock:admin reconcile:run ops:read"`)
		b.says("main", "SECKILL_CONSOLE__TOKEN_FILE")
	}
	b.accessible("refused")
}

func TestASessionThatRunsOutUnderTheOpenPageSaysSo(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	b := s.play(t, "all")
	s.mu.Lock()
	s.expired = true
	s.mu.Unlock()
	b.says("#link", "signed out: the session has run out")
	b.wait("numbers are marked old", "document.documentElement.classList.contains('stale')")
	b.accessible("signed-out")
	b.click("#again")
	b.says("h2", "Where to get one")
}

func TestAReaderHasNothingToPress(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.show(func(v *application.Overview) { v.Pipeline.Parked = new(int64(1)) })
	s.on("GET parked", func(asked) (int, any) { return 200, items(parkedItem(1)) })
	b := s.play(t, "reader")
	b.says(".who", "read only")
	b.says("#parked-list", "a row that does not fit")
	for _, words := range []string{"Put on sale", "Pause…", "Stock ±", "Rebuild", "Dry run", "Replay", "Apply"} {
		if eval[bool](b, "[...document.querySelectorAll('button')].some((x) => x.innerText.includes("+quoted(words)+"))") {
			t.Errorf("%q may be pressed", words)
		}
	}
	b.key("r") // the key of an action that is not there
	if sent := s.called(); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
}

func TestThePageWorksBehindAPathPrefix(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.on("POST products/phone/pause", func(asked) (int, any) { return 200, map[string]any{"productId": "phone", "paused": true} })
	target, err := url.Parse(strings.TrimSuffix(s.at, "/console"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.StripPrefix("/shop/ops", httputil.NewSingleHostReverseProxy(target)))
	t.Cleanup(proxy.Close)
	b := open(t, proxy.URL+"/shop/ops/console")
	b.signIn("all")
	b.says("[data-product=phone]", "40")
	b.press("[data-product=phone]", "Pause…")
	b.fill("#ask", "reason", "r")
	eval[bool](b, "(document.querySelector('#ask details').open = true)")
	b.says("#ask pre", proxy.URL+"/shop/ops/admin/v1/products/phone/pause")
	b.press("#ask", "Pause")
	b.says("#ask", "is paused")
	b.goTo("about:blank") // it complains about a stream that is cut
	t.Cleanup(proxy.CloseClientConnections)
}

func TestHistoryIsInTheOrderInWhichItHappened(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	b := s.play(t, "all")
	b.wait("some samples", "(performance.now() > 4000)")
	b.goTo("about:blank") // another page begins with what the hub remembers
	b.goTo(s.at)
	b.live()
	times := eval[[]float64](b, "fetch('console/history').then((r) => r.json()).then((h) => h.samples.map((x) => x.at))")
	if len(times) < 3 {
		t.Errorf("%d samples", len(times))
	}
	for i := range times[1:] {
		if times[i+1] <= times[i] {
			t.Errorf("out of order: %v", times)
		}
	}
	b.click("#twin summary")
	b.wait("the table of the charts", "document.querySelectorAll('#twin-rows tr').length > 0")
	minutes := eval[[]string](b, "[...document.querySelectorAll('#twin-rows th')].map((x) => x.innerText)")
	for i := range minutes[1:] {
		if minutes[i+1] > minutes[i] && minutes[i] != "00:00" {
			t.Errorf("not newest first: %v", minutes)
		}
	}
	b.accessible("table")
}

func TestWhoIsTurnedAwayFromTheStreamAsksEveryTwoSecondsAndSaysSo(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	var answers []*http.Response
	for range 100 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&http.Cookie{Name: "seckill_console", Value: "reader"})
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		answers = append(answers, answer)
	}
	b := open(t, s.at)
	b.excuse("status of 503")
	b.goTo(s.at + "#t=all")
	b.says("#link", "polling every 2 s")
	s.show(func(v *application.Overview) { v.Products[0] = lineOf("phone", 100, 41) })
	b.wait("a newer picture", "document.querySelector('[data-product=phone] td:nth-child(5)').innerText === '41'")
	for _, answer := range answers {
		_ = answer.Body.Close()
	}
	b.live() // it tries the stream again by itself
}

func TestWithoutScriptThePageIsATableThatLoadsItselfAgain(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	b := open(t, s.at)
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.do(err)
	b.goTo(s.at)
	token := chromedp.CSS("#token")
	b.do(chromedp.Do(b.ctx, chromedp.SendKeys(token, "all"), chromedp.Submit(token), chromedp.WaitVisible(chromedp.CSS("#rows"))))
	body := func() string {
		text, err := chromedp.Run(b.ctx, chromedp.TextContent(chromedp.CSS("#rows")))
		b.do(err)
		return text
	}
	if got := body(); !strings.Contains(got, "phone") || !strings.Contains(got, "agree at rest") {
		t.Errorf("the table says %q", got)
	}
	b.shot("no-script")
	s.show(func(v *application.Overview) { v.Products = append(v.Products, lineOf("later", 5, 1)) })
	b.do(chromedp.Do(b.ctx, chromedp.WaitVisible(chromedp.Search("//th[text()='later']"))))
}
