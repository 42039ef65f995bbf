package echohttp

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"seckill/adapters/echohttp/console"
	"seckill/application"
	"seckill/domain"
)

func inDemo(f *fixture, deps *ConsoleDeps) { deps.Demo = f.fakes }

const demoPurchase = `{"productId":"p1","userId":"u-1","quantity":2}`

// buy asks as the page does.
func (s *session) buy(t *testing.T, body string, headers ...string) *http.Response {
	t.Helper()
	return s.call(t, "POST", demoPath, body, append([]string{console.CSRFHeader, s.csrf, "Idempotency-Key", "k-1"}, headers...)...)
}

func TestADemosConsoleBuysAsABuyerWould(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t, inDemo)
	plain := f.deduct
	f.deduct = func(ctx context.Context, c domain.DeductCommand) (application.Receipt, error) {
		if k := c.Key(); k.Product() != "p1" || k.User() != "u-1" || k.Token() != "k-1" || c.Quantity() != 2 {
			t.Errorf("%+v", c)
		}
		return plain(ctx, c)
	}
	s := signedIn(t, at, f.token(t, "op-1", "ops:read", "stock:admin"))
	res := s.buy(t, demoPurchase)
	if got := decodeInto[orderBody](t, res); res.StatusCode != 202 || got.Status != "pending" || got.UserID != "u-1" || *got.Remaining != 9 || got.Repeat {
		t.Errorf("%d %+v", res.StatusCode, got)
	}
	f.deduct = func(ctx context.Context, c domain.DeductCommand) (application.Receipt, error) {
		r, err := plain(ctx, c)
		r.Replayed, r.Order.Status = true, application.OrderConfirmed
		return r, err
	}
	res = s.buy(t, demoPurchase)
	if got := decodeInto[orderBody](t, res); res.StatusCode != 200 || !got.Repeat || res.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%d %+v", res.StatusCode, got)
	}
	for err, want := range map[error]domain.Code{domain.ErrStockNotEnough: domain.CodeStockNotEnough, context.DeadlineExceeded: domain.CodeOutcomeUnknown} {
		f.deduct = func(context.Context, domain.DeductCommand) (application.Receipt, error) {
			return application.Receipt{}, err
		}
		if got := decodeInto[problem](t, s.buy(t, demoPurchase)); got.Code != want {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

func TestNobodyBuysWhereThereIsNoDemo(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t)
	f.deduct = func(context.Context, domain.DeductCommand) (application.Receipt, error) {
		t.Error("bought")
		return application.Receipt{}, domain.ErrBusy
	}
	s := signedIn(t, at, f.token(t, "op-1", allScopes...))
	wantProblem(t, s.buy(t, demoPurchase), 404, codeNoSuchRoute)
	if strings.Contains(s.page(t, "/console"), `id="demo"`) {
		t.Error("the page has a form that buys")
	}
}

func TestADemosPurchaseNeedsTheSessionItsCodeAndItsScope(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t, inDemo)
	f.deduct = func(context.Context, domain.DeductCommand) (application.Receipt, error) {
		t.Error("bought")
		return application.Receipt{}, domain.ErrBusy
	}
	s := signedIn(t, at, f.token(t, "op-1", allScopes...))
	wantProblem(t, s.call(t, "POST", demoPath, demoPurchase, "Idempotency-Key", "k-1"), 403, codeForbidden)
	wantProblem(t, s.call(t, "POST", demoPath, demoPurchase, "Idempotency-Key", "k-1", console.CSRFHeader, "guessed"), 403, codeForbidden)
	reader := signedIn(t, at, f.token(t, "eve", "ops:read"))
	wantProblem(t, reader.buy(t, demoPurchase), 403, codeForbidden)
	nobody := &session{at: at}
	wantProblem(t, nobody.buy(t, demoPurchase, "Authorization", "Bearer "+f.token(t, "op-1", allScopes...)), 401, codeUnauthenticated)
}

func TestABadPurchaseOfADemoIsRefused(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t, inDemo)
	f.deduct = func(context.Context, domain.DeductCommand) (application.Receipt, error) {
		t.Error("reached the use case")
		return application.Receipt{}, domain.ErrBusy
	}
	s := signedIn(t, at, f.token(t, "op-1", allScopes...))
	for body, pointer := range map[string]string{
		`{"userId":"u","quantity":1}`: "/productId", `{"productId":"p","quantity":1}`: "/userId", `{"productId":"p","userId":"u"}`: "/quantity",
		`{"productId":"p","userId":"u","quantity":0}`: "/quantity", `{"productId":"p","userId":"u","quantity":1000001}`: "/quantity",
		`{"productId":"p","userId":"+stock","quantity":1}`: "/userId", `{"productId":"p/q","userId":"u","quantity":1}`: "/productId",
		`{"productId":"p","userId":"u","quantity":1.5}`: "/quantity", `{"productId":"p","userId":"u","quantity":1,"token":"t"}`: "/token", `null`: "/productId",
	} {
		if p := wantProblem(t, s.buy(t, body), 400, domain.CodeInvalidRequest); len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("%s points to %+v, want %s", body, p.Errors, pointer)
		}
	}
	wantProblem(t, s.call(t, "POST", demoPath, demoPurchase, console.CSRFHeader, s.csrf), 400, domain.CodeInvalidRequest) // without a key
}
