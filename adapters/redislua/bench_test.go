package redislua

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/application/port"
	"seckill/domain"
)

// What a benchmark's deductions share; the attempt is as long as the service's own.
const (
	benchToken   = "0123456789abcdef"
	benchAttempt = "abcdefgh-1234"
)

// benchDeduct measures deductions through the port, and the same script at the same batch size by the bare client,
// which is told the same and reads nothing of the replies. "benchstat -col /by" sets them side by side.
func benchDeduct(b *testing.B, client redis.UniversalClient, cfg Config) {
	for _, size := range []struct{ products, batch int }{{1, 1}, {1, 64}, {1, 256}, {64, 64}, {64, 256}} {
		for _, way := range []struct {
			by     string
			deduct func(context.Context, *testing.B, *Gate, []string, []string)
		}{{"port", byPort}, {"script", byScript}} {
			b.Run(fmt.Sprintf("by=%s/products=%d/batch=%d", way.by, size.products, size.batch), func(b *testing.B) {
				gate := newGate(b, client, cfg) // one that remembers no earlier run
				products := make([]string, size.products)
				for i := range products {
					products[i] = fmt.Sprintf("bench-%d-%d", size.batch, i)
					forget(b, client, gate.keys, products[i])
					sell(b, gate, products[i], domain.UnitsMax)
				}
				users, n := make([]string, size.batch), 0
				b.ReportAllocs()
				for b.Loop() {
					for i := range users {
						n++
						users[i] = "user-" + strconv.Itoa(n)
					}
					way.deduct(b.Context(), b, gate, products, users)
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deductions/s")
			})
		}
	}
}

// byPort sells a unit to each user, going round the products.
func byPort(ctx context.Context, b *testing.B, gate *Gate, products, users []string) {
	items := make([]port.DeductItem, len(users))
	for i, user := range users {
		items[i] = item(b, products[i%len(products)], user, benchToken, 1, benchAttempt)
	}
	for _, r := range gate.Deduct(ctx, saleTime, items) {
		if r.Outcome != port.DeductAccepted {
			b.Fatalf("%+v", r)
		}
	}
}

func byScript(ctx context.Context, b *testing.B, gate *Gate, products, users []string) {
	pipe := gate.client.Pipeline()
	for p, product := range products {
		keys := []string{gate.keys.stock(product), gate.keys.open(product), gate.keys.stock(product)}
		args := []any{gate.cfg.Identity, "0", "0", "", "1000000", "1700000000123"}
		for i := p; i < len(users); i += len(products) {
			keys = append(keys, gate.keys.flows(product, users[i]))
			args = append(args, users[i], benchToken, "1", benchAttempt)
		}
		deductScript.EvalSha(ctx, pipe, keys, args...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkDeductOnMiniredis(b *testing.B) {
	benchDeduct(b, miniClient(b), Config{Identity: "here"})
}
