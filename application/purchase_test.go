package application_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

var quietLog = slog.New(slog.DiscardHandler)

// suspectList keeps what was suspected, in order.
type suspectList struct {
	mu   sync.Mutex
	list []string
}

func (s *suspectList) Suspect(product, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, product)
}

func (s *suspectList) products() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.list...)
}

func (s *suspectList) has(product string) bool {
	for _, p := range s.products() {
		if p == product {
			return true
		}
	}
	return false
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func keyIn(product, token string) domain.Key { return must(domain.NewKey(product, "u-"+token, token)) }

func commandFor(k domain.Key) domain.DeductCommand {
	return must(domain.NewDeductCommand(k.Product(), k.User(), k.Token(), 1))
}

func flowIn(k domain.Key, state domain.FlowState, sequence int64) domain.Flow {
	return must(domain.NewFlow(domain.FlowFields{Key: k, Quantity: 1, From: 5, To: 4, State: state, Epoch: 3,
		Sequence: sequence, Attempt: "a-1", At: time.UnixMilli(1_700_000_000_000)}))
}

func itemOf(k domain.Key) domain.Deduction {
	return domain.DeductionOf(flowIn(k, domain.FlowDeducted, 7))
}

func orderIn(k domain.Key, status domain.OrderStatus) domain.Order {
	return must(domain.NewOrder(domain.OrderFields{ID: "id-" + k.Token(), Key: k, Quantity: 1, Status: status, FromBirth: true,
		Epoch: 3, Sequence: 7, StockVersion: 9, CreatedAt: time.UnixMilli(1_700_000_000_000)}))
}

func stockIn(product string, state domain.SaleState) domain.Stock {
	return must(domain.NewStock(domain.StockFields{Product: product, Total: 10, Stock: 10, Version: 1, Epoch: 3, State: state}))
}

func batchOf(items ...domain.Deduction) domain.Batch {
	return domain.Batch{ID: "b-1", Kind: domain.BatchDeduct, Items: items}
}

func plainOf(k domain.Key) domain.Batch {
	return domain.Batch{Kind: domain.BatchDeduct, Plain: true, Items: []domain.Deduction{{Key: k, Quantity: 1}}}
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if err == nil || domain.CodeOf(err) != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
}

// startRunner starts a runner and stops it when the test ends.
func startRunner(t *testing.T, r application.Runner) {
	t.Helper()
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopRunner(t, r) })
}

func stopRunner(t *testing.T, r application.Runner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		t.Errorf("%s does not stop: %v", r.Name(), err)
	}
}

// allReplies gives every item the same reply.
func allReplies(n int, r port.DeductReply) []port.DeductReply {
	replies := make([]port.DeductReply, n)
	for i := range replies {
		replies[i] = r
	}
	return replies
}
