package application_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// desk is a shop with what a reconciliation needs beside it.
type desk struct {
	*shop
	suspects *suspectList
	reports  *reportShelf
	audits   *portmock.MockAuditLog
	sent     []domain.Batch
	sendErr  error
	cfg      application.ReconcileConfig
	ids      *portmock.MockIDs
	sender   *portmock.MockSender
}

type reportShelf struct {
	mu    sync.Mutex
	saved map[string][]byte
	saves int
	err   error
}

func (r *reportShelf) SaveReport(_ context.Context, id string, _ time.Time, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saves++
	if r.err == nil {
		r.saved[id] = body
	}
	return r.err
}

func (r *reportShelf) ReadReport(_ context.Context, id string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if body, ok := r.saved[id]; ok {
		return body, nil
	}
	return nil, domain.NewError(domain.CodeReportNotFound, id, nil)
}

func (r *reportShelf) ListReports(context.Context, string, int) (all [][]byte, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.saved {
		all = append(all, body)
	}
	return all, nil
}

func newDesk(t *testing.T) *desk {
	ctrl := gomock.NewController(t)
	d := &desk{shop: newShop(nil), suspects: &suspectList{}, reports: &reportShelf{saved: map[string][]byte{}},
		audits: portmock.NewMockAuditLog(ctrl), ids: portmock.NewMockIDs(ctrl), sender: portmock.NewMockSender(ctrl),
		cfg: application.DefaultReconcileConfig()}
	d.cfg.PageMax = 2
	n := 0
	d.ids.EXPECT().Unique().DoAndReturn(func() string { n++; return fmt.Sprintf("%032d", n) }).AnyTimes()
	d.sender.EXPECT().BytesOf(gomock.Any()).Return(100).AnyTimes()
	d.sender.EXPECT().BatchBytesMax().Return(150).AnyTimes()
	d.sender.EXPECT().Send(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, b domain.Batch) (port.SendResult, error) {
		d.sent = append(d.sent, b)
		if d.sendErr != nil {
			return port.SendUnknown, d.sendErr
		}
		return port.SendCommitted, nil
	}).AnyTimes()
	return d
}

func (d *desk) reconciler() *application.ReconcileStock {
	return application.NewReconcileStock(d.eyes, d.books, d.sender, d.reports, d.audits, d.suspects, d.ids, wallClock{}, d.cfg, quietLog)
}

func (d *desk) run(t *testing.T, request application.ReconcileRequest) application.ReconcileReport {
	t.Helper()
	request.Actor = "op"
	report, err := d.reconciler().Reconcile(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := d.reconciler().Report(t.Context(), report.ID)
	if err != nil || len(saved.Anomalies) != len(report.Anomalies) || saved.FinishedAt.IsZero() {
		t.Errorf("saved %+v, %v", saved, err)
	}
	return report
}

var (
	dryRun = application.ReconcileRequest{Mode: application.ReconcileDryRun}
	apply  = application.ReconcileRequest{Mode: application.ReconcileApply}
)

// story joins kind, token, action and whether it was done.
func story(r application.ReconcileReport) string {
	var lines []string
	for _, a := range r.Anomalies {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %v", a.Kind, a.Token, a.Action, a.Done)))
	}
	return strings.Join(lines, "; ")
}

const old = 2 * time.Minute

func TestReconcileNeverTouchesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	inBubble(t, "a sale under way, three times", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		for i := range 5 {
			d.buy(t, "p", fmt.Sprint("open-", i))
		}
		d.apply(d.buy(t, "p", "untold"), domain.OrderConfirmed, false)
		d.apply(d.buy(t, "p", "row"), domain.OrderConfirmed, true) // its settle is on its way
		before := d.view(t, "p")
		for range 3 {
			if r := d.run(t, apply); len(r.Anomalies) != 0 || r.Repaired != 0 {
				t.Errorf("%s", story(r))
			}
		}
		if after := d.view(t, "p"); after != before || len(d.sent) != 0 || len(d.suspects.products()) != 0 {
			t.Errorf("%+v became %+v", before, after)
		}
	})
	inBubble(t, "an old flow whose row has just come", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		flow := d.buy(t, "p", "a")
		time.Sleep(old)
		d.apply(flow, domain.OrderConfirmed, false)
		if r := d.run(t, dryRun); len(r.Anomalies) != 0 {
			t.Error(story(r))
		}
	})
	inBubble(t, "a product that is being rebuilt", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		d.buy(t, "p", "a")
		time.Sleep(old)
		_ = d.Suspend(t.Context(), []string{"p"}, "test", false)
		if r := d.run(t, apply); len(r.Anomalies) != 0 || r.Products != 1 {
			t.Error(story(r))
		}
	})
}

// mess makes one of each kind, all old.
func (d *desk) mess(t *testing.T) {
	t.Helper()
	d.open(t, "p", 20)
	d.buy(t, "p", "lost-half")
	d.apply(d.buy(t, "p", "lost-settle"), domain.OrderConfirmed, true)
	d.apply(d.buy(t, "p", "untold"), domain.OrderRejected, false)
	late := d.buy(t, "p", "late")
	d.settle(t, late, domain.OrderConfirmed)
	d.changeRow(late.Key(), func(f *domain.OrderFields) { // cancelled, and the tell got lost though it was marked
		f.Status, f.FromBirth, f.StockVersion = domain.OrderCancelled, false, f.StockVersion+1
	})
	d.change("p", func(f *domain.StockFields) { f.Stock++; f.Version++ })
	time.Sleep(old)
}

func TestReconcileFinishesEachKindOfAnomaly(t *testing.T) {
	t.Parallel()
	const (
		inOrder = "open-flow-with-order lost-settle %[1]s; open-flow-with-order untold %[1]s; open-flow-without-order lost-half %[2]s; flow-disagrees late %[3]s"
		rest    = "; stock-drift  rebuilt false; order-untold untold told false"
	)
	inBubble(t, "dry run, then apply, then nothing is left but the message", func(t *testing.T) {
		d := newDesk(t)
		d.cfg.PageMax = 10
		d.mess(t)
		before := d.view(t, "p")
		want := fmt.Sprintf(inOrder+rest, "settled false", "sent-again false", "told false")
		r := d.run(t, dryRun)
		if story(r) != want { // the drift is the lost give-back: an apply finds none, since it tells first
			t.Errorf("%s\nwant %s", story(r), want)
		}
		if r.PlanID != r.ID || r.Repaired != 0 || d.view(t, "p") != before || len(d.sent) != 0 {
			t.Error("a dry run changed something")
		}
		r = d.run(t, apply)
		if want := fmt.Sprintf(inOrder, "settled true", "sent-again true", "told true"); story(r) != want || r.Repaired != 4 {
			t.Errorf("%s\nwant %s", story(r), want)
		}
		if len(d.sent) != 1 || d.sent[0].Items[0].Key.Token() != "lost-half" || d.sent[0].Kind != domain.BatchDeduct {
			t.Errorf("sent %+v", d.sent)
		}
		d.apply(must(d.gate.Page(t.Context(), "p", 0, 1))[0], domain.OrderConfirmed, false)
		time.Sleep(old)
		d.run(t, apply)
		if v := d.verify(t); !v.Holds {
			t.Errorf("%s %+v", verdicts(v), v.Invariants)
		}
	})
	inBubble(t, "a row whose flow is gone", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		restore := d.store.Picture("p")
		flow := d.buy(t, "p", "a")
		restore() // and nobody noticed: this process is new
		d.apply(flow, domain.OrderConfirmed, true)
		d.renew()
		time.Sleep(old)
		if r := d.run(t, apply); story(r) != "order-without-flow a told true" {
			t.Error(story(r))
		}
		if v := d.view(t, "p"); v.Remaining != 9 || d.state(t, flow.Key()) != domain.FlowSettled {
			t.Errorf("%+v", v)
		}
	})
	inBubble(t, "a flow that cannot be", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		flow := d.buy(t, "p", "a")
		d.settle(t, flow, domain.OrderConfirmed)
		d.changeRow(flow.Key(), func(f *domain.OrderFields) { f.Status = domain.OrderRejected })
		time.Sleep(old)
		d.audits.EXPECT().Record(gomock.Any(), gomock.Any(), "p", gomock.Any(), gomock.Any()).Return(nil).AnyTimes()
		r := d.run(t, apply)
		if !strings.HasPrefix(story(r), "flow-disagrees a rebuilt true") || !d.suspects.has("p") {
			t.Errorf("%s, suspects %v", story(r), d.suspects.products())
		}
	})
}

func TestReconcilePolicies(t *testing.T) {
	t.Parallel()
	rollBack := application.ReconcileRequest{Mode: application.ReconcileApply, Policy: application.PolicyRollBack}
	inBubble(t, "report only", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		d.buy(t, "p", "a")
		time.Sleep(old)
		r := d.run(t, application.ReconcileRequest{Mode: application.ReconcileApply, Policy: application.PolicyReportOnly})
		if story(r) != "open-flow-without-order a none false" || len(d.sent) != 0 {
			t.Error(story(r))
		}
	})
	inBubble(t, "roll back: row first, on record", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		flow := d.buy(t, "p", "a")
		time.Sleep(old)
		d.audits.EXPECT().Record(gomock.Any(), gomock.Any(), "p", gomock.Any(), gomock.Any()).DoAndReturn(
			func(_ context.Context, a port.Audit, _, _, _ string) error {
				if a.Actor != "op" || a.Action != "reconcile.roll-back" {
					t.Errorf("audit %+v", a)
				}
				return nil
			})
		if r := d.run(t, rollBack); story(r) != "open-flow-without-order a rolled-back true" {
			t.Error(story(r))
		}
		if d.state(t, flow.Key()) != domain.FlowReleased || d.view(t, "p").Remaining != 10 || !d.verify(t).Holds {
			t.Errorf("%+v", d.view(t, "p"))
		}
	})
	inBubble(t, "roll back loses against a row", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		flow := d.buy(t, "p", "a")
		time.Sleep(old)
		d.audits.EXPECT().Record(gomock.Any(), gomock.Any(), "p", gomock.Any(), gomock.Any()).DoAndReturn(
			func(context.Context, port.Audit, string, string, string) error {
				d.apply(flow, domain.OrderConfirmed, false) // its message comes just now
				return nil
			})
		if r := d.run(t, rollBack); story(r) != "open-flow-without-order a settled true" {
			t.Error(story(r))
		}
		if d.state(t, flow.Key()) != domain.FlowSettled || d.view(t, "p").Remaining != 9 {
			t.Errorf("%+v", d.view(t, "p"))
		}
	})
	inBubble(t, "a broker that is away leaves it open", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		d.buy(t, "p", "a")
		time.Sleep(old)
		d.sendErr = errors.New("away")
		if r := d.run(t, apply); story(r) != "open-flow-without-order a sent-again false" || r.Repaired != 0 {
			t.Error(story(r))
		}
	})
}

func TestReconcileRepairsDriftOnlyByPolicyAndOnRecord(t *testing.T) {
	t.Parallel()
	drifted := func(t *testing.T) *desk {
		d := newDesk(t)
		d.open(t, "p", 10)
		d.change("p", func(f *domain.StockFields) { f.Stock -= 2; f.Version++ })
		return d
	}
	inBubble(t, "found", func(t *testing.T) {
		d := drifted(t)
		if r := d.run(t, dryRun); story(r) != "stock-drift  rebuilt false" || r.Anomalies[0].Units != 2 {
			t.Errorf("%+v", r)
		}
	})
	inBubble(t, "repaired", func(t *testing.T) {
		d := drifted(t)
		d.audits.EXPECT().Record(gomock.Any(), port.Audit{Actor: "op", Action: "reconcile.rebuild", Reason: fmt.Sprintf("reconciliation %032d", 1)}, "p", gomock.Any(), gomock.Any()).Return(nil)
		if r := d.run(t, apply); story(r) != "stock-drift  rebuilt true" || !d.suspects.has("p") {
			t.Errorf("%+v", r)
		}
	})
	inBubble(t, "repaired for a reason", func(t *testing.T) {
		d := drifted(t)
		d.audits.EXPECT().Record(gomock.Any(), port.Audit{Actor: "op", Action: "reconcile.rebuild", Reason: fmt.Sprintf("reconciliation %032d: a count by hand", 1)}, "p", gomock.Any(), gomock.Any()).Return(nil)
		wish := apply
		wish.Reason = "a count by hand"
		if r := d.run(t, wish); r.Reason != wish.Reason {
			t.Errorf("%+v", r)
		}
	})
	inBubble(t, "not repaired without a record", func(t *testing.T) {
		d := drifted(t)
		d.audits.EXPECT().Record(gomock.Any(), gomock.Any(), "p", gomock.Any(), gomock.Any()).Return(domain.ErrUnavailable)
		_, err := d.reconciler().Reconcile(t.Context(), apply)
		wantCode(t, err, domain.CodeUnavailable)
		if len(d.suspects.products()) != 0 || d.reports.saves != 2 {
			t.Error("repaired, or no report")
		}
	})
	inBubble(t, "policy forbids", func(t *testing.T) {
		d := drifted(t)
		d.cfg.RepairDrift = false
		if r := d.run(t, apply); story(r) != "stock-drift  none false" || len(d.suspects.products()) != 0 {
			t.Error(story(r))
		}
	})
	inBubble(t, "no drift while something young is open", func(t *testing.T) {
		d := drifted(t)
		d.buy(t, "p", "a")
		if r := d.run(t, apply); len(r.Anomalies) != 0 {
			t.Error(story(r))
		}
	})
}

func TestReconcileAppliesAPlanAndNothingElse(t *testing.T) {
	t.Parallel()
	inBubble(t, "what was listed", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		d.buy(t, "p", "a")
		time.Sleep(old)
		plan := d.run(t, dryRun)
		d.buy(t, "p", "b")
		time.Sleep(old)
		r := d.run(t, application.ReconcileRequest{Mode: application.ReconcileApply, PlanID: plan.ID})
		if story(r) != "open-flow-without-order a sent-again true" || r.PlanID != plan.ID || len(d.sent) != 1 || r.Found[application.AnomalyOpenWithoutRow] != 1 {
			t.Errorf("%s, %+v", story(r), r)
		}
	})
	inBubble(t, "outdated", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		flow := d.buy(t, "p", "a")
		d.buy(t, "p", "b")
		time.Sleep(old)
		plan := d.run(t, dryRun)
		d.settle(t, flow, domain.OrderConfirmed)
		_, err := d.reconciler().Reconcile(t.Context(), application.ReconcileRequest{Mode: application.ReconcileApply, PlanID: plan.ID})
		wantCode(t, err, domain.CodePlanOutdated)
		if len(d.sent) != 0 {
			t.Error("did a part of it")
		}
	})
	inBubble(t, "with the plan's policy", func(t *testing.T) {
		d := newDesk(t)
		d.open(t, "p", 10)
		d.buy(t, "p", "a")
		time.Sleep(old)
		plan := d.run(t, application.ReconcileRequest{Mode: application.ReconcileDryRun, Policy: application.PolicyReportOnly})
		r := d.run(t, application.ReconcileRequest{Mode: application.ReconcileApply, PlanID: plan.ID})
		if r.Policy != application.PolicyReportOnly || len(d.sent) != 0 {
			t.Error(story(r))
		}
	})
	inBubble(t, "that is no plan", func(t *testing.T) {
		d := newDesk(t)
		_, err := d.reconciler().Reconcile(t.Context(), application.ReconcileRequest{Mode: application.ReconcileApply, PlanID: "x"})
		wantCode(t, err, domain.CodeReportNotFound)
		applied := d.run(t, apply)
		_, err = d.reconciler().Reconcile(t.Context(), application.ReconcileRequest{Mode: application.ReconcileApply, PlanID: applied.ID})
		wantCode(t, err, domain.CodeInvalidRequest)
	})
}

func TestReconcileIsBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, "repairs", func(t *testing.T) {
		d := newDesk(t)
		d.cfg.RepairsMax = 3
		d.open(t, "p", 10)
		for i := range 5 {
			d.buy(t, "p", fmt.Sprint("t", i))
		}
		time.Sleep(old)
		r := d.run(t, apply)
		if r.Repaired != 3 || !r.Capped || r.Found[application.AnomalyOpenWithoutRow] != 5 || len(d.sent) != 3 { // one flow fits a message here
			t.Errorf("%+v, %d sent", r, len(d.sent))
		}
	})
	inBubble(t, "list", func(t *testing.T) {
		d := newDesk(t)
		d.cfg.ListedMax = 2
		d.open(t, "p", 10)
		for i := range 5 {
			d.buy(t, "p", fmt.Sprint("t", i))
		}
		time.Sleep(old)
		if r := d.run(t, dryRun); len(r.Anomalies) != 2 || !r.Capped || r.Found[application.AnomalyOpenWithoutRow] != 5 {
			t.Errorf("%+v", r)
		}
	})
}

func TestReconcileRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, request := range map[string]application.ReconcileRequest{
		"mode":        {Mode: "now"},
		"policy":      {Mode: application.ReconcileApply, Policy: "guess"},
		"plan of dry": {Mode: application.ReconcileDryRun, PlanID: "x"},
	} {
		if _, err := d.reconciler().Reconcile(t.Context(), request); domain.CodeOf(err) != domain.CodeInvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := d.reconciler().Reconcile(t.Context(), application.ReconcileRequest{Mode: application.ReconcileDryRun, Product: "nobody"})
	wantCode(t, err, domain.CodeProductNotFound)
	if _, err := d.reconciler().Reports(t.Context(), "", 10); err != nil {
		t.Error(err)
	}
}
