package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// print shows the figures with the median, the least and the most, then what they were made of.
func (r *result) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "%d connections, %d rounds, windows of %.1f s, %d CPUs shared with the load; median (least – most)\n",
		r.Connections, r.Runs, r.Window, r.Machine.CPUs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "#\tfigure\t\ttarget\tmet\twhat")
	for _, o := range r.Figures {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", o.ID, o.median(), o.bounds(), o.Target, o.verdict(), cmp.Or(o.NotRun, o.What))
	}
	_ = t.Flush()
	for _, name := range slices.Sorted(maps.Keys(r.scenarios)) {
		_, _ = fmt.Fprintln(w, name)
		values := r.scenarios[name]
		for _, k := range slices.Sorted(maps.Keys(values)) {
			v := values[k]
			_, _ = fmt.Fprintf(t, "  %s\t%.4g\t(%.4g – %.4g)\n", k, v.Median, v.Min, v.Max)
		}
		_ = t.Flush()
	}
}

func (o outcome) median() string {
	if o.Figure == nil {
		return "–"
	}
	return fmt.Sprintf("%.3g", *o.Figure)
}

func (o outcome) bounds() string {
	if o.Figure == nil {
		return ""
	}
	return fmt.Sprintf("(%.3g – %.3g)", *o.Min, *o.Max)
}

func (o outcome) verdict() string {
	switch {
	case o.Met == nil:
		return "not run"
	case *o.Met:
		return "met"
	}
	return "missed"
}
