package echohttp

import (
	"net/http"
	"strings"
	"testing"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

const changesPath = "/admin/v1/products/p1/stock-changes"

func (f *fixture) changeStock(t testing.TB, key, body string) *http.Response {
	t.Helper()
	r := request("POST", changesPath, body, "Authorization", "Bearer "+f.token(t, "op-1", allScopes...))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return serve(t, f.operators, r)
}

func TestAStockChangeIsAnsweredAsItStands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		delta    string
		status   string
		replayed bool
		want     int
	}{
		"an addition":                      {"5", application.OrderConfirmed, false, 201},
		"an addition again":                {"5", application.OrderConfirmed, true, 200},
		"a withdrawal":                     {"-5", application.OrderPending, false, 202},
		"a withdrawal on its way again":    {"-5", application.OrderPending, true, 202},
		"a withdrawal that is there again": {"-5", application.OrderConfirmed, true, 200},
		"one that was rejected":            {"-5", application.OrderRejected, true, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			plain := f.change
			f.change = func(change domain.StockChange, a port.Audit) (application.ChangeReceipt, error) {
				if a != (port.Audit{Actor: "op-1", Reason: "a test"}) || change.Key().Token() != "k:1" || !change.Key().IsChange() {
					t.Errorf("%+v %+v", change, a)
				}
				r, err := plain(change, a)
				r.Change.Status, r.Replayed = c.status, c.replayed
				return r, err
			}
			res := f.changeStock(t, `"k:1"`, `{"delta":`+c.delta+`,"reason":"a test"}`)
			got := decodeInto[changeBody](t, res)
			if res.StatusCode != c.want || got.Status != c.status || got.ProductID != "p1" || got.Key != "k:1" || got.CreatedAt == "" {
				t.Errorf("%d %+v", res.StatusCode, got)
			}
			if res.Header.Get("Location") != changesPath+"/k:1" || (res.Header.Get("Idempotency-Replayed") == "true") != c.replayed ||
				(res.Header.Get("Retry-After") != "") != (c.want == 202) {
				t.Errorf("%v", res.Header)
			}
		})
	}
}

func TestABadStockChangeIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.change = func(domain.StockChange, port.Audit) (application.ChangeReceipt, error) {
		t.Error("reached the use case")
		return application.ChangeReceipt{}, nil
	}
	const why = `,"reason":"a test"`
	for body, pointer := range map[string]string{
		`{"delta":0` + why + `}`: "/delta", `{"delta":1.5` + why + `}`: "/delta", `{"delta":"5"` + why + `}`: "/delta", `{"delta":1e3` + why + `}`: "/delta",
		`{"delta":1000001` + why + `}`: "/delta", `{"delta":-1000001` + why + `}`: "/delta", `{"delta":-9223372036854775808` + why + `}`: "/delta",
		`{"delta":99999999999999999999` + why + `}`: "/delta", `{"reason":"a test"}`: "/delta", `{"delta":null` + why + `}`: "/delta", `null`: "/delta",
		`{"delta":5}`: "/reason", `{"delta":5,"reason":""}`: "/reason", `{"delta":5,"reason":"` + strings.Repeat("x", 201) + `"}`: "/reason",
		`{"delta":5,"delta":6` + why + `}`: "/delta", `{"delta":5,"total":10` + why + `}`: "/total",
	} {
		p := wantProblem(t, f.changeStock(t, "k1", body), 400, domain.CodeInvalidRequest)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("%s points to %+v, want %s", body, p.Errors, pointer)
		}
	}
	for _, key := range []string{"", "+stock", "a b", `"`, strings.Repeat("k", 65)} {
		wantProblem(t, f.changeStock(t, key, `{"delta":5`+why+`}`), 400, domain.CodeInvalidRequest)
	}
	wantProblem(t, f.operate(t, "POST", "/admin/v1/products/%2Bstock/stock-changes", `{"delta":5`+why+`}`), 400, domain.CodeInvalidRequest)
}

func TestRefusalsOfAStockChange(t *testing.T) {
	t.Parallel()
	for err, want := range map[*domain.Error]int{domain.ErrProductNotFound: 404, domain.ErrStockNotEnough: 409, domain.ErrTokenRefused: 409,
		domain.ErrTokenReused: 422, domain.ErrOutcomeUnknown: 503, domain.ErrBusy: 503, domain.ErrRebuilding: 503} {
		f := newFixture(t)
		f.change = func(domain.StockChange, port.Audit) (application.ChangeReceipt, error) {
			return application.ChangeReceipt{}, err
		}
		wantProblem(t, f.changeStock(t, "k1", `{"delta":-5,"reason":"a test"}`), want, err.Code)
	}
}

func TestStockChangesAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got := decodeInto[changeBody](t, f.operate(t, "GET", changesPath+"/k%3A1", "")); got.Key != "k:1" || got.Delta != -2 || got.Status != application.OrderPending {
		t.Errorf("%+v", got)
	}
	f.changes = func(product, before string, limit int) ([]application.ChangeView, error) {
		if product != "p1" || before != "00000000000000000000000000000009" || limit != 2 {
			t.Errorf("%s before %s, %d", product, before, limit)
		}
		return []application.ChangeView{{ID: "00000000000000000000000000000008", Product: "p1", Token: "b", Delta: 5, Status: application.OrderConfirmed, CreatedAt: someTime, Actor: "ann", Reason: "found"},
			{ID: "00000000000000000000000000000007", Product: "p1", Token: "a", Delta: -3, Status: application.OrderRejected}}, nil
	}
	got := decodeInto[list[changeBody]](t, f.operate(t, "GET", changesPath+"?limit=2&cursor=00000000000000000000000000000009", ""))
	if len(got.Items) != 2 || got.Items[1].Delta != -3 || got.Next == nil || *got.Next != "00000000000000000000000000000007" ||
		got.Items[0].Actor+got.Items[0].Reason != "annfound" || got.Items[1].Actor+got.Items[1].Reason != "" {
		t.Errorf("%+v", got)
	}
}
