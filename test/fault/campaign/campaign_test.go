package campaign

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestTestsOfALayerAreOneFileOfFigures(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			own := Figures{Layer: "L99", What: "nothing", Passed: 1, Requests: 3, Settle: []float64{0.5},
				Faults: map[string]int64{"kill": 2}, Unknown: map[string]int64{"no-answer": 1}}
			if err := mergeAndWrite(folder, own); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	found, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	f := found["L99"]
	if f.Passed != 20 || f.Requests != 60 || f.FaultCount() != 40 || len(f.Settle) != 20 || f.Unknown["no-answer"] != 20 {
		t.Errorf("%+v", f)
	}
	if f.On.Cores == 0 || f.Code.Go == "" || f.Date == "" {
		t.Errorf("it does not say where it comes from: %+v", f)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*.json.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.WriteFile(filepath.Join(folder, "L98.json"), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(folder); err == nil {
		t.Error("a torn file was taken for figures")
	}
}

func TestATableIsCleanOnlyIfNothingIsBrokenFailedOrMissing(t *testing.T) {
	t.Parallel()
	good := func(layer string) Figures {
		return Figures{Layer: layer, What: "x", Passed: 1, Faults: map[string]int64{"kill": 3}, Settle: []float64{1, 2, 30},
			Unknown: map[string]int64{"no-answer": 4}, Ended: map[string]int64{"accepted": 3, "refused": 1}}
	}
	found := map[string]Figures{"L4": good("L4"), "L10": good("L10")}
	text, clean := Table(found, nil)
	if !clean || strings.Index(text, "L4") > strings.Index(text, "L10") {
		t.Errorf("clean %v:\n%s", clean, text)
	}
	for _, want := range []string{"kill 3", "no-answer 4 → accepted 3, refused 1", "2.0 / 30.0 / 30.0", "**0**", "| **all** | 6 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	broken, failed := good("L4"), good("L4")
	broken.Violations, failed.Failed = map[string]int64{"D": 1}, []string{"TestL4"}
	for name, c := range map[string]struct {
		found  map[string]Figures
		wanted []string
	}{
		"a violation":     {map[string]Figures{"L4": broken}, nil},
		"a failed test":   {map[string]Figures{"L4": failed}, nil},
		"a missing layer": {found, []string{"L4", "L5"}},
		"nothing":         {nil, nil},
	} {
		if text, clean := Table(c.found, c.wanted); clean {
			t.Errorf("%s is clean:\n%s", name, text)
		}
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	values := []float64{4, 1, 3, 2}
	for p, want := range map[float64]float64{0: 1, 0.5: 2, 0.75: 3, 0.99: 4, 1: 4} {
		if got := Percentile(values, p); got != want {
			t.Errorf("p%v: %v, want %v", p, got, want)
		}
	}
}
