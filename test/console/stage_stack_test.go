//go:build stack

package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/adapters/echohttp/console"
	"seckill/application"
)

// asked is a call of the page to the operators' API.
type asked struct {
	what  string // method and path below the API's
	key   string // of idempotency
	query url.Values
	body  map[string]any
}

// stage is the real page and hub with numbers and answers that a test makes up.
type stage struct {
	at      string
	console *console.Console

	mu      sync.Mutex
	view    application.Overview
	answers map[string]func(asked) (int, any) // by method and path; the longest that fits
	calls   []asked
	expired bool
}

// onStage opens the curtain: everything reads well, one product is on sale, nothing is parked.
func onStage(t *testing.T, more ...func(*console.Config)) *stage {
	t.Helper()
	until, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	s := &stage{answers: map[string]func(asked) (int, any){
		"GET parked": func(asked) (int, any) { return 200, items() }, "GET reconciliations": func(asked) (int, any) { return 200, items() }}}
	s.view = application.Overview{Listed: true, Answers: []application.AnswerCount{{Answer: "accepted"}, {Answer: "not-enough", Refuses: true}},
		Pipeline: application.PipelineView{OpenFlows: new(int64(0)), LagMessages: new(int64(0)), UntoldOrders: new(int64(0)), Parked: new(int64(0)),
			Intake: application.IntakeOpen, Suspended: []string{}},
		Parts:    map[string]application.PartStatus{"gate": {OK: true}, "broker": {OK: true}, "ledger": {OK: true}},
		Products: []application.ProductLine{lineOf("phone", 100, 40)}}
	cfg := console.Config{Verify: s.verify, Look: s.look, About: console.About{Version: "v1", Profile: "stack", Started: time.Now()},
		Until: until, Spawn: running.Go, Log: slog.New(slog.DiscardHandler)}
	for _, change := range more {
		change(&cfg)
	}
	s.console = console.New(cfg)
	mux := http.NewServeMux()
	for _, r := range s.console.Routes() {
		mux.HandleFunc(r.Method+" "+strings.Replace(r.Path, ":name", "{name}", 1), func(w http.ResponseWriter, req *http.Request) { s.tell(w, r.Handle(w, req)) })
	}
	mux.HandleFunc(console.APIPath+"/", s.api)
	server := httptest.NewServer(mux)
	t.Cleanup(func() { stop(); server.CloseClientConnections(); server.Close(); running.Wait() })
	s.at = server.URL + console.Path
	return s
}

// lineOf is a product at rest.
func lineOf(product string, total, sold int64) application.ProductLine {
	left := total - sold
	return application.ProductLine{Product: product, State: "open", Epoch: new(int64(1)), Sequence: new(sold), Total: &total, Sold: &sold, Confirmed: &sold,
		Gate: &left, Ledger: &left, InFlight: new(int64(0)), Drift: new(int64(0)), Balance: application.VerdictHolds, BalanceNote: "agree at rest"}
}

func items(list ...any) map[string]any {
	if list == nil {
		list = []any{}
	}
	return map[string]any{"items": list, "next": nil}
}

// scopes of the stage's tokens.
var scopes = map[string][]string{"all": {"ops:read", "stock:admin", "reconcile:run"}, "reader": {"ops:read"}, "buyer": {"order:create"}}

func (s *stage) verify(token string) (console.Visitor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	granted, known := scopes[token]
	if !known || s.expired {
		return console.Visitor{}, errors.New("not valid")
	}
	return console.Visitor{Subject: token, May: func(scope string) bool { return slices.Contains(granted, scope) }}, nil
}

func (s *stage) look(context.Context) application.Overview {
	s.mu.Lock()
	defer s.mu.Unlock()
	view := s.view
	view.At = time.Now()
	view.Products = slices.Clone(view.Products)
	return view
}

// show changes what the next look sees.
func (s *stage) show(change func(*application.Overview)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.view)
}

// on answers a call, such as "POST products/phone/pause".
func (s *stage) on(what string, answer func(asked) (int, any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[what] = answer
}

// called are the calls that change something, so far.
func (s *stage) called() (all []asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if !strings.HasPrefix(c.what, "GET ") {
			all = append(all, c)
		}
	}
	return all
}

func refusal(status int, code, title string) func(asked) (int, any) {
	return func(asked) (int, any) {
		return status, map[string]any{"type": "/problems/" + code, "code": code, "title": title, "status": status}
	}
}

func (s *stage) api(w http.ResponseWriter, r *http.Request) {
	if _, err := s.console.Authorize(r); err != nil {
		s.tell(w, err)
		return
	}
	call := asked{what: r.Method + " " + strings.TrimPrefix(r.URL.Path, console.APIPath+"/"), key: r.Header.Get("Idempotency-Key"), query: r.URL.Query()}
	if text, _ := io.ReadAll(r.Body); len(text) > 0 {
		_ = json.Unmarshal(text, &call.body)
	}
	s.mu.Lock()
	s.calls = append(s.calls, call)
	answer, known := s.answers[call.what]
	s.mu.Unlock()
	if !known {
		answer = refusal(http.StatusNotFound, "no-such-route", "There is no such route")
	}
	status, body := answer(call)
	s.write(w, status, body)
}

func (s *stage) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// tell is what the operators' door does with the console's errors.
func (s *stage) tell(w http.ResponseWriter, err error) {
	switch {
	case err == nil:
	case errors.Is(err, console.ErrSignedOut):
		s.write(w, http.StatusUnauthorized, map[string]string{"code": "unauthenticated", "title": "A valid bearer token is needed"})
	case errors.Is(err, console.ErrFull):
		s.write(w, http.StatusServiceUnavailable, map[string]string{"code": "busy", "title": "The service is busy"})
	default:
		s.write(w, http.StatusForbidden, map[string]string{"code": "forbidden", "title": "The token does not grant this"})
	}
}

// play opens a window for the stage, signed in.
func (s *stage) play(t *testing.T, token string) *tab {
	t.Helper()
	b := open(t, s.at)
	b.signIn(token)
	return b
}
