package rebuilds_test

import (
	"slices"
	"testing"

	"seckill/test/model/explore"
	"seckill/test/model/rebuilds"
	"seckill/test/scale"
)

const statesMax = 8_000_000

const (
	above, below = rebuilds.Above, rebuilds.Below
	newRejected  = rebuilds.NewRejected
	oldRejected  = rebuilds.OldRejected
	endless      = rebuilds.EndlessRoad
)

type cell struct {
	name   string
	faults rebuilds.Faults
	full   bool
	want   []string // what is left with every rule
}

var cells = []cell{
	{"two rebuilders", rebuilds.Faults{}, false, nil},
	{"cancel", rebuilds.Faults{Cancel: true}, false, nil},
	{"death, cancel", rebuilds.Faults{Deaths: 1, Cancel: true}, false, nil},
	{"cut", rebuilds.Faults{Cuts: 1}, false, nil},
	{"cut, cancel", rebuilds.Faults{Cuts: 1, Cancel: true}, false, nil},
	{"expiry", rebuilds.Faults{Expiries: 1}, false, nil},
	{"expiry, cut", rebuilds.Faults{Expiries: 1, Cuts: 1}, false, nil},
	{"fall", rebuilds.Faults{Falls: 1}, false, nil},
	{"late", rebuilds.Faults{Late: true}, false, nil},
	{"late, cut", rebuilds.Faults{Late: true, Cuts: 1}, false, nil},
	{"late, death", rebuilds.Faults{Late: true, Deaths: 1}, false, nil},
	{"parked, cancel", rebuilds.Faults{Parked: true, Cancel: true}, false, nil},
	// What is left: the unit of a message that missed the drain is on sale again.
	{"late, told", rebuilds.Faults{Late: true, Told: true}, false, []string{oldRejected}},

	{"two new buyers, fall", rebuilds.Faults{Falls: 1, Second: true}, true, nil},
	{"fall, death, cancel", rebuilds.Faults{Falls: 1, Deaths: 1, Cancel: true}, true, nil},
	{"late, death, cancel", rebuilds.Faults{Late: true, Deaths: 1, Cancel: true}, true, nil},
	// ... and what missed one drain, and comes in the next one's, is taken for an order of the epoch that has just ended.
	{"late, fall", rebuilds.Faults{Late: true, Falls: 1}, true, []string{newRejected}},
}

func without(drop func(*rebuilds.Rules)) rebuilds.Rules {
	r := rebuilds.Service
	drop(&r)
	return r
}

// variants take rules away. want adds to what a cell shows with every rule; a cell that is not named shows no more.
var variants = []struct {
	name  string
	rules rebuilds.Rules
	only  []string // cells; empty: all. Worlds that go round for ever are large.
	want  map[string][]string
}{
	{"the service's", rebuilds.Service, nil, nil},
	{"the epoch is the gate's", without(func(r *rebuilds.Rules) { r.OwnEpoch, r.SameSuspension, r.Lease = false, false, false }), []string{"two rebuilders"},
		map[string][]string{"two rebuilders": {endless}}},
	{"no lease", without(func(r *rebuilds.Rules) { r.Lease = false }), []string{"two rebuilders", "cut"},
		map[string][]string{"two rebuilders": {endless}, "cut": {endless}}},
	{"the epoch is raised, and then compared", without(func(r *rebuilds.Rules) { r.CompareFirst = false }), nil, map[string][]string{
		"death, cancel": {endless}, "cut": {endless}, "cut, cancel": {endless}, "expiry": {endless}, "expiry, cut": {endless},
		"fall": {endless}, "late, cut": {endless}, "late, death": {endless}}},
	{"rows are not written back", without(func(r *rebuilds.Rules) { r.WriteBack = false }), nil, map[string][]string{
		"cancel": {above}, "death, cancel": {above}, "cut, cancel": {above}, "parked, cancel": {above}}},
	{"written without the lock", without(func(r *rebuilds.Rules) { r.LockHeld = false }), nil, map[string][]string{
		"cancel": {below}, "death, cancel": {below}, "cut, cancel": {below}, "late": {above, newRejected},
		"late, cut": {above, newRejected}, "late, death": {above, newRejected}, "late, told": {above, newRejected}}},
	{"reopened in another commit", without(func(r *rebuilds.Rules) { r.OneCommit = false }), nil, map[string][]string{
		"late": {above, newRejected}, "late, cut": {above, newRejected}, "late, death": {above, newRejected}, "late, told": {above, newRejected}}},
	{"reopened under the same version", without(func(r *rebuilds.Rules) { r.RaiseVersion = false }), nil, map[string][]string{
		"late": {newRejected}, "late, cut": {newRejected}, "late, death": {newRejected}, "late, told": {newRejected}}},
	{"the gate opens first", without(func(r *rebuilds.Rules) { r.OpenLast = false }), nil, map[string][]string{
		"late, cut": {newRejected}, "late, death": {newRejected}}},
	{"stragglers do not ask", without(func(r *rebuilds.Rules) { r.AdoptFirst = false }), nil, map[string][]string{
		"late": {newRejected}, "late, cut": {newRejected}, "late, death": {newRejected}, "late, told": {newRejected}}},
	{"stragglers ask while suspended", without(func(r *rebuilds.Rules) { r.DrainPast = false }), nil, map[string][]string{
		"late, death": {explore.NeverRests}}},
	{"no mark, and written whatever moved", without(func(r *rebuilds.Rules) { r.Mark, r.Unmoved = false, false }), nil, map[string][]string{
		"parked, cancel": {below}}},
	// Each of these has a second line behind it that holds here: mark and sequence behind each other, and the
	// epoch behind the drain that was for another suspension.
	{"no mark", without(func(r *rebuilds.Rules) { r.Mark = false }), nil, nil},
	{"written whatever moved", without(func(r *rebuilds.Rules) { r.Unmoved = false }), nil, nil},
	{"any suspension", without(func(r *rebuilds.Rules) { r.SameSuspension = false }), nil, nil},
}

func TestARebuildsInside(t *testing.T) {
	t.Parallel()
	for _, v := range variants {
		for _, c := range cells {
			alone := v.rules == rebuilds.Service // the large cells are for the service's rules
			if c.full && (!alone || !scale.Full(t)) || len(v.only) > 0 && !slices.Contains(v.only, c.name) {
				continue
			}
			t.Run(v.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				explore.Expect(t, rebuilds.World(v.rules, c.faults), statesMax, append(slices.Clone(c.want), v.want[c.name]...)...)
			})
		}
	}
}
