//go:build stack

package fault

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"seckill/application"
	"seckill/test/shop"
)

// TestKilled plays the cases in which the service is killed, one after another in one shop.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Start()
	f01KilledInABurst(t, s)
	f47KilledAnywhere(t, s)
}

// F01: a service killed in a burst and started again gets everything right with nobody asking, also
// what only the broker's check-back can tell it.
func f01KilledInABurst(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 10_000, 0)
	home, accepted := steady(s, product, "u")
	shop.Eventually(t, time.Minute, "a burst under way", func() (bool, string) {
		return accepted() >= 100, fmt.Sprint(accepted())
	})
	s.Kill()
	all := home()
	leaveHalves(t, s, plainMessage(product, "half", "plain", "1"), ownMessage(t, product, "half", "own", "1"))
	s.Start()
	s.HoldsEventually(product)
	s.WaitOrder(product, "half", "own", application.OrderConfirmed)
	s.WaitOrder(product, "half", "plain", application.OrderRejected)

	for _, p := range all {
		converge(t, s, p)
	}
	orders := bought(all) + 1
	holds(t, s, product, orders, orders, all...)
}

// F47: a kill at any step, between any two writes, neither loses a unit nor tells a buyer what is not so.
func f47KilledAnywhere(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 100_000, 0)
	var all []*purchase
	for round := range tenth(t, 200) {
		home, accepted := steady(s, product, fmt.Sprintf("u%d-", round))
		atLeast := rand.Int64N(3)
		shop.Eventually(t, time.Minute, "a burst under way", func() (bool, string) {
			return accepted() >= atLeast, fmt.Sprint(accepted())
		})
		time.Sleep(rand.N(30 * time.Millisecond)) // the fault's own place
		s.Kill()
		all = append(all, home()...)
		s.Start()
	}
	unknown := 0
	for _, p := range all {
		if !p.answer.Definite() {
			unknown++
		}
		converge(t, s, p)
	}
	t.Logf("%d purchases, %d of them without an answer at first", len(all), unknown)
	holds(t, s, product, int64(len(all)), int64(len(all)), all...)
}
