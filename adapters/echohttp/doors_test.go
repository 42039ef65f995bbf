package echohttp

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/apidoc"
)

const testKey = "0123456789abcdef0123456789abcdef"

var allScopes = []string{"order:create", "order:read", "order:cancel", "stock:admin", "reconcile:run", "ops:read"}

// fakes stand in for every use case; each func is what one test needs of it.
type fakes struct {
	deduct    func(context.Context, domain.DeductCommand) (application.Receipt, error)
	order     func(domain.Key) (application.OrderView, error)
	cancel    func(domain.Key) (application.OrderView, error)
	public    func(string) (application.PublicStock, error)
	open      func(domain.Sale, port.Audit) (domain.Stock, bool, error)
	await     func(context.Context, domain.Key, time.Duration) (application.OrderView, error)
	pause     func(string, bool, port.Audit) (domain.Stock, error)
	only      string // edition that the last pause depended on
	edition   func(string) (string, error)
	change    func(domain.StockChange, port.Audit) (application.ChangeReceipt, error)
	changes   func(product, before string, limit int) ([]application.ChangeView, error)
	stock     func(string) (application.StockView, error)
	stocks    func(after string, limit int) ([]application.StockView, error)
	trace     func(domain.Key) (application.TraceView, error)
	reconcile func(application.ReconcileRequest) (application.ReconcileReport, error)
	reports   func(before string, limit int) ([]application.ReconcileReport, error)
	verify    func(string) (application.Verification, error)
	parked    func(reason port.ParkReason, product, before string, limit int) ([]port.Parked, error)
	replay    func(ids []string, reason port.ParkReason, product, after string, a port.Audit) ([]application.ReplayResult, string, error)
	rebuild   func(product string, lost application.LostPolicy, a port.Audit) (application.RebuildAnswer, error)
	parts     map[string]application.PartStatus
	away      bool
}

func (f *fakes) Deduct(ctx context.Context, c domain.DeductCommand) (application.Receipt, error) {
	return f.deduct(ctx, c)
}
func (f *fakes) Check(context.Context) (map[string]application.PartStatus, bool) {
	return f.parts, !f.away
}

type fakeOrders struct{ *fakes }

func (f fakeOrders) Show(_ context.Context, k domain.Key) (application.OrderView, error) {
	return f.order(k)
}

func (f fakeOrders) Await(ctx context.Context, k domain.Key, wait time.Duration) (application.OrderView, error) {
	return f.await(ctx, k, wait)
}

func (f fakeOrders) Cancel(_ context.Context, k domain.Key) (application.OrderView, error) {
	return f.cancel(k)
}

type fakeStock struct{ *fakes }

func (f fakeStock) Public(_ context.Context, p string) (application.PublicStock, error) {
	return f.public(p)
}
func (f fakeStock) Show(_ context.Context, p string) (application.StockView, error) {
	return f.stock(p)
}

func (f fakeStock) Edition(_ context.Context, p string) (string, error) { return f.edition(p) }

type fakeChanges struct{ *fakes }

func (f fakeChanges) Change(_ context.Context, c domain.StockChange, a port.Audit) (application.ChangeReceipt, error) {
	return f.change(c, a)
}
func (f fakeChanges) Show(_ context.Context, p, token string) (application.ChangeView, error) {
	return application.ChangeView{Product: p, Token: token, Delta: -2, Status: application.OrderPending, CreatedAt: someTime}, nil
}
func (f fakeChanges) List(_ context.Context, p, before string, limit int) ([]application.ChangeView, error) {
	return f.changes(p, before, limit)
}

func (f *fakes) Examine(context.Context) (application.Examination, error) {
	return application.Examination{At: someTime, Wrong: 1, Checks: []application.ExamineCheck{{Part: "gate", Node: "r1:6379",
		Name: "maxmemory-policy", Verdict: application.VerdictWrong, Found: "allkeys-lru", Right: "noeviction", Why: "w", Change: "c", Matters: true}}}, nil
}

func (f fakeStock) List(_ context.Context, after string, limit int) ([]application.StockView, error) {
	return f.stocks(after, limit)
}

func (f *fakes) Trace(_ context.Context, k domain.Key) (application.TraceView, error) {
	return f.trace(k)
}

type fakeMetrics struct{}

func (fakeMetrics) Text() (kind string, body []byte, err error) {
	return "text/plain; version=0.0.4; charset=utf-8", []byte("# TYPE up gauge\nup 1\n"), nil
}

type fakePipeline struct{}

func (fakePipeline) Show(context.Context) application.PipelineView {
	return application.PipelineView{Intake: application.IntakeOpen}
}

func (f *fakes) Open(_ context.Context, s domain.Sale, a port.Audit) (domain.Stock, bool, error) {
	return f.open(s, a)
}
func (f *fakes) SetPaused(_ context.Context, p string, paused bool, only string, a port.Audit) (domain.Stock, error) {
	f.only = only
	return f.pause(p, paused, a)
}
func (f *fakes) Reconcile(_ context.Context, r application.ReconcileRequest) (application.ReconcileReport, error) {
	return f.reconcile(r)
}
func (f *fakes) Report(_ context.Context, id string) (application.ReconcileReport, error) {
	return application.ReconcileReport{ID: id, Mode: "apply", Policy: "send-again"}, nil
}
func (f *fakes) Reports(_ context.Context, before string, limit int) ([]application.ReconcileReport, error) {
	return f.reports(before, limit)
}
func (f *fakes) Verify(_ context.Context, p string, _ []application.JournalEntry) (application.Verification, error) {
	return f.verify(p)
}
func (f *fakes) List(_ context.Context, reason port.ParkReason, product, before string, limit int) ([]port.Parked, error) {
	return f.parked(reason, product, before, limit)
}

func (f *fakes) ReplayOne(_ context.Context, id string, a port.Audit) (application.ReplayResult, error) {
	results, _, err := f.replay([]string{id}, "", "", "", a)
	if err != nil {
		return application.ReplayResult{}, err
	}
	return results[0], nil
}
func (f *fakes) ReplayThese(_ context.Context, ids []string, a port.Audit) ([]application.ReplayResult, error) {
	results, _, err := f.replay(ids, "", "", "", a)
	return results, err
}
func (f *fakes) ReplayMatching(_ context.Context, reason port.ParkReason, product, after string, a port.Audit) ([]application.ReplayResult, string, error) {
	return f.replay(nil, reason, product, after, a)
}

func (f *fakes) Rebuild(_ context.Context, product string, lost application.LostPolicy, a port.Audit) (application.RebuildAnswer, error) {
	return f.rebuild(product, lost, a)
}

var someTime = time.Date(2030, 1, 2, 3, 4, 5, 6_789_000, time.UTC)

// newFakes answers every call with something plausible.
func newFakes() *fakes {
	left := int64(7)
	return &fakes{
		deduct: func(_ context.Context, c domain.DeductCommand) (application.Receipt, error) {
			o := application.OrderView{Key: c.Key(), Quantity: c.Quantity(), Status: application.OrderPending, CreatedAt: someTime}
			return application.Receipt{Order: o, Remaining: 9}, nil
		},
		order: func(k domain.Key) (application.OrderView, error) {
			return application.OrderView{Key: k, Quantity: 1, Status: application.OrderConfirmed, CreatedAt: someTime}, nil
		},
		await: func(_ context.Context, k domain.Key, _ time.Duration) (application.OrderView, error) {
			return application.OrderView{Key: k, Quantity: 1, Status: application.OrderConfirmed, CreatedAt: someTime}, nil
		},
		edition: func(string) (string, error) { return "1.10.open.1", nil },
		cancel: func(k domain.Key) (application.OrderView, error) {
			return application.OrderView{Key: k, Quantity: 1, Status: application.OrderCancelled, CreatedAt: someTime}, nil
		},
		public: func(p string) (application.PublicStock, error) {
			return application.PublicStock{Product: p, State: "open", Total: 10, Remaining: &left, OpensAt: someTime}, nil
		},
		open: func(s domain.Sale, _ port.Audit) (domain.Stock, bool, error) {
			stock, err := stockOf(s.Product(), s.Total(), s.Terms())
			return stock, true, err
		},
		pause: func(p string, paused bool, _ port.Audit) (domain.Stock, error) {
			return stockOf(p, 10, domain.Terms{Paused: paused})
		},
		change: func(c domain.StockChange, _ port.Audit) (application.ChangeReceipt, error) {
			view := application.ChangeView{ID: "c1", Product: c.Key().Product(), Token: c.Key().Token(), Delta: c.Delta(), Status: application.OrderConfirmed, CreatedAt: someTime}
			return application.ChangeReceipt{Change: view}, nil
		},
		changes: func(string, string, int) ([]application.ChangeView, error) { return nil, nil },
		stock: func(p string) (application.StockView, error) {
			return application.StockView{Edition: "1.10.open.1", Product: p, State: "open", Total: 10, OpensAt: new(someTime), Gate: &application.GateSide{Remaining: 7, Epoch: 1, Server: "s"}}, nil
		},
		stocks: func(string, int) ([]application.StockView, error) { return []application.StockView{}, nil },
		trace: func(k domain.Key) (application.TraceView, error) {
			steps := []application.TraceStep{{Step: application.TraceDeducted, Source: "gate", State: application.TraceDone, At: new(someTime), Detail: "10 → 9"},
				{Step: application.TraceStored, Source: "broker", State: application.TraceUnknown}}
			return application.TraceView{Product: k.Product(), User: k.User(), Token: k.Token(), At: someTime, Status: application.OrderPending,
				Quantity: new(int64(1)), Steps: steps, Missing: []string{}, Unread: []string{"ledger"}, Next: "n",
				Flow:  &application.TraceFlow{Action: "deduct", State: "deducted", Change: -1, Epoch: 1, Sequence: 2, Attempt: "a", At: someTime},
				Order: &application.TraceOrder{ID: "o1", Status: "confirmed", Quantity: 1, CreatedAt: someTime, StockFlows: []application.TraceMovement{{OpType: "SECKILL", Quantity: 1, At: someTime}}}}, nil
		},
		reconcile: func(r application.ReconcileRequest) (application.ReconcileReport, error) {
			return application.ReconcileReport{ID: "00000000000000000000000000000001", PlanID: r.PlanID, Mode: r.Mode, Policy: r.Policy, Actor: r.Actor, Reason: r.Reason, StartedAt: someTime, FinishedAt: someTime}, nil
		},
		reports: func(string, int) ([]application.ReconcileReport, error) { return nil, nil },
		verify: func(string) (application.Verification, error) {
			return application.Verification{At: someTime, Holds: true, Invariants: []application.InvariantResult{{Name: "A", Title: "no oversell", Verdict: "holds"}}}, nil
		},
		parked: func(port.ParkReason, string, string, int) ([]port.Parked, error) { return nil, nil },
		rebuild: func(product string, _ application.LostPolicy, _ port.Audit) (application.RebuildAnswer, error) {
			return application.RebuildAnswer{Product: product, Was: "open", State: "suspended"}, nil
		},
		replay: func(ids []string, _ port.ParkReason, _, _ string, _ port.Audit) ([]application.ReplayResult, string, error) {
			results := []application.ReplayResult{}
			for _, id := range ids {
				results = append(results, application.ReplayResult{ID: id, Outcome: application.ReplayDone, Reason: port.ParkPoison})
			}
			return results, "", nil
		},
		parts: map[string]application.PartStatus{"gate": {OK: true, LastOK: someTime}, "broker": {AgeSeconds: -1, Detail: "not reachable"}},
	}
}

func stockOf(product string, total int64, terms domain.Terms) (domain.Stock, error) {
	return domain.NewStock(domain.StockFields{Product: product, Total: total, Stock: total, Version: 1, Epoch: 1,
		State: domain.SaleSuspended, Reason: "new", Terms: terms})
}

// lockedBuffer is a log that many requests write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fixture is both doors over one set of fakes.
type fixture struct {
	*fakes
	tokens            *Tokens
	log               *lockedBuffer
	buyers, operators *Door
}

func newFixture(t testing.TB, change ...func(*Config)) *fixture {
	t.Helper()
	tokens, err := NewTokens([]byte(testKey), "shop", "seckill")
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Addr, cfg.Tokens = "127.0.0.1:0", tokens
	for _, c := range change {
		c(&cfg)
	}
	f := &fixture{fakes: newFakes(), tokens: tokens, log: new(lockedBuffer)}
	log := slog.New(slog.NewJSONHandler(f.log, nil))
	f.buyers = NewBuyersDoor(cfg, BuyersDeps{f, fakeOrders{f.fakes}, fakeOrders{f.fakes}, fakeOrders{f.fakes}, fakeStock{f.fakes}, f}, log)
	f.operators = NewOperatorsDoor(cfg, OperatorsDeps{f, f, fakeChanges{f.fakes}, fakeStock{f.fakes}, f, f, fakePipeline{}, f, f, f, f, f, f, fakeMetrics{}}, log)
	return f
}

func (f *fixture) token(t testing.TB, sub string, scopes ...string) string {
	t.Helper()
	s, err := f.tokens.Issue(sub, scopes, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// request is built like a client would: method, target, body, and headers in pairs.
func request(method, target, body string, headers ...string) *http.Request {
	var r *http.Request
	if body == "" {
		r = httptest.NewRequest(method, target, nil)
	} else {
		r = httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// purchase is a good purchase but for what a test changes.
func (f *fixture) purchase(t testing.TB, product, key, body string) *http.Request {
	t.Helper()
	r := request("POST", "/api/v1/products/"+product+"/orders", body,
		"Authorization", "Bearer "+f.token(t, "alice", allScopes...))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

// serve asks a door and holds the answer against the document, in every test; and the request too, if it was taken.
func serve(t testing.TB, d *Door, r *http.Request) *http.Response {
	t.Helper()
	var asked bytes.Buffer // as far as the door reads
	r.Body = io.NopCloser(io.TeeReader(r.Body, &asked))
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	res := w.Result()
	body, _ := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(body))
	r.Body = io.NopCloser(&asked)
	if err := document(t).Check(r, res, body); err != nil {
		t.Fatal(err)
	}
	if id := document(t).OperationID(r); id != "" && !strings.Contains(string(body), string(codeNoSuchRoute)) { // of the other door
		checkModel(t, id, res, body)
	}
	return res
}

func decodeInto[T any](t testing.TB, res *http.Response) (v T) {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

func wantProblem(t testing.TB, res *http.Response, status int, code domain.Code) problem {
	t.Helper()
	p := decodeInto[problem](t, res)
	if res.StatusCode != status || p.Code != code || p.Status != status {
		t.Fatalf("got %d %s (%+v), want %d %s", res.StatusCode, p.Code, p, status, code)
	}
	if p.Type != "/problems/"+string(code) || p.Title == "" || p.Instance == "" || p.Instance != res.Header.Get(requestIDHeader) {
		t.Fatalf("not a whole problem: %+v", p)
	}
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("content type %q", got)
	}
	return p
}

var loadDocument = sync.OnceValues(func() (*apidoc.Document, error) { return apidoc.Read(openAPI) })

func document(t testing.TB) *apidoc.Document {
	t.Helper()
	doc, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
