package simulation

import (
	"strings"
	"testing"
)

// seedsToCatch is how many seeds a bad variant may take until it is caught.
const seedsToCatch = 300

// TestEveryKnownBadVariantIsCaught takes one rule after another away. The sound service is played on
// the same seeds by the test of the books.
func TestEveryKnownBadVariantIsCaught(t *testing.T) {
	t.Parallel()
	for _, bad := range badVariants {
		t.Run(strings.ReplaceAll(bad.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			params := DefaultParams()
			params.Tampered = bad.tampered
			for seed := range uint64(seedsToCatch) {
				if w := simulate(t, seed, params, bad, &trace{}); len(w.violations) > 0 {
					t.Logf("%s: caught by seed %d, the %d. one: %.200s", bad.name, seed, seed+1, w.violations[0])
					return
				}
			}
			t.Errorf("%s is not caught by %d seeds", bad.name, seedsToCatch)
		})
	}
}

// TestTheLedgersGuardIsTheLastLine: what somebody adds to the gate by hand is never sold.
func TestTheLedgersGuardIsTheLastLine(t *testing.T) {
	t.Parallel()
	params := DefaultParams()
	params.Tampered = true
	refusals := 0
	for seed := range uint64(4) {
		w := simulate(t, seed, params, variant{}, &trace{})
		if len(w.violations) > 0 {
			t.Error(w.report())
		}
		refusals += w.seen.counts["guard refusal"]
	}
	if refusals == 0 {
		t.Error("the guard had nothing to refuse")
	}
}
