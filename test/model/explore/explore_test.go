package explore_test

import (
	"slices"
	"testing"

	"seckill/test/model/explore"
)

// counter goes up by itself to its top, and a fault may throw it aside.
type counter struct{ at, aside int8 }

func counting(top int8, back bool) explore.World[counter] {
	return explore.World[counter]{
		Next: func(s counter, moves *explore.Moves[counter]) {
			if s.at < top {
				moves.Must(counter{s.at + 1, s.aside}, "up to %d", s.at+1)
			}
			if back && s.aside == 1 && s.at == top {
				moves.Must(counter{0, 1}, "back to the start")
			}
			moves.May(counter{s.at, 1}, "thrown aside")
		},
		Always: func(s counter, report func(string)) {
			if s.at == 2 && s.aside == 1 {
				report("aside at two")
			}
		},
		Rest: func(s counter, report func(string)) {
			if s.aside == 1 {
				report("rests aside")
			}
		},
	}
}

func TestEveryStateIsSeenAndTracesAreShortest(t *testing.T) {
	t.Parallel()
	r := explore.Explore(counting(3, false), 100)
	if r.States != 8 || !slices.Equal(r.Violations(), []string{"aside at two", "rests aside"}) {
		t.Fatalf("%d states, %v", r.States, r.Violations())
	}
	if len(r.Found["aside at two"]) != 3 || len(r.Found["rests aside"]) != 4 {
		t.Fatalf("%s\n%s", r.Trace("aside at two"), r.Trace("rests aside"))
	}
}

func TestGoingRoundForEverIsFound(t *testing.T) {
	t.Parallel()
	r := explore.Explore(counting(3, true), 100)
	if !slices.Equal(r.Violations(), []string{explore.NeverRests, "aside at two"}) {
		t.Fatal(r.Violations())
	}
	if trace := r.Found[explore.NeverRests]; !slices.Equal(trace, []string{"thrown aside"}) {
		t.Fatal(trace)
	}
}
