package explore

import (
	"slices"
	"testing"
)

// Expect explores a world and holds what it finds against what is expected, exactly: a violation too many
// fails with its shortest trace, and one too few shows that the world proves less than it is said to.
func Expect[S comparable](t testing.TB, world World[S], statesMax int, want ...string) Result {
	t.Helper()
	r := Explore(world, statesMax)
	for _, v := range r.Violations() {
		if !slices.Contains(want, v) {
			t.Errorf("%d states, not expected: %s", r.States, r.Trace(v))
		}
	}
	for _, v := range want {
		if _, found := r.Found[v]; !found {
			t.Errorf("%d states and never %q", r.States, v)
		}
	}
	t.Logf("%d states, %v", r.States, r.Violations())
	return r
}
