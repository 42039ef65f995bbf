package campaign

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
)

// EnvScale is the variable with the share of a full run's counts to play; empty: the small size.
const EnvScale = "SECKILLTEST_SCALE"

// Size is how many to play: small in a small run, otherwise the share of full, at least small.
func Size(t testing.TB, small, full int) int {
	t.Helper()
	scale, err := scaleOf(os.Getenv(EnvScale))
	if err != nil {
		t.Fatal(err)
	}
	return max(small, int(math.Ceil(float64(full)*scale)))
}

// scaleOf reads a scale; 0 stands for the small size.
func scaleOf(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || !(scale >= 0 && scale <= 1) {
		return 0, fmt.Errorf("%s: %q is not a number from 0 to 1", EnvScale, text)
	}
	return scale, nil
}
