package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// sample is one measurement.
type sample struct {
	scenario string // bare, sales, refusals
	products int
	Values   map[string]float64
}

func sampleOf(scenario string, products int, l loaded) sample {
	return sample{scenario, products, map[string]float64{
		"unknownAnswers": float64(l.unknown),
		"p50Millis":      float64(l.latency.ValueAtQuantile(50)) / 1000,
		"p99Millis":      float64(l.latency.ValueAtQuantile(99)) / 1000,
	}}
}

func (s sample) name() string { return fmt.Sprintf("%s, %d products", s.scenario, s.products) }

func (s sample) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s", s.name())
	for _, k := range slices.Sorted(maps.Keys(s.Values)) {
		fmt.Fprintf(&b, "  %s %.1f", k, s.Values[k])
	}
	return b.String()
}

// spread is a value over all rounds.
type spread struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	All    []float64 `json:"all"`
}

func (s *spread) add(v float64) {
	s.All = append(s.All, v)
	sorted := slices.Sorted(slices.Values(s.All))
	n := len(sorted)
	s.Min, s.Max, s.Median = sorted[0], sorted[n-1], (sorted[(n-1)/2]+sorted[n/2])/2
}

// scenario is everything measured in one situation.
type scenario struct {
	Scenario string             `json:"scenario"`
	Products int                `json:"products"`
	Values   map[string]*spread `json:"values"`
}

// result is what a run of this command leaves behind.
type result struct {
	Schema      int         `json:"schema"`
	At          time.Time   `json:"at"`
	Go          string      `json:"go"`
	CPUs        int         `json:"cpus"`
	Connections int         `json:"connections"`
	Runs        int         `json:"runs"`
	Seconds     float64     `json:"windowSeconds"`
	Buyers      int         `json:"buyers"`
	Scenarios   []*scenario `json:"scenarios"`
}

func newResult(s settings) *result {
	return &result{Schema: 1, At: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPUs: runtime.NumCPU(),
		Connections: s.connections, Runs: s.runs, Seconds: s.window.Seconds(), Buyers: s.buyers}
}

func (r *result) add(one sample) {
	i := slices.IndexFunc(r.Scenarios, func(s *scenario) bool { return s.Scenario == one.scenario && s.Products == one.products })
	if i < 0 {
		i = len(r.Scenarios)
		r.Scenarios = append(r.Scenarios, &scenario{one.scenario, one.products, map[string]*spread{}})
	}
	for k, v := range one.Values {
		s := r.Scenarios[i].Values[k]
		if s == nil {
			s = &spread{}
			r.Scenarios[i].Values[k] = s
		}
		s.add(v)
	}
}

// print shows the median with the least and the most.
func (r *result) print(w io.Writer) {
	_, _ = fmt.Fprintf(w, "%d connections, %d rounds of %.0f s, %d CPUs shared with the load; median (least – most)\n",
		r.Connections, r.Runs, r.Seconds, r.CPUs)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range r.Scenarios {
		_, _ = fmt.Fprintf(t, "%s, %d products\t\t\n", s.Scenario, s.Products)
		for _, k := range slices.Sorted(maps.Keys(s.Values)) {
			v := s.Values[k]
			_, _ = fmt.Fprintf(t, "  %s\t%.1f\t(%.1f – %.1f)\n", k, v.Median, v.Min, v.Max)
			if k == "meanDeductBatch" && v.Median < batchVisible {
				_, _ = fmt.Fprintf(t, "  the mean batch is below %d: group commit is not at work\t\t\n", batchVisible)
			}
		}
	}
	_ = t.Flush()
}

func (r *result) write(folder string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "result.json"), append(b, '\n'), 0o600)
}
