package application_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

type byHandParts struct {
	catalog  *portmock.MockCatalog
	epochs   *portmock.MockEpochs
	ledger   *portmock.MockLedger
	gate     *portmock.MockGateAdmin
	flows    *portmock.MockAllFlows
	audits   *portmock.MockAuditLog
	suspects *suspectList
	rebuild  *application.RebuildByHand
}

func byHandWith(t *testing.T, state domain.SaleState) byHandParts {
	ctrl := gomock.NewController(t)
	p := byHandParts{catalog: portmock.NewMockCatalog(ctrl), epochs: portmock.NewMockEpochs(ctrl), ledger: portmock.NewMockLedger(ctrl),
		gate: portmock.NewMockGateAdmin(ctrl), flows: portmock.NewMockAllFlows(ctrl), audits: portmock.NewMockAuditLog(ctrl), suspects: &suspectList{}}
	p.catalog.EXPECT().Stocks(gomock.Any(), []string{"p"}).Return([]domain.Stock{stockIn("p", state)}, nil)
	p.rebuild = application.NewRebuildByHand(p.catalog, p.epochs, p.ledger, p.gate, p.flows, p.audits, p.suspects, quietLog)
	return p
}

var rebuildAudit = port.Audit{Actor: "op", Action: "rebuild-product", Reason: "a test"}

// lostFlows are flows in every state, with and without their rows.
func (p byHandParts) lostFlows() {
	older := must(domain.NewFlow(domain.FlowFields{Key: keyIn("p", "lost"), Quantity: 1, From: 5, To: 4, State: domain.FlowSettled,
		Epoch: 2, Sequence: 2, Attempt: "a-1", At: time.UnixMilli(1_700_000_000_000)}))
	flows := []domain.Flow{
		flowIn(keyIn("p", "kept"), domain.FlowSettled, 1), older,
		flowIn(keyIn("p", "released"), domain.FlowReleased, 3), flowIn(keyIn("p", "refused"), domain.FlowRefused, 4),
		flowIn(keyIn("p", "open"), domain.FlowDeducted, 5), flowIn(keyIn("p", "differs"), domain.FlowReleased, 6),
	}
	change, err := domain.ChangeKey("p", "change")
	flows = append(flows, flowIn(change, domain.FlowSettled, 7))
	p.flows.EXPECT().Walk(gomock.Any(), "p", gomock.Any()).DoAndReturn(
		func(_ context.Context, _ string, visit func([]domain.Flow) error) error {
			return errors.Join(err, visit(flows))
		})
	p.ledger.EXPECT().Fates(gomock.Any(), gomock.Len(len(flows))).Return([]domain.Order{
		orderIn(keyIn("p", "kept"), domain.OrderConfirmed), {}, {}, {}, {}, orderIn(keyIn("p", "differs"), domain.OrderConfirmed), {}}, nil)
}

func TestAReportOfADamagedProductChangesNothing(t *testing.T) {
	t.Parallel()
	p := byHandWith(t, domain.SaleDamaged)
	p.lostFlows()
	a, err := p.rebuild.Rebuild(t.Context(), "p", application.LostReport, rebuildAudit)
	if err != nil || a.State != "damaged" || a.Lost != 3 || a.LostUnits != 1 || a.Disagree != 1 || a.Changes != 1 || a.Restored+a.Dropped != 0 || len(a.Flows) != 5 {
		t.Errorf("%+v %v", a, err)
	}
	if len(p.suspects.products()) > 0 {
		t.Errorf("suspected %v", p.suspects.products())
	}
}

func TestADamagedProductIsAcceptedRowsFirst(t *testing.T) {
	t.Parallel()
	for lost, want := range map[application.LostPolicy]struct{ applied, cancelled, rejected, restored, dropped int }{
		application.LostRestore: {1, 1, 1, 2, 1}, application.LostDrop: {0, 2, 1, 1, 2},
	} {
		p := byHandWith(t, domain.SaleDamaged)
		p.lostFlows()
		if want.applied > 0 {
			p.ledger.EXPECT().Apply(gomock.Any(), gomock.Len(want.applied)).DoAndReturn(func(_ context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
				// A flow of a gate before the last one would have to ask a gate first, which is shut.
				if items[0].Deduction.Key != keyIn("p", "lost") || items[0].Plain || items[0].Deduction.Epoch < stockIn("p", domain.SaleDamaged).Epoch() {
					t.Errorf("applied %+v", items)
				}
				return port.ApplyResult{Replies: []port.ApplyReply{applied(items[0])}}, nil
			})
		}
		p.ledger.EXPECT().Decide(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, claims []port.FateClaim) ([]domain.Order, error) {
			count := map[domain.OrderStatus]int{}
			for _, c := range claims {
				count[c.Status]++
			}
			if count[domain.OrderCancelled] != want.cancelled || count[domain.OrderRejected] != want.rejected {
				t.Errorf("%s: claims %+v", lost, claims)
			}
			return make([]domain.Order, len(claims)), nil
		})
		p.gate.EXPECT().View(gomock.Any(), []string{"p"}).Return([]port.GateView{{Product: "p", VersionTold: 50, Epoch: 4, Building: 9}}, nil)
		p.epochs.EXPECT().Accept(gomock.Any(), "p", int64(50), int64(9)).Return(nil)
		p.audits.EXPECT().Record(gomock.Any(), rebuildAudit, "p", `{"state":"damaged"}`, gomock.Any()).Return(nil)
		a, err := p.rebuild.Rebuild(t.Context(), "p", lost, rebuildAudit)
		if err != nil || a.State != "suspended" || a.Restored != int64(want.restored) || a.Dropped != int64(want.dropped) {
			t.Errorf("%s: %+v %v", lost, a, err)
		}
		if got := p.suspects.products(); !slices.Equal(got, []string{"p"}) {
			t.Errorf("suspected %v", got)
		}
	}
}

func TestADamagedProductWaitsUntilItIsSaidWhatBecomesOfTheLost(t *testing.T) {
	t.Parallel()
	p := byHandWith(t, domain.SaleDamaged)
	if _, err := p.rebuild.Rebuild(t.Context(), "p", "", rebuildAudit); !errors.Is(err, domain.ErrInvalidRequest) {
		t.Errorf("got %v", err)
	}
}

func TestAHealthyProductIsSuspendedAndRebuilt(t *testing.T) {
	t.Parallel()
	p := byHandWith(t, domain.SaleOpen)
	p.epochs.EXPECT().Suspend(gomock.Any(), []string{"p"}, "asked for by op: a test", false).Return(nil)
	p.audits.EXPECT().Record(gomock.Any(), rebuildAudit, "p", `{"state":"open"}`, gomock.Any()).Return(nil)
	a, err := p.rebuild.Rebuild(t.Context(), "p", "", rebuildAudit)
	if err != nil || a.Was != "open" || a.State != "suspended" || !slices.Equal(p.suspects.products(), []string{"p"}) {
		t.Errorf("%+v %v %v", a, err, p.suspects.products())
	}
	p = byHandWith(t, domain.SaleOpen)
	p.epochs.EXPECT().Suspend(gomock.Any(), gomock.Any(), gomock.Any(), false).Return(domain.ErrUnavailable)
	if _, err := p.rebuild.Rebuild(t.Context(), "p", "", rebuildAudit); !errors.Is(err, domain.ErrUnavailable) || len(p.suspects.products()) > 0 {
		t.Errorf("got %v", err)
	}
}
