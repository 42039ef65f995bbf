package application_test

import (
	"context"
	"errors"
	"testing"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

type cancelParts struct {
	ledger   *portmock.MockLedger
	gate     *portmock.MockGate
	outbox   *portmock.MockOutbox
	catalog  *portmock.MockCatalog
	suspects *suspectList
	cancel   *application.CancelOrder
}

func cancelWith(t *testing.T) cancelParts {
	ctrl := gomock.NewController(t)
	p := cancelParts{ledger: portmock.NewMockLedger(ctrl), gate: portmock.NewMockGate(ctrl), outbox: portmock.NewMockOutbox(ctrl),
		catalog: portmock.NewMockCatalog(ctrl), suspects: &suspectList{}}
	p.cancel = application.NewCancelOrder(p.ledger, p.gate, p.outbox, p.catalog, p.suspects, quietLog)
	return p
}

// row makes the ledger answer the first look.
func (p cancelParts) row(o domain.Order, err error) {
	p.ledger.EXPECT().Fates(gomock.Any(), gomock.Any()).Return([]domain.Order{o}, err)
}

func (p cancelParts) flow(f domain.Flow, readable bool, err error) {
	p.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return([]port.CheckReply{{Flow: f, Readable: readable}}, err)
}

func reversed(k domain.Key) domain.Order {
	return must(domain.NewOrder(domain.OrderFields{ID: "0123456789abcdef0123456789abcdef", Key: k, Quantity: 1,
		Status: domain.OrderCancelled, StockVersion: 9}))
}

func TestCancelWritesTheRowAndThenTellsTheGate(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	for name, c := range map[string]struct {
		row    domain.Order
		flow   domain.FlowState // of a key without a row
		decide domain.Order
		told   port.TellOutcome
		want   string
	}{
		"a confirmed order":                        {row: orderIn(k, domain.OrderConfirmed), decide: reversed(k), told: port.TellDone, want: "cancelled"},
		"a flow whose message is on its way":       {flow: domain.FlowDeducted, decide: orderIn(k, domain.OrderCancelled), told: port.TellDone, want: "cancelled"},
		"a flow that was settled since the look":   {flow: domain.FlowSettled, decide: reversed(k), told: port.TellDone, want: "cancelled"},
		"a flow whose order is rejected meanwhile": {flow: domain.FlowDeducted, decide: orderIn(k, domain.OrderRejected), told: port.TellDone, want: "rejected"},
		"a gate that was not reached":              {row: orderIn(k, domain.OrderConfirmed), decide: reversed(k), told: port.TellUnknown, want: "cancelled"},
		"a gate that is being built":               {row: orderIn(k, domain.OrderConfirmed), decide: reversed(k), told: port.TellNotNow, want: "cancelled"},
		"a gate that is proved wrong":              {flow: domain.FlowSettled, decide: orderIn(k, domain.OrderCancelled), told: port.TellSuspect, want: "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := cancelWith(t)
			p.row(c.row, nil)
			claim := port.FateClaim{Key: k, Quantity: c.row.Quantity(), Status: domain.OrderCancelled, Epoch: c.row.Epoch(),
				Sequence: c.row.Sequence(), Attempt: c.row.Attempt()}
			if c.flow != domain.FlowAbsent {
				f := flowIn(k, c.flow, 7)
				p.flow(f, true, nil)
				claim = port.FateClaim{Key: k, Quantity: f.Quantity(), Status: domain.OrderCancelled, Epoch: f.Epoch(), Sequence: 7, Attempt: f.Attempt()}
			}
			cancel := p.ledger.EXPECT().Cancel(gomock.Any(), []port.FateClaim{claim}).Return([]domain.Order{c.decide}, nil)
			p.gate.EXPECT().Tell(gomock.Any(), []domain.Fate{c.decide.Fate()}).Return([]port.TellOutcome{c.told}).After(cancel)
			if c.told == port.TellDone || c.told == port.TellSuspect {
				p.outbox.EXPECT().MarkTold(gomock.Any(), []domain.Order{c.decide}).Return(nil)
			}
			view, err := p.cancel.Cancel(t.Context(), k)
			if err != nil || view.Status != c.want || view.Key != k || view.Quantity != 1 {
				t.Errorf("%+v %v", view, err)
			}
			if p.suspects.has("p") != (c.told == port.TellSuspect) {
				t.Error("suspected for nothing, or not at all")
			}
		})
	}
}

func TestCancelOfADecidedOrderWritesNothing(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	told := must(domain.NewOrder(domain.OrderFields{ID: "0123456789abcdef0123456789abcdef", Key: k, Quantity: 1,
		Status: domain.OrderCancelled, GateTold: true}))
	p := cancelWith(t)
	p.row(told, nil)
	if view, err := p.cancel.Cancel(t.Context(), k); err != nil || view.Status != "cancelled" {
		t.Errorf("a repeat: %+v %v", view, err)
	}
	for status, want := range map[domain.OrderStatus]string{domain.OrderCancelled: "cancelled", domain.OrderRejected: "rejected"} {
		p := cancelWith(t)
		p.row(orderIn(k, status), nil)
		p.gate.EXPECT().Tell(gomock.Any(), gomock.Any()).Return([]port.TellOutcome{port.TellDone})
		p.outbox.EXPECT().MarkTold(gomock.Any(), gomock.Any()).Return(domain.ErrUnavailable)
		if view, err := p.cancel.Cancel(t.Context(), k); err != nil || view.Status != want {
			t.Errorf("one that the gate was not told: %+v %v", view, err)
		}
	}
}

func TestCancelOfNothingLeavesNoRow(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	for name, c := range map[string]struct {
		rowErr   error
		readable bool
		gateErr  error
		known    bool // to the catalog
		code     domain.Code
	}{
		"nobody has it":               {readable: true, code: domain.CodeOrderNotFound},
		"no such product":             {code: domain.CodeOrderNotFound},
		"the gate may have lost it":   {known: true, code: domain.CodeRebuilding},
		"the gate is away":            {gateErr: domain.ErrUnavailable, code: domain.CodeBusy},
		"the ledger is away":          {rowErr: domain.ErrUnavailable, readable: true, code: domain.CodeBusy},
		"both are away":               {rowErr: domain.ErrUnavailable, gateErr: domain.ErrUnavailable, code: domain.CodeBusy},
		"the ledger is away, no gate": {rowErr: domain.ErrUnavailable, code: domain.CodeBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := cancelWith(t) // that nothing is written the mocks see
			p.row(domain.Order{}, c.rowErr)
			p.flow(domain.Flow{}, c.readable, c.gateErr)
			stocks := []domain.Stock{{}}
			if c.known {
				stocks[0] = stockIn("p", domain.SaleOpen)
			}
			p.catalog.EXPECT().Stocks(gomock.Any(), []string{"p"}).Return(stocks, nil).AnyTimes()
			_, err := p.cancel.Cancel(t.Context(), k)
			wantCode(t, err, c.code)
		})
	}
}

func TestCancelWhoseOutcomeIsNotKnownSaysSo(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	for given, want := range map[*domain.Error]domain.Code{domain.ErrUnavailable: domain.CodeOutcomeUnknown, domain.ErrProductNotFound: domain.CodeProductNotFound} {
		p := cancelWith(t)
		p.row(domain.Order{}, domain.ErrUnavailable) // the flow suffices to try
		p.flow(flowIn(k, domain.FlowDeducted, 7), true, nil)
		p.ledger.EXPECT().Cancel(gomock.Any(), gomock.Any()).Return(nil, given)
		_, err := p.cancel.Cancel(t.Context(), k)
		wantCode(t, err, want)
	}
}

// A buyer who leaves once the row is written does not keep the gate from being told.
func TestCancelTellsTheGateAlthoughItsCallerHasGone(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	p := cancelWith(t)
	ctx, leave := context.WithCancelCause(t.Context())
	p.row(orderIn(k, domain.OrderConfirmed), nil)
	p.ledger.EXPECT().Cancel(gomock.Any(), gomock.Any()).DoAndReturn(func(context.Context, []port.FateClaim) ([]domain.Order, error) {
		leave(errors.New("gone"))
		return []domain.Order{reversed(k)}, nil
	})
	p.gate.EXPECT().Tell(gomock.Any(), gomock.Any()).DoAndReturn(func(ctx context.Context, _ []domain.Fate) []port.TellOutcome {
		if _, bounded := ctx.Deadline(); ctx.Err() != nil || !bounded {
			t.Errorf("told with %v, bounded %v", ctx.Err(), bounded)
		}
		return []port.TellOutcome{port.TellUnknown}
	})
	if view, err := p.cancel.Cancel(ctx, k); err != nil || view.Status != "cancelled" {
		t.Errorf("%+v %v", view, err)
	}
}
