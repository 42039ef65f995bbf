package rehearse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"seckill/application"
)

const (
	loadTries    = 4 // requests of one buyer during the load before it waits for the end of it
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// held is what a buyer holds after its answers so far: the last definite one.
type held struct {
	kind   kind
	reason string
	fresh  bool // one answer said that this purchase was new
}

// ask asks once for buyer i, and again with the same token while the answer is unknown.
// The latency counts from a time, so that waiting for one's turn is part of it.
func (r *rehearsal) ask(ctx context.Context, i int, bearer string, from time.Time, tries int) answer {
	for try := 1; ; try++ {
		a := r.doors.purchase(ctx, i, bearer)
		r.tally.request(a)
		if a.kind != unknown || try >= tries || !pause(ctx, nextPause(try, a.retryAfter)) {
			r.tally.waited(a, time.Since(from))
			return a
		}
	}
}

// first is a buyer's first purchase; one who clicks twice sends both at the same time.
func (r *rehearsal) first(ctx context.Context, i int, planned time.Time) held {
	var h held
	bearer, err := r.crowd.bearer(i)
	if err != nil {
		r.tally.request(answer{code: "unsigned"})
		return h
	}
	if r.cfg.Rate == 0 {
		planned = time.Now() // a token signed just now is not the service's time
	}
	if !r.crowd.repeatsAtOnce(i) {
		r.take(&h, i, r.ask(ctx, i, bearer, planned, loadTries), false)
		return h
	}
	var twin answer
	var wg sync.WaitGroup
	wg.Go(func() { twin = r.ask(ctx, i, bearer, planned, loadTries) })
	a := r.ask(ctx, i, bearer, planned, loadTries)
	wg.Wait()
	r.take(&h, i, a, false)
	r.take(&h, i, twin, false)
	if twin.kind != unknown {
		r.tally.repeats.Add(1)
	}
	return h
}

// again repeats a purchase whose answer has come.
func (r *rehearsal) again(ctx context.Context, i int, h *held, tries int) {
	bearer, err := r.crowd.bearer(i)
	if err != nil {
		return
	}
	a := r.ask(ctx, i, bearer, time.Now(), tries)
	r.take(h, i, a, true)
}

// take adds an answer to what a buyer holds and notes what cannot be true: later says that
// the request was made after all earlier answers had come.
func (r *rehearsal) take(h *held, i int, a answer, later bool) {
	switch a.kind {
	case accepted:
		if a.fresh && (h.fresh || later && h.kind == accepted) {
			r.tally.broken("C", r.finding(i, "the same token was accepted twice as a new purchase"))
		}
		if want := (order{r.crowd.product(i), r.crowd.user(i), r.crowd.token(i), 1, a.order.Status}); a.order != want {
			r.tally.broken("D", r.finding(i, fmt.Sprintf("accepted with another order: %+v", a.order)))
		}
		h.kind, h.reason, h.fresh = accepted, "", h.fresh || a.fresh
	case refused:
		if h.kind == accepted {
			if later {
				r.tally.broken("D", r.finding(i, "accepted, and the repeat was told "+a.reason))
			}
			return
		}
		h.kind, h.reason = refused, a.reason
	case unknown, notAsked: // says nothing about the purchase
	}
}

func (r *rehearsal) finding(i int, detail string) application.Finding {
	return application.Finding{Product: r.crowd.product(i), User: r.crowd.user(i), Token: r.crowd.token(i), Detail: detail}
}

// finish keeps what buyer i holds.
func (r *rehearsal) finish(i int, h held) {
	r.held[i] = h.kind
	r.tally.buyer(h.kind, h.reason, 1)
	r.tally.asked.Add(1)
}

// nextPause doubles up to a second, with jitter; a server's own wish counts up to the same second.
func nextPause(try int, wish time.Duration) time.Duration {
	d := max(firstPause<<min(try-1, 5), wish)
	d = min(d, longestPause)
	return d/2 + rand.N(d/2+1) //nolint:gosec // jitter, no secret
}

// pause waits; false says that ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
