package echohttp

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

func (f *fixture) operate(t testing.TB, method, target, body string) *http.Response {
	t.Helper()
	return serve(t, f.operators, request(method, target, body, "Authorization", "Bearer "+f.token(t, "op-1", allScopes...)))
}

func TestPutOnSale(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var sale domain.Sale
	var audit port.Audit
	created := true
	f.open = func(s domain.Sale, a port.Audit) (domain.Stock, bool, error) {
		sale, audit = s, a
		stock, err := stockOf(s.Product(), s.Total(), s.Terms())
		return stock, created, err
	}
	body := `{"total":1000,"opensAt":"2030-01-02T05:04:05.678+02:00","closesAt":"2031-01-02T03:04:05Z","limitPerBuyer":2}`
	res := f.operate(t, "PUT", "/admin/v1/products/p%3A1", body)
	got := decodeInto[saleBody](t, res)
	if res.StatusCode != 201 || res.Header.Get("Location") != "/admin/v1/products/p:1" || got.ProductID != "p:1" || got.Total != 1000 ||
		got.OpensAt != "2030-01-02T03:04:05.678Z" || got.ClosesAt != "2031-01-02T03:04:05.000Z" || got.LimitPerBuyer != 2 || got.Ledger.Stock != 1000 {
		t.Errorf("%d %+v", res.StatusCode, got)
	}
	if sale.Total() != 1000 || audit.Actor != "op-1" || audit.Action != "open-sale" {
		t.Errorf("%+v %+v", sale, audit)
	}
	created = false
	if res := f.operate(t, "PUT", "/admin/v1/products/p1", `{"total":5,"opensAt":null}`); res.StatusCode != 200 || !sale.Terms().OpensAt.IsZero() {
		t.Errorf("again: %d %+v", res.StatusCode, sale)
	}
	f.open = func(domain.Sale, port.Audit) (domain.Stock, bool, error) {
		return domain.Stock{}, false, domain.ErrProductExists
	}
	wantProblem(t, f.operate(t, "PUT", "/admin/v1/products/p1", `{"total":6}`), 409, domain.CodeProductExists)
}

func TestBadSaleIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.open = func(domain.Sale, port.Audit) (domain.Stock, bool, error) {
		t.Error("reached the use case")
		return domain.Stock{}, false, nil
	}
	for body, pointer := range map[string]string{
		`{}`: "/total", `{"total":0}`: "/total", `{"total":-5}`: "/total", `{"total":1.5}`: "/total", `{"total":"5"}`: "/total", `{"total":1000000001}`: "/total",
		`{"total":5,"total":6}`: "/total", `{"total":5,"stock":6}`: "/stock", `{"total":5,"limitPerBuyer":-1}`: "/limitPerBuyer",
		`{"total":5,"opensAt":"tomorrow"}`: "/opensAt", `{"total":5,"opensAt":1700000000}`: "/opensAt", `{"total":5,"opensAt":"2030-01-02"}`: "/opensAt",
		`{"total":5,"opensAt":"2030-01-02T03:04:05Z","closesAt":"2030-01-02T03:04:05Z"}`: "/closesAt", `null`: "/total",
	} {
		p := wantProblem(t, f.operate(t, "PUT", "/admin/v1/products/p1", body), 400, domain.CodeInvalidRequest)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("%s points to %+v, want %s", body, p.Errors, pointer)
		}
	}
	wantProblem(t, f.operate(t, "PUT", "/admin/v1/products/a%7Cb", `{"total":1}`), 400, domain.CodeInvalidRequest)
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var wish bool
	var audit port.Audit
	plain := f.pause
	f.pause = func(p string, paused bool, a port.Audit) (domain.Stock, error) {
		wish, audit = paused, a
		return plain(p, paused, a)
	}
	if b := decodeInto[saleBody](t, f.operate(t, "POST", "/admin/v1/products/p1/pause", `{"reason":"a test"}`)); !wish || !b.Paused ||
		audit != (port.Audit{Actor: "op-1", Action: "pause-sale", Reason: "a test"}) {
		t.Errorf("%+v %+v", b, audit)
	}
	if b := decodeInto[saleBody](t, f.operate(t, "POST", "/admin/v1/products/p1/resume", "")); wish || b.Paused || audit.Action != "resume-sale" {
		t.Errorf("%+v %+v", b, audit)
	}
	wantProblem(t, f.operate(t, "POST", "/admin/v1/products/p1/pause", `{"reason":"`+strings.Repeat("x", 201)+`"}`), 400, domain.CodeInvalidRequest)
	wantProblem(t, f.operate(t, "POST", "/admin/v1/products/p1/pause", `{"why":""}`), 400, domain.CodeInvalidRequest)
	f.pause = func(string, bool, port.Audit) (domain.Stock, error) { return domain.Stock{}, domain.ErrProductNotFound }
	wantProblem(t, f.operate(t, "POST", "/admin/v1/products/p1/pause", ""), 404, domain.CodeProductNotFound)
}

func TestWhatCouldNotBeReadIsNull(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.stock = func(p string) (application.StockView, error) {
		return application.StockView{Product: p, State: "suspended"}, nil
	}
	got := decodeInto[map[string]any](t, f.operate(t, "GET", "/admin/v1/products/p1", ""))
	for _, member := range []string{"gate", "ledger", "drift", "sequence", "confirmed", "inFlight"} {
		if v, there := got[member]; !there || v != nil {
			t.Errorf("%s is %v, want null", member, v)
		}
	}
	f.public = func(p string) (application.PublicStock, error) {
		return application.PublicStock{Product: p, State: "rebuilding"}, nil
	}
	public := decodeInto[map[string]any](t, serve(t, f.buyers, request("GET", "/api/v1/products/p1", "")))
	if v, there := public["remaining"]; !there || v != nil {
		t.Errorf("remaining is %v, want null", v)
	}
	pipeline := decodeInto[map[string]any](t, f.operate(t, "GET", "/admin/v1/pipeline", ""))
	if pipeline["lagMessages"] != nil || fmt.Sprint(pipeline["suspended"]) != "[]" {
		t.Errorf("%v", pipeline)
	}
}

func TestReconciliations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var asked application.ReconcileRequest
	plain := f.reconcile
	f.reconcile = func(r application.ReconcileRequest) (application.ReconcileReport, error) {
		asked = r
		return plain(r)
	}
	res := f.operate(t, "POST", "/admin/v1/reconciliations", `{"mode":"dry-run"}`)
	if asked != (application.ReconcileRequest{Mode: "dry-run", Policy: "send-again", Actor: "op-1"}) || res.StatusCode != 200 ||
		res.Header.Get("Location") != "/admin/v1/reconciliations/00000000000000000000000000000001" {
		t.Errorf("%+v %d", asked, res.StatusCode)
	}
	got := decodeInto[map[string]any](t, res)
	if got["startedAt"] != "2030-01-02T03:04:05.006Z" || fmt.Sprint(got["anomalies"], got["found"]) != "[] map[]" {
		t.Errorf("%v", got)
	}
	f.operate(t, "POST", "/admin/v1/reconciliations", `{"mode":"apply","planId":"00000000000000000000000000000000","productId":"p:1","policy":"roll-back","reason":"a test"}`)
	if asked != (application.ReconcileRequest{Mode: "apply", PlanID: "00000000000000000000000000000000", Product: "p:1", Policy: "roll-back", Actor: "op-1", Reason: "a test"}) {
		t.Errorf("%+v", asked)
	}
	for _, body := range []string{`{}`, `{"mode":"Apply"}`, `{"mode":"apply","policy":"give-back"}`, `{"mode":"apply","planId":""}`, `{"mode":"dry-run","planId":"00000000000000000000000000000000"}`,
		`{"mode":"apply","productId":"a|b"}`, `{"mode":"apply","actor":"x"}`, `{"mode":null}`, `[]`,
		`{"mode":"apply","reason":7}`, `{"mode":"apply","reason":"` + strings.Repeat("x", 201) + `"}`} {
		wantProblem(t, f.operate(t, "POST", "/admin/v1/reconciliations", body), 400, domain.CodeInvalidRequest)
	}
	f.reconcile = func(application.ReconcileRequest) (application.ReconcileReport, error) {
		return application.ReconcileReport{}, domain.ErrPlanOutdated
	}
	wantProblem(t, f.operate(t, "POST", "/admin/v1/reconciliations", `{"mode":"apply","planId":"00000000000000000000000000000000"}`), 409, domain.CodePlanOutdated)
}

func TestListsGoPageByPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.reports = func(before string, limit int) ([]application.ReconcileReport, error) {
		if before == "00000000000000000000000000000003" {
			return []application.ReconcileReport{{ID: "00000000000000000000000000000002", Mode: "apply", Policy: "send-again"}}, nil
		}
		return []application.ReconcileReport{{ID: "00000000000000000000000000000004", Mode: "apply", Policy: "send-again"}, {ID: "00000000000000000000000000000003", Mode: "apply", Policy: "send-again"}}[:min(limit, 2)], nil
	}
	first := decodeInto[list[application.ReconcileReport]](t, f.operate(t, "GET", "/admin/v1/reconciliations?limit=2", ""))
	if len(first.Items) != 2 || first.Next == nil || *first.Next != "00000000000000000000000000000003" {
		t.Fatalf("%+v", first)
	}
	second := decodeInto[list[application.ReconcileReport]](t, f.operate(t, "GET", "/admin/v1/reconciliations?limit=2&cursor=00000000000000000000000000000003", ""))
	if len(second.Items) != 1 || second.Next != nil {
		t.Fatalf("%+v", second)
	}
	for _, query := range []string{"limit=0", "limit=201", "limit=-1", "limit=x", "limit=1&limit=2", "limit=", "cursor=a|b", "cursor=", "cursor=00000000000000000000000000000001&cursor=00000000000000000000000000000002"} {
		wantProblem(t, f.operate(t, "GET", "/admin/v1/parked?"+query, ""), 400, domain.CodeInvalidRequest)
	}
}

func TestParkedIsListedByReasonAndProduct(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var asked string
	f.parked = func(reason port.ParkReason, product, before string, limit int) ([]port.Parked, error) {
		asked = fmt.Sprint(reason, " ", product, " ", before, " ", limit)
		return nil, nil
	}
	for query, want := range map[string]string{"reason=poison": "poison   50", "productId=p:1": " p:1  50",
		"reason=dead-letter&productId=p1&limit=2&cursor=00000000000000000000000000000001": "dead-letter p1 00000000000000000000000000000001 2"} {
		if res := f.operate(t, "GET", "/admin/v1/parked?"+query, ""); res.StatusCode != 200 || asked != want {
			t.Errorf("%s: %d, asked for %q", query, res.StatusCode, asked)
		}
	}
	for query, parameter := range map[string]string{"reason=": "reason", "reason=none": "reason", "reason=Poison": "reason", "reason=poison&reason=conflict": "reason",
		"productId=": "productId", "productId=a%7Cb": "productId", "productId=a&productId=b": "productId"} {
		if p := wantProblem(t, f.operate(t, "GET", "/admin/v1/parked?"+query, ""), 400, domain.CodeInvalidRequest); len(p.Errors) != 1 || p.Errors[0].Pointer != parameter {
			t.Errorf("%s: %+v", query, p.Errors)
		}
	}
}

func TestParkedShowsABoundedText(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.parked = func(reason port.ParkReason, product, before string, limit int) ([]port.Parked, error) {
		if limit != pageDefault || reason != "" || product+before != "" {
			t.Errorf("limit %d", limit)
		}
		return []port.Parked{{ID: "k1", Reason: port.ParkMalformed, Detail: "no \xff JSON", Body: []byte("\xff\x00<b>" + strings.Repeat("x", 5000)),
			Origin: port.Origin{MessageID: "m", Queue: "q", Offset: 3, Times: 2}, ParkedAt: time.UnixMilli(1).In(time.FixedZone("x", 3600))}}, nil
	}
	got := decodeInto[list[parkedBody]](t, f.operate(t, "GET", "/admin/v1/parked", ""))
	if len(got.Items) != 1 || got.Items[0].BodyBytes != 5005 || len(got.Items[0].Body) > bodyShown+2 || got.Items[0].ParkedAt != "1970-01-01T00:00:00.001Z" {
		t.Errorf("%+v", got)
	}
}

func TestParkedMessagesAreReplayedByIdOrByReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	asked := ""
	f.replay = func(ids []string, reason port.ParkReason, product, after string, a port.Audit) ([]application.ReplayResult, string, error) {
		asked = fmt.Sprint(ids, " ", reason, " ", product, " ", after, " ", a)
		return []application.ReplayResult{{ID: "10000000000000000000000000000001", Outcome: application.ReplayLeft, Reason: port.ParkPoison, Detail: "still wrong"}}, "10000000000000000000000000000001", nil
	}
	for body, want := range map[string]string{
		`{"ids":["10000000000000000000000000000001","10000000000000000000000000000002"],"why":"put right"}`: "[10000000000000000000000000000001 10000000000000000000000000000002]    {op-1 replay-parked put right}",
		`{"reason":"unknown-product","productId":"p:1","after":"10000000000000000000000000000000"}`:         "[] unknown-product p:1 10000000000000000000000000000000 {op-1 replay-parked }",
		`{"reason":"discarded-half"}`: "[] discarded-half   {op-1 replay-parked }",
		`{"productId":"p1"}`:          "[]  p1  {op-1 replay-parked }",
	} {
		res := f.operate(t, "POST", "/admin/v1/parked/replay", body)
		got := decodeInto[list[application.ReplayResult]](t, res)
		if res.StatusCode != 200 || asked != want || len(got.Items) != 1 || got.Items[0].Detail != "still wrong" {
			t.Errorf("%s: %d, asked %q, %+v", body, res.StatusCode, asked, got)
		}
	}
	if got := decodeInto[application.ReplayResult](t, f.operate(t, "POST", "/admin/v1/parked/10000000000000000000000000000001/replay", "")); asked != "[10000000000000000000000000000001]    {op-1 replay-parked }" || got.ID != "10000000000000000000000000000001" {
		t.Errorf("%s %+v", asked, got)
	}
	for _, body := range []string{`{}`, `{"ids":[]}`, `{"ids":["10000000000000000000000000000001"],"reason":"poison"}`, `{"ids":["a|b"]}`, `{"ids":[],"productId":"p1"}`, `{"reason":"because"}`, `{"productId":""}`,
		`{"after":"10000000000000000000000000000001"}`, `{"reason":"poison","after":"a|b"}`, `{"reason":"poison","why":"` + strings.Repeat("x", 201) + `"}`} {
		wantProblem(t, f.operate(t, "POST", "/admin/v1/parked/replay", body), 400, domain.CodeInvalidRequest)
	}
	f.replay = func([]string, port.ParkReason, string, string, port.Audit) ([]application.ReplayResult, string, error) {
		return nil, "", domain.ErrParkedNotFound
	}
	wantProblem(t, f.operate(t, "POST", "/admin/v1/parked/10000000000000000000000000000009/replay", ""), 404, domain.CodeParkedNotFound)
}

func TestVerificationOfOneOrAll(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	asked := "never"
	plain := f.verify
	f.verify = func(p string) (application.Verification, error) { asked = p; return plain(p) }
	for query, product := range map[string]string{"": "", "?productId=p%3A1": "p:1", "?productId=p:1": "p:1"} {
		if v := decodeInto[application.Verification](t, f.operate(t, "GET", "/admin/v1/verification"+query, "")); !v.Holds || asked != product {
			t.Errorf("%s asked for %q: %+v", query, asked, v)
		}
	}
	for _, query := range []string{"?productId=", "?productId=a%7Cb", "?productId=a&productId=b"} {
		wantProblem(t, f.operate(t, "GET", "/admin/v1/verification"+query, ""), 400, domain.CodeInvalidRequest)
	}
	f.verify = func(string) (application.Verification, error) {
		return application.Verification{}, domain.ErrUnavailable
	}
	wantProblem(t, f.operate(t, "GET", "/admin/v1/verification", ""), 503, domain.CodeUnavailable)
}

func TestARebuildNeedsAReasonAndTellsWhatItFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var asked application.LostPolicy
	var audit port.Audit
	f.rebuild = func(product string, lost application.LostPolicy, a port.Audit) (application.RebuildAnswer, error) {
		asked, audit = lost, a
		return application.RebuildAnswer{Product: product, Was: "damaged", State: "damaged", Lost: 1, LostUnits: 2,
			Flows: []application.LostFlow{{User: "u", Token: "t", Quantity: 2, Flow: "confirmed"}}}, nil
	}
	for body, status := range map[string]int{`{"reason":"a test"}`: 202, `{"reason":"a test","lost":"restore"}`: 202,
		`{"reason":"a test","lost":"drop"}`: 202, `{"reason":"a test","lost":"report"}`: 200} {
		res := f.operate(t, "POST", "/admin/v1/products/p1/rebuild", body)
		got := decodeInto[application.RebuildAnswer](t, res)
		if res.StatusCode != status || got.Flows[0].User != "u" || audit != (port.Audit{Actor: "op-1", Action: "rebuild-product", Reason: "a test"}) ||
			asked != "" && !strings.Contains(body, string(asked)) {
			t.Errorf("%s: %d %+v %s %+v", body, res.StatusCode, got, asked, audit)
		}
	}
	for _, body := range []string{`{}`, `{"reason":""}`, `{"reason":"` + strings.Repeat("x", 201) + `"}`, `{"reason":"a","lost":"all"}`, `{"reason":"a","x":1}`} {
		wantProblem(t, f.operate(t, "POST", "/admin/v1/products/p1/rebuild", body), 400, domain.CodeInvalidRequest)
	}
	f.rebuild = func(string, application.LostPolicy, port.Audit) (application.RebuildAnswer, error) {
		return application.RebuildAnswer{}, domain.ErrProductNotFound
	}
	wantProblem(t, f.operate(t, "POST", "/admin/v1/products/p1/rebuild", `{"reason":"a"}`), 404, domain.CodeProductNotFound)
}

func TestATraceNamesAllThreeIdsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	got := decodeInto[application.TraceView](t, f.operate(t, "GET", "/admin/v1/trace?productId=p1&uid=a%40b&token=t1", ""))
	if got.Product != "p1" || got.User != "a@b" || got.Token != "t1" || len(got.Steps) != 2 || got.Steps[1].At != nil {
		t.Errorf("%+v", got)
	}
	for _, query := range []string{"", "productId=p1", "productId=p1&uid=u", "uid=u&token=t", "productId=p1&uid=u&token=", "productId=p1&uid=+stock&token=t",
		"productId=p1&uid=u&token=t&token=t", "productId=a%7Cb&uid=u&token=t"} {
		p := wantProblem(t, f.operate(t, "GET", "/admin/v1/trace?"+query, ""), 400, domain.CodeInvalidRequest)
		if len(p.Errors) != 1 || p.Errors[0].In != "query" {
			t.Errorf("%s: %+v", query, p.Errors)
		}
	}
	f.trace = func(domain.Key) (application.TraceView, error) {
		return application.TraceView{}, domain.ErrOrderNotFound
	}
	wantProblem(t, f.operate(t, "GET", "/admin/v1/trace?productId=p1&uid=u&token=t", ""), 404, domain.CodeOrderNotFound)
}

func TestProductsAreListedByPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.stocks = func(after string, limit int) ([]application.StockView, error) {
		if after == "p2" {
			return []application.StockView{}, nil
		}
		return []application.StockView{{Product: "p1", State: "open"}, {Product: "p2", State: "open"}}[:min(limit, 2)], nil
	}
	if got := decodeInto[list[application.StockView]](t, f.operate(t, "GET", "/admin/v1/products", "")); len(got.Items) != 2 || got.Next != nil {
		t.Errorf("%+v", got)
	}
	got := decodeInto[list[application.StockView]](t, f.operate(t, "GET", "/admin/v1/products?limit=2", ""))
	if len(got.Items) != 2 || got.Next == nil || *got.Next != "p2" {
		t.Fatalf("%+v", got)
	}
	if got := decodeInto[map[string]any](t, f.operate(t, "GET", "/admin/v1/products?limit=2&cursor="+*got.Next, "")); fmt.Sprint(got["items"]) != "[]" || got["next"] != nil {
		t.Errorf("%v", got)
	}
	wantProblem(t, f.operate(t, "GET", "/admin/v1/products?cursor=%00", ""), 400, domain.CodeInvalidRequest)
}

// An id that no row can have is refused at the door, and named.
func TestIdsOfRowsHaveTheirForm(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, id := range []string{"0", "r1", strings.Repeat("0", 31), strings.Repeat("0", 33), strings.Repeat("g", 32), "00000000-0000-0000-0000-000000000001"} {
		for target, name := range map[string]string{"reconciliations/" + id: "id", "reconciliations?cursor=" + id: "cursor", "parked?cursor=" + id: "cursor",
			"products/p1/stock-changes?cursor=" + id: "cursor"} {
			p := wantProblem(t, f.operate(t, "GET", "/admin/v1/"+target, ""), 400, domain.CodeInvalidRequest)
			if len(p.Errors) != 1 || p.Errors[0].Pointer != name {
				t.Errorf("%s: %+v", target, p.Errors)
			}
		}
		wantProblem(t, f.operate(t, "POST", "/admin/v1/parked/"+id+"/replay", ""), 400, domain.CodeInvalidRequest)
		for target, body := range map[string]string{"reconciliations": `{"mode":"apply","planId":"` + id + `"}`, "parked/replay": `{"ids":["` + id + `"]}`} {
			wantProblem(t, f.operate(t, "POST", "/admin/v1/"+target, body), 400, domain.CodeInvalidRequest)
		}
	}
}

// The document says so, and serve holds it against these.
func TestNullIsAsGoodAsAbsent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for target, body := range map[string]string{
		"products/p1/pause":   `{"reason":null}`,
		"products/p1/rebuild": `{"reason":"a test","lost":null}`,
		"reconciliations":     `{"mode":"dry-run","planId":null,"productId":null,"policy":null}`,
		"parked/replay":       `{"ids":null,"reason":"poison","productId":null,"after":null,"why":null}`,
	} {
		if res := f.operate(t, "POST", "/admin/v1/"+target, body); res.StatusCode >= 300 {
			t.Errorf("%s %s: %d", target, body, res.StatusCode)
		}
	}
	if res := f.operate(t, "PUT", "/admin/v1/products/p1", `{"total":1,"opensAt":null,"closesAt":null,"limitPerBuyer":null,"reason":null}`); res.StatusCode != 201 {
		t.Errorf("%d", res.StatusCode)
	}
}
