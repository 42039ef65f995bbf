package application_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/golang/mock/gomock"

	"seckill/adapters/system"
	"seckill/adapters/wire"
	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

type settleParts struct {
	ledger   *portmock.MockLedger
	gate     *portmock.MockGate
	outbox   *portmock.MockOutbox
	parking  *portmock.MockParking
	audits   *portmock.MockAuditLog
	barriers *portmock.MockBarrierLog
	suspects *suspectList
	settle   *application.SettleDeductions
}

func settleWith(t *testing.T) settleParts {
	ctrl := gomock.NewController(t)
	p := settleParts{ledger: portmock.NewMockLedger(ctrl), gate: portmock.NewMockGate(ctrl), outbox: portmock.NewMockOutbox(ctrl),
		parking: portmock.NewMockParking(ctrl), audits: portmock.NewMockAuditLog(ctrl), barriers: portmock.NewMockBarrierLog(ctrl), suspects: &suspectList{}}
	p.settle = application.NewSettleDeductions(p.ledger, p.gate, p.outbox, p.parking, p.barriers, p.suspects,
		system.NewIDs(), system.Clock{}, wire.Encode, application.DefaultSettleConfig(), quietLog)
	return p
}

func deliver(batches ...domain.Batch) []port.Delivery {
	deliveries := make([]port.Delivery, len(batches))
	for i, b := range batches {
		deliveries[i] = port.Delivery{Batch: b, Body: []byte("body"), Origin: port.Origin{MessageID: fmt.Sprint("m", i), Queue: "q-1", Offset: int64(i)}}
	}
	return deliveries
}

// applies makes the ledger answer, by token.
func (p settleParts) applies(reply func(port.ApplyItem) port.ApplyReply) *gomock.Call {
	return p.ledger.EXPECT().Apply(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
		result := port.ApplyResult{Replies: make([]port.ApplyReply, len(items))}
		for i, item := range items {
			result.Replies[i] = reply(item)
		}
		return result, nil
	})
}

func applied(item port.ApplyItem) port.ApplyReply {
	return port.ApplyReply{Outcome: port.Applied, Order: orderIn(item.Deduction.Key, domain.OrderConfirmed)}
}

// tells expects one call that tells these orders, and the marks of those acknowledged.
func (p settleParts) tells(outcome port.TellOutcome, orders ...domain.Order) {
	fates := make([]domain.Fate, len(orders))
	outcomes := make([]port.TellOutcome, len(orders))
	for i, o := range orders {
		fates[i], outcomes[i] = o.Fate(), outcome
	}
	p.gate.EXPECT().Tell(gomock.Any(), fates).Return(outcomes)
	if outcome == port.TellDone || outcome == port.TellSuspect {
		p.outbox.EXPECT().MarkTold(gomock.Any(), orders).Return(nil)
	}
}

// parks expects one call, and gives what was parked.
func (p settleParts) parks() *[]port.Parked {
	var got []port.Parked
	p.parking.EXPECT().Park(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, parked []port.Parked) error {
		got = parked
		return nil
	})
	return &got
}

func TestSettleAppliesAGroupAndTellsItsFatesInOneCall(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	a, b, c := keyIn("p", "a"), keyIn("p", "b"), keyIn("q", "c")
	met := orderIn(c, domain.OrderCancelled)
	p.applies(func(item port.ApplyItem) port.ApplyReply {
		if item.Deduction.Key == c {
			return port.ApplyReply{Outcome: port.Met, Order: met}
		}
		return applied(item)
	})
	p.tells(port.TellDone, orderIn(a, domain.OrderConfirmed), orderIn(b, domain.OrderConfirmed), met)
	if err := p.settle.Handle(t.Context(), deliver(batchOf(itemOf(a), itemOf(b)), batchOf(itemOf(c)))); err != nil {
		t.Fatal(err)
	}
	if s := p.settle.Stats(); s.Groups != 1 || s.Rows != 2 || s.Parked != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestATellThatFailsIsNoErrorAndMarksNothing(t *testing.T) {
	t.Parallel()
	for _, outcome := range []port.TellOutcome{port.TellUnknown, port.TellNotNow} {
		p := settleWith(t)
		a := keyIn("p", "a")
		p.applies(applied)
		p.tells(outcome, orderIn(a, domain.OrderConfirmed))
		if err := p.settle.Handle(t.Context(), deliver(batchOf(itemOf(a)))); err != nil {
			t.Error(err)
		}
	}
	p := settleWith(t)
	p.applies(applied)
	p.gate.EXPECT().Tell(gomock.Any(), gomock.Any()).Return([]port.TellOutcome{port.TellDone})
	p.outbox.EXPECT().MarkTold(gomock.Any(), gomock.Any()).Return(domain.ErrUnavailable)
	if err := p.settle.Handle(t.Context(), deliver(batchOf(itemOf(keyIn("p", "a"))))); err != nil {
		t.Error(err)
	}
}

func TestSettleSuspectsAGateThatWasProvedWrong(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	a := keyIn("p", "a")
	rejected := orderIn(a, domain.OrderRejected)
	p.ledger.EXPECT().Apply(gomock.Any(), gomock.Any()).Return(port.ApplyResult{
		Replies: []port.ApplyReply{{Outcome: port.Applied, Order: rejected}}, Suspects: []string{"guarded"}}, nil)
	p.tells(port.TellSuspect, rejected)
	if err := p.settle.Handle(t.Context(), deliver(batchOf(itemOf(a)))); err != nil {
		t.Fatal(err)
	}
	if !p.suspects.has("guarded") || !p.suspects.has("p") {
		t.Errorf("suspected %v", p.suspects.products())
	}
}

func TestSettleHandsAnOutageBackToTheAdapter(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	p.ledger.EXPECT().Apply(gomock.Any(), gomock.Any()).Return(port.ApplyResult{}, domain.ErrUnavailable)
	wantCode(t, p.settle.Handle(t.Context(), deliver(batchOf(itemOf(keyIn("p", "a"))))), domain.CodeUnavailable)
}

func TestPoisonIsHalvedUntilItStandsAloneAndIsParked(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	var items []domain.Deduction
	for i := range 7 {
		items = append(items, itemOf(keyIn("p", fmt.Sprintf("t%d", i))))
	}
	poison := items[4].Key
	p.ledger.EXPECT().Apply(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
		var r port.ApplyResult
		for _, item := range items {
			if item.Deduction.Key == poison {
				return port.ApplyResult{}, domain.NewError(domain.CodeInvalidRequest, "the database will not take it", nil)
			}
			r.Replies = append(r.Replies, applied(item))
		}
		return r, nil
	}).AnyTimes()
	p.gate.EXPECT().Tell(gomock.Any(), gomock.Len(6)).Return(make([]port.TellOutcome, 6))
	parked := p.parks()
	if err := p.settle.Handle(t.Context(), deliver(batchOf(items...))); err != nil {
		t.Fatal(err)
	}
	if len(*parked) != 1 || (*parked)[0].Reason != port.ParkPoison || (*parked)[0].Product != "p" {
		t.Fatalf("parked %+v", *parked)
	}
	copied, err := wire.Decode((*parked)[0].Body) // a copy of the poison alone, to be replayed
	if err != nil || len(copied.Items) != 1 || copied.Items[0].Key != poison {
		t.Errorf("the copy is %+v, %v", copied, err)
	}
}

func TestSettleParksWhatItCannotApply(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	ghost, late, fine := keyIn("ghost", "a"), keyIn("late", "b"), keyIn("p", "c")
	p.applies(func(item port.ApplyItem) port.ApplyReply {
		switch item.Deduction.Key {
		case ghost:
			return port.ApplyReply{Outcome: port.UnknownProduct}
		case late:
			return port.ApplyReply{Outcome: port.Deferred}
		}
		return applied(item)
	})
	p.tells(port.TellDone, orderIn(fine, domain.OrderConfirmed))
	parked := p.parks()
	deliveries := deliver(batchOf(itemOf(ghost), itemOf(fine)), plainOf(late), domain.Batch{ID: "w", Kind: 99}, domain.Batch{},
		domain.Batch{ID: "x", Kind: domain.BatchWarmup})
	deliveries[3].Malformed, deliveries[3].Body = strings.Repeat("ü", 400), bytes.Repeat([]byte("x"), 100_000)
	if err := p.settle.Handle(t.Context(), deliveries); err != nil {
		t.Fatal(err)
	}
	got := map[port.ParkReason]port.Parked{}
	for _, one := range *parked {
		if one.ID == "" || one.ParkedAt.IsZero() || one.Origin.MessageID == "" {
			t.Errorf("parked without id, time or origin: %+v", one)
		}
		got[one.Reason] = one
	}
	if len(*parked) != 4 || len(got) != 4 {
		t.Fatalf("parked %+v", *parked)
	}
	if b, err := wire.Decode(got[port.ParkUnknownProduct].Body); err != nil || b.Plain || len(b.Items) != 1 || b.Items[0].Key != ghost {
		t.Errorf("the copy of one of two is %+v, %v", b, err)
	}
	if one := got[port.ParkNotOpen]; string(one.Body) != "body" || one.Product != "late" || one.Origin.MessageID != "m1" {
		t.Errorf("parked %+v", one)
	}
	if one := got[port.ParkMalformed]; len(one.Body) != 64<<10 || len(one.Detail) > 500 || !strings.HasPrefix(one.Detail, "üü") {
		t.Errorf("a huge body is kept with %d bytes and a detail of %d", len(one.Body), len(one.Detail))
	}
	if s := p.settle.Stats(); s.Parked != 4 {
		t.Errorf("stats %+v", s)
	}
}

func TestSettleIsNotFinishedWhileParkingFails(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	p.parking.EXPECT().Park(gomock.Any(), gomock.Any()).Return(domain.ErrUnavailable)
	deliveries := []port.Delivery{{Malformed: "no JSON", Body: []byte("?")}}
	wantCode(t, p.settle.Handle(t.Context(), deliveries), domain.CodeUnavailable)
}

func TestABarrierIsMarkedAtItsQueue(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	barrier := deliver(domain.Batch{ID: "bar", Kind: domain.BatchBarrier})
	p.barriers.EXPECT().MarkBarrier(gomock.Any(), "bar", "q-1").Return(nil)
	if err := p.settle.Handle(t.Context(), barrier); err != nil {
		t.Error(err)
	}
	p.barriers.EXPECT().MarkBarrier(gomock.Any(), "bar", "q-1").Return(domain.ErrUnavailable)
	wantCode(t, p.settle.Handle(t.Context(), barrier), domain.CodeUnavailable)
}

func straggler(port.ApplyItem) port.ApplyReply { return port.ApplyReply{Outcome: port.Straggler} }

func TestAStragglerTakesItsUnitsFirst(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	a := keyIn("p", "a")
	first := p.applies(straggler)
	adopt := p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), []port.AdoptItem{{Key: a, Quantity: 1, Attempt: "a-1", Otherwise: port.AdoptOrRefuse}}).
		Return([]port.AdoptReply{{Outcome: port.AdoptHeld, Epoch: 4}}).After(first)
	p.applies(func(item port.ApplyItem) port.ApplyReply {
		if item.AdoptedEpoch != 4 {
			t.Errorf("applied with adopted epoch %d", item.AdoptedEpoch)
		}
		return applied(item)
	}).After(adopt)
	p.tells(port.TellDone, orderIn(a, domain.OrderConfirmed))
	if err := p.settle.Handle(t.Context(), deliver(batchOf(itemOf(a)))); err != nil {
		t.Fatal(err)
	}
}

func TestAStragglerWithoutRoomIsRejectedByItsRowAndTold(t *testing.T) {
	t.Parallel()
	for _, outcome := range []port.AdoptOutcome{port.AdoptNoRoom, port.AdoptRefused} {
		p := settleWith(t)
		a := keyIn("p", "a")
		p.applies(straggler)
		p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Any()).Return([]port.AdoptReply{{Outcome: outcome}})
		p.ledger.EXPECT().Decide(gomock.Any(), []port.FateClaim{{Key: a, Quantity: 1, Status: domain.OrderRejected, Epoch: 3, Sequence: 7, Attempt: "a-1"}}).
			Return([]domain.Order{orderIn(a, domain.OrderRejected)}, nil)
		p.tells(port.TellDone, orderIn(a, domain.OrderRejected))
		if err := p.settle.Handle(t.Context(), deliver(batchOf(itemOf(a)))); err != nil {
			t.Error(err)
		}
	}
}

func TestAStragglerWaitsForAShutGateAndTheRestIsFinished(t *testing.T) {
	t.Parallel()
	for _, outcome := range []port.AdoptOutcome{port.AdoptWait, port.AdoptUnknown} {
		p := settleWith(t)
		old, fresh := keyIn("p", "old"), keyIn("p", "fresh")
		p.applies(func(item port.ApplyItem) port.ApplyReply {
			if item.Deduction.Key == old {
				return straggler(item)
			}
			return applied(item)
		})
		p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Len(1)).Return([]port.AdoptReply{{Outcome: outcome}})
		p.tells(port.TellDone, orderIn(fresh, domain.OrderConfirmed))
		wantCode(t, p.settle.Handle(t.Context(), deliver(batchOf(itemOf(old)), batchOf(itemOf(fresh)))), domain.CodeRebuilding)
		// Once the database says "suspended", the next try applies it without the gate.
		p.applies(applied)
		p.tells(port.TellDone, orderIn(old, domain.OrderConfirmed), orderIn(fresh, domain.OrderConfirmed))
		if err := p.settle.Handle(t.Context(), deliver(batchOf(itemOf(old)), batchOf(itemOf(fresh)))); err != nil {
			t.Error(err)
		}
	}
}

// The drain waits for whatever waits in place, so nothing may wait for ever.
func TestAStragglerWhoseTokenStandsForAnotherQuantityIsParked(t *testing.T) {
	t.Parallel()
	for _, message := range []domain.Batch{batchOf(itemOf(keyIn("p", "a"))), plainOf(keyIn("p", "a"))} {
		p := settleWith(t)
		p.applies(straggler)
		p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Any()).Return([]port.AdoptReply{{Outcome: port.AdoptConflict}})
		parked := p.parks()
		if err := p.settle.Handle(t.Context(), deliver(message)); err != nil {
			t.Fatal(err)
		}
		if len(*parked) != 1 || (*parked)[0].Reason != port.ParkConflict {
			t.Errorf("parked %+v", *parked)
		}
	}
}

func TestAnAdoptedStragglerWhoseProductWasRebuiltAgainComesAgain(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	p.applies(straggler).Times(2)
	p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Any()).Return([]port.AdoptReply{{Outcome: port.AdoptHeld, Epoch: 4}})
	wantCode(t, p.settle.Handle(t.Context(), deliver(batchOf(itemOf(keyIn("p", "a"))))), domain.CodeRebuilding)
}

func TestAPlainStragglerOfAShutGateIsParkedSoThatItHoldsUpNothing(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	p.applies(straggler)
	p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Any()).Return([]port.AdoptReply{{Outcome: port.AdoptWait}})
	parked := p.parks()
	if err := p.settle.Handle(t.Context(), deliver(plainOf(keyIn("p", "a")))); err != nil {
		t.Fatal(err)
	}
	if len(*parked) != 1 || (*parked)[0].Reason != port.ParkNotOpen {
		t.Errorf("parked %+v", *parked)
	}
}

func TestAGroupIsAppliedInBoundedTransactionsAndNothingAfterAnOutage(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	var items []domain.Deduction
	for i := range 2500 {
		items = append(items, itemOf(keyIn("p", fmt.Sprintf("t%d", i))))
	}
	first := p.ledger.EXPECT().Apply(gomock.Any(), gomock.Len(1000)).DoAndReturn(func(_ context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
		var r port.ApplyResult
		for _, item := range items {
			r.Replies = append(r.Replies, applied(item))
		}
		return r, nil
	})
	p.ledger.EXPECT().Apply(gomock.Any(), gomock.Len(1000)).Return(port.ApplyResult{}, domain.ErrUnavailable).After(first)
	p.gate.EXPECT().Tell(gomock.Any(), gomock.Len(1000)).Return(make([]port.TellOutcome, 1000))
	wantCode(t, p.settle.Handle(t.Context(), deliver(batchOf(items...))), domain.CodeUnavailable)
}
