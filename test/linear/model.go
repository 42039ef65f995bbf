package linear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkMax is the longest search for an order.
const checkMax = 20 * time.Second

// Never is the end of an interval that does not end.
const Never = math.MaxInt64

// What is what an operation asks for.
type What uint8

// The operations. Return is the gate's part of a cancel whose answer is unknown, Forget what a kill may do to a
// purchase whose answer is unknown where the gate dies with the service.
const (
	Buy What = iota
	Cancel
	Return
	Forget
)

// Answer is what came back.
type Answer uint8

// The answers. Done is a cancel's or a return's, Absent a cancel's.
const (
	Unknown Answer = iota
	Accepted
	Repeat
	SoldOut
	Done
	Absent
)

var (
	whatNames   = [...]string{"buy", "cancel", "return", "forget"}
	answerNames = [...]string{"unknown", "accepted", "repeat", "sold out", "done", "absent"}
)

// Request is an operation's input.
type Request struct {
	What     What
	Token    int // index
	Quantity int
}

// The states of a token. One that is unheard is held, and no answer has said so yet; one that is returning
// was cancelled, and its units are not back yet.
const (
	fresh     = '0'
	held      = '1'
	returning = '2'
	cancelled = '3'
	unheard   = '4'
)

// ledger is the model's state; a value is never changed.
type ledger struct {
	remaining int
	tokens    string // a state for each
}

func (s ledger) with(token int, state byte, remaining int) ledger {
	tokens := []byte(s.tokens)
	tokens[token] = state
	return ledger{remaining, string(tokens)}
}

// Model is a product with so many units, asked for by so many tokens. The units of an order come back with
// its cancel, or by Return where the cancel's answer is unknown.
func Model(stock, tokens int) porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			all := make([]byte, tokens)
			for i := range all {
				all[i] = fresh
			}
			return ledger{stock, string(all)}
		},
		Step: func(state, input, output any) (bool, any) {
			return step(state.(ledger), input.(Request), output.(Answer))
		},
		DescribeOperation: func(input, output any) string {
			r := input.(Request)
			return fmt.Sprintf("%s %d of token %d: %s", whatNames[r.What], r.Quantity, r.Token, answerNames[output.(Answer)])
		},
	}
}

func step(s ledger, r Request, a Answer) (bool, ledger) {
	switch r.What {
	case Buy:
		return buy(s, r, a)
	case Cancel:
		return cancel(s, r, a)
	case Return:
		return true, comesBack(s, r, returning, cancelled)
	default:
		return true, comesBack(s, r, unheard, fresh)
	}
}

// comesBack returns the units of a token in one state. In any other, what they come back from did nothing, or has not
// happened: at the end this is always allowed.
func comesBack(s ledger, r Request, from, to byte) ledger {
	if s.tokens[r.Token] != from {
		return s
	}
	return s.with(r.Token, to, s.remaining+r.Quantity)
}

func buy(s ledger, r Request, a Answer) (bool, ledger) {
	known, fits := s.tokens[r.Token] != fresh, s.remaining >= r.Quantity
	taken := s.with(r.Token, held, s.remaining-r.Quantity)
	switch {
	case a == Accepted:
		return !known && fits, taken
	case a == Repeat:
		if s.tokens[r.Token] == unheard {
			s = s.with(r.Token, held, s.remaining)
		}
		return known, s
	case a == SoldOut:
		return !known && !fits, s
	case !known && fits:
		return true, s.with(r.Token, unheard, s.remaining-r.Quantity)
	}
	return true, s
}

func cancel(s ledger, r Request, a Answer) (bool, ledger) {
	state := s.tokens[r.Token]
	if state == unheard { // a cancel finds only what has a row
		state = held
	}
	switch {
	case a == Absent:
		return state == fresh, s
	case state == held && a == Unknown:
		return true, s.with(r.Token, returning, s.remaining)
	case state == held:
		return true, s.with(r.Token, cancelled, s.remaining+r.Quantity)
	}
	return a == Unknown || state != fresh, s
}

// Break gives the answer that no order allows any more, the first in time, and what was asked until then.
// It is for a history that is not linearizable.
func Break(model porcupine.Model, history []porcupine.Operation) []porcupine.Operation {
	sorted := slices.SortedFunc(slices.Values(history), func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	n := sort.Search(len(sorted)-1, func(n int) bool {
		return porcupine.CheckOperationsTimeout(model, until(sorted, sorted[n].Return), checkMax) == porcupine.Illegal
	})
	return until(sorted, sorted[n].Return)
}

// until is a history as it stood at a moment: what was not answered then is unknown.
func until(history []porcupine.Operation, moment int64) (cut []porcupine.Operation) {
	for _, o := range history {
		if o.Call > moment {
			continue
		}
		if o.Return > moment && o.Input.(Request).What < Return {
			o.Output, o.Return = Unknown, Never
		}
		cut = append(cut, o)
	}
	return cut
}
