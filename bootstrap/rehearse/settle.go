package rehearse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill/application"
	"seckill/domain"
)

const (
	loadLook   = 200 * time.Millisecond
	drainLook  = 50 * time.Millisecond
	secondLook = 200 * time.Millisecond
)

// converge asks again for everyone whose answer is unknown, until all are definite or the
// settle time is over.
func (r *rehearsal) converge(ctx context.Context) {
	r.parallel(ctx, r.cfg.readers(), len(r.held), func(i int) {
		if r.held[i] != unknown {
			return
		}
		h := held{}
		for try := 1; h.kind == unknown; try++ {
			r.again(ctx, i, &h, 1)
			if h.kind == unknown && !pause(ctx, nextPause(min(try, 6), 0)) {
				return
			}
		}
		r.tally.buyer(unknown, "", -1)
		r.tally.buyer(h.kind, h.reason, 1)
		r.held[i] = h.kind
	})
}

// drain waits until every accepted order is a row and the service says that nothing of this
// rehearsal is on its way, or until the settle time is over. It looks at every product at
// least once and fails where the service does not say.
func (r *rehearsal) drain(ctx context.Context) error {
	deadline := r.loadEnd.Add(r.cfg.Settle)
	var lastVerify time.Time
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		over := time.Now().After(deadline)
		empty := r.lookForRows(ctx)
		// The pipeline is the whole service's: other sales may keep it busy for ever.
		if empty || over || time.Since(lastVerify) > time.Second {
			drained, err := r.verify(ctx, over)
			if drained {
				r.rowsArrived(time.Now())
			}
			if drained || over {
				return err
			}
			lastVerify = time.Now()
		}
		pause(ctx, drainLook)
	}
}

// watchRows looks for the moment at which all rows were there while refusals still go on.
func (r *rehearsal) watchRows(ctx context.Context, done <-chan struct{}) {
	tick := time.NewTicker(loadLook)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			r.lookForRows(ctx)
		}
	}
}

// lookForRows says whether the service has no flow without its row.
func (r *rehearsal) lookForRows(ctx context.Context) bool {
	asked := time.Now()
	p, err := r.doors.pipeline(ctx)
	if err != nil || p.OpenFlows == nil {
		return false
	}
	if r.tally.open.Store(*p.OpenFlows); *p.OpenFlows != 0 {
		return false
	}
	r.rowsArrived(asked)
	return true
}

// rowsArrived keeps now as the time when all rows were there, if a look that began at a time
// saw everything accepted so far and an earlier one had not.
func (r *rehearsal) rowsArrived(looked time.Time) {
	last := time.Unix(0, r.tally.lastAccepted.Load())
	if looked.After(last) && !r.rowsAt.After(last) {
		r.rowsAt = time.Now()
	}
}

// verify asks the service about each product that is not known to be drained, and stops at the
// first that is not, unless all are wanted. An error means that a wanted one could not be read.
func (r *rehearsal) verify(ctx context.Context, all bool) (drained bool, err error) {
	drained = true
	for n, product := range r.crowd.products {
		if v := r.verifications[n]; v != nil && v.Drained {
			continue
		}
		v, err := r.verifyOne(ctx, product)
		switch {
		case err != nil && all && domain.CodeOf(err) != domain.CodeUnavailable:
			return false, fmt.Errorf("no verdict: %w", err)
		case err != nil && all:
			return false, err
		case err != nil:
			return false, nil //nolint:nilerr // a later look may be answered
		}
		r.verifications[n] = &v
		if !v.Drained {
			drained = false
			if !all {
				return false, nil
			}
		}
	}
	return drained, nil
}

// verifyOne looks twice where something is broken: the service reads its two sides one after
// the other, and only what both looks find is true.
func (r *rehearsal) verifyOne(ctx context.Context, product string) (application.Verification, error) {
	v, err := r.doors.verification(ctx, product)
	if err != nil || !slices.ContainsFunc(v.Invariants, isBroken) || !pause(ctx, secondLook) {
		return v, err
	}
	return r.doors.verification(ctx, product)
}
