package echohttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/labstack/echo/v4"

	"seckill/application"
	"seckill/domain"
)

// listening starts the buyers' door on a free port and stops it with the test.
func listening(t *testing.T, f *fixture) string {
	t.Helper()
	addr, err := f.buyers.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.buyers.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = f.buyers.Stop(ctx)
	})
	return addr
}

func TestWhatIsNoRouteIsAProblem(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, path := range []string{"/", "/api/v1/products", "/api/v1/products/", "/api/v1/products/p1/orders/",
		"/api/v1/products/p1/orders/t1/",
		"/api/v1/products/p1/orders/t1/x", "/api/v1/products/p1/x", "/API/v1/products/p1", "/docs/x", "/console", "/metrics", "/debug/pprof/", "/problems/none",
		"/admin/v1/pipeline", "/admin/v1/products/p1", "//healthz", "/healthz/"} {
		wantProblem(t, serve(t, f.buyers, request("GET", path, "")), 404, codeNoSuchRoute)
	}
	for _, path := range []string{"/", "/api/v1/products/p1", "/admin/v1/trace/p1", "/admin/v1/products/p1/rebuild/x",
		"/admin/v1/reconciliations/r1/x",
		"/admin/v1/products/p1/stock-changes/k1/x", "/admin/v1/parked/x/replay/x"} {
		wantProblem(t, serve(t, f.operators, request("GET", path, "")), 404, codeNoSuchRoute)
	}
}

func TestAKnownPathWithAnotherMethod(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for target, methods := range map[string][]string{
		"/api/v1/products/p1/orders":    {"GET", "PUT", "DELETE", "PATCH", "HEAD"},
		"/api/v1/products/p1/orders/t1": {"POST", "PATCH", "PUT"},
		"/api/v1/products/p1":           {"POST", "PUT", "DELETE"},
		"/healthz":                      {"POST"},
	} {
		for _, m := range methods {
			res := serve(t, f.buyers, request(m, target, ""))
			wantProblem(t, res, 405, codeMethodNotAllowed)
			if res.Header.Get("Allow") == "" {
				t.Errorf("%s %s: no Allow", m, target)
			}
		}
	}
	wantProblem(t, serve(t, f.operators, request("DELETE", "/admin/v1/products/p1", "")), 405, codeMethodNotAllowed)
	wantProblem(t, serve(t, f.operators, request("GET", "/admin/v1/products/p1/pause", "")), 405, codeMethodNotAllowed)
}

func TestOnlyJSONIsTaken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for contentType, status := range map[string]int{"application/json": 202, "application/json; charset=utf-8": 202, "Application/JSON;charset=UTF-8": 202,
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "application/json, text/plain": 415, "application/json; charset=latin1": 415,
		"application/jsonx": 415, "multipart/form-data; boundary=x": 415, ";": 415} {
		r := f.purchase(t, "p1", "k1", `{"quantity":1}`)
		r.Header.Set("Content-Type", contentType)
		if res := serve(t, f.buyers, r); res.StatusCode != status {
			t.Errorf("%q: %d, want %d", contentType, res.StatusCode, status)
		}
	}
	packed := f.purchase(t, "p1", "k1", `{"quantity":1}`)
	packed.Header.Set("Content-Encoding", "gzip")
	wantProblem(t, serve(t, f.buyers, packed), 415, codeJSONOnly)
}

// endless counts what is read of a body that has no end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func TestALargeBodyIsRefusedUnread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, length := range []int64{10 << 20, -1} { // told beforehand, and chunked
		r := f.purchase(t, "p1", "k1", `{"quantity":1}`)
		body := new(endless)
		r.Body, r.ContentLength = io.NopCloser(body), length
		res := serve(t, f.buyers, r)
		wantProblem(t, res, 413, codeBodyTooLarge)
		if body.read > bodyMax+1 || res.Header.Get("Connection") != "close" {
			t.Errorf("length %d: read %d bytes, Connection %q", length, body.read, res.Header.Get("Connection"))
		}
	}
	full := `{"quantity":1` + strings.Repeat(" ", bodyMax-14) + `}`
	if res := serve(t, f.buyers, f.purchase(t, "p1", "k1", full)); len(full) != bodyMax || res.StatusCode != 202 {
		t.Errorf("%d bytes: %d", len(full), res.StatusCode)
	}
	wantProblem(t, serve(t, f.buyers, f.purchase(t, "p1", "k1", full+" ")), 413, codeBodyTooLarge)
	get := request("GET", "/api/v1/products/p1", full+" ")
	wantProblem(t, serve(t, f.buyers, get), 413, codeBodyTooLarge)
}

func TestALargeBodyOverARealConnection(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	addr := listening(t, f)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = fmt.Fprintf(conn, "POST /api/v1/products/p1/orders HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Idempotency-Key: k1\r\nContent-Type: application/json\r\nContent-Length: 10485760\r\n\r\n", f.token(t, "alice", "order:create"))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil) // not one byte of the body was sent
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, res, 413, codeBodyTooLarge)
}

func TestASlowHeaderIsCutOffAndHinderNobody(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.HeaderTimeout = 300 * time.Millisecond })
	addr := listening(t, f)
	slow := make([]net.Conn, 100)
	for i := range slow {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		slow[i] = conn
	}
	res, err := http.Get("http://" + addr + "/healthz")
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("a normal request beside them: %v %v", res, err)
	}
	_ = res.Body.Close()
	for _, conn := range slow {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer, err := io.ReadAll(conn)
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			t.Fatal("the connection is still open")
		}
		if strings.Contains(string(answer), " 200 ") {
			t.Fatalf("answered %q", answer)
		}
	}
}

func TestAHeaderThatIsTooLarge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	addr := listening(t, f)
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("a", 32<<10))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d", res.StatusCode)
	}
}

func TestAPanicIsAProblemAndOneLineInTheLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deduct = func(context.Context, domain.DeductCommand) (application.Receipt, error) { panic("secret thing") }
	res := serve(t, f.buyers, f.purchase(t, "p1", "k1", `{"quantity":1}`))
	p := wantProblem(t, res, 500, domain.CodeInternal)
	if all := fmt.Sprint(p, res.Header); strings.Contains(all, "secret") || strings.Contains(all, ".go") {
		t.Errorf("shows its inside: %s", all)
	}
	log := f.log.String()
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, p.Instance) || !strings.Contains(log, "secret thing") || !strings.Contains(log, "door_test.go") {
		t.Errorf("log: %s", log)
	}
	if f.buyers.inFlight.Load() != 0 {
		t.Error("the panic is still in flight")
	}
}

func TestAnInternalFaultIsLoggedOnceAndNeverShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deduct = func(context.Context, domain.DeductCommand) (application.Receipt, error) {
		return application.Receipt{}, fmt.Errorf("dial tcp 10.0.0.7: refused")
	}
	r := f.purchase(t, "p1", "k1", `{"quantity":1}`)
	r.Header.Set(requestIDHeader, "caller-7")
	p := wantProblem(t, serve(t, f.buyers, r), 500, domain.CodeInternal)
	if p.Detail != "" || p.Instance != "caller-7" {
		t.Errorf("%+v", p)
	}
	log := f.log.String()
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, `"request_id":"caller-7"`) || !strings.Contains(log, "10.0.0.7") ||
		strings.Contains(log, "Bearer") || strings.Contains(log, "eyJ") {
		t.Errorf("log: %s", log)
	}
	serve(t, f.buyers, f.purchase(t, "p1", "", `{"quantity":1}`))
	if f.log.String() != log {
		t.Error("a caller's mistake is logged")
	}
}

func TestARequestIDIsKeptOnlyIfItIsOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for sent, kept := range map[string]bool{"abc-1": true, "a b": false, "a\r\nX: y": false, strings.Repeat("a", 65): false, "": false} {
		r := request("GET", "/healthz", "")
		r.Header[requestIDHeader] = []string{sent}
		got := serve(t, f.buyers, r).Header.Get(requestIDHeader)
		if (got == sent) != kept || domain.CheckID("id", got) != nil {
			t.Errorf("%q became %q", sent, got)
		}
	}
}

func TestAFullDoorIsBusyAndProbesStillAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.MaxInFlight = 1 })
	entered, leave := make(chan struct{}), make(chan struct{})
	plain := f.deduct
	f.deduct = func(ctx context.Context, c domain.DeductCommand) (application.Receipt, error) {
		close(entered)
		<-leave
		return plain(ctx, c)
	}
	first := f.purchase(t, "p1", "k1", `{"quantity":1}`)
	var wg sync.WaitGroup
	wg.Go(func() {
		if res := serve(t, f.buyers, first); res.StatusCode != 202 {
			t.Errorf("the first got %d", res.StatusCode)
		}
	})
	<-entered
	res := serve(t, f.buyers, f.purchase(t, "p1", "k2", `{"quantity":1}`))
	if wantProblem(t, res, 503, domain.CodeBusy); res.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for _, probe := range []string{"/healthz", "/readyz"} {
		if res := serve(t, f.buyers, request("GET", probe, "")); res.StatusCode != 200 {
			t.Errorf("%s: %d", probe, res.StatusCode)
		}
	}
	close(leave)
	wg.Wait()
	f.deduct = plain
	if res := serve(t, f.buyers, f.purchase(t, "p1", "k2", `{"quantity":1}`)); res.StatusCode != 202 {
		t.Errorf("afterwards: %d", res.StatusCode)
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ready := func() (int, string) {
		res := serve(t, f.buyers, request("GET", "/readyz", ""))
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	if status, body := ready(); status != 200 || !strings.Contains(body, `"gate"`) {
		t.Errorf("%d %s", status, body)
	}
	f.away = true
	if status, body := ready(); status != 503 || !strings.Contains(body, `"ready":false`) {
		t.Errorf("%d %s", status, body)
	}
	f.away = false
	f.buyers.Draining()
	if status, body := ready(); status != 503 || !strings.Contains(body, `"draining":true`) {
		t.Errorf("%d %s", status, body)
	}
	res := serve(t, f.buyers, f.purchase(t, "p1", "k1", `{"quantity":1}`))
	if res.StatusCode != 202 || res.Header.Get("Connection") != "close" {
		t.Errorf("while draining: %d, connection %q", res.StatusCode, res.Header.Get("Connection"))
	}
}

// F53: whoever is at work when the door is stopped gets an answer.
func TestStopAnswersEverybodyAtWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const buyers = 100
	var entered sync.WaitGroup
	entered.Add(buyers)
	leave := make(chan struct{})
	plain := f.deduct
	f.deduct = func(ctx context.Context, c domain.DeductCommand) (application.Receipt, error) {
		entered.Done()
		select {
		case <-leave:
		case <-ctx.Done():
			return application.Receipt{}, ctx.Err()
		}
		return plain(ctx, c)
	}
	addr := listening(t, f)
	var asked sync.WaitGroup
	for i := range buyers {
		r := f.purchase(t, "p1", fmt.Sprint("k", i), `{"quantity":1}`)
		r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", addr
		asked.Go(func() {
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = res.Body.Close() }()
			var b orderBody
			if err := json.UnmarshalRead(res.Body, &b); err != nil || res.StatusCode != 202 {
				t.Errorf("%d %v", res.StatusCode, err)
			}
		})
	}
	entered.Wait()
	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		stopped <- f.buyers.Stop(ctx)
	}()
	for deadline := time.Now().Add(10 * time.Second); ; { // until nobody new is let in
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("still accepts")
		}
	}
	close(leave)
	asked.Wait()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if res := serve(t, f.buyers, request("GET", "/readyz", "")); res.StatusCode != 503 {
		t.Errorf("ready after the stop: %d", res.StatusCode)
	}
}

func TestStopGivesUpWhenItsTimeEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	entered, ended := make(chan struct{}), make(chan struct{})
	f.deduct = func(ctx context.Context, _ domain.DeductCommand) (application.Receipt, error) {
		close(entered)
		<-ctx.Done()
		close(ended)
		return application.Receipt{}, ctx.Err()
	}
	addr := listening(t, f)
	r := f.purchase(t, "p1", "k1", `{"quantity":1}`)
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", addr
	go func() {
		if res, err := http.DefaultClient.Do(r); err == nil {
			_ = res.Body.Close()
		}
	}()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := f.buyers.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-ended // the handler's context went with the door
}

// A request that may take minutes can be asked again; a stop does not wait for it.
func TestStopEndsLongRequestsWithAnAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	entered := make(chan struct{})
	d := operatorsDoor{f.operators, OperatorsDeps{}}
	d.add([]route{{http.MethodGet, "/long", anyone, func(ctx context.Context, _ echo.Context, _ Identity) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}, true}})
	addr, err := d.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := make(chan int, 1)
	go func() {
		res, err := http.Get("http://" + addr + "/long") //nolint:noctx // ends with the door
		if err != nil {
			status <- 0
			return
		}
		_ = res.Body.Close()
		status <- res.StatusCode
	}()
	<-entered
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("status %d", got)
	}
}

func TestStopWithoutStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	addr, err := f.buyers.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.buyers.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		t.Error("the port is still held")
	}
	if err := f.operators.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	t.Parallel()
	first := newFixture(t)
	addr := listening(t, first)
	second := newFixture(t, func(c *Config) { c.Addr = addr })
	if err := second.buyers.Start(t.Context()); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("got %v", err)
	}
}

// A long route outlives the deadlines of the connection, a short one keeps its own.
func TestALongRouteOutlivesTheServersTimeouts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) {
		c.ReadTimeout, c.WriteTimeout, c.RequestTimeout = 200*time.Millisecond, 300*time.Millisecond, 100*time.Millisecond
	})
	held := make(chan struct{})
	time.AfterFunc(time.Second, func() { close(held) })
	f.verify = func(string) (application.Verification, error) {
		<-held
		return application.Verification{At: someTime, Holds: true}, nil
	}
	if err := f.operators.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.operators.Stop(context.Background()) }()
	addr, err := f.operators.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/admin/v1/verification", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+f.token(t, "op", "ops:read"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if v := decodeInto[application.Verification](t, res); res.StatusCode != 200 || !v.Holds {
		t.Errorf("%d %+v", res.StatusCode, v)
	}
}
