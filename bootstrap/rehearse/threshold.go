package rehearse

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Threshold is a figure that fails a rehearsal, such as p99>250ms.
type Threshold struct {
	rule   string
	figure string
	sign   string
	limit  float64 // milliseconds of a time, else a number
}

// ThresholdResult is what became of a threshold.
type ThresholdResult struct {
	Rule  string   `json:"rule"`
	Value *float64 `json:"value"` // milliseconds of a time, else a number; null: not measured
	Met   bool     `json:"met"`   // false also where it was not measured
}

var thresholdForm = regexp.MustCompile(`^\s*([a-z0-9.]+)\s*(>=|<=|>|<)\s*(\S+)\s*$`)

// figures are what a threshold may name. times are in milliseconds.
var (
	timeFigures = []string{"p50", "p95", "p99", "p99.9", "max"} // also after refused., repeat. and confirmed.
	timeOf      = regexp.MustCompile(`^(?:(accepted|refused|repeat|confirmed)\.)?(p50|p95|p99|p99\.9|max)$`)
	countOf     = map[string]func(Report) float64{
		"accepted": func(p Report) float64 { return float64(p.Accepted) },
		"refused":  func(p Report) float64 { return float64(p.Refused) },
		"unknown":  func(p Report) float64 { return float64(p.Unknown) },
		"rate":     func(p Report) float64 { return p.RealRate },
	}
)

const drainFigure = "drained"

// ParseThreshold reads FIGURE SIGN LIMIT: a percentile of accepted purchases (p50 p95 p99 p99.9 max), or of others
// (refused.p99, repeat.p99, confirmed.p99), or drained, held against a time with its unit; or accepted, refused, unknown or
// rate against a number.
func ParseThreshold(rule string) (Threshold, error) {
	m := thresholdForm.FindStringSubmatch(rule)
	if m == nil {
		return Threshold{}, fmt.Errorf("%q is not of the form p99>250ms", rule)
	}
	t := Threshold{rule: m[1] + m[2] + m[3], figure: m[1], sign: m[2]}
	if _, count := countOf[t.figure]; count {
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return Threshold{}, fmt.Errorf("%q: %s is held against a number", rule, t.figure)
		}
		t.limit = n
		return t, nil
	}
	if t.figure != drainFigure && !timeOf.MatchString(t.figure) {
		return Threshold{}, fmt.Errorf("%q: there is no figure %q; there are %v (also refused.…, repeat.…, confirmed.…), drained, accepted, refused, unknown, rate",
			rule, t.figure, timeFigures)
	}
	d, err := time.ParseDuration(m[3])
	if err != nil {
		return Threshold{}, fmt.Errorf("%q: %s is held against a time with its unit, such as 250ms", rule, t.figure)
	}
	t.limit = float64(d) / float64(time.Millisecond)
	return t, nil
}

// judge holds the report against the threshold, which says what must not be.
func (t Threshold) judge(p Report) ThresholdResult {
	r := ThresholdResult{Rule: t.rule}
	value, measured := t.value(p)
	if !measured {
		return r
	}
	r.Value = &value
	switch t.sign {
	case ">":
		r.Met = value <= t.limit
	case ">=":
		r.Met = value < t.limit
	case "<":
		r.Met = value >= t.limit
	case "<=":
		r.Met = value > t.limit
	}
	return r
}

func (t Threshold) value(p Report) (v float64, measured bool) {
	if count, ok := countOf[t.figure]; ok {
		return count(p), true
	}
	if t.figure == drainFigure {
		if p.SecondsToRows == nil {
			return 0, false
		}
		return *p.SecondsToRows * 1000, true
	}
	m := timeOf.FindStringSubmatch(t.figure)
	l := p.Latency[orElse(m[1], classAccepted)]
	if m[1] == classConfirmed {
		if p.ConfirmedAfter == nil {
			return 0, false
		}
		l = *p.ConfirmedAfter
	}
	of := map[string]float64{"p50": l.P50, "p95": l.P95, "p99": l.P99, "p99.9": l.P999, "max": l.Max}
	return of[m[2]], l.Count > 0
}
