package rehearse

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill/application"
)

// ReportSchema is raised when a member of Report changes its meaning.
const ReportSchema = 1

// Report is the result of a rehearsal. Times of latency are milliseconds.
type Report struct {
	Schema    int       `json:"schema"`
	Run       string    `json:"run"`
	Target    string    `json:"target"`
	StartedAt time.Time `json:"startedAt"`
	Stopped   string    `json:"stopped,omitempty"` // why the load ended early

	Plan        Plan    `json:"plan"`
	Asked       int64   `json:"asked"` // buyers
	LoadSeconds float64 `json:"loadSeconds"`
	RealRate    float64 `json:"realRate"`   // buyers a second, repeats left out
	LateMillis  float64 `json:"lateMillis"` // open loop: the most that the generator was behind its plan

	Accepted          int64            `json:"accepted"` // buyers
	AcceptedPerSecond float64          `json:"acceptedPerSecond"`
	Refused           int64            `json:"refused"`
	RefusedPerSecond  float64          `json:"refusedPerSecond"`
	RefusedBy         map[string]int64 `json:"refusedBy"`
	Unknown           int64            `json:"unknown"` // without a definite answer to the end
	Repeats           int64            `json:"repeats"` // repeats on purpose
	Answers           map[string]int64 `json:"answers"` // HTTP requests by status and code

	Latency        map[string]Percentiles `json:"latencyMillis"`        // accepted, refused, repeat
	SecondsToRows  *float64               `json:"secondsToRows"`        // from the last acceptance; null: not seen
	ConfirmedAfter *Percentiles           `json:"confirmedAfterMillis"` // from deduction to row, of a sample, by the service's clock; null: not seen
	Orders         int64                  `json:"orders"`               // rows, by the service's own count
	Confirmed      int64                  `json:"confirmedOrders"`
	Units          int64                  `json:"confirmedUnits"`

	Holds      bool                          `json:"holds"`
	Invariants []application.InvariantResult `json:"invariants"`
	Thresholds []ThresholdResult             `json:"thresholds"`
}

// Plan is what was to happen. One of Connections and Rate is 0.
type Plan struct {
	Buyers      int     `json:"buyers"`
	Units       int64   `json:"unitsPerProduct"`
	Products    int     `json:"products"`
	Repeats     float64 `json:"repeats"`
	Connections int     `json:"connections"`
	Rate        float64 `json:"rate"`
}

// Percentiles of how long buyers waited for a definite answer.
type Percentiles struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

func (r *rehearsal) report() Report {
	c := r.cfg
	p := Report{Schema: ReportSchema, Run: r.crowd.run, Target: c.Target, StartedAt: r.started.UTC().Truncate(time.Millisecond),
		Stopped: early(r.stopped), Plan: Plan{c.Buyers, c.Units, c.Products, c.Repeats, c.Connections, c.Rate},
		Asked: r.tally.asked.Load(), LoadSeconds: r.loadEnd.Sub(r.loadStart).Seconds(),
		LateMillis: millis(r.tally.mostLate.Load() / 1000), Accepted: r.tally.accepted.Load(),
		Refused: r.tally.refused.Load(), Unknown: r.tally.unknown.Load(), Repeats: r.tally.repeats.Load(),
		Latency: map[string]Percentiles{}, ConfirmedAfter: r.confirmedAfter, Invariants: r.verdict(), Thresholds: []ThresholdResult{}}
	p.Answers, p.RefusedBy = r.tally.copies()
	for class, h := range r.tally.latency {
		p.Latency[class] = percentiles(h)
	}
	p.RealRate = perSecond(p.Asked, p.LoadSeconds)
	p.RefusedPerSecond = perSecond(p.Refused, p.LoadSeconds)
	if n := r.tally.lastAccepted.Load(); n > 0 {
		last := time.Unix(0, n)
		p.AcceptedPerSecond = perSecond(p.Accepted, last.Sub(r.loadStart).Seconds())
		if r.rowsAt.After(last) {
			s := r.rowsAt.Sub(last).Seconds()
			p.SecondsToRows = &s
		}
	}
	p.Orders, p.Confirmed, p.Units = r.counted()
	p.Holds = !slices.ContainsFunc(p.Invariants, func(i application.InvariantResult) bool { return i.Verdict != holds })
	for _, t := range c.FailIf {
		p.Thresholds = append(p.Thresholds, t.judge(p))
	}
	return p
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	at := func(q float64) float64 { return millis(h.ValueAtQuantile(q)) }
	return Percentiles{h.TotalCount(), at(50), at(95), at(99), at(99.9), millis(h.Max())}
}

func millis(us int64) float64 { return float64(us) / 1000 }

func perSecond(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}

// Violations says whether an invariant is broken.
func (p Report) Violations() bool {
	return slices.ContainsFunc(p.Invariants, isBroken)
}

// Missed says whether a threshold was missed, or could not be judged.
func (p Report) Missed() bool {
	return slices.ContainsFunc(p.Thresholds, func(t ThresholdResult) bool { return !t.Met })
}

func isBroken(i application.InvariantResult) bool { return i.Verdict == broken }

// Write renders the report as OutputText, OutputJSON or OutputLine.
func (p Report) Write(w io.Writer, output string, paint Paint) error {
	if output == OutputJSON || output == OutputLine {
		e := json.NewEncoder(w)
		if output == OutputJSON {
			e.SetIndent("", "  ")
		}
		return e.Encode(p)
	}
	_, err := io.WriteString(w, p.text(paint))
	return err
}
