package echohttp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill/adapters/system"
	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

// discard is a ResponseWriter that costs nothing.
type discard struct {
	h      http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(status int)      { d.status = status }

// buyers sends one purchase after the other into a door, without a connection.
type buyers struct {
	door    http.Handler
	request *http.Request
	body    *strings.Reader
	bearers [][]string
	status  int // that each answer must have
}

func newBuyers(b *testing.B, f *fixture, door http.Handler, status int) *buyers {
	b.Helper()
	s := &buyers{door: door, body: strings.NewReader(`{"quantity":1}`), bearers: make([][]string, 1024), status: status}
	for i := range s.bearers {
		s.bearers[i] = []string{"Bearer " + f.token(b, fmt.Sprint("buyer-", i), "order:create", "order:read")}
	}
	ctx, cancel := context.WithCancel(b.Context()) // as net/http makes one for each request
	b.Cleanup(cancel)
	s.request = httptest.NewRequestWithContext(ctx, "POST", "/api/v1/products/p1/orders", io.NopCloser(s.body))
	s.request.ContentLength = int64(s.body.Len())
	s.request.Header.Set("Content-Type", "application/json")
	s.request.Header.Set("Idempotency-Key", "k1")
	return s
}

func (s *buyers) run(b *testing.B) {
	b.ReportAllocs()
	var w discard
	for i := 0; b.Loop(); i++ {
		_, _ = s.body.Seek(0, io.SeekStart)
		s.request.Header["Authorization"] = s.bearers[i%len(s.bearers)]
		w = discard{h: http.Header{}}
		s.door.ServeHTTP(&w, s.request)
		if w.status != s.status {
			b.Fatalf("answered %d, want %d", w.status, s.status)
		}
	}
}

// BenchmarkPurchase is one purchase through Echo, guard, token and JSON, by what becomes of it; beside the bare one
// the rest shows what an answer costs, and "lane" adds the group commit on servers that answer at once.
func BenchmarkPurchase(b *testing.B) {
	cfg := Config{MaxInFlight: 1 << 20, RequestTimeout: 10 * time.Second}
	key, err := domain.NewKey("p1", "buyer-1", "k1")
	if err != nil {
		b.Fatal(err)
	}
	order := application.OrderView{Key: key, Quantity: 1, Status: application.OrderPending, CreatedAt: someTime}
	for _, c := range []struct {
		name   string
		deduct deductor
		status int
	}{
		{"bare", acceptAll{}, http.StatusAccepted},
		{"repeat", answerAlways{receipt: application.Receipt{Order: order, Remaining: 5, Replayed: true}}, http.StatusAccepted},
		{"refused", answerAlways{err: domain.NewError(domain.CodeStockNotEnough, "0 left", nil)}, http.StatusConflict},
		{"lane", lane(b), http.StatusAccepted},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newFixture(b)
			cfg.Tokens = f.tokens
			newBuyers(b, f, NewBuyersDoor(cfg, BuyersDeps{Deduct: c.deduct}, slog.New(slog.DiscardHandler)).Handler(), c.status).run(b)
		})
	}
}

// answerAlways is a lane that knows one answer.
type answerAlways struct {
	receipt application.Receipt
	err     error
}

func (a answerAlways) Deduct(context.Context, domain.DeductCommand) (application.Receipt, error) {
	return a.receipt, a.err
}

// lane is the real group commit on servers that answer at once.
func lane(b *testing.B) *application.DeductStock {
	b.Helper()
	server := instantServers{}
	d := application.NewDeductStock(server, server, nil, server, application.NewIntake(application.DefaultIntakeConfig()), nil,
		system.Clock{}, system.NewIDs(), application.DefaultDeductConfig(), slog.New(slog.DiscardHandler))
	if err := d.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Stop(context.Background()) })
	return d
}

type instantServers struct{ port.Gate }

func (instantServers) Deduct(_ context.Context, now time.Time, items []port.DeductItem) []port.DeductReply {
	replies := make([]port.DeductReply, len(items))
	for i, item := range items {
		flow, err := domain.NewFlow(domain.FlowFields{Key: item.Command.Key(), Quantity: 1, From: 5, To: 4,
			State: domain.FlowDeducted, Epoch: 1, Sequence: 1, Attempt: item.Attempt, At: now})
		replies[i] = port.DeductReply{Outcome: port.DeductAccepted, Flow: flow, Remaining: 4, Err: err}
	}
	return replies
}

func (instantServers) Send(context.Context, domain.Batch) (port.SendResult, error) {
	return port.SendCommitted, nil
}
func (instantServers) BatchBytesMax() int           { return 30_000 }
func (instantServers) BytesOf(domain.Deduction) int { return 117 }
func (instantServers) MaySell(string) bool          { return true }

func BenchmarkVerifyToken(b *testing.B) {
	f := newFixture(b)
	token := f.token(b, "alice", "order:create", "order:read")
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprintf("known=%t", known), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !known {
					f.tokens.verified.Remove(token)
				}
				if _, err := f.tokens.Verify(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
