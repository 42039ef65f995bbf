package main

import (
	"math"
	"strings"
	"testing"
)

func TestEveryFigureOfTheTableHasItsTarget(t *testing.T) {
	t.Parallel()
	numbers, ids := map[string]bool{}, map[string]bool{}
	for _, f := range figures {
		if ids[f.id] || f.what == "" || f.how == "" || f.unit == "" || f.bound <= 0 {
			t.Errorf("%+v", f)
		}
		ids[f.id], numbers[f.number()] = true, true
	}
	if len(numbers) != 14 {
		t.Errorf("%d numbers: %v", len(numbers), numbers)
	}
}

func TestATargetIsMetOnItsSideOfTheBound(t *testing.T) {
	t.Parallel()
	more, less := figure{dir: atLeast, bound: 0.4, unit: "× bare"}, figure{dir: atMost, bound: 1.5, unit: "s"}
	if !more.met(0.4) || more.met(0.39) || !less.met(1.5) || less.met(1.51) {
		t.Error("a bound belongs to what meets it, and nothing beyond does")
	}
	if more.target() != "≥ 0.4 × bare" || less.target() != "≤ 1.5 s" {
		t.Error(more.target(), less.target())
	}
}

func TestAFigureIsTheMedianOfItsRounds(t *testing.T) {
	t.Parallel()
	r := result{values: map[string]*spread{}, reasons: map[string]string{}}
	for _, v := range []float64{0.5, 0.3, 0.45} {
		r.record("1a", v)
	}
	r.record("1c", math.NaN())
	r.miss("3", "failed: no servers")
	r.finish(settings{figures: []string{"1", "3"}})
	for _, o := range r.Figures {
		switch o.ID {
		case "1a":
			if *o.Figure != 0.45 || *o.Min != 0.3 || *o.Max != 0.5 || o.Runs != 3 || !*o.Met || o.NotRun != "" {
				t.Errorf("%+v", o)
			}
		default:
			if o.Met != nil || o.Figure != nil || o.NotRun == "" {
				t.Errorf("%s was not run: %+v", o.ID, o)
			}
		}
	}
	var table strings.Builder
	r.print(&table)
	for line, words := range map[string][]string{"1a ": {"0.45", "(0.3 – 0.5)", "≥ 0.4 × bare", " met "}, "1c ": {"not run", "saw nothing"},
		"3 ": {"not run", "failed: no servers"}, "7b ": {"not run", "not asked for"}} {
		row := rowOf(table.String(), line)
		for _, word := range words {
			if !strings.Contains(row, word) {
				t.Errorf("%q lacks %q", row, word)
			}
		}
	}
}

func rowOf(table, start string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, start) {
			return line
		}
	}
	return ""
}

func TestAMissedTargetIsSaid(t *testing.T) {
	t.Parallel()
	r := result{values: map[string]*spread{}, reasons: map[string]string{}}
	r.record("10", 301)
	r.finish(settings{})
	for _, o := range r.Figures {
		if o.ID == "10" && (o.Met == nil || *o.Met || o.verdict() != "missed") {
			t.Errorf("%+v", o)
		}
	}
}

func TestMedians(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 3, 2, 1}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("%v: %v", c.values, got)
		}
	}
	if over(1, 0) != 0 || ratio(3, 2) != 1.5 {
		t.Error("ratios")
	}
}
