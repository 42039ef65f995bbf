package application_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
)

func TestReadinessNamesThePartThatIsAway(t *testing.T) {
	t.Parallel()
	inBubble(t, "parts", func(t *testing.T) {
		var brokerAway, gateHangs atomic.Bool
		var asked atomic.Int64
		r := application.NewReadiness(map[string]func(context.Context) error{
			"ledger": func(context.Context) error { return nil },
			"broker": func(context.Context) error {
				if brokerAway.Load() {
					return errors.New("secret address refused")
				}
				return nil
			},
			"gate": func(ctx context.Context) error {
				if gateHangs.Load() {
					asked.Add(1)
					time.Sleep(time.Hour)
				}
				return nil
			},
		}, application.DefaultReadinessConfig())
		if parts, ready := r.Check(t.Context()); !ready || len(parts) != 3 || parts["gate"].AgeSeconds != 0 {
			t.Fatalf("%v %+v", ready, parts)
		}
		brokerAway.Store(true)
		gateHangs.Store(true)
		if _, ready := r.Check(t.Context()); !ready {
			t.Error("asked again within a second")
		}
		time.Sleep(5 * time.Second)
		begun := time.Now()
		parts, ready := r.Check(t.Context())
		if ready || parts["broker"].OK || parts["gate"].OK || !parts["ledger"].OK {
			t.Errorf("%v %+v", ready, parts)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("waited %s for a part that hangs", took)
		}
		for range 10 {
			time.Sleep(2 * time.Second)
			r.Check(t.Context())
		}
		if asked.Load() != 1 {
			t.Errorf("%d checks of one part hang", asked.Load())
		}
		time.Sleep(time.Hour)
		if parts["broker"].AgeSeconds < 5 || parts["broker"].Detail != "not reachable" {
			t.Errorf("broker %+v", parts["broker"])
		}
	})
	inBubble(t, "a caller that has left ends no look", func(t *testing.T) {
		r := application.NewReadiness(map[string]func(context.Context) error{
			"ledger": func(ctx context.Context) error { return ctx.Err() }}, application.DefaultReadinessConfig())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if parts, ready := r.Check(ctx); !ready {
			t.Errorf("%+v", parts)
		}
	})
}

func TestListParkedBoundsItsPage(t *testing.T) {
	t.Parallel()
	parking := portmock.NewMockParking(gomock.NewController(t))
	list := application.NewListParked(parking)
	for asked, want := range map[int]int{0: 1, 20: 20, 100_000: 500} {
		parking.EXPECT().ListParked(gomock.Any(), port.ParkPoison, "p", "x", want).Return([]port.Parked{{ID: "1"}}, nil)
		if got, err := list.List(t.Context(), port.ParkPoison, "p", "x", asked); err != nil || len(got) != 1 {
			t.Error(got, err)
		}
	}
}
