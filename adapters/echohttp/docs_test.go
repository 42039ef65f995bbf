package echohttp

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"seckill/domain"
)

func textOf(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wantPage asks for a page, which has no script, no style of its own and nothing from elsewhere.
func wantPage(t *testing.T, d *Door, target string) string {
	t.Helper()
	res := serve(t, d, request("GET", target, ""))
	body := textOf(t, res)
	policy := res.Header.Get("Content-Security-Policy")
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") || !strings.Contains(policy, "default-src 'none'") ||
		strings.Contains(policy, "unsafe") || strings.Contains(policy, "script-src") {
		t.Errorf("%s: %d %v", target, res.StatusCode, res.Header)
	}
	for _, bad := range []string{"<script", "<style", "style=", "javascript:", `src="http`, `href="http`, "onclick", "ZgotmplZ"} {
		if strings.Contains(body, bad) {
			t.Errorf("%s has %s", target, bad)
		}
	}
	return body
}

func TestTheAPIPageHasEveryOperationOfItsDoor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, d := range []*Door{f.buyers, f.operators} {
		body := wantPage(t, d, "/docs")
		for _, r := range d.routes {
			op := document(t).Paths.Find(templated(r.path)).GetOperation(r.method)
			if !strings.Contains(body, `<article id="`+op.OperationID+`">`) {
				t.Errorf("%s: no %s", d.Name(), op.OperationID)
			}
		}
		if strings.Contains(body, `id="createOrder"`) != (d == f.buyers) || strings.Contains(body, "{productId}'") {
			t.Errorf("%s shows what the other door has, or a call that cannot be pasted", d.Name())
		}
	}
}

func TestTheExamplesCarryTheCallersOwnIds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := request("GET", "/docs?productId=p%3A7&token=mine-1", "")
	r.Host = "shop.example:8443"
	r.Header.Set("X-Forwarded-Proto", "https")
	body := strings.NewReplacer("&#39;", "'", "&#34;", `"`, "&#43;", "+").Replace(textOf(t, serve(t, f.buyers, r)))
	want := "curl -i -X POST 'https://shop.example:8443/api/v1/products/p:7/orders' \\\n  -H \"Authorization: Bearer $TOKEN\" \\\n" +
		"  -H 'Idempotency-Key: mine-1' \\\n  -H 'Content-Type: application/json' \\\n  -d '{\"quantity\":1}'"
	if !strings.Contains(body, want) || !strings.Contains(body, `value="mine-1"`) {
		t.Errorf("no %s in %s", want, body)
	}
	r = request("GET", "/docs", "")
	r.Host = "x'; reboot; '"
	if body := textOf(t, serve(t, f.buyers, r)); strings.Contains(body, "reboot") {
		t.Error("a host name reaches the shell")
	}
	for _, query := range []string{"productId=%3Cb%3E", "token=a%27b", "token=a&token=b", "productId="} {
		wantProblem(t, serve(t, f.buyers, request("GET", "/docs?"+query, "")), 400, domain.CodeInvalidRequest)
	}
}

// The type of every problem leads to a page that says what happened and what to do.
func TestEveryCodeHasAPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, d := range []*Door{f.buyers, f.operators} {
		index := wantPage(t, d, "/problems")
		for code, a := range answers {
			body := wantPage(t, d, "/problems/"+string(code))
			said := advices[code]
			if said.means == "" || said.do == "" || !strings.Contains(body, a.title) || !strings.Contains(index, `href="problems/`+string(code)+`"`) {
				t.Errorf("%s: no whole page, or not listed", code)
			}
		}
	}
	if len(advices) != len(answers) {
		t.Errorf("advice for %d codes, the table has %d", len(advices), len(answers))
	}
	wantProblem(t, serve(t, f.buyers, request("GET", "/problems/nothing", "")), 404, codeNoSuchRoute)
}

func TestWhatADescriptionHoldsIsEscaped(t *testing.T) {
	t.Parallel()
	if got := withCodes("a <b> `busy` & `x<y`"); got != `a &lt;b&gt; <a href="problems/busy"><code>busy</code></a> &amp; <code>x&lt;y</code>` {
		t.Error(got)
	}
}
