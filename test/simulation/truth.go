package simulation

import (
	"slices"
	"sync"
	"time"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

// sometimes are what a set of runs has to meet, each at least once: a run that never meets the
// case that a rule is for has not tried the rule.
var sometimes = []string{
	"relay sent", "repeat answered", "tombstone met", "adopt", "adopt found no room", "rewind noticed", "cold gate",
	"duplicate row met", "unknown commit resolved", "late commit ignored", "parked message",
	"cancel before apply", "cancel after apply", "addition", "withdrawal", "check-back that committed", "crash", "script met no cache",
}

// sightings counts what a run has met.
type sightings struct {
	mu     sync.Mutex
	counts map[string]int
	blurry map[domain.Key]bool // an apply of it was not heard
	twice  map[string]bool     // bodies committed more than once, or after a rollback
}

func newSightings() *sightings {
	return &sightings{counts: map[string]int{}, blurry: map[domain.Key]bool{}, twice: map[string]bool{}}
}

func (s *sightings) hit(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

func (s *sightings) unheard(items []port.ApplyItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range items {
		s.blurry[item.Deduction.Key] = true
	}
}

func (s *sightings) applied(items []port.ApplyItem, result port.ApplyResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range result.Replies {
		if r.Outcome == port.Met {
			s.counts["duplicate row met"]++
			if s.blurry[items[i].Deduction.Key] {
				s.counts["unknown commit resolved"]++
			}
			if s.twice[items[i].Deduction.Key.String()] {
				s.counts["late commit ignored"]++
			}
		}
	}
	s.counts["guard refusal"] += len(result.Suspects)
}

func (s *sightings) lateCommit(h *half) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keysIn(h.body) {
		s.twice[k] = true
	}
}

// truth is what no part of the service can know: which flows Redis has lost, and when what they stood for
// reached the broker. It tells a broken promise from the one thing that the promise leaves out.
type truth struct {
	mu        sync.Mutex
	lostAt    map[string][]time.Time // when Redis forgot a living flow, by key
	arrivedAt map[string]time.Time   // first commit of a message of the service's own with the key
	halves    map[string]bool        // keys of lost halves
	drains    []time.Time            // when each looked at what is committed: what comes later is not waited for
}

func newTruth() *truth {
	return &truth{lostAt: map[string][]time.Time{}, arrivedAt: map[string]time.Time{}, halves: map[string]bool{}}
}

func keysIn(body []byte) []string {
	batch, err := wire.Decode(body)
	if err != nil {
		return nil
	}
	keys := make([]string, len(batch.Items))
	for i, item := range batch.Items {
		keys[i] = item.Key.String()
	}
	return keys
}

// committed notes that what a drain waits for has come. A message in the plain form is not that: it claims
// nothing, and while a product is suspended it is parked.
func (t *truth) committed(body []byte) {
	if batch, err := wire.Decode(body); err != nil || batch.Plain {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keysIn(body) {
		if _, known := t.arrivedAt[k]; !known {
			t.arrivedAt[k] = time.Now()
		}
	}
}

func (t *truth) halfLost(body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keysIn(body) {
		t.halves[k] = true
	}
}

func (t *truth) drained(looked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drains = append(t.drains, looked)
}

// forgot compares what Redis held before and after a loss.
func (t *truth) forgot(before, after map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, flow := range before {
		if _, still := after[k]; !still && (flow[0] == 'D' || flow[0] == 'S') {
			t.lostAt[k] = append(t.lostAt[k], time.Now())
		}
	}
}

// excused reports whether the promise leaves a key out: Redis lost its flow, and no message of it had
// reached the broker when the drain after that loss looked what there is.
func (t *truth) excused(k domain.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	arrived, came := t.arrivedAt[k.String()]
	return slices.ContainsFunc(t.lostAt[k.String()], func(lost time.Time) bool {
		missed := func(looked time.Time) bool { return looked.After(lost) && arrived.After(looked) }
		return !came || slices.ContainsFunc(t.drains, missed)
	})
}
