package losses_test

import (
	"testing"

	"seckill/test/model/explore"
	"seckill/test/model/losses"
	"seckill/test/scale"
)

const statesMax = 4_000_000

var cells = []struct {
	name   string
	faults losses.Faults
	stock  int8
	full   bool
}{
	{"fallback, one unit", losses.Faults{Falls: 1}, 1, false},
	{"fallback", losses.Faults{Falls: 1}, 2, false},
	{"fallback, restart", losses.Faults{Falls: 1, Restarts: 1}, 2, false},
	{"two fallbacks", losses.Faults{Falls: 2}, 2, false},
	{"two fallbacks, restart", losses.Faults{Falls: 2, Restarts: 1}, 2, true},
}

func without(drop func(*losses.Rules)) losses.Rules {
	r := losses.Service
	drop(&r)
	return r
}

// Identity is the line that holds; memory and floor only show what they are for where it is gone.
var variants = []struct {
	name  string
	rules losses.Rules
	want  [5][]string // by cell
}{
	{"the service's", losses.Service, [5][]string{}},
	{"no memory at all", without(func(r *losses.Rules) { r.Sequence, r.Own = false, false }), [5][]string{}},
	{"no floor", without(func(r *losses.Rules) { r.Floor = false }), [5][]string{}},
	{"no tick", without(func(r *losses.Rules) { r.Tick = false }), [5][]string{
		{losses.Above}, {losses.Above}, {losses.Above}, {losses.Above, losses.StaysShut}, {losses.Above, losses.StaysShut}}},
	{"a memory outlives its epoch", without(func(r *losses.Rules) { r.EpochEnds = false }), [5][]string{
		nil, {losses.EndlessRoad}, {losses.EndlessRoad}, {losses.EndlessRoad}, {losses.EndlessRoad}}},
	{"no identity", without(func(r *losses.Rules) { r.Identity = false }), [5][]string{
		{losses.Rejected}, {losses.Rejected}, {losses.Above, losses.Rejected},
		{losses.Above, losses.Rejected, losses.StaysShut}, {losses.Above, losses.Rejected, losses.StaysShut}}},
	{"no identity, no memory", without(func(r *losses.Rules) { r.Identity, r.Sequence, r.Own = false, false, false }), [5][]string{
		{losses.Above, losses.Rejected}, {losses.Above, losses.Rejected}, {losses.Above, losses.Rejected},
		{losses.Above, losses.Rejected, losses.StaysShut}, {losses.Above, losses.Rejected, losses.StaysShut}}},
	{"no identity, no floor", without(func(r *losses.Rules) { r.Identity, r.Floor = false, false }), [5][]string{
		{losses.BelowZero, losses.Rejected}, {losses.BelowZero, losses.Rejected}, {losses.BelowZero, losses.Above, losses.Rejected},
		{losses.BelowZero, losses.Above, losses.Below, losses.Rejected, losses.StaysShut},
		{losses.BelowZero, losses.Above, losses.Below, losses.Rejected, losses.StaysShut}}},
}

func TestHowALossIsNoticed(t *testing.T) {
	t.Parallel()
	for i, c := range cells {
		if c.full && !scale.Full(t) {
			continue
		}
		for _, v := range variants {
			t.Run(c.name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				explore.Expect(t, losses.World(v.rules, c.faults, c.stock), statesMax, v.want[i]...)
			})
		}
	}
}
