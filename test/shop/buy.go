package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/adapters/echohttp"
	"seckill/application"
	"seckill/bootstrap/rehearse"
	"seckill/domain"
	"seckill/test/apidoc"
)

var (
	buyerScopes    = []string{"order:create", "order:read", "order:cancel"}
	operatorScopes = []string{"stock:admin", "reconcile:run", "ops:read"}
)

// Answer is an HTTP answer, or the error that came instead.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
}

// Code is the problem's code; empty where the answer is no problem.
func (a Answer) Code() domain.Code {
	var p struct {
		Code domain.Code `json:"code"`
	}
	_ = json.Unmarshal(a.Body, &p)
	return p.Code
}

// Text is the answer's member of that name, as text; empty where it is not there.
func (a Answer) Text(member string) string {
	var m map[string]any
	_ = json.Unmarshal(a.Body, &m)
	if v, ok := m[member]; ok && v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// String shows the answer in a failure.
func (a Answer) String() string { return fmt.Sprintf("%d %s %v", a.Status, a.Body, a.Err) }

// Accepted reports whether the buyer was told that the order appears.
func (a Answer) Accepted() bool { return a.Status == http.StatusAccepted || a.Status == http.StatusOK }

// Definite reports whether the answer is one that stands.
func (a Answer) Definite() bool {
	return a.Err == nil && (a.Accepted() || a.Status >= 400 && a.Status < 500 && a.Status != http.StatusTooManyRequests)
}

// Client keeps connections; each request ends after 20 s.
var client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: 10 * time.Second}}

// Token is a buyer's bearer token.
func (s *Shop) Token(sub string) string {
	token, err := s.tokens.Issue(sub, buyerScopes, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// TokenOf is a token with a valid signature for any sub, also for one that the service would never issue.
func (s *Shop) TokenOf(sub string) string {
	now := time.Now()
	claims := jwt.MapClaims{"sub": sub, "iss": "seckill", "aud": "seckill", "scope": strings.Join(buyerScopes, " "),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(key))
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// OperatorToken has every operator's scope.
func (s *Shop) OperatorToken() string {
	token, err := s.tokens.Issue("operator", operatorScopes, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// Ask sends a request; header pairs follow the body. Answers are held against the OpenAPI document.
func (s *Shop) Ask(ctx context.Context, method, url, token string, body any, header ...string) Answer {
	var sent []byte
	if raw, ok := body.(string); ok {
		sent = []byte(raw)
	} else if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return Answer{Err: err}
		}
		sent = b
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(sent))
	if err != nil {
		return Answer{Err: err}
	}
	req.GetBody = nil // else a request with an Idempotency-Key whose connection breaks is sent again, unseen
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err == nil {
		s.holdAgainstDocument(req, sent, res, b)
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: b, Err: err}
}

// checksMax is how often one operation's answers of one status are held against the document, for a run of tests.
const checksMax = 50

var (
	readDocument = sync.OnceValues(func() (*apidoc.Document, error) { return apidoc.Read(echohttp.OpenAPI()) })
	checked      sync.Map // what was asked and answered → *atomic.Int64
)

func (s *Shop) holdAgainstDocument(req *http.Request, sent []byte, res *http.Response, body []byte) {
	document, err := readDocument()
	if err != nil {
		s.t.Error(err)
		return
	}
	times, _ := checked.LoadOrStore(fmt.Sprint(document.Operation(req), res.StatusCode), new(atomic.Int64))
	if times.(*atomic.Int64).Add(1) > checksMax {
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(sent))
	if err := document.Check(req, res, body); err != nil {
		s.t.Error(err)
	}
}

// Buy is D(product, user, token, quantity).
func (s *Shop) Buy(ctx context.Context, product, user, token string, quantity int64) Answer {
	return s.Ask(ctx, http.MethodPost, s.Buyers()+"/api/v1/products/"+product+"/orders", s.Token(user),
		map[string]int64{"quantity": quantity}, "Idempotency-Key", token)
}

// Order asks for the user's own order.
func (s *Shop) Order(product, user, token string) Answer {
	return s.Ask(context.Background(), http.MethodGet, s.Buyers()+"/api/v1/products/"+product+"/orders/"+token, s.Token(user), nil)
}

// Cancel cancels the user's own order.
func (s *Shop) Cancel(product, user, token string) Answer {
	return s.Ask(context.Background(), http.MethodDelete, s.Buyers()+"/api/v1/products/"+product+"/orders/"+token, s.Token(user), nil)
}

// WaitOrder waits until the user's own order has that status.
func (s *Shop) WaitOrder(product, user, token, status string) {
	s.t.Helper()
	Eventually(s.t, time.Minute, "order "+token+" of "+user, func() (bool, string) {
		a := s.Order(product, user, token)
		return a.Status == http.StatusOK && a.Text("status") == status, a.String()
	})
}

// Admin asks the operators' door.
func (s *Shop) Admin(method, path string, body any) Answer {
	return s.Ask(context.Background(), method, s.Operators()+path, s.OperatorToken(), body)
}

// OpenSale puts a product on sale and waits until it is open.
func (s *Shop) OpenSale(product string, total int64, limit int64) {
	s.t.Helper()
	body := map[string]int64{"total": total}
	if limit > 0 {
		body["limitPerBuyer"] = limit
	}
	if a := s.Admin(http.MethodPut, "/admin/v1/products/"+product, body); a.Status != http.StatusCreated && a.Status != http.StatusOK {
		s.t.Fatalf("put %s on sale: %v", product, a)
	}
	s.WaitOpen(product)
}

// WaitOpen waits until buyers can be served: the ledger says open and the gate is not shut.
func (s *Shop) WaitOpen(product string) {
	s.t.Helper()
	Eventually(s.t, 90*time.Second, "open "+product, func() (bool, string) {
		v, a := s.Stock(product)
		return a.Status == http.StatusOK && v.State == "open" && v.Gate != nil && !v.Gate.Shut, a.String()
	})
}

// Stock is the operator's view of a product.
func (s *Shop) Stock(product string) (v application.StockView, a Answer) {
	a = s.Admin(http.MethodGet, "/admin/v1/products/"+product, nil)
	_ = json.Unmarshal(a.Body, &v)
	return v, a
}

// Pipeline is what is on its way.
func (s *Shop) Pipeline() (v application.PipelineView) {
	a := s.Admin(http.MethodGet, "/admin/v1/pipeline", nil)
	_ = json.Unmarshal(a.Body, &v)
	return v
}

// Verify asks the service for the verdict on A to E of a product.
func (s *Shop) Verify(product string) (v application.Verification, a Answer) {
	a = s.Admin(http.MethodGet, "/admin/v1/verification?productId="+product, nil)
	_ = json.Unmarshal(a.Body, &v)
	return v, a
}

// HoldsEventually waits until A to E hold for the product, by themselves, within a minute and a half.
func (s *Shop) HoldsEventually(product string) application.Verification {
	s.t.Helper()
	var v application.Verification
	Eventually(s.t, 90*time.Second, "A to E of "+product, func() (bool, string) {
		var a Answer
		v, a = s.Verify(product)
		return v.Holds, a.String()
	})
	return v
}

// Rehearse lets a crowd in; the report must have no violation.
func (s *Shop) Rehearse(cfg rehearse.Config) rehearse.Report {
	s.t.Helper()
	cfg.Target, cfg.Admin, cfg.OperatorToken = s.Buyers(), s.Operators(), s.OperatorToken()
	cfg.BuyerToken = func(sub string) (string, error) { return s.tokens.Issue(sub, buyerScopes, time.Hour) }
	report, err := rehearse.Run(context.Background(), cfg, testWriter{s.t}, io.Discard)
	if err != nil {
		s.t.Fatal(err)
	}
	if report.Violations() {
		s.t.Fatalf("the rehearsal found a violation: %+v", report.Invariants)
	}
	return report
}

// VerifyJournal stops nothing and asks the command, which opens the servers itself, to judge what clients were told.
func (s *Shop) VerifyJournal(entries []application.JournalEntry) application.Verification {
	s.t.Helper()
	return s.VerifyJournalOf("", entries)
}

// VerifyJournalOf is VerifyJournal for one product; empty: all.
func (s *Shop) VerifyJournalOf(product string, entries []application.JournalEntry) application.Verification {
	s.t.Helper()
	if s.RunsHere() { // its folder has room for one
		v, err := s.here.app.Verify.Verify(context.Background(), product, entries)
		if err != nil {
			s.t.Fatal(err)
		}
		return v
	}
	f, err := os.CreateTemp(s.folder, "journal-*.jsonl")
	if err != nil {
		s.t.Fatal(err)
	}
	enc := json.NewEncoder(f)
	for _, e := range entries {
		if err := enc.Encode(e); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		s.t.Fatal(err)
	}
	out, err := s.Run("verify", "--product", product, "--journal", f.Name(), "-o", "json")
	var v application.Verification
	if jsonErr := json.NewDecoder(strings.NewReader(out)).Decode(&v); jsonErr != nil {
		s.t.Fatalf("verify: %v, %v: %s", err, jsonErr, out)
	}
	return v
}

// Eventually polls until ok, each tenth of a second, and fails the test with the last note after within.
func Eventually(t testing.TB, within time.Duration, what string, check func() (ok bool, note string)) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		ok, note := check()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s; last seen: %s", within, what, note)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}
