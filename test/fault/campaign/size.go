package campaign

import (
	"testing"

	"seckill/test/scale"
)

// Size is how many to play: small in a small run, otherwise the scale's share of full, at least small.
func Size(t testing.TB, small, full int) int {
	t.Helper()
	return scale.Count(t, small, full)
}
