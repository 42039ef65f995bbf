package campaign

import (
	"maps"
	"math"
	"slices"
)

// Figures are what one layer of the fault plan showed. Counts are sums over all its tests, times are
// in seconds, one for each fault.
type Figures struct {
	Layer string  `json:"layer"` // L4, L5, …
	What  string  `json:"what"`  // what is broken in this layer, in a few words
	Date  string  `json:"date"`
	Code  Code    `json:"code"`
	On    Machine `json:"machine"`
	Scale float64 `json:"scale"` // of a full run; 0 is the small size

	Passed int      `json:"testsPassed"`
	Failed []string `json:"testsFailed"`

	Faults   map[string]int64 `json:"faults"`   // by kind
	Requests int64            `json:"requests"` // HTTP requests of buyers, repeats among them
	Accepted int64            `json:"accepted"` // purchases that were told accepted in the end
	Refused  int64            `json:"refused"`  // purchases that were refused in the end
	Unknown  map[string]int64 `json:"unknown"`  // purchases whose first answer was none that stands, by its code
	Ended    map[string]int64 `json:"ended"`    // how these ended

	Violations          map[string]int64 `json:"violations"`          // A to E: counter-examples
	AcceptedThenRefused int64            `json:"acceptedThenRefused"` // what of it the promise allows is in Residual
	Residual            int64            `json:"residual"`            // flow lost by Redis and message late or lost: may end rejected

	Settle []float64        `json:"settleSeconds"` // from the end of a fault until A to E hold and each answer stands
	Closed []float64        `json:"closedSeconds"` // products closed until their gate was rebuilt, by the clock of the instance that did it; one that died of it is in Settle alone
	Seen   map[string]int64 `json:"seen"`          // what the runs came across: repeats answered, rebuilds, …
}

// Code is what was tested.
type Code struct {
	Commit string `json:"commit"`
	Go     string `json:"go"`
}

// Machine is what it was tested on.
type Machine struct {
	Cores       int               `json:"cores"`
	MemoryBytes int64             `json:"memoryBytes"`
	Kernel      string            `json:"kernel"`
	Servers     map[string]string `json:"servers"` // versions by name
}

// Broken is the number of all violations.
func (f Figures) Broken() (n int64) {
	for _, v := range f.Violations {
		n += v
	}
	return n
}

// FaultCount is the number of all faults.
func (f Figures) FaultCount() (n int64) {
	for _, v := range f.Faults {
		n += v
	}
	return n
}

// merge adds what another test of the layer counted.
func (f *Figures) merge(o Figures) {
	f.Passed += o.Passed
	f.Failed = append(f.Failed, o.Failed...)
	slices.Sort(f.Failed)
	f.Requests += o.Requests
	f.Accepted += o.Accepted
	f.Refused += o.Refused
	f.AcceptedThenRefused += o.AcceptedThenRefused
	f.Residual += o.Residual
	f.Settle = append(f.Settle, o.Settle...)
	f.Closed = append(f.Closed, o.Closed...)
	for _, m := range []struct {
		to   *map[string]int64
		from map[string]int64
	}{{&f.Faults, o.Faults}, {&f.Unknown, o.Unknown}, {&f.Ended, o.Ended}, {&f.Violations, o.Violations}, {&f.Seen, o.Seen}} {
		if *m.to == nil {
			*m.to = map[string]int64{}
		}
		for k, v := range m.from {
			(*m.to)[k] += v
		}
	}
}

// clone shares nothing with f.
func (f Figures) clone() Figures {
	f.Failed, f.Settle, f.Closed = slices.Clone(f.Failed), slices.Clone(f.Settle), slices.Clone(f.Closed)
	for _, m := range []*map[string]int64{&f.Faults, &f.Unknown, &f.Ended, &f.Violations, &f.Seen} {
		*m = maps.Clone(*m)
	}
	return f
}

// Percentile is the smallest of the values that at least the share p of them does not exceed; 0 where there are none.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, max(0, int(math.Ceil(p*float64(len(sorted))))-1))]
}
