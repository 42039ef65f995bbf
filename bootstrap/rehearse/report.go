package rehearse

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
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

	Latency       map[string]Percentiles `json:"latencyMillis"` // accepted, refused, repeat
	SecondsToRows *float64               `json:"secondsToRows"` // from the last acceptance; null: not seen
	Orders        int64                  `json:"orders"`        // rows, by the service's own count
	Confirmed     int64                  `json:"confirmedOrders"`
	Units         int64                  `json:"confirmedUnits"`

	Holds      bool                          `json:"holds"`
	Invariants []application.InvariantResult `json:"invariants"`
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
		Latency: map[string]Percentiles{}, Invariants: r.verdict()}
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

func isBroken(i application.InvariantResult) bool { return i.Verdict == broken }

// Write renders the report as OutputText, OutputJSON or OutputLine.
func (p Report) Write(w io.Writer, output string) error {
	if output == OutputJSON || output == OutputLine {
		e := json.NewEncoder(w)
		if output == OutputJSON {
			e.SetIndent("", "  ")
		}
		return e.Encode(p)
	}
	var b strings.Builder
	p.text(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p Report) text(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(t, format+"\n", args...) }
	line("Rehearsal %s\t%d buyers, %d products of %d units, %s", p.Run, p.Plan.Buyers, p.Plan.Products, p.Plan.Units, p.loop())
	if p.Stopped != "" {
		line("  ended early\t%s", p.Stopped)
	}
	line("Accepted\t%d\tat %.0f/s", p.Accepted, p.AcceptedPerSecond)
	line("Refused\t%d\tat %.0f/s", p.Refused, p.RefusedPerSecond)
	for _, reason := range slices.Sorted(maps.Keys(p.RefusedBy)) {
		line("  %s\t%d", reason, p.RefusedBy[reason])
	}
	line("Unknown\t%d", p.Unknown)
	line("Repeats\t%d", p.Repeats)
	line("Asked\t%d\tin %.2f s, %.0f/s", p.Asked, p.LoadSeconds, p.RealRate)
	for _, code := range slices.Sorted(maps.Keys(p.Answers)) {
		line("  %s\t%d", code, p.Answers[code])
	}
	rows := "not seen"
	if p.SecondsToRows != nil {
		rows = fmt.Sprintf("%.2f s after the last acceptance", *p.SecondsToRows)
	}
	line("All rows written\t%s\t(%d orders, %d confirmed)", rows, p.Orders, p.Confirmed)
	_ = t.Flush()
	p.latencyText(b)
	p.invariantText(b)
}

func (p Report) loop() string {
	if p.Plan.Rate > 0 {
		return fmt.Sprintf("%.0f/s planned, at most %.0f ms late", p.Plan.Rate, p.LateMillis)
	}
	return fmt.Sprintf("%d connections", p.Plan.Connections)
}

func (p Report) latencyText(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "\nLatency in ms\tcount\tp50\tp95\tp99\tp99.9\tmax\t")
	for _, class := range []string{classAccepted, classRefused, classRepeat} {
		l := p.Latency[class]
		_, _ = fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", class, l.Count, l.P50, l.P95, l.P99, l.P999, l.Max)
	}
	_ = t.Flush()
}

func (p Report) invariantText(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "\nInvariant\t\tverdict\tchecked\tbroken")
	for _, i := range p.Invariants {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\n", i.Name, i.Title, i.Verdict, i.Checked, i.Broken)
	}
	_ = t.Flush()
	for _, i := range p.Invariants {
		for _, f := range i.Findings {
			where := strings.Join(slices.DeleteFunc([]string{f.Product, f.User, f.Token}, func(s string) bool { return s == "" }), " ")
			if where != "" {
				where += ": "
			}
			_, _ = fmt.Fprintf(b, "  %s  %s%s\n", i.Name, where, f.Detail)
		}
	}
}
