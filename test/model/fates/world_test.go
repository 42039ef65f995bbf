package fates_test

import (
	"testing"

	"seckill/test/model/explore"
	"seckill/test/model/fates"
	"seckill/test/scale"
)

const statesMax = 12_000_000

type cell struct {
	name   string
	faults fates.Faults
	buyers int
	full   bool // of the full run alone
}

var cells = []cell{
	{"cancel, loss, duplicate, death", fates.Faults{Cancel: true, Losses: 1, Duplicates: 1, Deaths: 1, Again: 1}, 2, false},
	{"addition, loss, death", fates.Faults{Addition: true, Losses: 1, Deaths: 1, Again: 1}, 2, false},
	{"batch, cancel, loss", fates.Faults{Batch: true, Cancel: true, Losses: 1, Duplicates: 1}, 2, false},
	{"expiry, addition, again", fates.Faults{Expiry: true, Addition: true, Again: 1}, 2, false},
	{"fallback, again", fates.Faults{Fallbacks: 1, Again: 1}, 2, false},
	{"fallback, cancel", fates.Faults{Fallbacks: 1, Cancel: true}, 2, false},
	{"fallback, addition", fates.Faults{Fallbacks: 1, Addition: true}, 2, false},
	{"fallback, addition, again", fates.Faults{Fallbacks: 1, Addition: true, Again: 1}, 2, false},
	{"fallback, cancel, addition, loss", fates.Faults{Fallbacks: 1, Cancel: true, Addition: true, Losses: 1}, 2, false},
	{"two fallbacks, cancel, again", fates.Faults{Fallbacks: 2, Cancel: true, Again: 1}, 2, false},
	{"three buyers, fallback, cancel, death", fates.Faults{Fallbacks: 1, Cancel: true, Deaths: 1}, 3, false},
	{"three buyers, cancel, loss, duplicate", fates.Faults{Cancel: true, Losses: 1, Duplicates: 1, Deaths: 1, Again: 1}, 3, true},
	{"three buyers, two fallbacks, cancel, addition", fates.Faults{Fallbacks: 2, Cancel: true, Addition: true}, 3, true},
	{"two fallbacks, cancel, addition, loss, again", fates.Faults{Fallbacks: 2, Cancel: true, Addition: true, Losses: 1, Again: 1}, 2, true},
}

func without(drop func(*fates.Rules)) fates.Rules {
	r := fates.Service
	drop(&r)
	return r
}

func TestTheServiceIsCleanInEveryCell(t *testing.T) {
	t.Parallel()
	for _, c := range cells {
		if c.full && !scale.Full(t) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			explore.Expect(t, fates.World(fates.Service, c.faults, c.buyers), statesMax)
		})
	}
}

// Where two lines stand behind each other, neither is missed alone: those are taken away together.
func TestEachRuleTakenAwayShows(t *testing.T) {
	t.Parallel()
	above, below := fates.Above, fates.Below
	for name, v := range map[string]struct {
		rules fates.Rules
		want  map[string][]string // by cell; a cell that is not named stays clean
	}{
		"settled flows stay settled": {without(func(r *fates.Rules) { r.Reverse = false }), map[string][]string{
			"cancel, loss, duplicate, death": {below}, "batch, cancel, loss": {below}, "fallback, cancel": {below},
			"fallback, cancel, addition, loss": {below}, "two fallbacks, cancel, again": {below},
			"three buyers, fallback, cancel, death": {below}}},
		"the base version is not looked at": {without(func(r *fates.Rules) { r.Base = false }), map[string][]string{
			"fallback, addition": {above}, "fallback, addition, again": {above}, "fallback, cancel, addition, loss": {above}}},
		"rows are not written back": {without(func(r *fates.Rules) { r.WriteBack = false }), map[string][]string{
			"fallback, again": {fates.Contradiction, fates.Ghost}, "fallback, cancel": {above, below},
			"fallback, addition, again":        {below, fates.Contradiction, fates.Ghost},
			"fallback, cancel, addition, loss": {above, below}, "two fallbacks, cancel, again": {above, below, fates.Contradiction, fates.Ghost},
			"three buyers, fallback, cancel, death": {above, below, fates.Rejected}}},
		"no outbox": {without(func(r *fates.Rules) { r.Outbox = false }), map[string][]string{
			"cancel, loss, duplicate, death": {below}, "addition, loss, death": {below}, "batch, cancel, loss": {below},
			"fallback, cancel, addition, loss": {below}}},
		"no outbox, and who meets the row is silent": {without(func(r *fates.Rules) { r.Outbox, r.MeetTells = false, false }), map[string][]string{
			"cancel, loss, duplicate, death": {below, fates.StaysOpen}, "addition, loss, death": {below, fates.StaysOpen},
			"batch, cancel, loss": {below, fates.StaysOpen}, "fallback, cancel, addition, loss": {below, fates.StaysOpen}}},
		"flows expire": {without(func(r *fates.Rules) { r.Keep = false }), map[string][]string{
			"expiry, addition, again": {below, fates.Contradiction, fates.Ghost}}},
		"no identity, and only a deduct raises the sequence": {without(func(r *fates.Rules) { r.Identity, r.EveryWrite = false, false }), map[string][]string{
			"fallback, cancel": {below}, "fallback, addition": {below}, "fallback, addition, again": {below},
			"fallback, cancel, addition, loss": {below}, "two fallbacks, cancel, again": {below},
			"three buyers, fallback, cancel, death": {below}}},
		// The callers' memory stands behind the identity; a world where they share it needs no more.
		"no identity": {without(func(r *fates.Rules) { r.Identity = false }), map[string][]string{}},
	} {
		for _, c := range cells {
			if c.full {
				continue
			}
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				explore.Expect(t, fates.World(v.rules, c.faults, c.buyers), statesMax, v.want[c.name]...)
			})
		}
	}
}
