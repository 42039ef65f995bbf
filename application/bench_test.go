package application_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"seckill/adapters/system"
	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

// instant is every server, each of which answers at once but for a pause.
type instant struct {
	port.Gate
	port.Ledger
	port.Outbox
	outcome port.DeductOutcome
	pause   time.Duration // of a deduction
}

func (s instant) Deduct(_ context.Context, _ time.Time, items []port.DeductItem) []port.DeductReply {
	time.Sleep(s.pause)
	replies := make([]port.DeductReply, len(items))
	for i, item := range items {
		replies[i] = port.DeductReply{Outcome: s.outcome, Remaining: 4}
		if s.outcome == port.DeductAccepted {
			replies[i].Flow = flowIn(item.Command.Key(), domain.FlowDeducted, 7)
		}
	}
	return replies
}

func (instant) Send(context.Context, domain.Batch) (port.SendResult, error) {
	return port.SendCommitted, nil
}
func (instant) BatchBytesMax() int           { return 30_000 }
func (instant) BytesOf(domain.Deduction) int { return 117 }

func (instant) Tell(_ context.Context, fates []domain.Fate) []port.TellOutcome {
	told := make([]port.TellOutcome, len(fates))
	for i := range told {
		told[i] = port.TellDone
	}
	return told
}

func (instant) MarkTold(context.Context, []domain.Order) error { return nil }

// BenchmarkLane is a purchase's way through the group commit, 256 buyers at a time, on servers that answer at
// once, or after about a round trip, so that there are batches.
func BenchmarkLane(b *testing.B) {
	for _, c := range []struct {
		name    string
		outcome port.DeductOutcome
		pause   time.Duration
	}{{"accepted", port.DeductAccepted, 0}, {"refused", port.DeductNotEnough, 0},
		{"a-round-trip", port.DeductAccepted, 100 * time.Microsecond}} {
		b.Run(c.name, func(b *testing.B) {
			outcome, server := c.outcome, instant{outcome: c.outcome, pause: c.pause}
			lane := application.NewDeductStock(server, server, nil, sellable{}, openIntake(), &suspectList{},
				system.Clock{}, system.NewIDs(), application.DefaultDeductConfig(), quietLog)
			if err := lane.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.SetParallelism(256 / runtime.GOMAXPROCS(0))
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				command := commandFor(keyIn("p", fmt.Sprint("t", n.Add(1))))
				for pb.Next() {
					if _, err := lane.Deduct(b.Context(), command); (err == nil) != (outcome == port.DeductAccepted) {
						b.Error(err)
					}
				}
			})
			stats := lane.Stats()
			b.ReportMetric(float64(stats.Commands)/float64(stats.Batches), "commands/batch")
			if err := lane.Stop(context.Background()); err != nil {
				b.Error(err)
			}
		})
	}
}

// written is a ledger that has every row at once.
type written struct {
	instant
	orders map[domain.Key]domain.Order
}

func (w written) Apply(_ context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
	replies := make([]port.ApplyReply, len(items))
	for i, item := range items {
		replies[i] = port.ApplyReply{Outcome: port.Applied, Order: w.orders[item.Deduction.Key]}
	}
	return port.ApplyResult{Replies: replies}, nil
}

// BenchmarkSettle is what the use case itself takes for four messages of 150 purchases.
func BenchmarkSettle(b *testing.B) {
	ledger := written{orders: map[domain.Key]domain.Order{}}
	deliveries := make([]port.Delivery, 4)
	for i := range deliveries {
		var items []domain.Deduction
		for n := range 150 {
			k := keyIn("p", fmt.Sprintf("t-%d-%d", i, n))
			items = append(items, itemOf(k))
			ledger.orders[k] = orderIn(k, domain.OrderConfirmed)
		}
		deliveries[i] = port.Delivery{Batch: batchOf(items...)}
	}
	settle := application.NewSettleDeductions(ledger, ledger, ledger, nil, nil, &suspectList{}, system.NewIDs(), system.Clock{},
		nil, application.DefaultSettleConfig(), quietLog)
	b.ReportAllocs()
	for b.Loop() {
		if err := settle.Handle(b.Context(), deliveries); err != nil {
			b.Fatal(err)
		}
	}
}
