package rehearse

import (
	"context"
	"fmt"
	"sync/atomic"

	"seckill/application"
)

// The verdicts.
const (
	holds     = "holds"
	broken    = "broken"
	undecided = "unknown"
)

var (
	invariantNames  = []string{"A", "B", "C", "D", "E"}
	invariantTitles = map[string]string{"A": "no oversell", "B": "no leak", "C": "once", "D": "truthful", "E": "live"}
)

const (
	refusedChecks = 50_000 // refusals read back, at most, while the totals agree
	readTries     = 6
)

// judge reads the orders back and holds them against what their buyers were told.
func (r *rehearsal) judge(ctx context.Context) {
	var confirmed atomic.Int64
	r.parallel(ctx, r.cfg.readers(), len(r.held), func(i int) {
		if r.held[i] != accepted && r.held[i] != unknown {
			return
		}
		status, known := r.readBack(ctx, i)
		if known && status == application.OrderConfirmed {
			confirmed.Add(1)
			r.confirmedOf[r.crowd.productOf(i)].Add(1)
		}
		switch {
		case !known:
		case r.held[i] == unknown:
			r.tally.broken("D", r.finding(i, fmt.Sprintf("no definite answer within %v; the order is now %s", r.cfg.Settle, orNone(status))))
		case status != application.OrderConfirmed:
			r.tally.broken("D", r.finding(i, "accepted, but the order is "+orNone(status)))
		}
	})
	_, counted, _ := r.counted()
	r.judgeRefused(ctx, counted != confirmed.Load(), &confirmed)
	if n := confirmed.Load(); counted != n && r.unread == nil && ctx.Err() == nil {
		r.tally.broken("C", application.Finding{Detail: fmt.Sprintf("the service counts %d confirmed orders, its buyers find %d", counted, n)})
	}
	r.judgeTotals()
}

// judgeRefused reads back the orders that were refused: all of them, or a sample.
func (r *rehearsal) judgeRefused(ctx context.Context, all bool, confirmed *atomic.Int64) {
	step := 1
	if n := int(r.tally.refused.Load()); !all && n > refusedChecks {
		step = (n + refusedChecks - 1) / refusedChecks
	}
	r.parallel(ctx, r.cfg.readers(), len(r.held), func(i int) {
		if r.held[i] != refused || step > 1 && r.crowd.dice(i)%uint64(step) != 0 {
			return
		}
		status, known := r.readBack(ctx, i)
		if !known || status != application.OrderConfirmed && status != application.OrderPending {
			return
		}
		r.tally.broken("D", r.finding(i, "refused, but the order is "+status))
		if status == application.OrderConfirmed {
			confirmed.Add(1)
			r.confirmedOf[r.crowd.productOf(i)].Add(1)
		}
	})
}

// readBack gives the status of buyer i's order; one that is still pending is given some time.
func (r *rehearsal) readBack(ctx context.Context, i int) (status string, known bool) {
	defer r.tally.judged.Add(1)
	var err error
	for try := 1; try <= readTries; try++ {
		if status, err = r.doors.show(ctx, i); err == nil && status != application.OrderPending {
			break
		}
		if !pause(ctx, nextPause(try, 0)) {
			return "", false
		}
	}
	if err != nil {
		r.tally.undecided("D", r.finding(i, "the order could not be read: "+err.Error()))
		return "", false
	}
	r.tally.checked("D", 1)
	return status, true
}

// judgeTotals holds what was sold against what was put on sale, and the end against the time it had.
func (r *rehearsal) judgeTotals() {
	for n, product := range r.crowd.products {
		found := r.confirmedOf[n].Load()
		if v := r.verifications[n]; v != nil {
			found = max(found, v.Units)
		}
		if found > r.cfg.Units {
			r.tally.broken("A", application.Finding{Product: product,
				Detail: fmt.Sprintf("%d units confirmed, %d were on sale", found, r.cfg.Units)})
		}
		if v := r.verifications[n]; v != nil && !v.Drained {
			r.tally.broken("E", application.Finding{Product: product,
				Detail: fmt.Sprintf("not drained %v after the load", r.cfg.Settle)})
		}
	}
}

// counted sums what the service says of its orders.
func (r *rehearsal) counted() (orders, confirmed, units int64) {
	for _, v := range r.verifications {
		if v != nil {
			orders, confirmed, units = orders+v.Orders, confirmed+v.Confirmed, units+v.Units
		}
	}
	return orders, confirmed, units
}

// verdict merges what the service says of its products with what the buyers saw. One that is
// broken for either is broken. The service cannot judge D without the buyers' journal, so
// there its "unknown" gives way.
func (r *rehearsal) verdict() []application.InvariantResult {
	merged := make([]application.InvariantResult, 0, len(invariantNames))
	for _, name := range invariantNames {
		m := *r.tally.own[name]
		m.Title = invariantTitles[name]
		m.Findings = append([]application.Finding{}, m.Findings...)
		for _, v := range r.verifications {
			mergeService(&m, v)
		}
		merged = append(merged, m)
	}
	return merged
}

func mergeService(m *application.InvariantResult, v *application.Verification) {
	said := application.InvariantResult{Verdict: undecided}
	if v != nil {
		for _, one := range v.Invariants {
			if one.Name == m.Name {
				said = one
			}
		}
	}
	if said.Verdict != undecided {
		m.Checked += said.Checked
	}
	m.Broken += said.Broken
	if room := findingsMax - len(m.Findings); room > 0 {
		m.Findings = append(m.Findings, said.Findings[:min(room, len(said.Findings))]...)
	}
	switch {
	case said.Verdict == broken:
		m.Verdict = broken
	case said.Verdict != holds && m.Verdict == holds && m.Name != "D":
		m.Verdict = undecided
	}
}

func orNone(status string) string {
	if status == "" {
		return "none"
	}
	return status
}
