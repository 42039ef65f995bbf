package application

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// PartStatus is one part as the last look found it.
type PartStatus struct {
	OK         bool      `json:"ok"`
	LastOK     time.Time `json:"lastOk,omitzero"`  // of the last look that found it well; zero: never
	AgeSeconds float64   `json:"ageSeconds"`       // since then; -1: never
	Detail     string    `json:"detail,omitempty"` // in words that a client may see
}

// ReadinessConfig bounds a look.
type ReadinessConfig struct {
	Each time.Duration // for one check
	Keep time.Duration // how long an answer is given again
}

// DefaultReadinessConfig asks at most once a second, whatever the probes do.
func DefaultReadinessConfig() ReadinessConfig {
	return ReadinessConfig{Each: time.Second, Keep: time.Second}
}

// Readiness says whether the parts that the service needs can be reached.
type Readiness struct {
	checks map[string]*partCheck
	cfg    ReadinessConfig

	mu     sync.Mutex
	looked time.Time
	parts  map[string]PartStatus
	ready  bool
	lastOK map[string]time.Time
}

// partCheck is one part's check. One that ignores its time is left behind and not begun again until it
// has come back, so that a part which hangs costs one goroutine and no more.
type partCheck struct {
	ask     func(context.Context) error
	running atomic.Bool
}

// NewReadiness takes a check for each part, by name: gate, broker, ledger.
func NewReadiness(checks map[string]func(context.Context) error, cfg ReadinessConfig) *Readiness {
	r := &Readiness{checks: make(map[string]*partCheck, len(checks)), cfg: cfg, lastOK: make(map[string]time.Time, len(checks))}
	for name, ask := range checks {
		r.checks[name] = &partCheck{ask: ask}
	}
	return r
}

// Check gives the parts by name, and whether all are well. Callers at the same time share one look,
// which ctx does not end: its time is bounded by the configuration. The map must not be changed.
func (r *Readiness) Check(ctx context.Context) (map[string]PartStatus, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parts == nil || time.Since(r.looked) >= r.cfg.Keep {
		r.look(context.WithoutCancel(ctx))
	}
	return r.parts, r.ready
}

// look asks all parts at once.
func (r *Readiness) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Each)
	defer cancel()
	type result struct {
		name string
		err  error
	}
	results := make(chan result, len(r.checks))
	asked := 0
	for name, check := range r.checks {
		if !check.running.CompareAndSwap(false, true) {
			continue
		}
		asked++
		go func() {
			err := check.ask(ctx)
			check.running.Store(false)
			results <- result{name, err}
		}()
	}
	parts := make(map[string]PartStatus, len(r.checks))
	for range asked {
		select {
		case got := <-results:
			parts[got.name] = PartStatus{OK: got.err == nil}
		case <-ctx.Done():
		}
	}
	r.looked, r.parts, r.ready = time.Now(), parts, true
	for name := range r.checks {
		parts[name] = r.judge(name, parts[name])
		r.ready = r.ready && parts[name].OK
	}
}

func (r *Readiness) judge(name string, part PartStatus) PartStatus {
	if part.OK {
		r.lastOK[name] = r.looked
	} else {
		part.Detail = "not reachable"
	}
	part.AgeSeconds = -1
	if last, ever := r.lastOK[name]; ever {
		part.LastOK, part.AgeSeconds = last.UTC(), r.looked.Sub(last).Seconds()
	}
	return part
}
