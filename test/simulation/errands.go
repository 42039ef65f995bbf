package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/application"
	"seckill/domain"
)

// errand is anything else that somebody wants from the service: it is asked again until the answer is definite.
type errand struct {
	name   string
	do     func(context.Context, *instance) (string, error) // gives the status
	inst   *instance
	asking bool
	asks   int
	told   application.Answer
	status string

	// Of the ask under way, under the scheduler's lock.
	done bool
	err  error
}

func (w *world) run1(e *errand) {
	inst := w.anyInstance()
	if inst == nil {
		w.runAgain(e)
		return
	}
	e.inst, e.asking, e.done = inst, true, false
	e.asks++
	w.trace.add("%s asks %s", e.name, inst)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
		defer cancel()
		status, err := e.do(ctx, inst)
		w.mu.Lock()
		defer w.mu.Unlock()
		e.done, e.status, e.err = true, status, err
		if inst.dead {
			e.err = domain.ErrOutcomeUnknown
		}
		w.poke()
	}()
}

func (w *world) runAgain(e *errand) {
	w.at(w.span(100*time.Millisecond, 6*time.Second), e.name+" asks again", func() { w.run1(e) })
}

// plan sends an errand later.
func (w *world) plan(after time.Duration, e *errand) {
	w.errands = append(w.errands, e)
	w.at(after, e.name, func() { w.run1(e) })
}

// collectErrands takes the answers that have come.
func (w *world) collectErrands() {
	for _, e := range w.errands {
		w.mu.Lock()
		done := e.asking && e.done
		w.mu.Unlock()
		if !done {
			continue
		}
		e.asking = false
		e.told = definite(e.err)
		w.trace.add("%s is told %s (%s, %v)", e.name, e.told, e.status, e.err)
		if e.told == application.AnswerUnknown {
			w.runAgain(e)
		}
	}
}

// definite is an answer to something that is not a purchase.
func definite(err error) application.Answer {
	var refusal *domain.Error
	if err == nil {
		return application.AnswerAccepted
	}
	if errors.As(err, &refusal) {
		switch refusal.Code {
		case domain.CodeStockNotEnough, domain.CodeTokenRefused, domain.CodeTokenReused, domain.CodeOrderNotFound, domain.CodeInvalidRequest:
			return application.AnswerRefused
		default:
		}
	}
	return application.AnswerUnknown
}

// planCancel is a buyer who changes his mind.
func (w *world) planCancel(r *request) {
	k := r.command.Key()
	r.undone = &errand{name: "cancel of " + r.String(), do: func(ctx context.Context, inst *instance) (string, error) {
		view, err := inst.cancel.Cancel(ctx, k)
		return view.Status, err
	}}
	w.plan(w.span(time.Microsecond, 10*time.Second), r.undone)
}

// planChanges is an operator who puts units on sale and takes others off.
func (w *world) planChanges() {
	for n := range 2 + w.dice.IntN(4) {
		delta := 1 + w.dice.Int64N(12)
		if w.chance(0.5) {
			delta = -delta
		}
		product := w.products[w.dice.IntN(len(w.products))]
		change := must(domain.NewStockChange(product, fmt.Sprintf("k%d", n), delta))
		e := &errand{name: fmt.Sprintf("change %s by %d", change.Key(), delta), do: func(ctx context.Context, inst *instance) (string, error) {
			receipt, err := inst.change.Change(ctx, change, operator)
			return receipt.Change.Status, err
		}}
		w.changes = append(w.changes, stockChange{change, e})
		w.plan(w.span(time.Second, w.params.Safety-3*time.Second), e)
	}
}

// stockChange is a change with what its operator was told.
type stockChange struct {
	domain.StockChange
	errand *errand
}

// judgeChanges checks D for the operator.
func (w *world) judgeChanges() {
	for _, c := range w.changes {
		row := must(w.ledger.Fates(context.Background(), []domain.Key{c.Key()}))[0]
		counts := row.Status() == domain.OrderConfirmed || row.Status() == domain.OrderAdded
		switch {
		case counts && c.Adds():
			w.seen.hit("addition")
		case counts:
			w.seen.hit("withdrawal")
		}
		switch {
		case c.errand.told == application.AnswerAccepted && !counts && c.errand.status != application.OrderRejected && !w.truth.excused(c.Key()):
			w.violation("D: %s was told accepted (%s), and its row is %s", c.errand.name, c.errand.status, row.Status())
		case c.errand.told == application.AnswerRefused && counts:
			w.violation("D: %s was told refused (%v), and its row is %s", c.errand.name, c.errand.err, row.Status())
		}
	}
}
