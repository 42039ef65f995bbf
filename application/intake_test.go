package application_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

func TestTheIntakeClosesWhileSendsFailOneAfterAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := application.NewIntake(application.IntakeConfig{OpenMax: 10, AwayMax: 5 * time.Second, TryPause: time.Second})
		want := func(state application.IntakeState) {
			t.Helper()
			if got := i.State(); got != state {
				t.Fatalf("%s, want %s", got, state)
			}
		}
		want(application.IntakeOpen)
		i.NoteSend(port.SendUnknown)
		time.Sleep(4 * time.Second)
		i.NoteSend(port.SendUnknown)
		want(application.IntakeOpen)
		time.Sleep(time.Second)
		want(application.IntakeAway)
		if !i.TryOne() || i.TryOne() {
			t.Error("one is tried, and not two")
		}
		time.Sleep(time.Second)
		if !i.TryOne() {
			t.Error("a second later one more is tried")
		}
		i.NoteSend(port.SendCommitted)
		want(application.IntakeOpen)
		i.NoteSend(port.SendUnknown)
		time.Sleep(time.Second)
		want(application.IntakeOpen) // failing anew, not for long yet
		i.NoteOpen(11)
		want(application.IntakeCrowded)
		i.NoteOpen(10)
		want(application.IntakeOpen)
	})
}

// Nobody new is taken, and nothing is deducted; who is known learns how the order stands.
func TestACrowdedIntakeTakesNobodyNewAndAnswersWhoIsKnown(t *testing.T) {
	t.Parallel()
	p := laneWith(t, nil)
	p.intake.NoteOpen(1 << 40)
	settled := flowIn(keyIn("p", "known"), domain.FlowSettled, 7)
	open := flowIn(keyIn("p", "open"), domain.FlowDeducted, 8)
	p.gate.EXPECT().Check(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, keys []domain.Key) ([]port.CheckReply, error) {
		replies := make([]port.CheckReply, len(keys))
		for i, key := range keys {
			switch key.Token() {
			case "known":
				replies[i] = port.CheckReply{Flow: settled, Readable: true}
			case "open":
				replies[i] = port.CheckReply{Flow: open, Readable: true}
			case "rewound":
				replies[i] = port.CheckReply{Flow: settled}
			case "new":
				replies[i].Readable = true
			case "away":
				return nil, domain.ErrUnavailable
			}
		}
		return replies, nil
	}).AnyTimes()
	buy := func(token string, quantity int64) (application.Receipt, error) {
		return p.deduct.Deduct(t.Context(), must(domain.NewDeductCommand("p", "u", token, quantity)))
	}
	if r, err := buy("known", settled.Quantity()); err != nil || !r.Replayed || r.Order.Status != application.OrderConfirmed {
		t.Errorf("known: %+v %v", r, err)
	}
	if _, err := buy("known", settled.Quantity()+1); !errors.Is(err, &domain.Error{Code: domain.CodeTokenReused}) {
		t.Errorf("known with another quantity: %v", err)
	}
	if _, err := buy("open", open.Quantity()); !errors.Is(err, &domain.Error{Code: domain.CodeOutcomeUnknown}) {
		t.Errorf("one whose message may not be stored: %v", err)
	}
	for _, token := range []string{"new", "rewound", "away"} {
		if _, err := buy(token, 1); !errors.Is(err, domain.ErrBusy) {
			t.Errorf("%s: %v", token, err)
		}
	}
}

// While sends fail, one purchase is taken now and then; the one that can be sent opens the intake again.
func TestAnIntakeThatSendsHaveClosedOpensWithTheFirstThatSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := laneWith(t, nil)
		defer stopRunner(t, p.deduct)
		p.accepts()
		p.gate.EXPECT().Check(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, keys []domain.Key) ([]port.CheckReply, error) {
			replies := make([]port.CheckReply, len(keys))
			for i := range replies {
				replies[i].Readable = true
			}
			return replies, nil
		}).AnyTimes()
		result := port.SendUnknown
		p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).DoAndReturn(func(context.Context, domain.Batch) (port.SendResult, error) {
			return result, nil
		}).AnyTimes()
		n := 0
		buy := func() error {
			n++
			_, err := p.deduct.Deduct(t.Context(), must(domain.NewDeductCommand("p", "u", "t", 1)))
			return err
		}
		if err := buy(); !errors.Is(err, domain.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		time.Sleep(application.DefaultIntakeConfig().AwayMax)
		if err := buy(); !errors.Is(err, domain.ErrOutcomeUnknown) {
			t.Fatalf("the first is tried: %v", err)
		}
		for range 3 {
			if err := buy(); !errors.Is(err, domain.ErrBusy) {
				t.Fatalf("the next are not: %v", err)
			}
		}
		result = port.SendCommitted
		time.Sleep(application.DefaultIntakeConfig().TryPause)
		for range 3 {
			if err := buy(); err != nil {
				t.Fatalf("once sends succeed: %v", err)
			}
		}
	})
}

func TestTheRelayTellsTheIntakeHowManyFlowsAreOpen(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]int{"in one look": 100, "in several": 2} {
		inBubble(t, name, func(t *testing.T) {
			p := relayWith(t, func(c *application.RelayConfig) { c.ProductsMax = page }).quietly()
			p.intake = application.NewIntake(application.IntakeConfig{OpenMax: 9, AwayMax: time.Hour, TryPause: time.Hour})
			p.build()
			for _, product := range []string{"a", "b", "c", "d", "e"} {
				p.sells(product, 2)
			}
			p.runFor(t, 3500*time.Millisecond)
			if got := p.intake.State(); got != application.IntakeCrowded {
				t.Errorf("10 flows are open, and the intake is %s", got)
			}
		})
	}
}
