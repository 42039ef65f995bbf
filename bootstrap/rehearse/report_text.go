package rehearse

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"seckill/application"
)

// Paint gives a verdict (ok, broken, unknown, missed) its colour.
type Paint func(verdict string) string

// line is a row of the report, for a terminal as for a page.
type line struct{ Name, Value, Note string }

// text is the report for a terminal: sales first, refusals apart from them, then the latencies, the invariants one by one,
// and the thresholds.
func (p Report) text(paint Paint) string {
	if paint == nil {
		paint = func(verdict string) string { return verdict }
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "Rehearsal %s\t%s\n", p.Run, p.plan())
	for _, l := range slices.Concat(p.sales(), p.refusals(), p.answers()) {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", l.Name, l.Value, l.Note)
	}
	_ = t.Flush()
	p.latencyText(&b)
	b.WriteString("\nInvariants\n")
	for _, i := range p.Invariants {
		_, _ = fmt.Fprintf(&b, "  %s %-11s  %s  %s\n", i.Name, i.Title, paint(shortVerdict(i.Verdict)), p.evidence(i))
		for _, f := range i.Findings {
			_, _ = fmt.Fprintf(&b, "      %s\n", finding(f))
		}
	}
	if len(p.Thresholds) > 0 {
		b.WriteString("\nThresholds\n")
	}
	for _, r := range p.Thresholds {
		_, _ = fmt.Fprintf(&b, "  fails if %-18s  %s  %s\n", r.Rule, paint(r.verdict()), r.measured())
	}
	return b.String()
}

func (p Report) plan() string {
	return fmt.Sprintf("%d buyers, %d products of %d units, %s", p.Plan.Buyers, p.Plan.Products, p.Plan.Units, p.loop())
}

func (p Report) loop() string {
	if p.Plan.Rate > 0 {
		return fmt.Sprintf("%.0f/s planned, at most %.0f ms late", p.Plan.Rate, p.LateMillis)
	}
	return fmt.Sprintf("%d connections", p.Plan.Connections)
}

func (p Report) sales() []line {
	var all []line
	if p.Stopped != "" {
		all = append(all, line{"Ended early", "", p.Stopped})
	}
	rate := fmt.Sprintf("%.0f/s", p.RealRate)
	if p.Plan.Rate > 0 {
		rate += fmt.Sprintf(" of %.0f/s planned", p.Plan.Rate)
	}
	rows, after := "not seen", ""
	if p.SecondsToRows != nil {
		rows, after = fmt.Sprintf("%.2f s", *p.SecondsToRows), "after the last acceptance"
	}
	return append(all,
		line{"Asked", fmt.Sprint(p.Asked), fmt.Sprintf("in %.2f s, %s", p.LoadSeconds, rate)},
		line{"Accepted", fmt.Sprint(p.Accepted), fmt.Sprintf("at %.0f/s", p.AcceptedPerSecond)},
		line{"Confirmed", fmt.Sprint(p.Confirmed), fmt.Sprintf("%d units in %d orders", p.Units, p.Orders)},
		line{"All rows written", rows, after},
		line{"Unknown", fmt.Sprint(p.Unknown), ""},
		line{"Repeats", fmt.Sprint(p.Repeats), ""})
}

// refusals stand apart: a rate made of them is no sale.
func (p Report) refusals() []line {
	all := []line{{"Refused", fmt.Sprint(p.Refused), fmt.Sprintf("at %.0f/s", p.RefusedPerSecond)}}
	for _, reason := range slices.Sorted(maps.Keys(p.RefusedBy)) {
		all = append(all, line{"  " + reason, fmt.Sprint(p.RefusedBy[reason]), ""})
	}
	return all
}

func (p Report) answers() []line {
	all := []line{{"Answers", "", "HTTP requests by status and code"}}
	for _, code := range slices.Sorted(maps.Keys(p.Answers)) {
		all = append(all, line{"  " + code, fmt.Sprint(p.Answers[code]), ""})
	}
	return all
}

// latency is a row of the table of waits.
type latency struct {
	Name string
	Percentiles
}

func (p Report) latencies() []latency {
	var all []latency
	for _, class := range []string{classAccepted, classRefused, classRepeat} {
		all = append(all, latency{class, p.Latency[class]})
	}
	if p.ConfirmedAfter != nil {
		all = append(all, latency{"accepted → row", *p.ConfirmedAfter})
	}
	return all
}

func (p Report) latencyText(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "\nLatency in ms\tcount\tp50\tp95\tp99\tp99.9\tmax\t")
	for _, l := range p.latencies() {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", l.Name, l.Count, l.P50, l.P95, l.P99, l.P999, l.Max)
	}
	_ = t.Flush()
}

func shortVerdict(verdict string) string {
	if verdict == holds {
		return "ok"
	}
	return verdict
}

// evidence says on what a verdict rests.
func (p Report) evidence(i application.InvariantResult) string {
	checked := fmt.Sprintf("%d checked, %d broken", i.Checked, i.Broken)
	switch i.Name {
	case "A":
		return fmt.Sprintf("%d/%d sold; %s", p.Units, p.Plan.Units*int64(p.Plan.Products), checked)
	case "D":
		return fmt.Sprintf("%d unknown; %s", p.Unknown, checked)
	case "E":
		if p.SecondsToRows != nil {
			return fmt.Sprintf("drained in %.2f s; %s", *p.SecondsToRows, checked)
		}
	}
	return checked
}

func finding(f application.Finding) string {
	where := strings.Join(slices.DeleteFunc([]string{f.Product, f.User, f.Token}, func(s string) bool { return s == "" }), " ")
	if where != "" {
		where += ": "
	}
	return where + f.Detail
}

func (r ThresholdResult) verdict() string {
	switch {
	case r.Met:
		return "ok"
	case r.Value == nil:
		return undecided
	}
	return "missed"
}

func (r ThresholdResult) measured() string {
	if r.Value == nil {
		return "not measured"
	}
	return fmt.Sprintf("measured %.4g", *r.Value)
}
