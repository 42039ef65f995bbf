package redislua

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/application/port"
	"seckill/domain"
)

var benchBatches = []int{1, 64, 256}

// benchDeduct measures deductions through the gate, and the same script by the bare client.
func benchDeduct(b *testing.B, client redis.UniversalClient, cfg Config) {
	gate := newGate(b, client, cfg)
	for _, batch := range benchBatches {
		b.Run(fmt.Sprintf("gate/batch=%d", batch), func(b *testing.B) {
			product := "bench-" + strconv.Itoa(batch)
			forget(b, client, gate.keys, product)
			sell(b, gate, product, domain.UnitsMax)
			items := make([]port.DeductItem, batch)
			n := 0
			for b.Loop() {
				for i := range items {
					n++
					items[i] = item(b, product, "user-"+strconv.Itoa(n), "0123456789abcdef", 1, "0123456789abcdef0123456789abcdef")
				}
				for _, r := range gate.Deduct(b.Context(), saleTime, items) {
					if r.Outcome != port.DeductAccepted {
						b.Fatalf("%+v", r)
					}
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deductions/s")
		})
		b.Run(fmt.Sprintf("bare/batch=%d", batch), func(b *testing.B) {
			product := "bare-" + strconv.Itoa(batch)
			forget(b, client, gate.keys, product)
			sell(b, gate, product, domain.UnitsMax)
			n := 0
			for b.Loop() {
				keys := []string{gate.keys.stock(product), gate.keys.open(product), gate.keys.stock(product)}
				args := []any{cfg.Identity, "0", "0", "", "1000000", "1700000000123"}
				for range batch {
					n++
					user := "user-" + strconv.Itoa(n)
					keys = append(keys, gate.keys.flows(product, user))
					args = append(args, user, "0123456789abcdef", "1", "0123456789abcdef0123456789abcdef")
				}
				pipe := client.Pipeline()
				deductScript.EvalSha(b.Context(), pipe, keys, args...)
				if _, err := pipe.Exec(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deductions/s")
		})
	}
}

func BenchmarkDeductOnMiniredis(b *testing.B) {
	benchDeduct(b, miniClient(b), Config{Identity: "here"})
}
