package rehearse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// ErrGeneratorLate says that the open loop could not keep its own plan: its figures would say
// more about the generator than about the service.
var ErrGeneratorLate = errors.New("the load generator is late")

// ErrSilent says that the service gave no definite answer for the whole settle time.
var ErrSilent = errors.New("the service has given no definite answer")

// repeatBehind is how many other buyers of its connection come before a late repeat.
const repeatBehind = 8

// load sends every buyer, and stops early when the service has gone silent.
func (r *rehearsal) load(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.tally.lastDefinite.Store(time.Now().UnixNano())
	r.loadStart = time.Now()
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { r.watchSilence(cancel, done) })
	watch.Go(func() { r.watchRows(ctx, done) })
	var err error
	if r.cfg.Rate > 0 {
		err = r.openLoop(ctx)
	} else {
		r.closedLoop(ctx)
	}
	close(done)
	watch.Wait()
	r.loadEnd = time.Now()
	return errors.Join(err, context.Cause(ctx))
}

func (r *rehearsal) watchSilence(cancel context.CancelCauseFunc, done <-chan struct{}) {
	tick := time.NewTicker(min(time.Second, r.cfg.Settle))
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if quiet := time.Since(time.Unix(0, r.tally.lastDefinite.Load())); quiet > r.cfg.Settle {
				cancel(fmt.Errorf("%w for %v", ErrSilent, quiet.Round(time.Second)))
				return
			}
		}
	}
}

// closedLoop keeps so many buyers at a time; each makes room for the next when it has its answer.
func (r *rehearsal) closedLoop(ctx context.Context) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.cfg.Connections, r.cfg.Buyers) {
		wg.Go(func() { r.connection(ctx, &next) })
	}
	wg.Wait()
}

func (r *rehearsal) connection(ctx context.Context, next *atomic.Int64) {
	type waiting struct {
		i int
		h held
	}
	var later []waiting
	repeatOldest := func() {
		w := later[0]
		later = append(later[:0], later[1:]...)
		r.repeat(ctx, w.i, w.h)
	}
	for ctx.Err() == nil {
		i := int(next.Add(1)) - 1
		if i >= r.cfg.Buyers {
			break
		}
		h := r.first(ctx, i, time.Now())
		if !r.crowd.repeatsLater(i) {
			r.finish(i, h)
			continue
		}
		later = append(later, waiting{i, h})
		if len(later) > repeatBehind {
			repeatOldest()
		}
	}
	for len(later) > 0 {
		repeatOldest()
	}
}

// repeat asks again for a buyer that has its answer, and keeps what it holds then.
func (r *rehearsal) repeat(ctx context.Context, i int, h held) {
	if ctx.Err() == nil {
		r.again(ctx, i, &h, loadTries)
		r.tally.repeats.Add(1)
	}
	r.finish(i, h)
}

// openLoop starts buyers by the plan, whether or not earlier ones have their answer.
func (r *rehearsal) openLoop(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, r.cfg.InFlightMax)
	for i := range r.cfg.Buyers {
		planned := r.loadStart.Add(time.Duration(float64(i) / r.cfg.Rate * float64(time.Second)))
		if !pause(ctx, time.Until(planned)) {
			return nil
		}
		r.tally.late(time.Since(planned))
		if late := time.Duration(r.tally.mostLate.Load()); late > r.cfg.LateMax {
			return fmt.Errorf("%w: buyer %d started %v behind the plan", ErrGeneratorLate, i, late.Round(time.Millisecond))
		}
		select {
		case slots <- struct{}{}:
		default:
			return fmt.Errorf("%w: %d buyers wait for an answer, there is no room for buyer %d", ErrGeneratorLate, cap(slots), i)
		}
		wg.Go(func() {
			defer func() { <-slots }()
			r.tally.late(time.Since(planned))
			h := r.first(ctx, i, planned)
			if !r.crowd.repeatsLater(i) {
				r.finish(i, h)
				return
			}
			pause(ctx, 50*time.Millisecond+rand.N(450*time.Millisecond)) //nolint:gosec // jitter, no secret
			r.repeat(ctx, i, h)
		})
	}
	return nil
}
