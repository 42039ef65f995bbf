package rehearse

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill/application"
)

// kind is what a buyer holds. Its zero value fits a buyer that nobody heard of yet.
type kind uint8

const (
	unknown kind = iota
	accepted
	refused
	notAsked
)

// The classes of latency.
const (
	classAccepted = "accepted"
	classRefused  = "refused"
	classRepeat   = "repeat"

	classConfirmed = "confirmed" // from acceptance to row; by the service's word, so not counted here
)

const (
	codesMax    = 64 // different answers that are counted by name
	findingsMax = 5  // counter-examples shown of one invariant
)

// tally counts while everything runs.
type tally struct {
	asked, accepted, refused, unknown atomic.Int64 // buyers, by what they hold
	repeats                           atomic.Int64 // asked again on purpose and answered
	judged                            atomic.Int64 // orders read back
	open                              atomic.Int64 // flows without a row, when somebody looked last
	lastDefinite                      atomic.Int64 // unix nanoseconds
	lastAccepted                      atomic.Int64 // unix nanoseconds; of an order without a row yet
	mostLate                          atomic.Int64 // nanoseconds behind the plan

	mu      sync.Mutex
	answers map[string]int64 // requests by code
	reasons map[string]int64 // buyers by refusal
	latency map[string]*hdrhistogram.Histogram
	own     map[string]*application.InvariantResult // what the buyers saw, by invariant
}

func newTally() *tally {
	t := &tally{answers: map[string]int64{}, reasons: map[string]int64{},
		latency: map[string]*hdrhistogram.Histogram{}, own: map[string]*application.InvariantResult{}}
	for _, class := range []string{classAccepted, classRefused, classRepeat} {
		t.latency[class] = hdrhistogram.New(1, time.Hour.Microseconds(), 3)
	}
	for _, name := range invariantNames {
		t.own[name] = &application.InvariantResult{Name: name, Verdict: holds}
	}
	t.lastDefinite.Store(time.Now().UnixNano())
	return t
}

// request counts one HTTP answer.
func (t *tally) request(a answer) {
	if a.kind != unknown {
		now := time.Now().UnixNano()
		t.lastDefinite.Store(now)
		if a.kind == accepted && (a.fresh || a.order.Status == application.OrderPending) {
			t.lastAccepted.Store(now)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	count(t.answers, a.code, 1)
}

// waited records how long a buyer waited for a definite answer.
func (t *tally) waited(a answer, d time.Duration) {
	class := classRefused
	switch {
	case a.kind == unknown:
		return
	case a.kind == accepted && a.fresh:
		class = classAccepted
	case a.kind == accepted:
		class = classRepeat
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.latency[class].RecordValue(min(max(d.Microseconds(), 1), time.Hour.Microseconds()))
}

// buyer counts a buyer by what it holds, or takes it back with by = -1.
func (t *tally) buyer(k kind, reason string, by int64) {
	switch k {
	case accepted:
		t.accepted.Add(by)
	case unknown:
		t.unknown.Add(by)
	case refused:
		t.refused.Add(by)
		t.mu.Lock()
		defer t.mu.Unlock()
		count(t.reasons, reason, by)
	case notAsked:
	}
}

// count keeps the number of names bounded.
func count(m map[string]int64, name string, by int64) {
	if _, known := m[name]; !known && len(m) >= codesMax {
		name = "other"
	}
	m[name] += by
}

// broken notes a counter-example that the buyers met.
func (t *tally) broken(invariant string, f application.Finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.own[invariant]
	r.Verdict = broken
	r.Broken++
	if len(r.Findings) < findingsMax {
		r.Findings = append(r.Findings, f)
	}
}

func (t *tally) checked(invariant string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own[invariant].Checked += n
}

// undecided notes that something could not be looked at.
func (t *tally) undecided(invariant string, f application.Finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.own[invariant]
	if r.Verdict == holds {
		r.Verdict = undecided
	}
	if len(r.Findings) < findingsMax {
		r.Findings = append(r.Findings, f)
	}
}

func (t *tally) copies() (answers, reasons map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.answers), maps.Clone(t.reasons)
}

// confirmed is how many accepted purchases are rows, as far as the last look tells: a bar, not a verdict.
func (t *tally) confirmed() int64 { return max(0, t.accepted.Load()-t.open.Load()) }

// refusals are the reasons with their numbers, on a line.
func (t *tally) refusals() string {
	_, reasons := t.copies()
	words := make([]string, 0, len(reasons))
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		words = append(words, fmt.Sprintf("%s %d", reason, reasons[reason]))
	}
	return strings.Join(words, " · ")
}

// late keeps the most that the generator was behind its plan.
func (t *tally) late(d time.Duration) {
	for {
		most := t.mostLate.Load()
		if int64(d) <= most || t.mostLate.CompareAndSwap(most, int64(d)) {
			return
		}
	}
}
