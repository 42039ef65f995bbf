//go:build stack

package fault

import (
	"fmt"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// Crash point 6 of the fault plan: while the broker is away or hangs, new purchases are told "busy" before the
// deduct, so that it does not eat the stock into unknown answers; who is known gets his answer. Once it
// is back everything is finished and the sale goes on.
func brokerAwayEatsNoStock(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	for name, c := range map[string]struct{ away, back func() error }{
		"killed": {servers.Broker.Kill, func() error { return servers.Broker.Start(t.Context()) }},
		"hangs":  {servers.Broker.Stop, servers.Broker.Cont},
	} {
		t.Run(name, func(t *testing.T) { brokerAway(t, s.For(t), c.away, c.back) })
	}
}

func brokerAway(t *testing.T, s *shop.Shop, away, back func() error) {
	const total = 1_000_000
	product := onSale(t, s, total, 0)
	owner := &purchase{product: product, user: "owner", token: "t", quantity: 1}
	owner.buy(s)
	s.WaitOrder(product, "owner", "t", "confirmed")
	home, _ := steady(s, product, "u")
	if err := away(); err != nil {
		t.Fatal(err)
	}
	wantIntake(t, s, application.IntakeAway)
	before := taken(t, s, product)
	busy := 0
	for i := range 50 {
		p := &purchase{product: product, user: fmt.Sprint("late", i), token: "t", quantity: 1}
		if p.buy(s); p.answer.Code() == domain.CodeBusy {
			busy++
		}
		if owner.buy(s); owner.answer.Text("status") != "confirmed" {
			t.Fatalf("the owner's repeat: %v", owner.answer)
		}
	}
	// One a second is tried, by whoever's turn it is; all the others are told "busy".
	if busy < 25 {
		t.Errorf("%d of 50 were told busy", busy)
	}
	crowd := home()
	if eaten := taken(t, s, product) - before; eaten > 500 {
		t.Errorf("%d units were taken while nothing could be sent", eaten)
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	wantIntakeAgain(t, s, product)
	again(s, crowd)
	n := bought(crowd)
	v := s.HoldsEventually(product)
	if v.Confirmed < n {
		t.Errorf("%d orders, and %d of %d buyers were told of theirs", v.Confirmed, n, len(crowd))
	}
	t.Logf("%d purchases, %d bought", len(crowd), n)
}

func wantIntake(t *testing.T, s *shop.Shop, want application.IntakeState) {
	t.Helper()
	shop.Eventually(t, time.Minute, "intake "+string(want), func() (bool, string) {
		got := s.Pipeline().Intake
		return got == want, string(got)
	})
}

// wantIntakeAgain waits until somebody new is taken.
func wantIntakeAgain(t *testing.T, s *shop.Shop, product string) {
	t.Helper()
	i := 0
	shop.Eventually(t, 90*time.Second, "the sale goes on", func() (bool, string) {
		i++
		p := &purchase{product: product, user: fmt.Sprint("new", i), token: "t", quantity: 1}
		p.buy(s)
		return p.answer.Accepted(), p.answer.String()
	})
	wantIntake(t, s, application.IntakeOpen)
}

// taken is how many units the gate has given away.
func taken(t *testing.T, s *shop.Shop, product string) int64 {
	t.Helper()
	v, a := s.Stock(product)
	if v.Gate == nil {
		t.Fatalf("the gate of %s: %v", product, a)
	}
	return v.Total - v.Gate.Remaining
}
