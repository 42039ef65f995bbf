package application_test

import (
	"slices"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

// withdraw takes units at the gate under a stock change's key.
func (s *shop) withdraw(t *testing.T, product, token string, quantity int64) domain.Flow {
	t.Helper()
	key := changeKeyIn(product, token)
	if r := s.gate.Adopt(t.Context(), time.Now(), []port.AdoptItem{{Key: key, Quantity: quantity, Attempt: "a-" + token}})[0]; r.Outcome != port.AdoptHeld {
		t.Fatalf("the gate answers %+v to %s", r, token)
	}
	return must(s.gate.Check(t.Context(), []domain.Key{key}))[0].Flow
}

// add writes an addition's row, and tells the gate only if it is to be told.
func (s *shop) add(t *testing.T, product, token string, quantity int64, told bool) domain.Order {
	t.Helper()
	row := must(s.Add(t.Context(), []port.Addition{{Key: changeKeyIn(product, token), Quantity: quantity}}))[0].Row
	if told {
		s.gate.Tell(t.Context(), []domain.Fate{row.Fate()})
		if err := s.MarkTold(t.Context(), []domain.Order{row}); err != nil {
			t.Fatal(err)
		}
	}
	return row
}

func (s *shop) wantBoth(t *testing.T, product string, total, left int64) {
	t.Helper()
	stock, view := s.stock(product), s.view(t, product)
	if stock.Total() != total || stock.Remaining() != left || view.Remaining != left || view.Shut {
		t.Errorf("%d of %d left in the ledger, %+v at the gate; want %d of %d", stock.Remaining(), stock.Total(), view, left, total)
	}
}

func TestARebuildKeepsStockChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, "everything is forgotten, and a message travels", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 20)
		s.settle(t, s.buy(t, "p", "sold"), domain.OrderConfirmed)
		counted, untold := s.add(t, "p", "counted", 5, true), s.add(t, "p", "untold", 3, false)
		applied := s.apply(s.withdraw(t, "p", "applied", 2), domain.OrderConfirmed, false)
		travels, lost := s.withdraw(t, "p", "travels", 4), s.withdraw(t, "p", "lost", 6)
		s.store.Forget("p")
		s.drains.while = func() { s.apply(travels, domain.OrderConfirmed, false) }
		startRunner(t, s.repair)
		s.repair.Suspect("p", "flushed")
		s.idle(t)
		s.wantBoth(t, "p", 20+5+3-2-4, 21) // what has neither row nor message never was
		for _, k := range []domain.Key{counted.Key(), untold.Key(), applied.Key(), travels.Key()} {
			if s.state(t, k) != domain.FlowSettled {
				t.Errorf("%s is %s", k, s.state(t, k))
			}
		}
		if s.state(t, lost.Key()) != domain.FlowAbsent {
			t.Error("the lost one is there")
		}
		for _, row := range []domain.Order{untold, counted} { // a tell that was on its way all the time
			if got := s.gate.Tell(t.Context(), []domain.Fate{row.Fate()})[0]; got != port.TellDone {
				t.Errorf("told: %d", got)
			}
		}
		s.wantBoth(t, "p", 22, 21)
		if !s.verify(t).Holds {
			t.Errorf("%+v", s.verify(t))
		}
	})
	inBubble(t, "flows survive", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 20)
		open := s.withdraw(t, "p", "open", 4)
		s.apply(s.withdraw(t, "p", "rejected", 3), domain.OrderRejected, false)
		s.store.MoveServer("p")
		startRunner(t, s.repair)
		s.repair.Suspect("p", "another server")
		s.idle(t)
		if v := s.view(t, "p"); v.OpenFlows != 0 || s.state(t, open.Key()) != domain.FlowSettled {
			t.Errorf("%+v", v)
		}
		s.wantBoth(t, "p", 16, 16)
	})
}

func TestTheBooksOfAChangedStock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play func(*testing.T, *shop)
		want string
	}{
		"at rest":                 {func(*testing.T, *shop) {}, ""},
		"a withdrawal on its way": {func(t *testing.T, s *shop) { s.withdraw(t, "p", "open", 2) }, "E unknown"},
		"an untold addition":      {func(t *testing.T, s *shop) { s.add(t, "p", "untold", 2, false) }, "E unknown"},
		"one untold for too long": {func(t *testing.T, s *shop) {
			s.add(t, "p", "untold", 2, false)
			time.Sleep(time.Minute + time.Second)
		}, "E broken"},
		"units that nobody added": {func(_ *testing.T, s *shop) {
			s.change("p", func(f *domain.StockFields) { f.Total, f.Stock = f.Total+1, f.Stock+1 })
		}, "B broken"},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newShop(nil)
			s.open(t, "p", 10)
			s.settle(t, s.buy(t, "p", "sold"), domain.OrderConfirmed)
			s.add(t, "p", "more", 5, true)
			s.settle(t, s.withdraw(t, "p", "fewer", 3), domain.OrderConfirmed)
			s.wantBoth(t, "p", 12, 11)
			c.play(t, s)
			v := s.verify(t)
			if verdicts(v) != c.want || v.Holds != (c.want == "") || v.Units != 1 {
				t.Errorf("%s, want %s: %+v", verdicts(v), c.want, v.Invariants)
			}
			shown, err := application.NewShowStock(s.eyes, wallClock{}).Show(t.Context(), "p")
			drift := int64(0)
			if name == "units that nobody added" {
				drift = -1
			}
			if err != nil || shown.Drift == nil || *shown.Drift != drift || shown.Confirmed == nil || *shown.Confirmed != 1 {
				t.Errorf("shown %+v, %v", shown, err)
			}
		})
	}
}

func TestReconcileFinishesWithdrawals(t *testing.T) {
	t.Parallel()
	inBubble(t, "each kind is sent again in messages of its own", func(t *testing.T) {
		d := newDesk(t)
		d.cfg.PageMax = 10
		d.open(t, "p", 20)
		d.withdraw(t, "p", "w", 2)
		d.buy(t, "p", "a")
		time.Sleep(old)
		d.run(t, apply)
		kinds := []domain.BatchKind{}
		for _, b := range d.sent {
			kinds = append(kinds, b.Kind)
			if len(b.Items) != 1 || b.Items[0].Kind() != b.Kind {
				t.Errorf("sent %+v", b)
			}
		}
		if !slices.Equal(kinds, []domain.BatchKind{domain.BatchDeduct, domain.BatchWithdraw}) {
			t.Errorf("sent %v", kinds)
		}
	})
	inBubble(t, "rolled back", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 20)
		flow := d.withdraw(t, "p", "w", 2)
		time.Sleep(old)
		d.audits.EXPECT().Record(gomock.Any(), gomock.Any(), "p", gomock.Any(), gomock.Any()).Return(nil)
		r := d.run(t, application.ReconcileRequest{Mode: application.ReconcileApply, Policy: application.PolicyRollBack})
		if story(r) != "open-flow-without-order w rolled-back true" || d.state(t, flow.Key()) != domain.FlowReleased {
			t.Error(story(r))
		}
		d.wantBoth(t, "p", 20, 20)
	})
}

func TestReconcileTellsAnAdditionOnlyIfItWasNeverTold(t *testing.T) {
	t.Parallel()
	inBubble(t, "untold", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 20)
		d.add(t, "p", "k", 5, false)
		time.Sleep(old)
		if r := d.run(t, apply); story(r) != "order-untold k told true" {
			t.Error(story(r))
		}
		d.wantBoth(t, "p", 25, 25)
	})
	inBubble(t, "told, and its flow is gone", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 20)
		row := d.add(t, "p", "k", 5, false)
		if err := d.MarkTold(t.Context(), []domain.Order{row}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(old)
		d.audits.EXPECT().Record(gomock.Any(), gomock.Any(), "p", gomock.Any(), gomock.Any()).Return(nil).AnyTimes()
		r := d.run(t, apply)
		if len(r.Anomalies) == 0 || r.Anomalies[0].Kind != application.AnomalyFlowMissing || r.Anomalies[0].Action != "rebuilt" || !d.suspects.has("p") {
			t.Errorf("%s, suspects %v", story(r), d.suspects.products())
		}
		if d.state(t, row.Key()) != domain.FlowAbsent {
			t.Error("told again")
		}
	})
}

func TestWithdrawalsAreConfirmedResolvedAndAppliedLikePurchases(t *testing.T) {
	t.Parallel()
	k := changeKeyIn("p", "w")
	item := domain.DeductionOf(flowIn(k, domain.FlowDeducted, 7))
	batch := domain.Batch{ID: "b-1", Kind: domain.BatchWithdraw, Items: []domain.Deduction{item}}
	for state, want := range map[domain.FlowState]domain.Verdict{domain.FlowDeducted: domain.VerdictCommit, domain.FlowRefused: domain.VerdictRollback} {
		listener, gate := listenerOn(t)
		gate.EXPECT().Check(gomock.Any(), []domain.Key{k}).Return([]port.CheckReply{{Flow: flowIn(k, state, 7), Readable: true, Epoch: 3}}, nil).Times(2)
		if v := listener.Confirm(t.Context(), batch); v != want {
			t.Errorf("confirm of %s: %s", state, v)
		}
		if v := listener.Resolve(t.Context(), batch); v != want {
			t.Errorf("resolve of %s: %s", state, v)
		}
	}
	lost, gate := listenerOn(t)
	gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return([]port.CheckReply{{Readable: true, Epoch: 3}}, nil)
	if v := lost.Resolve(t.Context(), batch); v != domain.VerdictCommit {
		t.Errorf("resolve of one that the gate has lost: %s", v)
	}

	p := settleWith(t)
	p.applies(func(item port.ApplyItem) port.ApplyReply {
		if item.Deduction.Key != k || item.Plain {
			t.Errorf("item %+v", item)
		}
		return applied(item)
	})
	p.tells(port.TellDone, orderIn(k, domain.OrderConfirmed))
	if err := p.settle.Handle(t.Context(), deliver(batch)); err != nil {
		t.Error(err)
	}
}

func TestAWithdrawalThatComesTooLateFindsNoRoom(t *testing.T) {
	t.Parallel()
	k := changeKeyIn("p", "w")
	item := domain.DeductionOf(flowIn(k, domain.FlowDeducted, 7))
	p := settleWith(t)
	p.applies(func(port.ApplyItem) port.ApplyReply { return port.ApplyReply{Outcome: port.Straggler} })
	p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), []port.AdoptItem{{Key: k, Quantity: 1, Attempt: "a-1", Otherwise: port.AdoptOrRefuse}}).Return([]port.AdoptReply{{Outcome: port.AdoptNoRoom}})
	row := orderIn(k, domain.OrderRejected)
	p.ledger.EXPECT().Decide(gomock.Any(), []port.FateClaim{{Key: k, Quantity: 1, Status: domain.OrderRejected, Epoch: 3, Sequence: 7, Attempt: "a-1"}}).
		Return([]domain.Order{row}, nil)
	p.tells(port.TellDone, row)
	batch := domain.Batch{ID: "b-1", Kind: domain.BatchWithdraw, Items: []domain.Deduction{item}}
	if err := p.settle.Handle(t.Context(), deliver(batch)); err != nil {
		t.Error(err)
	}
}

func TestAReplayedWithdrawalAsksTheGateForItsUnits(t *testing.T) {
	t.Parallel()
	p := settleWith(t)
	p.applies(func(item port.ApplyItem) port.ApplyReply {
		if !item.Plain {
			t.Error("a replay claims to be in the gate")
		}
		return applied(item)
	})
	p.gate.EXPECT().Tell(gomock.Any(), gomock.Any()).Return([]port.TellOutcome{port.TellNotNow})
	item := domain.DeductionOf(flowIn(changeKeyIn("p", "w"), domain.FlowDeducted, 7))
	left := p.settle.Replay(t.Context(), deliver(domain.Batch{ID: "b-1", Kind: domain.BatchWithdraw, Items: []domain.Deduction{item}}))
	if left[0] != "" {
		t.Errorf("left: %s", left[0])
	}
}

func TestRelaySendsWithdrawalsInMessagesOfTheirOwn(t *testing.T) {
	t.Parallel()
	inBubble(t, "two kinds", func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 2)
		p.views["p"].Sequence = 4
		for i, token := range []string{"w1", "w2"} {
			p.open["p"] = slices.Insert(p.open["p"], 2*i, flowIn(changeKeyIn("p", token), domain.FlowDeducted, int64(3+i)))
		}
		p.runFor(t, 5500*time.Millisecond)
		if len(p.sent) != 2 || !slices.Equal(p.sent[0].tokens, []string{"p-1", "p-2"}) || !slices.Equal(p.sent[1].tokens, []string{"w1", "w2"}) ||
			p.sent[0].kind != domain.BatchDeduct || p.sent[1].kind != domain.BatchWithdraw {
			t.Errorf("sent %+v", p.sent)
		}
	})
}
