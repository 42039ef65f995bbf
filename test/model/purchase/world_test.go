package purchase_test

import (
	"strings"
	"testing"

	"seckill/test/model/explore"
	"seckill/test/model/purchase"
	"seckill/test/scale"
)

const statesMax = 12_000_000

// The columns of the table.
var faults = []struct {
	name string
	purchase.Faults
}{
	{"nothing", purchase.Faults{}},
	{"crash, duplicate, network", purchase.Faults{Crash: true, Duplicate: true, Network: true}},
	{"and a half lost", purchase.Faults{Crash: true, Duplicate: true, Network: true, HalfLost: true}},
	{"fallback", purchase.Faults{Fallbacks: 1}},
	{"fallback, half lost", purchase.Faults{Fallbacks: 1, HalfLost: true}},
	{"fallback, network", purchase.Faults{Fallbacks: 1, Network: true}},
	{"fallback, crash, duplicate, network", purchase.Faults{Fallbacks: 1, Crash: true, Duplicate: true, Network: true}},
}

// large is the column that only the full run explores for every protocol.
const large = 6

// protocols and what each violates under each column's faults, by the violations' first letters.
var protocols = []struct {
	name  string
	rules purchase.Rules
	want  [7]string
}{
	{"the service's", purchase.Service, [7]string{"", "", "", "", "V", "", ""}},

	{"without relay", without(func(r *purchase.Rules) { r.Relay = false }), [7]string{"", "L", "VL", "", "VL", "L", "L"}},
	{"without arbiter", without(func(r *purchase.Rules) { r.Arbiter = false }), [7]string{"", "RGD", "RGD", "", "V", "RGD", "RGD"}},
	{"without suspension", without(func(r *purchase.Rules) { r.Suspend = false }), [7]string{"", "", "", "R", "VR", "R", "R"}},
	{"without rebuild", without(func(r *purchase.Rules) { r.Rebuild = false }), [7]string{"", "", "", "LE", "VLE", "LE", "LE"}},
	{"without suspension and rebuild", without(func(r *purchase.Rules) { r.Suspend, r.Rebuild = false, false }), [7]string{"", "", "", "R", "VR", "R", "R"}},
	{"without drain", without(func(r *purchase.Rules) { r.Drain = false }), [7]string{"", "", "", "R", "VR", "R", "R"}},
	{"without commit of what is absent", without(func(r *purchase.Rules) { r.Forward = false }), [7]string{"", "", "", "G", "VG", "VGLE", "VGLE"}},
	// Here a rebuild stands behind every loss, so nothing is left to adopt; the fates' world shows what for.
	{"without adopting", without(func(r *purchase.Rules) { r.Adopt = false }), [7]string{"", "", "", "", "V", "", ""}},

	{"plain", purchase.Rules{}, [7]string{"", "RGLD", "VRGLD", "VRGLD", "VRGLD", "VRGLD", "VRGLD"}},
	{"plain, giving back", purchase.Rules{GiveBack: true}, [7]string{"VRGD", "VRGD", "VRGD", "VRGLD", "VRGLD", "VRGLD", "VRGLD"}},
	{"plain, relay and arbiter", purchase.Rules{Relay: true, Arbiter: true}, [7]string{"", "", "", "VRGD", "VRGD", "VRGD", "VRGD"}},

	{"half first", halfFirst(purchase.Rules{}), [7]string{"VL", "VL", "VL", "VRLD", "VRLD", "VRLD", "VRLD"}},
	{"half first, tombstones", halfFirst(purchase.Rules{Fence: true}), [7]string{"", "L", "VL", "VRLD", "VRLD", "VRLD", "VRLD"}},
	{"half first, tombstones, relay, arbiter", halfFirst(purchase.Rules{Fence: true, Relay: true, Arbiter: true}), [7]string{"", "", "", "VRD", "VRD", "VRD", "VRD"}},
	{"half first, all rules", halfFirst(purchase.Rules{Fence: true, Relay: true, Arbiter: true, Adopt: true, Suspend: true, Rebuild: true, Drain: true}),
		[7]string{"", "", "", "", "V", "VLE", "VLE"}},
}

func without(drop func(*purchase.Rules)) purchase.Rules {
	r := purchase.Service
	drop(&r)
	return r
}

func halfFirst(r purchase.Rules) purchase.Rules {
	r.HalfFirst = true
	return r
}

// named are the violations with these first letters.
func named(letters string) (want []string) {
	for _, v := range []string{purchase.Oversold, purchase.Vanished, purchase.Refused, purchase.Ghost, purchase.Leaked,
		purchase.Differs, purchase.StaysShut} {
		if strings.Contains(letters, v[:1]) {
			want = append(want, v)
		}
	}
	return want
}

func TestWhatEachProtocolViolates(t *testing.T) {
	t.Parallel()
	for i, f := range faults {
		for _, p := range protocols {
			if i == large && p.rules != purchase.Service && !scale.Full(t) {
				continue
			}
			t.Run(f.name+"/"+p.name, func(t *testing.T) {
				t.Parallel()
				explore.Expect(t, purchase.World(p.rules, f.Faults, 2, 1), statesMax, named(p.want[i])...)
			})
		}
	}
}

func TestTheServiceWithMoreUnitsBuyersAndFallbacks(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		name   string
		faults purchase.Faults
		buyers int
		stock  int8
		full   bool
		want   string
	}{
		{"two units", purchase.Faults{Fallbacks: 1, Network: true}, 2, 2, false, ""},
		{"two fallbacks", purchase.Faults{Fallbacks: 2}, 2, 1, false, ""},
		{"two fallbacks, network", purchase.Faults{Fallbacks: 2, Network: true}, 2, 1, true, ""},
		{"two units, all but a half lost", purchase.Faults{Fallbacks: 1, Crash: true, Duplicate: true, Network: true}, 2, 2, true, ""},
		{"three buyers", purchase.Faults{}, 3, 2, false, ""},
		{"three buyers, fallback", purchase.Faults{Fallbacks: 1}, 3, 2, true, ""},
		{"three buyers, crash, duplicate", purchase.Faults{Crash: true, Duplicate: true}, 3, 2, true, ""},
	} {
		if w.full && !scale.Full(t) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			explore.Expect(t, purchase.World(purchase.Service, w.faults, w.buyers, w.stock), statesMax, named(w.want)...)
		})
	}
}
