package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/application"
)

// The tokens that the tests' service knows, and their scopes.
var tokens = map[string][]string{
	"all":    {"ops:read", "stock:admin", "reconcile:run"},
	"reader": {"ops:read"},
	"buyer":  {"order:create"},
}

// place is a console with its service, without a door.
type place struct {
	*Console
	expired atomic.Bool // no token counts any more
	view    func() application.Overview
	stop    context.CancelFunc
}

func open(t *testing.T) *place {
	t.Helper()
	until, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	p := &place{stop: func() { stop(); ended.Wait() }, view: func() application.Overview { return application.Overview{At: time.Now()} }}
	p.Console = New(Config{Verify: p.verify, Look: func(context.Context) application.Overview { return p.view() },
		About: About{Version: "v9.9.9", Profile: "stack", Started: time.Now()}, Until: until, Spawn: ended.Go, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(p.stop)
	return p
}

func (p *place) verify(token string) (Visitor, error) {
	scopes, known := tokens[token]
	if !known || p.expired.Load() {
		return Visitor{}, errors.New("no such token")
	}
	return Visitor{Subject: token, May: func(scope string) bool { return slices.Contains(scopes, scope) }}, nil
}

// ask sends a request to the route of its path, as the holder of a token ("": nobody).
func (p *place) ask(t *testing.T, as string, r *http.Request) (*httptest.ResponseRecorder, error) {
	t.Helper()
	if as != "" {
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: as})
	}
	w := httptest.NewRecorder()
	for _, route := range p.Routes() {
		prefix, isFolder := strings.CutSuffix(route.Path, ":name")
		if route.Method == r.Method && (r.URL.Path == route.Path || isFolder && strings.HasPrefix(r.URL.Path, prefix)) {
			return w, route.Handle(w, r)
		}
	}
	t.Fatalf("no route for %s %s", r.Method, r.URL.Path)
	return nil, nil
}

func get(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

func post(path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func cookieOf(w *httptest.ResponseRecorder, name string) *http.Cookie {
	for _, c := range w.Result().Cookies() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// signIn sends the form of the sign-in page, with the code that the page gave.
func (p *place) signInWith(t *testing.T, token string) *httptest.ResponseRecorder {
	t.Helper()
	page, err := p.ask(t, "", get(Path))
	if err != nil {
		t.Fatal(err)
	}
	own := cookieOf(page, formCookie)
	if own == nil || !own.HttpOnly || own.SameSite != http.SameSiteStrictMode || !strings.Contains(page.Body.String(), own.Value) {
		t.Fatalf("the form has no code of its own: %v", own)
	}
	r := post(Path+"/sign-in", url.Values{"form": {own.Value}, "token": {token}})
	r.AddCookie(own)
	w, err := p.ask(t, "", r)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestATokenBecomesASessionThatNoScriptReadsAndNoOtherSiteSends(t *testing.T) {
	t.Parallel()
	p := open(t)
	for _, pasted := range []string{"all", "  all \n", "Bearer all", "https://shop.example/ops/console#t=all"} {
		w := p.signInWith(t, pasted)
		c := cookieOf(w, sessionCookie)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "../console" {
			t.Errorf("%q: %d to %q", pasted, w.Code, w.Header().Get("Location"))
		}
		if c == nil || c.Value != "all" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "" {
			t.Errorf("%q: %v", pasted, c)
		}
	}
	w, err := p.ask(t, "all", get(Path))
	if err != nil || !strings.Contains(w.Body.String(), "v9.9.9") || w.Header().Get("Content-Security-Policy") != policy {
		t.Errorf("%v %v", w, err)
	}
}

func TestWhoseTokenDoesNotCountIsToldWhyInPlainWords(t *testing.T) {
	t.Parallel()
	p := open(t)
	for token, words := range map[string]string{
		"expired": "The link or token has run out",
		"buyer":   "It needs the scope <code>ops:read</code>",
	} {
		w := p.signInWith(t, token)
		if cookieOf(w, sessionCookie) != nil {
			t.Errorf("%s is signed in", token)
		}
		to, err := url.Parse(w.Header().Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		page, err := p.ask(t, "", get(Path+"?"+to.RawQuery))
		if err != nil || !strings.Contains(page.Body.String(), words) {
			t.Errorf("%s: %v %s", token, err, page.Body)
		}
		for _, how := range []string{`seckill token --sub me --scope "stock:admin reconcile:run ops:read"`, "SECKILL_CONSOLE__TOKEN_FILE"} {
			if !strings.Contains(page.Body.String(), how) {
				t.Errorf("the page does not say how to sign in: %q", how)
			}
		}
	}
}

func TestAFormOfAnotherSiteSignsNobodyIn(t *testing.T) {
	t.Parallel()
	p := open(t)
	r := post(Path+"/sign-in", url.Values{"form": {"guessed"}, "token": {"all"}})
	r.AddCookie(&http.Cookie{Name: formCookie, Value: "other"})
	for _, r := range []*http.Request{r, post(Path+"/sign-in", url.Values{"token": {"all"}})} {
		w, err := p.ask(t, "", r)
		if err != nil || cookieOf(w, sessionCookie) != nil || !strings.HasSuffix(w.Header().Get("Location"), "failed=form") {
			t.Errorf("%v %v", w.Header(), err)
		}
	}
}

func TestWhatChangesSomethingNeedsTheSessionsCode(t *testing.T) {
	t.Parallel()
	p := open(t)
	change := httptest.NewRequest(http.MethodPost, APIPath+"/x", nil)
	if _, err := p.Authorize(change); !errors.Is(err, ErrSignedOut) {
		t.Errorf("without a session: %v", err)
	}
	change.AddCookie(&http.Cookie{Name: sessionCookie, Value: "all"})
	if _, err := p.Authorize(change); !errors.Is(err, ErrForged) {
		t.Errorf("without its code: %v", err)
	}
	change.Header.Set(CSRFHeader, Visitor{token: "reader"}.csrf())
	if _, err := p.Authorize(change); !errors.Is(err, ErrForged) {
		t.Errorf("with another one's code: %v", err)
	}
	change.Header.Set(CSRFHeader, Visitor{token: "all"}.csrf())
	if v, err := p.Authorize(change); err != nil || v.Subject != "all" {
		t.Errorf("with its code: %v %v", v, err)
	}
	look := get(APIPath + "/x")
	look.AddCookie(&http.Cookie{Name: sessionCookie, Value: "reader"})
	if _, err := p.Authorize(look); err != nil {
		t.Errorf("reading: %v", err)
	}
}

func TestSigningOutNeedsTheCodeAndEndsTheSession(t *testing.T) {
	t.Parallel()
	p := open(t)
	if _, err := p.ask(t, "all", post(Path+"/sign-out", url.Values{"csrf": {"guessed"}})); !errors.Is(err, ErrForged) {
		t.Errorf("forged: %v", err)
	}
	w, err := p.ask(t, "all", post(Path+"/sign-out", url.Values{"csrf": {Visitor{token: "all"}.csrf()}}))
	if c := cookieOf(w, sessionCookie); err != nil || c == nil || c.MaxAge >= 0 {
		t.Errorf("%v %v", c, err)
	}
}

func TestNobodySeesNumbersWithoutASession(t *testing.T) {
	t.Parallel()
	p := open(t)
	for _, path := range []string{"/snapshot", "/history", "/stream"} {
		for _, as := range []string{"", "buyer", "expired"} {
			if _, err := p.ask(t, as, get(Path+path)); !errors.Is(err, ErrSignedOut) {
				t.Errorf("%s as %q: %v", path, as, err)
			}
		}
	}
}

func TestAReaderSeesEverythingAndHasNoButtonThatChangesAnything(t *testing.T) {
	t.Parallel()
	p := open(t)
	changing := []string{`id="open-sale"`, `id="dry-run"`, `data-admin="true"`, `data-repair="true"`}
	for as, wanted := range map[string]bool{"all": true, "reader": false} {
		w, err := p.ask(t, as, get(Path))
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range changing {
			if strings.Contains(w.Body.String(), piece) != wanted {
				t.Errorf("%s: %s is there: %v", as, piece, !wanted)
			}
		}
		if says := strings.Contains(w.Body.String(), "read only"); says == wanted {
			t.Errorf("%s: says read only: %v", as, says)
		}
	}
}

func TestThePageBuysInADemoAloneAndForNoReader(t *testing.T) {
	t.Parallel()
	for _, demo := range []bool{true, false} {
		p := open(t)
		p.cfg.Demo = demo
		for _, as := range []string{"all", "reader"} {
			w, err := p.ask(t, as, get(Path))
			if err != nil {
				t.Fatal(err)
			}
			if there := strings.Contains(w.Body.String(), `id="buy"`); there != (demo && as == "all") {
				t.Errorf("demo %v, %s: the form is there: %v", demo, as, there)
			}
		}
	}
}

// A failed reading shown as 0, one failing part that blanks the page, and large numbers that lose digits are faults that
// consoles shipped with.
func TestThePageWithoutScriptShowsWhatIsKnownAndAQuestionMarkForTheRest(t *testing.T) {
	t.Parallel()
	p := open(t)
	large, minus := int64(9_007_199_254_740_993), int64(-1_234)
	p.view = func() application.Overview {
		return application.Overview{At: time.Now(), Products: []application.ProductLine{
			{Product: "half-read", State: application.StockUnknown, Gate: &large, BalanceNote: "unread"},
			{Product: "drifted", State: "open", Drift: &minus, BalanceNote: "differ at rest"}}}
	}
	w, err := p.ask(t, "reader", get(Path))
	if err != nil {
		t.Fatal(err)
	}
	row := func(product string) []string {
		_, rest, found := strings.Cut(w.Body.String(), `<tr><th scope="row">`+product+`</th>`)
		if !found {
			t.Fatalf("no row of %s in %s", product, w.Body)
		}
		rest, _, _ = strings.Cut(rest, "</tr>")
		var cells []string
		for _, cell := range regexp.MustCompile(`<td>(.*?)</td>`).FindAllStringSubmatch(rest, -1) {
			cells = append(cells, cell[1])
		}
		return cells
	}
	if got := strings.Join(row("half-read"), "|"); got != "unknown|? / ?|?|?|?|9,007,199,254,740,993|?|?|?|?|unread" {
		t.Error(got)
	}
	if got := strings.Join(row("drifted"), "|"); got != "open|? / ?|?|?|?|?|?|?|?|−1,234|differ at rest" {
		t.Error(got)
	}
	if !strings.Contains(w.Body.String(), `<noscript><meta http-equiv="refresh"`) {
		t.Error("without script the page does not load itself again")
	}
}

func TestThePageIsThereBeforeTheFirstLookIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		hang := make(chan struct{})
		p.view = func() application.Overview { <-hang; return application.Overview{} }
		begun := time.Now()
		w, err := p.ask(t, "reader", get(Path))
		if err != nil || w.Code != http.StatusOK || time.Since(begun) != firstLookMax {
			t.Errorf("%v after %v: %v", w, time.Since(begun), err)
		}
		close(hang)
		p.stop()
	})
}

func TestEveryAddressIsRelativeSoThatAPrefixInFrontOfItStays(t *testing.T) {
	t.Parallel()
	p := open(t)
	rooted := regexp.MustCompile(`(?:href|src|action)="/|(?:fetch|EventSource)\(['"` + "`" + `]/|url\(/`)
	for as, path := range map[string]string{"": Path, "all": Path, "reader": assetsPath + "app.js"} {
		w, err := p.ask(t, as, get(path))
		if err != nil {
			t.Fatal(err)
		}
		if at := rooted.FindString(w.Body.String()); at != "" {
			t.Errorf("%s as %q: %s", path, as, at)
		}
	}
}

func TestTheChartsCodeIsSentInLessThan22KB(t *testing.T) {
	t.Parallel()
	p := open(t)
	r := get(assetsPath + "uplot.js")
	r.Header.Set("Accept-Encoding", "gzip")
	w, err := p.ask(t, "", r)
	if err != nil || w.Header().Get("Content-Encoding") != "gzip" || w.Body.Len() > 22<<10 {
		t.Errorf("%d bytes, %v, %v", w.Body.Len(), w.Header(), err)
	}
	t.Logf("%d bytes", w.Body.Len())
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := io.ReadAll(z); err != nil || !bytes.Equal(whole, assets["uplot.js"].body) {
		t.Errorf("%d bytes unpacked, %v", len(whole), err)
	}
}

func TestAssetsAreAskedForAgainAndSentOnlyWhenTheyHaveChanged(t *testing.T) {
	t.Parallel()
	p := open(t)
	for name := range assets {
		w, err := p.ask(t, "", get(assetsPath+name))
		if err != nil || w.Code != http.StatusOK || w.Body.Len() == 0 || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %v %v", name, w.Header(), err)
		}
		again := get(assetsPath + name)
		again.Header.Set("If-None-Match", w.Header().Get("ETag"))
		if w, err := p.ask(t, "", again); err != nil || w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("%s again: %d %v", name, w.Code, err)
		}
	}
	if _, err := p.ask(t, "", get(assetsPath+"../console.go")); !errors.Is(err, ErrNoAsset) {
		t.Error(err)
	}
}
