package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"seckill/test/harness"
)

// sample is what one scenario saw, for the detail beside the figures.
type sample struct {
	scenario string
	Values   map[string]float64
}

func (s sample) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s", s.scenario)
	for _, k := range slices.Sorted(maps.Keys(s.Values)) {
		fmt.Fprintf(&b, "  %s %.4g", k, s.Values[k])
	}
	return b.String()
}

// outcome is one figure as it came out. Figure, Min, Max and Met are null where it was not run.
type outcome struct {
	ID     string   `json:"id"`
	What   string   `json:"what"`
	How    string   `json:"how"`
	Figure *float64 `json:"figure"` // median over the runs
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
	Runs   int      `json:"runs"`
	Target string   `json:"target"`
	Met    *bool    `json:"met"`
	NotRun string   `json:"notRun,omitempty"` // why
}

// machine is what the figures were measured on.
type machine struct {
	CPUs   int    `json:"cpus"`
	Model  string `json:"model,omitempty"`
	Memory int64  `json:"memoryBytes,omitempty"`
	System string `json:"system"`
}

// result is what a run of this command leaves behind.
type result struct {
	At          time.Time         `json:"at"`
	Machine     machine           `json:"machine"`
	Versions    map[string]string `json:"versions"`
	Commit      string            `json:"commit"`
	Connections int               `json:"connections"`
	Runs        int               `json:"runs"`
	Window      float64           `json:"windowSeconds"`
	Figures     []outcome         `json:"figures"`

	values    map[string]*spread            // by figure
	reasons   map[string]string             // why a figure was not run
	scenarios map[string]map[string]*spread // detail
}

func newResult(s settings) *result {
	versions := harness.Versions()
	versions["Go"] = runtime.Version()
	return &result{At: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(), Versions: versions, Commit: commit(),
		Connections: s.connections, Runs: s.runs, Window: s.window.Seconds(),
		values: map[string]*spread{}, reasons: map[string]string{}, scenarios: map[string]map[string]*spread{}}
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--tags", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func thisMachine() machine {
	return machine{CPUs: runtime.NumCPU(), Model: procField("/proc/cpuinfo", "model name"),
		Memory: procKibibytes("/proc/meminfo", "MemTotal"), System: runtime.GOOS + "/" + runtime.GOARCH}
}

// record notes a figure's value of one round. One that is no number is a measurement that saw nothing.
func (r *result) record(id string, v float64) {
	f := figureByID(id)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		r.miss(f.id, "the measurement saw nothing")
		return
	}
	s := r.values[f.id]
	if s == nil {
		s = &spread{}
		r.values[f.id] = s
	}
	s.add(v)
}

// miss notes why a figure has no value.
func (r *result) miss(id, why string) { r.reasons[figureByID(id).id] = why }

func (r *result) addSample(one sample) {
	values := r.scenarios[one.scenario]
	if values == nil {
		values = map[string]*spread{}
		r.scenarios[one.scenario] = values
	}
	for k, v := range one.Values {
		if values[k] == nil {
			values[k] = &spread{}
		}
		values[k].add(v)
	}
}

// finish makes the outcomes of all figures, those that were not run too.
func (r *result) finish(s settings) {
	r.Figures = r.Figures[:0]
	for _, f := range figures {
		o := outcome{ID: f.id, What: f.what, How: f.how, Target: f.target()}
		switch v := r.values[f.id]; {
		case v != nil:
			met := f.met(v.Median)
			o.Figure, o.Min, o.Max, o.Runs, o.Met = &v.Median, &v.Min, &v.Max, len(v.All), &met
		case !s.wants(f):
			o.NotRun = "not asked for"
		case r.reasons[f.id] != "":
			o.NotRun = r.reasons[f.id]
		case !measured(f):
			o.NotRun = "this bench does not measure it"
		default:
			o.NotRun = "nothing was measured"
		}
		r.Figures = append(r.Figures, o)
	}
}

// measured says whether some play is for a figure.
func measured(f figure) bool {
	return slices.ContainsFunc(plays, func(p play) bool { return p.number == f.number() })
}

// write leaves the figures in result.json, and what they were made of in detail.json.
func (r *result) write(folder string) error {
	if err := writeJSON(filepath.Join(folder, "result.json"), r); err != nil {
		return err
	}
	return writeJSON(filepath.Join(folder, "detail.json"), r.scenarios)
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}
