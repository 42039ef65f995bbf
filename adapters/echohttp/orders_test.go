package echohttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
)

func TestPurchaseIsAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := serve(t, f.buyers, f.purchase(t, "p1", "k:1@x", `{"quantity":2}`))
	if res.StatusCode != 202 || res.Header.Get("Location") != "/api/v1/products/p1/orders/k:1@x" ||
		res.Header.Get("Retry-After") != "1" || res.Header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	got := decodeInto[orderBody](t, res)
	left := got.Remaining
	got.Remaining = nil
	want := orderBody{ProductID: "p1", UserID: "alice", Token: "k:1@x", Quantity: 2, Status: "pending", CreatedAt: "2030-01-02T03:04:05.006Z"}
	if got != want || left == nil || *left != 9 {
		t.Fatalf("got %+v, want %+v with 9 left", got, want)
	}
	follow := request("GET", res.Header.Get("Location"), "", "Authorization", "Bearer "+f.token(t, "alice", "order:read"))
	if shown := decodeInto[orderBody](t, serve(t, f.buyers, follow)); shown.Status != "confirmed" || shown.Token != "k:1@x" {
		t.Fatalf("the location shows %+v", shown)
	}
}

func TestRepeatAnswersWithTheOrderAsItIs(t *testing.T) {
	t.Parallel()
	for status, code := range map[string]int{"pending": 202, "confirmed": 200, "cancelled": 200, "rejected": 200} {
		f := newFixture(t)
		f.deduct = func(_ context.Context, c domain.DeductCommand) (application.Receipt, error) {
			return application.Receipt{Replayed: true, Order: application.OrderView{Key: c.Key(), Quantity: 1, Status: status}}, nil
		}
		res := serve(t, f.buyers, f.purchase(t, "p1", "k1", `{"quantity":1}`))
		if res.StatusCode != code || res.Header.Get("Idempotency-Replayed") != "true" || res.Header.Get("Location") == "" {
			t.Errorf("%s: %d %v", status, res.StatusCode, res.Header)
		}
		if b := decodeInto[orderBody](t, res); !b.Repeat || b.Status != status {
			t.Errorf("%s: %+v", status, b)
		}
	}
}

// F29, F30, F34: what is not one strict document with a strict whole number changes nothing.
func TestBadPurchaseIsRefusedAndNamesTheField(t *testing.T) {
	t.Parallel()
	quantities := []string{`"nan"`, `"inf"`, `"-inf"`, `nan`, `NaN`, `Infinity`, `"0x10"`, `0x10`, `" 5 "`, `"5"`, `1.5`, `1.0`, `3.99`,
		`"1e2"`, `1e2`, `1e400`, `""`, `null`, `true`, `[1]`, `{"a":1}`, `+1`, `01`, `.5`, `1.`, `0`, `-0`, `-1`, `-9`,
		`-9223372036854775808`, `9223372036854775807`, `9223372036854775808`, `2147483648`, `1000001`, `1_000`, `１`}
	bodies := map[string]string{}
	for _, q := range quantities {
		bodies[`{"quantity":`+q+`}`] = ""
	}
	for _, b := range []string{`{"quantity":1,"quantity":7}`, `{"quantity":1,"QUANTITY":7}`, `{"QUANTITY":1}`, `{"Quantity":1}`,
		`{"quantity":1,"qty":7}`, `{"quantity":1}{"quantity":9}`, `{"quantity":1} x`, `{"quantity":1},`, `{}`, `null`, `[]`, `1`, `"x"`,
		`{"quantity":1`, `{quantity:1}`, `{"quantity":1,}`, ` `, `{"quantity":1,"uid":9007199254740993}`, `{"quantity":1,"userId":"bob"}`,
		`{"quantity":1,"token":"x"}`, "{\"quantity\":1,\"\xff\":1}", "\xef\xbb\xbf{\"quantity\":1}", `{"quantity":1}` + "\x00",
		strings.Repeat("[", 2000) + strings.Repeat("]", 2000), `{"quantity":` + strings.Repeat(`{"a":`, 600) + `1` + strings.Repeat("}", 601),
		`{"quantity":1,"\u0071uantity":7}`} {
		bodies[b] = ""
	}
	for body := range bodies {
		t.Run(fmt.Sprintf("%.40q", body), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.deduct = func(_ context.Context, c domain.DeductCommand) (application.Receipt, error) {
				t.Errorf("reached the use case with %d", c.Quantity())
				return application.Receipt{}, nil
			}
			p := wantProblem(t, serve(t, f.buyers, f.purchase(t, "p1", "k1", body)), 400, domain.CodeInvalidRequest)
			if len(p.Errors) != 1 || p.Errors[0].In != "body" || p.Errors[0].Detail == "" {
				t.Errorf("names nothing: %+v", p.Errors)
			}
			if strings.HasPrefix(body, `{"quantity":-1}`) && p.Errors[0].Pointer != "/quantity" {
				t.Errorf("points to %q", p.Errors[0].Pointer)
			}
		})
	}
}

func TestBadInputPointsToItsPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for body, pointer := range map[string]string{`{"quantity":0}`: "/quantity", `{"quantity":1.5}`: "/quantity", `{}`: "/quantity",
		`{"quantity":"1"}`: "/quantity", `{"quantity":1,"uid":2}`: "/uid", `{"quantity":1,"quantity":2}`: "/quantity", `[]`: ""} {
		p := wantProblem(t, serve(t, f.buyers, f.purchase(t, "p1", "k1", body)), 400, domain.CodeInvalidRequest)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("%s points to %+v, want %q", body, p.Errors, pointer)
		}
	}
	empty := f.purchase(t, "p1", "k1", "")
	empty.Header.Set("Content-Type", "application/json")
	wantProblem(t, serve(t, f.buyers, empty), 400, domain.CodeInvalidRequest)
}

// F31: ids keep their parts apart; what could join them is refused.
func TestIDsOverHTTP(t *testing.T) {
	t.Parallel()
	good := map[string]string{"p1": "p1", "a%3Ab": "a:b", "a:b": "a:b", "a%40b": "a@b", "%61b": "ab", "P.1_-:@": "P.1_-:@", strings.Repeat("a", 64): strings.Repeat("a", 64)}
	bad := []string{"a|b", "a%7Cb", "a%2Fb", "a%253Ab", "a%0Ab", "a%0D%0Ab", "a%00b", "a%20b", "%20a", ".", "..", "%2E%2E", "-a", ":a", "@a", "_a",
		"%C3%81bc", "%EF%BC%A1", "a%25", "a+b", "a,b", "a;b=1", "a{b}", "a*", "a'b", "a%22b", "a%5Cb", "a~b", strings.Repeat("a", 65)}
	f := newFixture(t)
	var seen domain.Key
	f.deduct = func(_ context.Context, c domain.DeductCommand) (application.Receipt, error) {
		seen = c.Key()
		return application.Receipt{Order: application.OrderView{Key: c.Key(), Quantity: 1, Status: "pending"}}, nil
	}
	for path, id := range good {
		res := serve(t, f.buyers, f.purchase(t, path, "k1", `{"quantity":1}`))
		if res.StatusCode != 202 || seen.Product() != id {
			t.Errorf("%s: %d, product %q, want %q", path, res.StatusCode, seen.Product(), id)
		}
		r := request("GET", "/api/v1/products/p1/orders/"+path, "", "Authorization", "Bearer "+f.token(t, "alice", "order:read"))
		if b := decodeInto[orderBody](t, serve(t, f.buyers, r)); b.Token != id {
			t.Errorf("%s: token %q, want %q", path, b.Token, id)
		}
	}
	for _, path := range bad {
		seen = domain.Key{}
		p := wantProblem(t, serve(t, f.buyers, f.purchase(t, path, "k1", `{"quantity":1}`)), 400, domain.CodeInvalidRequest)
		if !seen.IsZero() || p.Errors[0] != (fault{"path", "productId", p.Errors[0].Detail}) {
			t.Errorf("%s: reached %v, named %+v", path, seen, p.Errors)
		}
		r := request("GET", "/api/v1/products/p1/orders/"+path, "", "Authorization", "Bearer "+f.token(t, "alice", "order:read"))
		wantProblem(t, serve(t, f.buyers, r), 400, domain.CodeInvalidRequest)
	}
	pairs := map[domain.Key]bool{}
	for _, pair := range [][2]string{{"a:b", "c"}, {"a", "b:c"}} {
		r := f.purchase(t, "p1", pair[1], `{"quantity":1}`)
		r.Header.Set("Authorization", "Bearer "+f.token(t, pair[0], "order:create"))
		serve(t, f.buyers, r)
		pairs[seen] = true
	}
	if len(pairs) != 2 {
		t.Error("a:b + c and a + b:c are one purchase")
	}
}

func TestIdempotencyKeyForms(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for sent, key := range map[string]string{"k1": "k1", `"k1"`: "k1", `"a:b"`: "a:b", strings.Repeat("k", 64): strings.Repeat("k", 64)} {
		res := serve(t, f.buyers, f.purchase(t, "p1", sent, `{"quantity":1}`))
		if b := decodeInto[orderBody](t, res); res.StatusCode != 202 || b.Token != key {
			t.Errorf("%s: %d %+v", sent, res.StatusCode, b)
		}
	}
	for _, sent := range []string{`"k1`, `k1"`, `"`, `""`, `""k1""`, `"k1";a=1`, "'k1'", "a|b", "a/b", "a%3Ab", "a b", "a\nb", "é", "k1, k2", strings.Repeat("k", 65)} {
		p := wantProblem(t, serve(t, f.buyers, f.purchase(t, "p1", sent, `{"quantity":1}`)), 400, domain.CodeInvalidRequest)
		if p.Errors[0].In != "header" || p.Errors[0].Pointer != "Idempotency-Key" {
			t.Errorf("%q: %+v", sent, p.Errors)
		}
	}
	wantProblem(t, serve(t, f.buyers, f.purchase(t, "p1", "", `{"quantity":1}`)), 400, domain.CodeInvalidRequest)
	twice := f.purchase(t, "p1", "k1", `{"quantity":1}`)
	twice.Header.Add("Idempotency-Key", "k1")
	wantProblem(t, serve(t, f.buyers, twice), 400, domain.CodeInvalidRequest)
}

func TestBuyersRefusals(t *testing.T) {
	t.Parallel()
	for code, told := range map[domain.Code]domain.Code{
		domain.CodeSaleClosed: "", domain.CodeProductNotFound: "", domain.CodeStockNotEnough: "", domain.CodeLimitReached: "",
		domain.CodeTokenRefused: "", domain.CodeTokenReused: "", domain.CodeOutcomeUnknown: "", domain.CodeBusy: "", domain.CodeRebuilding: "",
		domain.CodeUnavailable: domain.CodeRebuilding, domain.CodeInternal: "", "never-heard-of": domain.CodeInternal,
	} {
		if told == "" {
			told = code
		}
		f := newFixture(t)
		f.deduct = func(context.Context, domain.DeductCommand) (application.Receipt, error) {
			return application.Receipt{}, fmt.Errorf("deduct: %w", domain.NewError(code, "", fmt.Errorf("redis 10.0.0.7 said no")))
		}
		res := serve(t, f.buyers, f.purchase(t, "p1", "k1", `{"quantity":1}`))
		p := wantProblem(t, res, answers[told].status, told)
		after := res.Header.Get("Retry-After")
		if (p.Status == 503) != (after == "1" || after == "2" || after == "3") {
			t.Errorf("%s: Retry-After %q", code, after)
		}
		if strings.Contains(p.Detail, "10.0.0.7") {
			t.Errorf("%s shows its cause: %s", code, p.Detail)
		}
	}
}

func TestAPurchaseThatRunsOutOfTimeIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.RequestTimeout = time.Millisecond })
	f.deduct = func(ctx context.Context, _ domain.DeductCommand) (application.Receipt, error) {
		<-ctx.Done()
		return application.Receipt{}, ctx.Err()
	}
	wantProblem(t, serve(t, f.buyers, f.purchase(t, "p1", "k1", `{"quantity":1}`)), 503, domain.CodeOutcomeUnknown)
}

func TestOnlyTheCallersOwnOrdersAreAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.order = func(k domain.Key) (application.OrderView, error) {
		if k.User() != "alice" {
			return application.OrderView{}, domain.ErrOrderNotFound
		}
		return application.OrderView{Key: k, Quantity: 1, Status: "pending"}, nil
	}
	f.cancel = f.order
	for i := range 200 {
		target := fmt.Sprintf("/api/v1/products/p1/orders/t%d?userId=alice", i)
		for method, scope := range map[string]string{"GET": "order:read", "DELETE": "order:cancel"} {
			own := request(method, target, "", "Authorization", "Bearer "+f.token(t, "alice", scope))
			if res := serve(t, f.buyers, own); res.StatusCode != 200 {
				t.Fatalf("%s, own order: %d", method, res.StatusCode)
			}
			foreign := request(method, target, "", "Authorization", "Bearer "+f.token(t, "bob", scope))
			wantProblem(t, serve(t, f.buyers, foreign), 404, domain.CodeOrderNotFound)
		}
	}
}

func TestCancelAnswersWithTheOrderAsItIs(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"cancelled", "rejected"} {
		f := newFixture(t)
		f.cancel = func(k domain.Key) (application.OrderView, error) {
			return application.OrderView{Key: k, Quantity: 2, Status: status, CreatedAt: someTime}, nil
		}
		r := request("DELETE", "/api/v1/products/p1/orders/k%3A1", "", "Authorization", "Bearer "+f.token(t, "alice", "order:cancel"))
		res := serve(t, f.buyers, r)
		want := orderBody{ProductID: "p1", UserID: "alice", Token: "k:1", Quantity: 2, Status: status, CreatedAt: "2030-01-02T03:04:05.006Z"}
		if got := decodeInto[orderBody](t, res); res.StatusCode != 200 || got != want {
			t.Errorf("%d %+v, want %+v", res.StatusCode, got, want)
		}
	}
}

func TestCancelsRefusals(t *testing.T) {
	t.Parallel()
	for given, told := range map[domain.Code]domain.Code{
		domain.CodeOrderNotFound: domain.CodeOrderNotFound, domain.CodeOutcomeUnknown: domain.CodeOutcomeUnknown,
		domain.CodeBusy: domain.CodeBusy, domain.CodeRebuilding: domain.CodeRebuilding, domain.CodeUnavailable: domain.CodeRebuilding,
		domain.CodeInternal: domain.CodeInternal,
	} {
		f := newFixture(t)
		f.cancel = func(domain.Key) (application.OrderView, error) {
			return application.OrderView{}, domain.NewError(given, "", fmt.Errorf("10.0.0.7 said no"))
		}
		r := request("DELETE", "/api/v1/products/p1/orders/t1", "", "Authorization", "Bearer "+f.token(t, "alice", "order:cancel"))
		res := serve(t, f.buyers, r)
		p := wantProblem(t, res, answers[told].status, told)
		if (p.Status == 503) != (res.Header.Get("Retry-After") != "") || strings.Contains(p.Detail, "10.0.0.7") {
			t.Errorf("%s: %+v %v", given, p, res.Header)
		}
	}
	f := newFixture(t)
	f.cancel = func(k domain.Key) (application.OrderView, error) {
		t.Errorf("reached with %v", k)
		return application.OrderView{}, nil
	}
	for _, path := range []string{"/api/v1/products/a%7Cb/orders/t1", "/api/v1/products/p1/orders/a%7Cb"} {
		r := request("DELETE", path, "", "Authorization", "Bearer "+f.token(t, "alice", "order:cancel"))
		wantProblem(t, serve(t, f.buyers, r), 400, domain.CodeInvalidRequest)
	}
}

// F36: whoever is second meets the order of the first.
func TestAHundredIdenticalPurchases(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var taken sync.Map
	var sold atomic.Int64
	f.deduct = func(_ context.Context, c domain.DeductCommand) (application.Receipt, error) {
		quantity, known := taken.LoadOrStore(c.Key(), c.Quantity())
		if known && quantity != c.Quantity() {
			return application.Receipt{}, domain.NewError(domain.CodeTokenReused, "", nil)
		}
		if !known {
			sold.Add(c.Quantity())
		}
		return application.Receipt{Replayed: known, Order: application.OrderView{Key: c.Key(), Quantity: c.Quantity(), Status: "pending"}}, nil
	}
	requests := make([]*http.Request, 100)
	for i := range requests {
		requests[i] = f.purchase(t, "p1", "k1", `{"quantity":1}`)
	}
	var first, repeats atomic.Int64
	var wg sync.WaitGroup
	for _, r := range requests {
		wg.Go(func() {
			res := serve(t, f.buyers, r)
			switch {
			case res.StatusCode != 202:
				t.Errorf("got %d", res.StatusCode)
			case res.Header.Get("Idempotency-Replayed") == "true":
				repeats.Add(1)
			default:
				first.Add(1)
			}
		})
	}
	wg.Wait()
	if first.Load() != 1 || repeats.Load() != 99 || sold.Load() != 1 {
		t.Fatalf("%d first, %d repeats, %d sold", first.Load(), repeats.Load(), sold.Load())
	}
	wantProblem(t, serve(t, f.buyers, f.purchase(t, "p1", "k1", `{"quantity":2}`)), 422, domain.CodeTokenReused)
	if res := serve(t, f.buyers, f.purchase(t, "p2", "k1", `{"quantity":1}`)); res.Header.Get("Idempotency-Replayed") != "" {
		t.Error("the token of one product counts for another")
	}
	other := f.purchase(t, "p1", "k1", `{"quantity":1}`)
	other.Header.Set("Authorization", "Bearer "+f.token(t, "bob", "order:create"))
	if res := serve(t, f.buyers, other); res.Header.Get("Idempotency-Replayed") != "" {
		t.Error("the token of one buyer counts for another")
	}
}

func FuzzPurchaseBody(f *testing.F) {
	for _, s := range []string{`{"quantity":1}`, `{"quantity":1,"quantity":2}`, `{"quantity":1e0}`, `{"quantity":null}`, ` { "quantity" : 12 } `, `[]`, ``, `{"quantity":-0}`} {
		f.Add([]byte(s))
	}
	fix := newFixture(f)
	var got int64
	fix.deduct = func(_ context.Context, c domain.DeductCommand) (application.Receipt, error) {
		got = c.Quantity()
		return application.Receipt{Order: application.OrderView{Key: c.Key(), Quantity: got, Status: "pending"}}, nil
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := fix.purchase(t, "p1", "k1", string(body))
		r.Header.Set("Content-Type", "application/json")
		res := serve(t, fix.buyers, r)
		switch res.StatusCode {
		case 202:
			shape := strings.Map(func(r rune) rune {
				if strings.ContainsRune(" \t\r\n", r) {
					return -1
				}
				return r
			}, string(body))
			digits := fmt.Sprintf(`:%d}`, got)
			if !strings.HasSuffix(shape, digits) || strings.Count(shape, ":") != 1 || got < 1 || got > domain.QuantityMax {
				t.Errorf("%q was taken as %d", body, got)
			}
		case 400, 413:
		default:
			t.Errorf("%q: %d", body, res.StatusCode)
		}
	})
}
