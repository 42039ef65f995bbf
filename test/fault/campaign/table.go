package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Table is the figures as markdown: a line for each layer that is wanted (none named: all found), the
// totals, and what they were measured on. It is clean if nothing was violated, no test failed and no
// wanted layer is missing.
func Table(found map[string]Figures, wanted []string) (text string, clean bool) {
	if len(wanted) == 0 {
		wanted = slices.SortedFunc(maps.Keys(found), byNumber)
	}
	var b strings.Builder
	b.WriteString("| layer | faults | requests | accepted / refused | first answer unknown → ended | settled, s: p50 / p99 / max | closed, s: p50 / p99 / max | accepted, then refused (of these lost by both stores) | violations |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	clean = true
	total := Figures{}
	var present []Figures
	for _, layer := range wanted {
		f, ok := found[layer]
		if !ok {
			clean = false
			fmt.Fprintf(&b, "| %s | no figures | | | | | | | |\n", layer)
			continue
		}
		present = append(present, f)
		total.merge(f)
		fmt.Fprintf(&b, "| **%s** %s | %s\n", f.Layer, f.What, f.cells())
	}
	fmt.Fprintf(&b, "| **all** | %s\n", total.cells())
	for _, f := range total.Failed {
		fmt.Fprintf(&b, "\nFailed: %s", f)
	}
	b.WriteString(provenance(present))
	if len(present) == 0 || len(total.Failed) > 0 || total.Broken() > 0 {
		clean = false
	}
	return b.String(), clean
}

// cells are a line's cells after the layer.
func (f Figures) cells() string {
	faults := fmt.Sprintf("%d", f.FaultCount())
	if f.Layer != "" && len(f.Faults) > 0 {
		faults += ": " + list(f.Faults)
	}
	unknown := "none"
	if len(f.Unknown) > 0 {
		unknown = list(f.Unknown) + " → " + list(f.Ended)
	}
	violations := fmt.Sprintf("**%d**", f.Broken())
	if f.Broken() > 0 {
		violations += " " + list(f.Violations)
	}
	if len(f.Failed) > 0 {
		violations += fmt.Sprintf(" (%d of %d tests failed)", len(f.Failed), len(f.Failed)+f.Passed)
	}
	return fmt.Sprintf("%s | %d | %d / %d | %s | %s | %s | %d (%d) | %s |", faults, f.Requests, f.Accepted, f.Refused, unknown,
		times(f.Settle), times(f.Closed), f.AcceptedThenRefused, f.Residual, violations)
}

func times(seconds []float64) string {
	if len(seconds) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f / %.1f / %.1f", Percentile(seconds, 0.5), Percentile(seconds, 0.99), slices.Max(seconds))
}

func list(counts map[string]int64) string {
	parts := make([]string, 0, len(counts))
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		if counts[k] != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
		}
	}
	return strings.Join(parts, ", ")
}

// provenance says what the figures were measured on, once for all layers of which that is the same.
func provenance(figures []Figures) string {
	of := map[string][]string{}
	for _, f := range figures {
		scale := "small size"
		if f.Scale > 0 {
			scale = "scale " + strconv.FormatFloat(f.Scale, 'g', -1, 64)
		}
		servers := make([]string, 0, len(f.On.Servers))
		for _, name := range slices.Sorted(maps.Keys(f.On.Servers)) {
			servers = append(servers, name+" "+f.On.Servers[name])
		}
		line := fmt.Sprintf("%s, commit %s, %s, %s; %d cores, %.0f GiB, Linux %s, %s", f.Date, f.Code.Commit, f.Code.Go, scale,
			f.On.Cores, float64(f.On.MemoryBytes)/(1<<30), f.On.Kernel, strings.Join(servers, ", "))
		of[line] = append(of[line], f.Layer)
	}
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, "\n%s: %s.\n", strings.Join(of[line], ", "), line)
	}
	return b.String()
}

// byNumber sorts L4 before L10.
func byNumber(a, b string) int {
	number := func(s string) int { n, _ := strconv.Atoi(strings.TrimLeft(s, "L")); return n }
	return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
}
