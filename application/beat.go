package application

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// beat does one piece of work again and again, with a pause after each, until it is stopped. It is
// the Start and Stop of everything that looks after something each second.
type beat struct {
	pause time.Duration
	limit time.Duration // for one round
	do    func(context.Context)
	log   *slog.Logger

	once   sync.Once
	cancel context.CancelFunc
	done   chan struct{}
}

func newBeat(pause, limit time.Duration, log *slog.Logger, do func(context.Context)) *beat {
	return &beat{pause: pause, limit: limit, do: do, log: log, done: make(chan struct{})}
}

// Start begins; the first round comes at once. A second Start does nothing.
func (b *beat) Start(context.Context) error {
	b.once.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		b.cancel = cancel
		go b.run(ctx)
	})
	return nil
}

// Stop ends the round under way and waits for it, at most until ctx ends.
func (b *beat) Stop(ctx context.Context) error {
	b.once.Do(func() { b.cancel = func() {}; close(b.done) })
	b.cancel()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *beat) run(ctx context.Context) {
	defer close(b.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			b.round(ctx)
			timer.Reset(b.pause)
		}
	}
}

// round survives a panic: one bad round must not end all the later ones.
func (b *beat) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	defer logPanic(b.log, "round")
	b.do(ctx)
}

// logPanic is deferred where a panic must not go further.
func logPanic(log *slog.Logger, where string) {
	if cause := recover(); cause != nil {
		reportPanic(log, where, cause)
	}
}

func reportPanic(log *slog.Logger, where string, cause any) {
	log.Error("a panic was caught", "event", "panic", "where", where, "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
}

// sparse lets one through each second, so that an outage does not fill the log.
type sparse struct{ next atomic.Int64 }

func (s *sparse) pass() bool {
	now, next := time.Now().UnixNano(), s.next.Load()
	return now >= next && s.next.CompareAndSwap(next, now+int64(time.Second))
}
