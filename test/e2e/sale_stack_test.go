//go:build stack

package e2e

import (
	"testing"

	"seckill/bootstrap/rehearse"
	"seckill/test/shop"
)

// The whole sale: every unit is sold once, and everyone else is told the truth.
func TestASaleSellsEveryUnitOnceAndTellsEveryoneTheTruth(t *testing.T) {
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile)
		s.Start()
		const buyers, units = 10_000, 1_000
		r := s.Rehearse(rehearse.Config{Buyers: buyers, Units: units, Products: 1, Connections: 200, Repeats: 0.05})
		if r.Asked != buyers || r.Accepted != units || r.Refused != buyers-units || r.Unknown != 0 {
			t.Errorf("of %d asked %d accepted, %d refused, %d unknown", r.Asked, r.Accepted, r.Refused, r.Unknown)
		}
		if r.Confirmed != units || r.Units != units || r.Orders != units {
			t.Errorf("%d orders, %d of them confirmed, of %d units", r.Orders, r.Confirmed, r.Units)
		}
		if r.Repeats < buyers/25 || !r.Holds {
			t.Errorf("%d repeats, invariants %+v", r.Repeats, r.Invariants)
		}
		s.Stop()
	})
}
