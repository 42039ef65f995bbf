package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// intendedAt is when the nth request of a steady rate is due. What follows a slow answer is late by as much, and its
// latency says so: a load that waits for its answers would leave just those out.
func intendedAt(began time.Time, n int64, rate float64) time.Time {
	return began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
}

// sleepUntil waits for a time, and is false when ctx ends first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// steadily does something at a steady rate with so many hands for the time of a window, and gives the microseconds from
// when each was intended. The first error ends it.
func steadily(ctx context.Context, rate float64, hands int, window time.Duration, do func(context.Context) error) (*hdrhistogram.Histogram, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	until := began.Add(window)
	parts := make([]*hdrhistogram.Histogram, hands)
	for n := range parts {
		parts[n] = newLatency()
		wg.Go(func() {
			for {
				intended := intendedAt(began, next.Add(1)-1, rate)
				if !intended.Before(until) || !sleepUntil(ctx, intended) {
					return
				}
				if err := do(ctx); err != nil {
					cancel(err)
					return
				}
				_ = parts[n].RecordValue(max(time.Since(intended).Microseconds(), 1))
			}
		})
	}
	wg.Wait()
	all := newLatency()
	for _, p := range parts {
		all.Merge(p)
	}
	return all, context.Cause(ctx)
}
