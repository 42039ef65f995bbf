package application_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/adapters/system"
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
	r := application.NewReplayParked(p.parking, p.audits, p.settle, wire.Decode, cfg, quietLog)
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

func (p settleParts) replays() *application.ReplayParked {
	return application.NewReplayParked(p.parking, p.audits, p.settle, wire.Decode, application.DefaultReplayConfig(), quietLog)
}

// records expects one audit row, and gives what it says.
func (p settleParts) records(audit port.Audit, product string) *string {
	var after string
	p.audits.EXPECT().Record(gomock.Any(), audit, product, "", gomock.Any()).DoAndReturn(
		func(_ context.Context, _ port.Audit, _, _, is string) error { after = is; return nil })
	return &after
}

var byOperator = port.Audit{Actor: "op", Action: "replay-parked", Reason: "put right"}

func TestAnOperatorsReplayAnswersForEachMessage(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	fine, unknown := keyIn("p", "fine"), keyIn("q", "unknown")
	cut := port.Parked{ID: "cut", Reason: port.ParkMalformed, Body: []byte(strings.Repeat("x", port.ParkedBodyMax))}
	torn := port.Parked{ID: "torn", Reason: port.ParkMalformed, Body: []byte("{")}
	before := parkedPlain("before", keyIn("p", "before"))
	before.ReplayedAt = time.UnixMilli(1)
	stillUnknown := parkedPlain("unknown", unknown)
	stillUnknown.Reason = port.ParkUnknownProduct
	p.parking.EXPECT().ReadParked(gomock.Any(), []string{"cut", "fine", "gone", "before", "torn", "unknown"}).Return(
		[]port.Parked{cut, parkedPlain("fine", fine), {}, before, torn, stillUnknown}, nil)
	p.applies(func(item port.ApplyItem) port.ApplyReply {
		if item.Deduction.Key == unknown {
			return port.ApplyReply{Outcome: port.UnknownProduct}
		}
		return applied(item)
	})
	p.tells(port.TellDone, orderIn(fine, domain.OrderConfirmed))
	p.parking.EXPECT().MarkReplayed(gomock.Any(), []string{"fine"}).Return(nil)
	audited := p.records(byOperator, "")
	results, err := p.replays().ReplayThese(t.Context(), []string{"cut", "fine", "gone", "before", "torn", "unknown"}, byOperator)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ id, outcome, detail string }{
		{"cut", "parked", "was cut at 65536 bytes"}, {"fine", "replayed", ""}, {"gone", "not-found", ""}, {"before", "replayed", ""},
		{"torn", "parked", "cannot be read"}, {"unknown", "parked", "unknown-product"}} {
		if r := results[i]; r.ID != want.id || string(r.Outcome) != want.outcome || !strings.Contains(r.Detail, want.detail) || want.detail == "" && r.Detail != "" {
			t.Errorf("%+v, want %+v", r, want)
		}
	}
	if !strings.Contains(*audited, `"id":"fine"`) || strings.Contains(*audited, `"id":"before"`) {
		t.Errorf("the audit row says %s", *audited)
	}
}

// Much may have happened since a message was parked: it takes no unit that the gate has given to somebody else.
func TestAReplayOfOurOwnFormAsksTheGateFirst(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	held, late := keyIn("p", "held"), keyIn("p", "late")
	poison := port.Parked{ID: "1", Reason: port.ParkPoison, Product: "p", Body: must(wire.Encode(batchOf(itemOf(held), itemOf(late))))}
	p.parking.EXPECT().FindParked(gomock.Any(), port.ParkPoison, "p", "", 100).Return([]port.Parked{poison}, nil)
	p.applies(func(item port.ApplyItem) port.ApplyReply {
		if !item.Plain {
			t.Errorf("%v claims its units", item.Deduction.Key)
		}
		if item.AdoptedEpoch > 0 {
			return applied(item)
		}
		return straggler(item)
	}).Times(2)
	p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Len(2)).Return(
		[]port.AdoptReply{{Outcome: port.AdoptHeld, Epoch: 3}, {Outcome: port.AdoptNoRoom}})
	rejected := orderIn(late, domain.OrderRejected)
	p.ledger.EXPECT().Decide(gomock.Any(), gomock.Len(1)).Return([]domain.Order{rejected}, nil)
	p.tells(port.TellDone, orderIn(held, domain.OrderConfirmed), rejected)
	p.parking.EXPECT().MarkReplayed(gomock.Any(), []string{"1"}).Return(nil)
	p.records(byOperator, "p")
	results, next, err := p.replays().ReplayMatching(t.Context(), port.ParkPoison, "p", "", byOperator)
	if err != nil || next != "" || len(results) != 1 || results[0].Outcome != application.ReplayDone {
		t.Errorf("%+v %q %v", results, next, err)
	}
}

func TestAnOperatorsReplayIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	page := make([]port.Parked, 100)
	for i := range page {
		page[i] = port.Parked{ID: fmt.Sprintf("%03d", i), Reason: port.ParkMalformed, Body: []byte("{")}
	}
	p.parking.EXPECT().FindParked(gomock.Any(), port.ParkMalformed, "", "a", 100).Return(page, nil)
	p.records(byOperator, "")
	if results, next, err := p.replays().ReplayMatching(t.Context(), port.ParkMalformed, "", "a", byOperator); len(results) != 100 || next != "099" || err != nil {
		t.Errorf("%d %q %v", len(results), next, err)
	}
	for _, ids := range [][]string{{}, make([]string, 101)} {
		if _, err := p.replays().ReplayThese(t.Context(), ids, byOperator); !errors.Is(err, domain.ErrInvalidRequest) {
			t.Errorf("%d ids: %v", len(ids), err)
		}
	}
	p.parking.EXPECT().ReadParked(gomock.Any(), []string{"x"}).Return([]port.Parked{{}}, nil)
	if _, err := p.replays().ReplayOne(t.Context(), "x", byOperator); !errors.Is(err, domain.ErrParkedNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestWhatTheBrokerGaveUpOnIsParkedWhole(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	h := application.NewParkDiscarded(p.parking, system.NewIDs(), system.Clock{}, port.ParkDiscardedHalf, quietLog)
	got := p.parks()
	two := batchOf(itemOf(keyIn("p", "a")), itemOf(keyIn("q", "b")))
	deliveries := deliver(batchOf(itemOf(keyIn("p", "a"))), two, domain.Batch{ID: "b", Kind: domain.BatchBarrier}, domain.Batch{ID: "w", Kind: domain.BatchWarmup})
	deliveries = append(deliveries, port.Delivery{Malformed: "no JSON", Body: []byte(strings.Repeat("x", 100<<10))})
	if err := h.Handle(t.Context(), deliveries); err != nil {
		t.Fatal(err)
	}
	if len(*got) != 3 || (*got)[0].Product != "p" || (*got)[1].Product != "" || (*got)[2].Detail != "no JSON" || len((*got)[2].Body) != port.ParkedBodyMax {
		t.Errorf("%+v", *got)
	}
	for _, parked := range *got {
		if parked.Reason != port.ParkDiscardedHalf || parked.ID == "" || parked.ParkedAt.IsZero() {
			t.Errorf("%+v", parked)
		}
	}
	if err := h.Handle(t.Context(), deliveries[2:4]); err != nil {
		t.Error(err)
	}
	p.parking.EXPECT().Park(gomock.Any(), gomock.Any()).Return(domain.ErrUnavailable)
	if err := h.Handle(t.Context(), deliveries); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
