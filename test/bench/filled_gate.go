package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// filled is a product that has sold all it had, many flows long, all of them rows.
type filled struct {
	product string
	sold    int64
	bytes   float64 // of Redis' memory, for each flow
}

// filledGate fills a product once in a round.
func (r *round) filledGate(ctx context.Context) (*filled, error) {
	if r.filledSeen != nil {
		return r.filledSeen, nil
	}
	b, closeAll, err := r.newBacklog(true)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	client := redis.NewClient(&redis.Options{Addr: r.servers.redis})
	defer client.Close()
	_, products := r.names(1)
	f := &filled{product: products[0][:12] + "full", sold: int64(r.s.filled)} // 16 characters
	if err := r.open(ctx, r.s.admin, []string{f.product}, f.sold); err != nil {
		return nil, err
	}
	before, err := usedMemory(ctx, client)
	if err != nil {
		return nil, err
	}
	for left := r.s.filled; left > 0; { // a part at a time: the relay sends again what stays open for long
		n := min(left, r.s.backlog)
		if err := r.frozen(func() error { return b.fill(ctx, f.product, n) }); err != nil {
			return nil, err
		}
		left -= n
		if err := errors.Join(r.waitRows(ctx, f.product, f.sold-int64(left)), r.drain(ctx)); err != nil {
			return nil, err
		}
	}
	after, err := usedMemory(ctx, client)
	if err != nil {
		return nil, err
	}
	f.bytes = over(after-before, float64(f.sold))
	r.note("filled gate", map[string]float64{"flows": float64(f.sold), "bytesPerFlow": f.bytes})
	r.filledSeen = f
	return f, r.verify(ctx, r.s.admin, []string{f.product}, f.sold)
}

// usedMemory is what Redis has allocated.
func usedMemory(ctx context.Context, client *redis.Client) (float64, error) {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return parseUsedMemory(info)
}

func parseUsedMemory(info string) (float64, error) {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); found {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.New("redis does not say what it has allocated")
}

// playBytesPerFlow is figure 10.
func playBytesPerFlow(ctx context.Context, r *round) error {
	f, err := r.filledGate(ctx)
	if err == nil {
		r.result.record("10", f.bytes)
	}
	return err
}

// moreUnits is the most that one stock change adds.
const moreUnits = 1_000_000

// playFilledGate is figure 9: refusals while the product is sold out, then sales of units that are added.
func playFilledGate(ctx context.Context, r *round) error {
	f, err := r.filledGate(ctx)
	if err != nil {
		return err
	}
	emptyRefusals, err := r.refusals(ctx)
	if err != nil {
		return err
	}
	refused, err := r.refuse(ctx, "refusals, filled gate", f.product)
	if err != nil {
		return err
	}
	r.result.record("9b", over(refused, emptyRefusals))
	if err := r.operate(ctx, r.s.admin, http.MethodPost, "/admin/v1/products/"+f.product+"/stock-changes", ownName("more"),
		fmt.Appendf(nil, `{"delta":%d,"reason":"bench"}`, moreUnits), nil); err != nil {
		return err
	}
	if err := r.waitUnits(ctx, f.product); err != nil {
		return err
	}
	empty, err := r.sale(ctx)
	if err != nil {
		return err
	}
	seen, err := r.sell(ctx, "sales, filled gate", doors{r.s.target, r.s.admin}, []string{f.product}, f.sold)
	if err != nil {
		return err
	}
	f.sold += int64(seen.count)
	r.result.record("9a", over(seen.accepted, empty.accepted))
	return nil
}

// waitUnits waits until the gate has units again.
func (r *round) waitUnits(ctx context.Context, product string) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		v, err := r.product(ctx, r.s.admin, product)
		if err != nil {
			return err
		}
		if v.Gate != nil && v.Gate.Remaining > 0 {
			return nil
		}
		if !sleepUntil(ctx, time.Now().Add(drainLook)) {
			return fmt.Errorf("the added units are not on sale: %w", ctx.Err())
		}
	}
}

// playRebuild is figure 13c.
func playRebuild(ctx context.Context, r *round) error {
	f, err := r.filledGate(ctx)
	if err != nil {
		return err
	}
	before, err := r.product(ctx, r.s.admin, f.product)
	if err != nil {
		return err
	}
	if err := r.operate(ctx, r.s.admin, http.MethodPost, "/admin/v1/products/"+f.product+"/rebuild", "", []byte(`{"reason":"bench"}`), nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	for {
		v, err := r.product(ctx, r.s.admin, f.product)
		if err != nil {
			return err
		}
		if v.State == "open" && v.Epoch > before.Epoch && v.Gate != nil && !v.Gate.Shut {
			r.result.record("13c", v.LastClosedSeconds)
			return r.verify(ctx, r.s.admin, []string{f.product}, f.sold)
		}
		if !sleepUntil(ctx, time.Now().Add(drainLook)) {
			return fmt.Errorf("the gate is not rebuilt: %w", ctx.Err())
		}
	}
}

// playMemory is figure 14, on a service of its own: what others have left in its memory would be the ground.
func playMemory(ctx context.Context, r *round) (err error) {
	s, err := r.startService(ctx, "memory")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	_, products := r.names(1)
	if err := r.open(ctx, s.operators, products, plenty); err != nil {
		return err
	}
	ground, err := r.memoryAfter(ctx, s, products, r.s.groundSales)
	if err != nil {
		return err
	}
	end, err := r.memoryAfter(ctx, s, products, r.s.filled-r.s.groundSales)
	if err != nil {
		return err
	}
	r.note("memory", map[string]float64{"groundBytes": float64(ground.resident), "bytes": float64(end.resident),
		"groundGoroutines": float64(ground.goroutines), "goroutines": float64(end.goroutines)})
	r.result.record("14a", ratio(end.resident, ground.resident))
	r.result.record("14b", ratio(end.goroutines, ground.goroutines))
	return r.verify(ctx, s.operators, products, int64(r.s.filled))
}

// footprint is what a process holds.
type footprint struct{ resident, goroutines int64 }

// memoryAfter reads it when so many more purchases are rows.
func (r *round) memoryAfter(ctx context.Context, s *service, products []string, count int) (footprint, error) {
	if count > 0 {
		c := r.crowd(s.buyers, products)
		c.window, c.count = 0, int64(count)
		if _, err := r.let(ctx, c); err != nil {
			return footprint{}, err
		}
	}
	if err := r.drainAt(ctx, s.operators); err != nil {
		return footprint{}, err
	}
	f := footprint{resident: residentBytes(s.pid())}
	if f.resident == 0 {
		return f, fmt.Errorf("%w: /proc", errNeeds)
	}
	var err error
	f.goroutines, err = r.goroutines(ctx, s.operators)
	return f, err
}

// goroutines are those that the service's profile counts.
func (b *bench) goroutines(ctx context.Context, admin string) (n int64, err error) {
	text, err := b.read(ctx, admin, http.MethodGet, "/debug/pprof/goroutine?debug=1", "", nil)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(text), "goroutine profile: total %d", &n)
	return n, err
}
