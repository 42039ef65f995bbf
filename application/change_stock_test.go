package application_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/adapters/system"
	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// changeParts is the use case among mocks; the ids give "mine" for an attempt.
type changeParts struct {
	changes  *portmock.MockChanges
	ledger   *portmock.MockLedger
	outbox   *portmock.MockOutbox
	catalog  *portmock.MockCatalog
	gate     *portmock.MockGate
	sender   *portmock.MockSender
	audits   *portmock.MockAuditLog
	suspects *suspectList
	sells    bool
	change   *application.ChangeStock
}

func (p *changeParts) MaySell(string) bool { return p.sells }

func changeWith(t *testing.T) *changeParts {
	ctrl := gomock.NewController(t)
	p := &changeParts{changes: portmock.NewMockChanges(ctrl), ledger: portmock.NewMockLedger(ctrl), outbox: portmock.NewMockOutbox(ctrl),
		catalog: portmock.NewMockCatalog(ctrl), gate: portmock.NewMockGate(ctrl), sender: portmock.NewMockSender(ctrl),
		audits: portmock.NewMockAuditLog(ctrl), suspects: &suspectList{}, sells: true}
	ids := portmock.NewMockIDs(ctrl)
	ids.EXPECT().Attempt().Return("mine").AnyTimes()
	ids.EXPECT().Unique().Return("b-1").AnyTimes()
	p.change = application.NewChangeStock(p.changes, p.ledger, p.outbox, p.catalog, p.gate, p.sender, p.audits, p, p.suspects,
		system.Clock{}, ids, application.ChangeStockConfig{GateTimeout: time.Second, SendTimeout: time.Second}, quietLog)
	return p
}

// asked is what the audit log says of every change that was known already.
func (p *changeParts) asked(audit port.Audit, err error) {
	p.changes.EXPECT().Asked(gomock.Any(), "p", gomock.Any()).DoAndReturn(func(_ context.Context, _ string, changes []port.AskedChange) ([]port.Audit, error) {
		audits := make([]port.Audit, len(changes))
		for i := range audits {
			audits[i] = audit
		}
		return audits, err
	}).AnyTimes()
}

var changeAudit = port.Audit{Actor: "op", Reason: "a test"}

func changeKeyIn(product, token string) domain.Key { return must(domain.ChangeKey(product, token)) }

func wish(delta int64) domain.StockChange { return must(domain.NewStockChange("p", "k", delta)) }

func changeRow(status domain.OrderStatus, quantity int64) domain.Order {
	return must(domain.NewOrder(domain.OrderFields{ID: "id-k", Key: changeKeyIn("p", "k"), Quantity: quantity, Status: status, StockVersion: 9}))
}

func changeFlow(state domain.FlowState, quantity int64, attempt string) domain.Flow {
	return must(domain.NewFlow(domain.FlowFields{Key: changeKeyIn("p", "k"), Quantity: quantity, State: state, Epoch: 3, Sequence: 7,
		Attempt: attempt, At: time.UnixMilli(1_700_000_000_000)}))
}

// rows are what the ledger says, one look after the other.
func (p *changeParts) rows(rows ...domain.Order) {
	for _, row := range rows {
		p.ledger.EXPECT().Fates(gomock.Any(), []domain.Key{changeKeyIn("p", "k")}).Return([]domain.Order{row}, nil)
	}
}

// flows are what the gate says, one look after the other.
func (p *changeParts) flows(flows ...domain.Flow) {
	for _, f := range flows {
		p.gate.EXPECT().Check(gomock.Any(), []domain.Key{changeKeyIn("p", "k")}).Return([]port.CheckReply{{Flow: f, Readable: true, Epoch: 3}}, nil)
	}
}

// writesDown expects the audit row of a withdrawal of five, before the gate is asked.
func (p *changeParts) writesDown(t *testing.T) *gomock.Call {
	p.catalog.EXPECT().Stocks(gomock.Any(), []string{"p"}).Return([]domain.Stock{stockIn("p", domain.SaleOpen)}, nil)
	return p.audits.EXPECT().Record(gomock.Any(), gomock.Any(), "p", `{"total":10,"stock":10}`, `{"key":"k","delta":-5,"total":5,"stock":5}`).
		DoAndReturn(func(_ context.Context, a port.Audit, _, _, _ string) error {
			if a.Actor != "op" || a.Reason != "a test" || a.Action != "ask-withdrawal" {
				t.Errorf("audit %+v", a)
			}
			return nil
		})
}

func (p *changeParts) adopts(outcome port.AdoptOutcome) *gomock.Call {
	return p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), []port.AdoptItem{{Key: changeKeyIn("p", "k"), Quantity: 5, Attempt: "mine"}}).
		Return([]port.AdoptReply{{Outcome: outcome, Epoch: 3}})
}

func (p *changeParts) ask(t *testing.T, delta int64) (application.ChangeReceipt, error) {
	t.Helper()
	return p.change.Change(t.Context(), wish(delta), changeAudit)
}

func TestAnAdditionIsWrittenAndTold(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]port.TellOutcome{"told": port.TellDone, "a gate out of reach": port.TellUnknown,
		"a gate being built": port.TellNotNow, "a gate proved wrong": port.TellSuspect} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := changeWith(t)
			p.rows(domain.Order{})
			p.flows(domain.Flow{})
			row := changeRow(domain.OrderAdded, 5)
			audit := changeAudit
			audit.Action = "add-stock"
			p.changes.EXPECT().Add(gomock.Any(), []port.Addition{{Key: row.Key(), Quantity: 5, Audit: audit}}).Return([]port.AddReply{{Row: row, Added: true}}, nil)
			p.gate.EXPECT().Tell(gomock.Any(), []domain.Fate{row.Fate()}).Return([]port.TellOutcome{told})
			if told == port.TellDone || told == port.TellSuspect {
				p.outbox.EXPECT().MarkTold(gomock.Any(), []domain.Order{row}).Return(nil)
			}
			r, err := p.ask(t, 5)
			if err != nil || r.Replayed || r.Change.Status != application.OrderConfirmed || r.Change.Delta != 5 || r.Change.ID != "id-k" || r.Change.Actor != "op" || r.Change.Reason != "a test" {
				t.Errorf("%+v %v", r, err)
			}
			if p.suspects.has("p") != (told == port.TellSuspect) {
				t.Error("suspected for nothing, or not at all")
			}
		})
	}
}

func TestAnAdditionNeedsNoGate(t *testing.T) {
	t.Parallel()
	p := changeWith(t)
	p.rows(domain.Order{})
	p.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable)
	p.changes.EXPECT().Add(gomock.Any(), gomock.Any()).Return([]port.AddReply{{Row: changeRow(domain.OrderAdded, 5), Added: true}}, nil)
	p.gate.EXPECT().Tell(gomock.Any(), gomock.Any()).Return([]port.TellOutcome{port.TellUnknown})
	if r, err := p.ask(t, 5); err != nil || r.Change.Status != application.OrderConfirmed {
		t.Errorf("%+v %v", r, err)
	}
}

func TestAnAdditionThatIsNotWritten(t *testing.T) {
	t.Parallel()
	for err, want := range map[*domain.Error]domain.Code{domain.ErrProductNotFound: domain.CodeProductNotFound,
		domain.ErrInvalidRequest: domain.CodeInvalidRequest, domain.ErrUnavailable: domain.CodeOutcomeUnknown} {
		p := changeWith(t)
		p.rows(domain.Order{})
		p.flows(domain.Flow{})
		p.changes.EXPECT().Add(gomock.Any(), gomock.Any()).Return(nil, err)
		_, got := p.ask(t, 5)
		wantCode(t, got, want)
	}
	p := changeWith(t) // somebody was faster
	p.rows(domain.Order{})
	p.flows(domain.Flow{})
	p.changes.EXPECT().Add(gomock.Any(), gomock.Any()).Return([]port.AddReply{{Row: changeRow(domain.OrderConfirmed, 5)}}, nil)
	_, err := p.ask(t, 5)
	wantCode(t, err, domain.CodeTokenReused)
}

func TestAKnownTokenIsAnsweredAsItStands(t *testing.T) {
	t.Parallel()
	none := domain.Flow{}
	for name, c := range map[string]struct {
		row    domain.Order
		flow   domain.Flow
		delta  int64
		status string
		code   domain.Code
	}{
		"an addition":                         {changeRow(domain.OrderAdded, 5), none, 5, application.OrderConfirmed, ""},
		"an addition of another size":         {changeRow(domain.OrderAdded, 6), none, 5, "", domain.CodeTokenReused},
		"an addition, asked to withdraw":      {changeRow(domain.OrderAdded, 5), none, -5, "", domain.CodeTokenReused},
		"a withdrawal":                        {changeRow(domain.OrderConfirmed, 5), none, -5, application.OrderConfirmed, ""},
		"a withdrawal, asked to add":          {changeRow(domain.OrderConfirmed, 5), none, 5, "", domain.CodeTokenReused},
		"a rejected withdrawal":               {changeRow(domain.OrderRejected, 5), none, -5, application.OrderRejected, ""},
		"a cancelled withdrawal":              {changeRow(domain.OrderCancelled, 5), none, -5, application.OrderCancelled, ""},
		"a withdrawal on its way":             {domain.Order{}, changeFlow(domain.FlowDeducted, 5, "a"), -5, application.OrderPending, ""},
		"one of another size on its way":      {domain.Order{}, changeFlow(domain.FlowDeducted, 6, "a"), -5, "", domain.CodeTokenReused},
		"a withdrawal on its way, and to add": {domain.Order{}, changeFlow(domain.FlowDeducted, 5, "a"), 5, "", domain.CodeTokenReused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := changeWith(t)
			p.asked(port.Audit{Actor: "first", Reason: "the first reason"}, nil)
			p.rows(c.row)
			if c.row.IsZero() {
				p.flows(c.flow)
				p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).Return(port.SendCommitted, nil).MaxTimes(1)
			}
			r, err := p.ask(t, c.delta)
			if c.code != "" {
				wantCode(t, err, c.code)
				return
			}
			if err != nil || !r.Replayed || r.Change.Status != c.status || r.Change.Delta != c.delta || r.Change.Actor != "first" || r.Change.Reason != "the first reason" {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestARepeatIsAnsweredThoughTheAuditLogCannotBeRead(t *testing.T) {
	t.Parallel()
	p := changeWith(t)
	p.rows(changeRow(domain.OrderAdded, 5))
	p.asked(port.Audit{}, domain.ErrUnavailable)
	if r, err := p.ask(t, 5); err != nil || !r.Replayed || r.Change.Status != application.OrderConfirmed || r.Change.Actor+r.Change.Reason != "" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestARepeatOfAWithdrawalOnItsWayIsPromisedOnlyWhenItsMessageIsCommitted(t *testing.T) {
	t.Parallel()
	p := changeWith(t)
	p.rows(domain.Order{})
	flow := changeFlow(domain.FlowDeducted, 5, "a")
	p.flows(flow)
	p.sender.EXPECT().Send(gomock.Any(), domain.Batch{ID: "b-1", Kind: domain.BatchWithdraw, Items: []domain.Deduction{domain.DeductionOf(flow)}}).
		Return(port.SendUnknown, nil)
	_, err := p.ask(t, -5)
	wantCode(t, err, domain.CodeOutcomeUnknown)
}

func TestAChangeWhoseRowCameBetweenTheTwoLooks(t *testing.T) {
	t.Parallel()
	p := changeWith(t)
	p.rows(domain.Order{}, changeRow(domain.OrderConfirmed, 5))
	p.flows(changeFlow(domain.FlowSettled, 5, "a"))
	p.asked(port.Audit{}, nil)
	if r, err := p.ask(t, -5); err != nil || !r.Replayed || r.Change.Status != application.OrderConfirmed {
		t.Errorf("%+v %v", r, err)
	}
}

func TestAWithdrawalTakesItsUnitsAtTheGateAndIsSent(t *testing.T) {
	t.Parallel()
	p := changeWith(t)
	p.rows(domain.Order{})
	flow := changeFlow(domain.FlowDeducted, 5, "mine")
	p.flows(domain.Flow{})
	down := p.writesDown(t)
	adopt := p.adopts(port.AdoptHeld).After(down)
	check := p.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return([]port.CheckReply{{Flow: flow, Readable: true}}, nil).After(adopt)
	p.sender.EXPECT().Send(gomock.Any(), domain.Batch{ID: "b-1", Kind: domain.BatchWithdraw, Items: []domain.Deduction{domain.DeductionOf(flow)}}).
		Return(port.SendCommitted, nil).After(check)
	r, err := p.ask(t, -5)
	if err != nil || r.Replayed || r.Change.Status != application.OrderPending || r.Change.Delta != -5 || r.Change.CreatedAt.IsZero() || r.Change.Actor != "op" || r.Change.Reason != "a test" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestAWithdrawalThatTookNothingIsRefused(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[port.AdoptOutcome]domain.Code{port.AdoptNoRoom: domain.CodeStockNotEnough, port.AdoptWait: domain.CodeRebuilding,
		port.AdoptRefused: domain.CodeTokenRefused, port.AdoptUnknown: domain.CodeOutcomeUnknown} {
		p := changeWith(t)
		p.rows(domain.Order{})
		p.flows(domain.Flow{})
		p.writesDown(t)
		p.adopts(outcome)
		_, err := p.ask(t, -5)
		wantCode(t, err, want)
	}
}

func TestAWithdrawalAsksNoGateThatItMustNot(t *testing.T) {
	t.Parallel()
	suspended := changeWith(t)
	suspended.sells = false
	suspended.rows(domain.Order{})
	suspended.flows(domain.Flow{})
	_, err := suspended.ask(t, -5)
	wantCode(t, err, domain.CodeRebuilding)

	away := changeWith(t)
	away.rows(domain.Order{})
	away.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable)
	away.catalog.EXPECT().Stocks(gomock.Any(), gomock.Any()).Return([]domain.Stock{stockIn("p", domain.SaleOpen)}, nil)
	_, err = away.ask(t, -5)
	wantCode(t, err, domain.CodeBusy)

	for stock, want := range map[domain.Stock]domain.Code{{}: domain.CodeProductNotFound, stockIn("p", domain.SaleOpen): domain.CodeRebuilding} {
		lost := changeWith(t)
		lost.rows(domain.Order{})
		lost.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return([]port.CheckReply{{}}, nil)
		lost.catalog.EXPECT().Stocks(gomock.Any(), gomock.Any()).Return([]domain.Stock{stock}, nil)
		_, err = lost.ask(t, -5)
		wantCode(t, err, want)
	}

	unwritten := changeWith(t)
	unwritten.rows(domain.Order{})
	unwritten.flows(domain.Flow{})
	unwritten.catalog.EXPECT().Stocks(gomock.Any(), gomock.Any()).Return([]domain.Stock{stockIn("p", domain.SaleOpen)}, nil)
	unwritten.audits.EXPECT().Record(gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).Return(domain.ErrUnavailable)
	_, err = unwritten.ask(t, -5)
	wantCode(t, err, domain.CodeBusy)

	ledgerless := changeWith(t)
	ledgerless.ledger.EXPECT().Fates(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable)
	_, err = ledgerless.ask(t, -5)
	wantCode(t, err, domain.CodeBusy)
}

func TestOnceTheUnitsAreTakenThereIsNoRefusal(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]func(*changeParts){
		"the flow cannot be read": func(p *changeParts) {
			p.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable)
		},
		"the flow is lost": func(p *changeParts) { p.flows(domain.Flow{}) },
		"the message may be lost": func(p *changeParts) {
			p.flows(changeFlow(domain.FlowDeducted, 5, "mine"))
			p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).Return(port.SendUnknown, domain.ErrUnavailable)
		},
		"another call took them, and nothing is known of it": func(p *changeParts) {
			p.flows(changeFlow(domain.FlowDeducted, 5, "other"))
			p.rows(domain.Order{})
			p.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := changeWith(t)
			p.rows(domain.Order{})
			p.flows(domain.Flow{})
			p.writesDown(t)
			p.adopts(port.AdoptHeld)
			later(p)
			_, err := p.ask(t, -5)
			wantCode(t, err, domain.CodeOutcomeUnknown)
		})
	}
}

func TestTwoCallsOfOneTokenAtOnceTakeTheUnitsOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row    domain.Order
		status string
		code   domain.Code
	}{
		"the other is on its way":  {domain.Order{}, application.OrderPending, ""},
		"the other is there":       {changeRow(domain.OrderConfirmed, 5), application.OrderConfirmed, ""},
		"the other is an addition": {changeRow(domain.OrderAdded, 5), "", domain.CodeTokenReused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := changeWith(t)
			p.rows(domain.Order{})
			other := changeFlow(domain.FlowDeducted, 5, "other")
			p.flows(domain.Flow{}, other)
			p.writesDown(t)
			p.adopts(port.AdoptHeld)
			p.asked(changeAudit, nil)
			p.rows(c.row)
			if c.row.IsZero() {
				p.flows(other)
				p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).Return(port.SendCommitted, nil)
			}
			r, err := p.ask(t, -5)
			if c.code != "" {
				wantCode(t, err, c.code)
				return
			}
			if err != nil || !r.Replayed || r.Change.Status != c.status {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestACallerWhoLeavesDoesNotTearAWithdrawal(t *testing.T) {
	t.Parallel()
	p := changeWith(t)
	ctx, leave := context.WithCancel(t.Context())
	p.rows(domain.Order{})
	p.flows(domain.Flow{})
	p.writesDown(t)
	flow := changeFlow(domain.FlowDeducted, 5, "mine")
	p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(func(ctx context.Context, _ time.Time, _ []port.AdoptItem) []port.AdoptReply {
		leave()
		return []port.AdoptReply{{Outcome: port.AdoptHeld, Epoch: 3}}
	})
	p.flows(flow)
	p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).DoAndReturn(func(ctx context.Context, _ domain.Batch) (port.SendResult, error) {
		if ctx.Err() != nil {
			t.Error("sent under the caller's context")
		}
		return port.SendCommitted, nil
	})
	if r, err := p.change.Change(ctx, wish(-5), changeAudit); err != nil || r.Change.Status != application.OrderPending {
		t.Errorf("%+v %v", r, err)
	}
}

func TestAChangeIsShownAsLongAsAnybodyKnowsIt(t *testing.T) {
	t.Parallel()
	shown := changeWith(t)
	shown.rows(changeRow(domain.OrderAdded, 5))
	shown.asked(changeAudit, nil)
	if c, err := shown.change.Show(t.Context(), "p", "k"); err != nil || c.Delta != 5 || c.Status != application.OrderConfirmed || c.Actor != "op" || c.Reason != "a test" {
		t.Errorf("%+v %v", c, err)
	}
	pending := changeWith(t)
	pending.rows(domain.Order{})
	pending.flows(changeFlow(domain.FlowDeducted, 5, "a"))
	pending.asked(changeAudit, nil)
	if c, err := pending.change.Show(t.Context(), "p", "k"); err != nil || c.Delta != -5 || c.Status != application.OrderPending {
		t.Errorf("%+v %v", c, err)
	}
	nobody := changeWith(t)
	nobody.rows(domain.Order{})
	nobody.flows(domain.Flow{})
	_, err := nobody.change.Show(t.Context(), "p", "k")
	wantCode(t, err, domain.CodeChangeNotFound)
	for stock, want := range map[domain.Stock]domain.Code{{}: domain.CodeChangeNotFound, stockIn("p", domain.SaleOpen): domain.CodeRebuilding} {
		lost := changeWith(t)
		lost.rows(domain.Order{})
		lost.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return([]port.CheckReply{{}}, nil)
		lost.catalog.EXPECT().Stocks(gomock.Any(), gomock.Any()).Return([]domain.Stock{stock}, nil)
		_, err = lost.change.Show(t.Context(), "p", "k")
		wantCode(t, err, want)
	}
	_, err = changeWith(t).change.Show(t.Context(), "p", strings.Repeat("k", 65))
	wantCode(t, err, domain.CodeInvalidRequest)
}

func TestChangesAreListedOfAProductThatIsThere(t *testing.T) {
	t.Parallel()
	p := changeWith(t)
	p.changes.EXPECT().Changes(gomock.Any(), "p", "id9", 200).Return([]domain.Order{changeRow(domain.OrderAdded, 5), changeRow(domain.OrderConfirmed, 2)}, nil)
	key := changeKeyIn("p", "k")
	p.changes.EXPECT().Asked(gomock.Any(), "p", []port.AskedChange{{Key: key, Delta: 5}, {Key: key, Delta: -2}}).Return([]port.Audit{{}, changeAudit}, nil)
	if list, err := p.change.List(t.Context(), "p", "id9", 5000); err != nil || len(list) != 2 || list[0].Delta != 5 || list[1].Delta != -2 ||
		list[0].Actor != "" || list[1].Actor != "op" || list[1].Reason != "a test" {
		t.Errorf("%+v %v", list, err)
	}
	p.changes.EXPECT().Changes(gomock.Any(), "p", "", 1).Return([]domain.Order{changeRow(domain.OrderAdded, 5)}, nil)
	p.changes.EXPECT().Asked(gomock.Any(), "p", gomock.Any()).Return(nil, domain.ErrUnavailable)
	_, err := p.change.List(t.Context(), "p", "", 1)
	wantCode(t, err, domain.CodeUnavailable)
	for stock, want := range map[domain.Stock]bool{{}: false, stockIn("p", domain.SaleOpen): true} {
		p.changes.EXPECT().Changes(gomock.Any(), "p", "", 1).Return(nil, nil)
		p.catalog.EXPECT().Stocks(gomock.Any(), []string{"p"}).Return([]domain.Stock{stock}, nil)
		if list, err := p.change.List(t.Context(), "p", "", 0); (err == nil) != want || len(list) != 0 {
			t.Errorf("%+v %v", list, err)
		}
	}
}
