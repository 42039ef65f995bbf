package application_test

import (
	"testing"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

func TestShowOrderAsksTheRowFirstAndThenTheGate(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	readable := func(s domain.FlowState) port.CheckReply {
		return port.CheckReply{Flow: flowIn(k, s, 7), Readable: true}
	}
	for name, c := range map[string]struct {
		row    domain.Order
		rowErr error
		reply  *port.CheckReply // nil: the gate is not asked
		err    error
		known  bool // to the catalog; asked only when the gate is no judge
		status string
		code   domain.Code
	}{
		"confirmed row":            {row: orderIn(k, domain.OrderConfirmed), status: "confirmed"},
		"cancelled row":            {row: orderIn(k, domain.OrderCancelled), status: "cancelled"},
		"rejected row":             {row: orderIn(k, domain.OrderRejected), status: "rejected"},
		"deducted":                 {reply: new(readable(domain.FlowDeducted)), status: "pending"},
		"settled":                  {reply: new(readable(domain.FlowSettled)), status: "confirmed"},
		"released":                 {reply: new(readable(domain.FlowReleased)), status: "cancelled"},
		"refused":                  {reply: new(readable(domain.FlowRefused)), status: "rejected"},
		"nobody has it":            {reply: &port.CheckReply{Readable: true}, code: domain.CodeOrderNotFound},
		"the gate may have lost":   {reply: &port.CheckReply{}, known: true, code: domain.CodeRebuilding},
		"no such product":          {reply: &port.CheckReply{}, code: domain.CodeOrderNotFound},
		"gate away":                {reply: &port.CheckReply{}, err: domain.ErrUnavailable, code: domain.CodeBusy},
		"ledger away, flow there":  {rowErr: domain.ErrUnavailable, reply: new(readable(domain.FlowDeducted)), status: "pending"},
		"ledger away, flow absent": {rowErr: domain.ErrUnavailable, reply: &port.CheckReply{Readable: true}, code: domain.CodeBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctrl := gomock.NewController(t)
			ledger, gate, catalog := portmock.NewMockLedger(ctrl), portmock.NewMockGate(ctrl), portmock.NewMockCatalog(ctrl)
			ledger.EXPECT().Fates(gomock.Any(), []domain.Key{k}).Return([]domain.Order{c.row}, c.rowErr)
			if c.reply != nil {
				gate.EXPECT().Check(gomock.Any(), []domain.Key{k}).Return([]port.CheckReply{*c.reply}, c.err)
				stocks := []domain.Stock{{}}
				if c.known {
					stocks[0] = stockIn("p", domain.SaleOpen)
				}
				catalog.EXPECT().Stocks(gomock.Any(), []string{"p"}).Return(stocks, nil).AnyTimes()
			}
			view, err := application.NewShowOrder(ledger, gate, catalog).Show(t.Context(), k)
			if c.code != "" {
				wantCode(t, err, c.code)
				return
			}
			if err != nil || view.Status != c.status || view.Key != k || view.Quantity != 1 {
				t.Errorf("view %+v, error %v, want status %s", view, err, c.status)
			}
		})
	}
}
