// Package scale says how much of the long tests is to be run: SECKILLTEST_SCALE, a number. Empty or 0 is the
// small size, which `make test` runs; 1 is the full run, and what lies between is its share.
package scale

import (
	"os"
	"strconv"
	"testing"
)

// Variable names the environment variable.
const Variable = "SECKILLTEST_SCALE"

// Of is the scale asked for, 0 where none is. What is no number, or below 0, fails the test.
func Of(t testing.TB) float64 {
	t.Helper()
	text := os.Getenv(Variable)
	if text == "" {
		return 0
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || !(scale >= 0) {
		t.Fatalf("%s is %q, not a number of 0 or more", Variable, text)
	}
	return scale
}

// Count is the full count times the scale, and at least the small one.
func Count(t testing.TB, small, full int) int {
	t.Helper()
	return max(small, int(Of(t)*float64(full)))
}

// Full reports whether everything is to be run: a scale of 1 or more.
func Full(t testing.TB) bool {
	t.Helper()
	return Of(t) >= 1
}
