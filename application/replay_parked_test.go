package application_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/adapters/wire"
	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

func parkedPlain(id string, k domain.Key) port.Parked {
	return port.Parked{ID: id, Reason: port.ParkNotOpen, Product: k.Product(), Body: must(wire.Encode(plainOf(k))), Origin: port.Origin{MessageID: id}}
}

// replayFor runs the replay for some seconds, inside a bubble.
func replayFor(t *testing.T, p settleParts, cfg application.ReplayConfig, d time.Duration) {
	t.Helper()
	r := application.NewReplayParked(p.parking, p.settle, wire.Decode, cfg, quietLog)
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(d)
	stopRunner(t, r)
}

func TestReplayMarksOnlyWhatIsFinished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := settleWith(t) // parking again would fail the test
		fine, shut, waits := keyIn("p", "fine"), keyIn("p", "shut"), keyIn("p", "waits")
		torn := port.Parked{ID: "4", Reason: port.ParkNotOpen, Body: []byte("{")}
		p.parking.EXPECT().Replayable(gomock.Any(), 200).Return(
			[]port.Parked{parkedPlain("1", fine), parkedPlain("2", shut), torn, parkedPlain("3", waits)}, nil)
		p.applies(func(item port.ApplyItem) port.ApplyReply {
			switch item.Deduction.Key {
			case fine:
				return applied(item)
			case shut:
				return port.ApplyReply{Outcome: port.Deferred}
			}
			return straggler(item)
		})
		p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Len(1)).Return([]port.AdoptReply{{Outcome: port.AdoptWait}})
		p.tells(port.TellDone, orderIn(fine, domain.OrderConfirmed))
		p.parking.EXPECT().MarkReplayed(gomock.Any(), []string{"1"}).Return(nil)
		replayFor(t, p, application.DefaultReplayConfig(), time.Second)
	})
}

func TestReplayGoesOnWhilePagesAreFullAndComesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := settleWith(t)
		cfg := application.DefaultReplayConfig()
		cfg.PageMax = 2
		left := []port.Parked{}
		for i := range 5 {
			left = append(left, parkedPlain(fmt.Sprint(i), keyIn("p", fmt.Sprint(i))))
		}
		p.parking.EXPECT().Replayable(gomock.Any(), 2).DoAndReturn(func(any, int) ([]port.Parked, error) {
			return left[:min(2, len(left))], nil
		}).Times(4) // three pages at once, and a look in the next round
		p.parking.EXPECT().MarkReplayed(gomock.Any(), gomock.Any()).DoAndReturn(func(_ any, ids []string) error {
			left = left[len(ids):]
			return nil
		}).Times(3)
		p.applies(applied).Times(3)
		p.gate.EXPECT().Tell(gomock.Any(), gomock.Any()).DoAndReturn(func(_ any, fates []domain.Fate) []port.TellOutcome {
			return make([]port.TellOutcome, len(fates))
		}).Times(3)
		replayFor(t, p, cfg, 4*time.Second)
	})
}

func TestReplayLeavesEverythingInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := settleWith(t)
		p.parking.EXPECT().Replayable(gomock.Any(), 200).Return([]port.Parked{parkedPlain("1", keyIn("p", "a"))}, nil)
		p.ledger.EXPECT().Apply(gomock.Any(), gomock.Any()).Return(port.ApplyResult{}, domain.ErrUnavailable)
		replayFor(t, p, application.DefaultReplayConfig(), time.Second)
	})
}
