package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/application"
	"seckill/domain"
)

// request is one purchase that a buyer wants, under one token, asked until the answer is definite.
type request struct {
	number  int
	command domain.DeductCommand
	inst    *instance
	asking  bool
	told    application.Answer // last definite answer
	ever    bool               // was told accepted at some time
	open    bool               // the last answer was none
	asks    int
	undone  *errand // the buyer's cancel; nil: did not want one

	// Of the ask under way, under the scheduler's lock.
	done    bool
	receipt application.Receipt
	err     error
}

func (r *request) String() string {
	return fmt.Sprintf("buyer %d %s", r.number, r.command.Key())
}

// planRequests lets the crowd come in bursts.
func (w *world) planRequests() {
	span := w.params.Safety - 5*time.Second
	at := time.Duration(0)
	for n := range w.params.Requests {
		if n%20 == 0 { // a burst begins
			at = w.span(0, span)
		}
		at += w.span(time.Microsecond, 40*time.Millisecond)
		product := w.products[w.dice.IntN(len(w.products))]
		quantity := int64(1)
		if w.chance(0.2) {
			quantity = 2 + w.dice.Int64N(2)
		}
		user, token := fmt.Sprintf("u%d", w.dice.IntN(w.params.Users)), fmt.Sprintf("t%d", n)
		r := &request{number: n, command: must(domain.NewDeductCommand(product, user, token, quantity))}
		w.requests = append(w.requests, r)
		w.at(at, r.String(), func() { w.ask(r) })
		if w.chance(0.08) { // a double click
			w.at(at+w.span(time.Microsecond, 3*time.Second), r.String()+" again", func() { w.ask(r) })
		}
		if w.chance(0.06) { // another producer claims the token first, or later
			w.at(w.span(max(0, at-8*time.Second), at+8*time.Second), "plain form of "+r.String(), func() { w.foreign(r.command) })
		}
	}
}

// ask sends the purchase to any instance.
func (w *world) ask(r *request) {
	if r.asking {
		return
	}
	inst := w.anyInstance()
	if inst == nil { // connection refused
		w.askAgain(r, 3*time.Second)
		return
	}
	r.inst, r.asking, r.done = inst, true, false
	r.asks++
	patience := w.span(6*time.Second, 12*time.Second) // longer than the service's own
	w.trace.add("%s asks %s", r, inst)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		receipt, err := inst.lane.Deduct(ctx, r.command)
		w.mu.Lock()
		defer w.mu.Unlock()
		r.done, r.receipt, r.err = true, receipt, err
		if inst.dead { // nobody is there to say it
			r.receipt, r.err = application.Receipt{}, domain.ErrOutcomeUnknown
		}
		w.poke()
	}()
}

func (w *world) askAgain(r *request, most time.Duration) {
	w.at(w.span(100*time.Millisecond, most), r.String()+" asks again", func() { w.ask(r) })
}

// collect takes the answers that have come, and lets buyers go on.
func (w *world) collect() {
	for _, r := range w.requests {
		w.mu.Lock()
		done := r.asking && r.done
		w.mu.Unlock()
		if !done {
			continue
		}
		r.asking = false
		answer := w.answerTo(r)
		w.trace.add("%s is told %s (%s, %v)", r, answer, r.receipt.Order.Status, r.err)
		if r.receipt.Replayed {
			w.seen.hit("repeat answered")
		}
		r.open = answer == application.AnswerUnknown
		switch answer {
		case application.AnswerUnknown:
			w.askAgain(r, 6*time.Second)
		case application.AnswerAccepted:
			r.told, r.ever = answer, true
			if w.faulty && r.undone == nil && w.chance(0.15) {
				w.planCancel(r)
			}
			if w.faulty && r.asks < 4 && w.chance(0.25) {
				w.askAgain(r, 20*time.Second)
			}
		default:
			if r.ever && !w.truth.excused(r.command.Key()) {
				w.violation("D: %s was told accepted, and is now told %v", r, r.err)
			}
			r.told = answer
			if w.faulty && r.asks < 3 && w.chance(0.1) {
				w.askAgain(r, 20*time.Second)
			}
		}
	}
}

// answerTo is what the door would make of it.
func (w *world) answerTo(r *request) application.Answer {
	var refusal *domain.Error
	switch {
	case r.err == nil:
		return application.AnswerAccepted
	case !errors.As(r.err, &refusal):
		return application.AnswerUnknown
	}
	switch refusal.Code {
	case domain.CodeStockNotEnough, domain.CodeLimitReached, domain.CodeTokenRefused, domain.CodeTokenReused,
		domain.CodeSaleClosed, domain.CodeProductNotFound:
		return application.AnswerRefused
	case domain.CodeOutcomeUnknown:
		if w.bad.refuseUnknown {
			return application.AnswerRefused
		}
	default:
	}
	return application.AnswerUnknown
}
