package scale_test

import (
	"testing"

	"seckill/test/scale"
)

//nolint:paralleltest // sets the environment
func TestCountsGrowFromTheSmallSizeToTheFullOne(t *testing.T) {
	for text, want := range map[string]int{"": 10, "0": 10, "0.05": 10, "0.5": 50, "1": 100, "2.5": 250} {
		t.Setenv(scale.Variable, text)
		if got := scale.Count(t, 10, 100); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
		if scale.Full(t) != (want >= 100) {
			t.Errorf("%q: full is %v", text, scale.Full(t))
		}
	}
}
