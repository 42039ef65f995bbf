package echohttp

import (
	"net/http"
	"testing"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

// edits are the operator's calls that If-Match goes with: method, path, body.
var edits = map[string][3]string{
	"put":     {"PUT", "/admin/v1/products/p1", `{"total":10,"reason":"spring"}`},
	"pause":   {"POST", "/admin/v1/products/p1/pause", `{"reason":"a test"}`},
	"resume":  {"POST", "/admin/v1/products/p1/resume", ""},
	"change":  {"POST", "/admin/v1/products/p1/stock-changes", `{"delta":5,"reason":"a test"}`},
	"rebuild": {"POST", "/admin/v1/products/p1/rebuild", `{"reason":"a test"}`},
}

func (f *fixture) edit(t testing.TB, name string, match ...string) *http.Response {
	t.Helper()
	e := edits[name]
	r := request(e[0], e[1], e[2], "Authorization", "Bearer "+f.token(t, "op-1", "stock:admin"), "Idempotency-Key", "k1")
	for _, m := range match {
		r.Header.Add("If-Match", m)
	}
	return serve(t, f.operators, r)
}

func TestAnEditOfAnEditionThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	for name := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for _, match := range [][]string{nil, {`"1.10.open.1"`}, {`"0.9.open.1", "1.10.open.1"`}, {`"0.9.open.1"`, `"1.10.open.1"`}, {"*"}} {
				if res := f.edit(t, name, match...); res.StatusCode >= 300 {
					t.Errorf("If-Match %q: %d", match, res.StatusCode)
				}
			}
			f.open = func(domain.Sale, port.Audit) (domain.Stock, bool, error) {
				t.Error("reached the use case")
				return domain.Stock{}, false, nil
			}
			f.pause = func(string, bool, port.Audit) (domain.Stock, error) {
				t.Error("reached the use case")
				return domain.Stock{}, nil
			}
			f.change = func(domain.StockChange, port.Audit) (application.ChangeReceipt, error) {
				t.Error("reached the use case")
				return application.ChangeReceipt{}, nil
			}
			f.rebuild = func(string, application.LostPolicy, port.Audit) (application.RebuildAnswer, error) {
				t.Error("reached the use case")
				return application.RebuildAnswer{}, nil
			}
			for _, stale := range []string{`"2.10.open.1"`, `1.10.open.1`, `W/"1.10.open.1"`, "", `"`, "**", `"*"`, `"1.10.open.1`} {
				wantProblem(t, f.edit(t, name, stale), 412, domain.CodeEditionOutdated)
			}
		})
	}
}

func TestAnEditionIsLookedUpForIfMatchAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.edition = func(string) (string, error) { return "", domain.ErrProductNotFound }
	for name := range edits {
		if res := f.edit(t, name); res.StatusCode >= 300 {
			t.Errorf("%s: %d", name, res.StatusCode)
		}
		want := http.StatusNotFound
		if name == "put" { // there is no record that it could be of
			want = http.StatusPreconditionFailed
		}
		if res := f.edit(t, name, "*"); res.StatusCode != want {
			t.Errorf("%s of a product that is not there: %d", name, res.StatusCode)
		}
	}
}

func TestTheEditionOfAProductIsItsETag(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.operate(t, "GET", "/admin/v1/products/p1", "")
	read := res.Header.Get("ETag")
	if read != `"1.10.open.1"` {
		t.Errorf("ETag %s", read)
	}
	for _, name := range []string{"put", "pause", "resume"} {
		if got := f.edit(t, name, read).Header.Get("ETag"); got != `"0.10.suspended.1"` && got != `"1.10.suspended.1"` {
			t.Errorf("%s: ETag %s", name, got)
		}
	}
	f.edit(t, "pause", read)
	if f.only != "1.10.open.1" {
		t.Errorf("the pause depends on %q", f.only)
	}
	f.edit(t, "pause")
	if f.only != "" {
		t.Errorf("a pause without If-Match depends on %q", f.only)
	}
	f.stock = func(p string) (application.StockView, error) {
		return application.StockView{Product: p, State: "unknown"}, nil
	}
	if res := f.operate(t, "GET", "/admin/v1/products/p1", ""); len(res.Header["Etag"]) != 0 {
		t.Errorf("a ledger that could not be read has the edition %s", res.Header.Get("ETag"))
	}
}

func TestASaleHasItsReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var audit port.Audit
	plain := f.open
	f.open = func(s domain.Sale, a port.Audit) (domain.Stock, bool, error) { audit = a; return plain(s, a) }
	f.edit(t, "put")
	if audit != (port.Audit{Actor: "op-1", Action: "open-sale", Reason: "spring"}) {
		t.Errorf("%+v", audit)
	}
}
