package echohttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"seckill/adapters/echohttp/console"
	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

const consoleToken = "a-token-of-the-settings-0123456789"

type fakeOverview struct{}

func (fakeOverview) Show(context.Context) application.Overview {
	return application.Overview{At: time.Now(), Products: []application.ProductLine{}, Answers: []application.AnswerCount{}}
}

// withConsole is a fixture whose operators' door has the console and listens.
func withConsole(t *testing.T, more ...func(*fixture, *ConsoleDeps)) (*fixture, string) {
	t.Helper()
	f := newFixture(t)
	deps := ConsoleDeps{Overview: fakeOverview{}, Token: consoleToken, About: console.About{Started: time.Now()}}
	for _, change := range more {
		change(f, &deps)
	}
	f.operators.AddConsole(deps)
	address, err := f.operators.Listen(t.Context())
	if err == nil {
		err = f.operators.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.operators.Stop(context.Background()) })
	return f, "http://" + address
}

// session is a browser without a script that is signed in.
type session struct {
	http.Client
	at   string // of the console's door
	csrf string
}

func (s *session) page(t *testing.T, path string) string {
	t.Helper()
	res, err := s.Get(s.at + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

var (
	formOf = regexp.MustCompile(`name="form" value="([^"]+)"`)
	csrfOf = regexp.MustCompile(`data-csrf="([^"]+)"`)
)

// signedIn signs in by the form, as a reader without a script does.
func signedIn(t *testing.T, at, token string) *session {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{at: at, Client: http.Client{Jar: jar}}
	form := formOf.FindStringSubmatch(s.page(t, "/console"))
	res, err := s.PostForm(at+"/console/sign-in", url.Values{"form": {form[1]}, "token": {token}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	code := csrfOf.FindSubmatch(body)
	if code == nil {
		t.Fatalf("not signed in: %s", body)
	}
	s.csrf = string(code[1])
	return s
}

func (s *session) call(t *testing.T, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	r := request(method, s.at+path, body, headers...)
	r.RequestURI = ""
	res, err := s.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestTheConsoleActsThroughTheOperatorsOwnHandlers(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t)
	var audit port.Audit
	f.pause = func(p string, paused bool, a port.Audit) (domain.Stock, error) {
		audit = a
		return stockOf(p, 10, domain.Terms{Paused: paused})
	}
	s := signedIn(t, at, f.token(t, "op-1", "ops:read", "stock:admin"))
	if res := s.call(t, "POST", "/console/api/products/p1/pause", `{"reason":"r"}`, console.CSRFHeader, s.csrf); res.StatusCode != 200 || audit.Actor != "op-1" || audit.Reason != "r" {
		t.Errorf("%d %+v", res.StatusCode, audit)
	}
	f.reconcile = func(application.ReconcileRequest) (application.ReconcileReport, error) {
		t.Error("ran without its scope")
		return application.ReconcileReport{}, errors.New("no")
	}
	dryRun := `{"mode":"dry-run"}`
	wantProblem(t, s.call(t, "POST", "/console/api/reconciliations", dryRun, console.CSRFHeader, s.csrf), 403, codeForbidden)
}

func TestAnActionWithoutTheSessionsCodeIsForged(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t)
	f.pause = func(string, bool, port.Audit) (domain.Stock, error) {
		t.Error("a forged action ran")
		return domain.Stock{}, errors.New("no")
	}
	s := signedIn(t, at, f.token(t, "op-1", allScopes...))
	const pause, reason = "/products/p1/pause", `{"reason":"r"}`
	wantProblem(t, s.call(t, "POST", "/console/api"+pause, reason), 403, codeForbidden)
	wantProblem(t, s.call(t, "POST", "/console/api"+pause, reason, console.CSRFHeader, "guessed"), 403, codeForbidden)
	wantProblem(t, s.call(t, "POST", "/admin/v1"+pause, reason, console.CSRFHeader, s.csrf), 401, codeUnauthenticated) // the API takes no cookie
	nobody := &session{at: at}
	bearer := []string{"Authorization", "Bearer " + f.token(t, "op-1", allScopes...), console.CSRFHeader, s.csrf}
	wantProblem(t, nobody.call(t, "POST", "/console/api"+pause, reason, bearer...), 401, codeUnauthenticated) // nor the console a token
}

// A read-only role sees everything and can do nothing.
func TestAReaderMayReadEveryRouteAndChangeNothing(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t)
	s := signedIn(t, at, f.token(t, "eve", "ops:read"))
	names := strings.NewReplacer(":productId", "p1", ":key", "k1", ":id", "00000000000000000000000000000001")
	for _, r := range f.operators.routes {
		below, is := strings.CutPrefix(r.path, operatorsAPI)
		if !is {
			continue
		}
		path := names.Replace(console.APIPath + below)
		if r.path == "/admin/v1/trace" {
			path += "?productId=p1&uid=u1&token=t1"
		}
		res := s.call(t, r.method, path, "", console.CSRFHeader, s.csrf)
		if reads := r.method == http.MethodGet; reads && res.StatusCode != 200 || !reads && res.StatusCode != 403 {
			t.Errorf("%s %s: %d", r.method, path, res.StatusCode)
		}
	}
}

func TestTheTokenOfTheSettingsSignsInWithEveryScope(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t)
	s := signedIn(t, at, consoleToken)
	if res := s.call(t, "POST", "/console/api/products/p1/pause", `{"reason":"r"}`, console.CSRFHeader, s.csrf); res.StatusCode != 200 {
		t.Error(res.StatusCode)
	}
	r := request("GET", "/admin/v1/products", "", "Authorization", "Bearer "+consoleToken)
	wantProblem(t, serve(t, f.operators, r), 401, codeUnauthenticated) // it is for the console alone
}

func TestTheConsoleWorksBehindAPathPrefix(t *testing.T) {
	t.Parallel()
	f, at := withConsole(t)
	target, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.StripPrefix("/shop/ops", httputil.NewSingleHostReverseProxy(target)))
	t.Cleanup(proxy.Close)
	s := signedIn(t, proxy.URL+"/shop/ops", f.token(t, "op-1", allScopes...))
	for _, address := range regexp.MustCompile(`(?:src|href)="(console/[^"]+)"`).FindAllStringSubmatch(s.page(t, "/console"), -1) {
		if res := s.call(t, "GET", "/"+address[1], ""); res.StatusCode != 200 {
			t.Errorf("%s: %d", address[1], res.StatusCode)
		}
	}
	if res := s.call(t, "POST", "/console/api/products/p1/pause", `{"reason":"r"}`, console.CSRFHeader, s.csrf); res.StatusCode != 200 {
		t.Error(res.StatusCode)
	}
}

func TestAStreamOutlivesTheServersWriteTimeoutAndEndsWithTheDoor(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) {
		c.ReadTimeout, c.WriteTimeout, c.RequestTimeout = 300*time.Millisecond, 300*time.Millisecond, 200*time.Millisecond
	})
	f.operators.AddConsole(ConsoleDeps{Overview: fakeOverview{}, Token: consoleToken, About: console.About{Started: time.Now()}})
	address, err := f.operators.Listen(t.Context())
	if err == nil {
		err = f.operators.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := signedIn(t, "http://"+address, consoleToken)
	lines := bufio.NewScanner(s.call(t, "GET", "/console/stream", "").Body)
	pictures := 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			if pictures++; pictures == 3 {
				go func() { _ = f.operators.Stop(context.Background()) }()
			}
		}
	}
	if err := lines.Err(); err != nil || pictures < 3 {
		t.Errorf("%d pictures, %v", pictures, err)
	}
}

func TestMoreStreamsThanMayBeAreToldToComeLater(t *testing.T) {
	t.Parallel()
	_, at := withConsole(t)
	s := signedIn(t, at, consoleToken)
	for range 100 {
		if res := s.call(t, "GET", "/console/stream", ""); res.StatusCode != 200 {
			t.Fatal(res.StatusCode)
		}
	}
	res := s.call(t, "GET", "/console/stream", "")
	if wantProblem(t, res, 503, domain.CodeBusy); res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if s.page(t, "/console/snapshot") == "" { // who is turned away asks for pictures
		t.Error("no picture")
	}
}
