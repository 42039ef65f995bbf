package application

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"seckill/application/port"
)

// LeaseConfig bounds how long an instance may sell on what it last read.
type LeaseConfig struct {
	Interval time.Duration // between two reads
	Life     time.Duration // from the start of a read until it is void
}

// DefaultLeaseConfig reads each second; a rebuild waits for Life before it trusts that nobody sells.
func DefaultLeaseConfig() LeaseConfig {
	return LeaseConfig{Interval: time.Second, Life: 3 * time.Second}
}

// Lease reads each second which products are not open. It counts from the start of a read, since
// the answer may be as old as that, and on the monotonic clock, so that no jump of the wall
// clock makes a void lease valid.
type Lease struct {
	epochs port.Epochs
	cfg    LeaseConfig
	log    *slog.Logger
	beat   *beat
	warned sparse
	last   atomic.Pointer[leaseRead]
}

// leaseRead is one read: when it started, and what it found not to be open.
type leaseRead struct {
	started time.Time
	closed  map[string]struct{}
}

var (
	_ Leases = (*Lease)(nil)
	_ Runner = (*Lease)(nil)
)

// NewLease wires the use case.
func NewLease(epochs port.Epochs, cfg LeaseConfig, log *slog.Logger) *Lease {
	l := &Lease{epochs: epochs, cfg: cfg, log: log}
	l.beat = newBeat(cfg.Interval, cfg.Life, log, l.round)
	return l
}

// Name implements Runner.
func (l *Lease) Name() string { return "lease" }

// Start reads once, so that the first request finds a lease, and goes on by itself. Its error
// is that of the first read.
func (l *Lease) Start(ctx context.Context) error {
	if err := l.Refresh(ctx); err != nil {
		return err
	}
	return l.beat.Start(ctx)
}

// Stop implements Runner.
func (l *Lease) Stop(ctx context.Context) error { return l.beat.Stop(ctx) }

// MaySell implements Leases.
func (l *Lease) MaySell(product string) bool {
	last := l.last.Load()
	if last == nil || time.Since(last.started) >= l.cfg.Life {
		return false
	}
	_, closed := last.closed[product]
	return !closed
}

// Refresh reads now. A read that started before the one that stands is dropped.
func (l *Lease) Refresh(ctx context.Context) error {
	read := &leaseRead{started: time.Now()}
	stocks, err := l.epochs.Suspended(ctx)
	if err != nil {
		return fmt.Errorf("read which products are suspended: %w", err)
	}
	read.closed = make(map[string]struct{}, len(stocks))
	for _, s := range stocks {
		read.closed[s.Product()] = struct{}{}
	}
	for {
		last := l.last.Load()
		if last != nil && last.started.After(read.started) || l.last.CompareAndSwap(last, read) {
			return nil
		}
	}
}

func (l *Lease) round(ctx context.Context) {
	if err := l.Refresh(ctx); err != nil && l.warned.pass() {
		l.log.Warn("the lease could not be renewed", "event", "lease_failed", "error", err)
	}
}
