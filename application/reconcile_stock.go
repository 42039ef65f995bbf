package application

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// ReconcileConfig bounds a reconciliation.
type ReconcileConfig struct {
	SafeAge     time.Duration // what is younger is in flight and left alone; more than the relay needs
	PageMax     int           // flows or rows in one call
	SendMax     int           // flows in one message
	RepairsMax  int           // repairs in one run
	ListedMax   int           // anomalies in one report
	RepairDrift bool          // drift is repaired by a rebuild; otherwise it is only reported
}

// DefaultReconcileConfig suits a safety net: the relay has finished what is a minute old.
func DefaultReconcileConfig() ReconcileConfig {
	return ReconcileConfig{SafeAge: time.Minute, PageMax: 500, SendMax: 128, RepairsMax: 10_000, ListedMax: 1000, RepairDrift: true}
}

// The actions of an Anomaly.
const (
	actionSentAgain  = "sent-again"
	actionSettled    = "settled"
	actionTold       = "told"
	actionRolledBack = "rolled-back"
	actionRebuilt    = "rebuilt"
	actionNone       = "none"
)

// reportSaveMax is how long saving a report may take once its run is over.
const reportSaveMax = 5 * time.Second

// ReconcileStock compares the gate's flows with the ledger's rows, and repairs what differs. It works
// on flows, leaves alone what is in flight, and does only what the relay, the settlement and a
// rebuild do as well: every step may be repeated, by two instances at once, or cut off anywhere.
type ReconcileStock struct {
	eyes     StockEyes
	epochs   port.Epochs
	sender   port.Sender
	reports  port.ReportStore
	audits   port.AuditLog
	suspects Suspects
	teller   teller
	ids      port.IDs
	clock    port.Clock
	cfg      ReconcileConfig
	log      *slog.Logger

	mu    sync.Mutex
	stats ReconcileStats
}

// ReconcileStats are counts since the start, of applies alone.
type ReconcileStats struct {
	LastSuccess time.Time        // of an apply to all products; at first, when this process began
	Failures    int64            // applies that ended with an error
	Found       map[string]int64 // anomalies by kind
	Repaired    int64
}

// Stats are the counts.
func (r *ReconcileStock) Stats() ReconcileStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	stats.Found = maps.Clone(stats.Found)
	return stats
}

// count takes an apply that has ended.
func (r *ReconcileStock) count(request ReconcileRequest, report ReconcileReport, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, n := range report.Found {
		r.stats.Found[kind] += n
	}
	r.stats.Repaired += report.Repaired
	switch {
	case err != nil:
		r.stats.Failures++
	case request.Product == "" && request.PlanID == "":
		r.stats.LastSuccess = report.FinishedAt
	}
}

// NewReconcileStock wires the use case.
func NewReconcileStock(eyes StockEyes, epochs port.Epochs, sender port.Sender, reports port.ReportStore, audits port.AuditLog,
	suspects Suspects, ids port.IDs, clock port.Clock, cfg ReconcileConfig, log *slog.Logger) *ReconcileStock {
	return &ReconcileStock{eyes: eyes, epochs: epochs, sender: sender, reports: reports, audits: audits, suspects: suspects,
		teller: teller{eyes.Gate, eyes.Outbox, suspects}, ids: ids, clock: clock, cfg: cfg, log: log,
		stats: ReconcileStats{LastSuccess: clock.Now(), Found: make(map[string]int64)}}
}

// Reconcile runs once and saves its report. A dry run changes nothing. An apply with a plan does what
// that dry run listed and nothing else, or CodePlanOutdated when one of the things listed is
// not there any more; without a plan it does all that it finds. CodeInvalidRequest,
// CodeProductNotFound, CodeReportNotFound, CodeUnavailable; what an apply had done until an
// error is in its saved report.
func (r *ReconcileStock) Reconcile(ctx context.Context, request ReconcileRequest) (ReconcileReport, error) {
	if err := checkReconcile(&request); err != nil {
		return ReconcileReport{}, err
	}
	run := &reconciliation{ReconcileStock: r, report: ReconcileReport{ID: r.ids.Unique(), Mode: request.Mode,
		Policy: request.Policy, Actor: request.Actor, Reason: request.Reason, StartedAt: r.clock.Now().UTC()}}
	run.report.PlanID = request.PlanID
	if request.Mode == ReconcileDryRun {
		run.report.PlanID = run.report.ID
	}
	products, err := run.scope(ctx, request)
	if err != nil {
		return ReconcileReport{}, err
	}
	run.repairs = request.Mode == ReconcileApply
	if run.repairs {
		run.reset()
		if err := r.save(ctx, run.report); err != nil { // so that a run which is cut off can be seen
			return ReconcileReport{}, err
		}
	}
	runErr := run.walk(ctx, products)
	run.report.FinishedAt = r.clock.Now().UTC()
	if runErr != nil && !run.repairs {
		return ReconcileReport{}, runErr
	}
	if run.repairs {
		r.count(request, run.report, runErr)
	}
	saveErr := r.save(ctx, run.report)
	r.log.Info("reconciled", "event", "reconciled", "report", run.report.ID, "mode", request.Mode, "actor", request.Actor,
		"reason", request.Reason, "found", run.report.Found, "repaired", run.report.Repaired, "capped", run.report.Capped, "error", runErr)
	if runErr != nil {
		return ReconcileReport{}, runErr
	}
	return run.report, saveErr
}

func checkReconcile(request *ReconcileRequest) error {
	bad := func(field string) error {
		return &domain.Error{Code: domain.CodeInvalidRequest, Field: field, Detail: field + " is not known"}
	}
	if request.Policy == "" {
		request.Policy = PolicySendAgain
	}
	switch {
	case request.Mode != ReconcileDryRun && request.Mode != ReconcileApply:
		return bad("mode")
	case !slices.Contains([]ReconcilePolicy{PolicySendAgain, PolicyReportOnly, PolicyRollBack}, request.Policy):
		return bad("policy")
	case request.PlanID != "" && request.Mode != ReconcileApply:
		return bad("planId")
	}
	return nil
}

// Report reads one. CodeReportNotFound, CodeUnavailable.
func (r *ReconcileStock) Report(ctx context.Context, id string) (ReconcileReport, error) {
	body, err := r.reports.ReadReport(ctx, id)
	if err != nil {
		return ReconcileReport{}, err
	}
	return readReport(body)
}

// Reports gives at most limit (1 to 100) reports below the id before, newest first.
func (r *ReconcileStock) Reports(ctx context.Context, before string, limit int) ([]ReconcileReport, error) {
	bodies, err := r.reports.ListReports(ctx, before, min(max(limit, 1), 100))
	if err != nil {
		return nil, err
	}
	reports := make([]ReconcileReport, len(bodies))
	for i, body := range bodies {
		if reports[i], err = readReport(body); err != nil {
			return nil, err
		}
	}
	return reports, nil
}

func readReport(body []byte) (report ReconcileReport, err error) {
	if err := json.Unmarshal(body, &report); err != nil {
		return report, domain.NewError(domain.CodeInternal, "a stored report cannot be read", err)
	}
	return report, nil
}

// save outlives ctx: what was done has to be on record.
func (r *ReconcileStock) save(ctx context.Context, report ReconcileReport) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportSaveMax)
	defer cancel()
	body, err := json.Marshal(report)
	if err != nil {
		return domain.NewError(domain.CodeInternal, "a report cannot be written", err)
	}
	if err := r.reports.SaveReport(ctx, report.ID, report.StartedAt, body); err != nil {
		return fmt.Errorf("save report: %w", err)
	}
	return nil
}

// reconciliation is one run.
type reconciliation struct {
	*ReconcileStock
	report  ReconcileReport
	cutoff  time.Time          // what is younger is in flight
	plan    map[anomalyID]bool // what may be done, and whether it was found again; nil: everything
	repairs bool
	granted int // repairs that were begun
}

// anomalyID is what makes an anomaly of a plan the same one later. Its evidence may have changed its words.
type anomalyID struct {
	kind, product, user, token string
	units                      int64
}

func (a Anomaly) id() anomalyID { return anomalyID{a.Kind, a.Product, a.User, a.Token, a.Units} }

// discovery is an anomaly with what its repair needs.
type discovery struct {
	Anomaly
	flow  domain.Flow
	order domain.Order
}

// scope gives the products to go through, nil for all. With a plan it walks them once without
// repairing, to see that everything listed is still there.
func (r *reconciliation) scope(ctx context.Context, request ReconcileRequest) ([]string, error) {
	r.reset()
	if request.PlanID == "" {
		if request.Product == "" {
			return nil, nil
		}
		stocks, err := r.eyes.Catalog.Stocks(ctx, []string{request.Product})
		if err == nil && stocks[0].IsZero() {
			err = domain.NewError(domain.CodeProductNotFound, request.Product, nil)
		}
		return []string{request.Product}, err
	}
	plan, err := r.Report(ctx, request.PlanID)
	if err != nil {
		return nil, err
	}
	if plan.Mode != ReconcileDryRun {
		return nil, &domain.Error{Code: domain.CodeInvalidRequest, Field: "planId", Detail: "planId is not a dry run"}
	}
	r.report.Policy = plan.Policy
	r.plan = make(map[anomalyID]bool, len(plan.Anomalies))
	products := []string{}
	for _, a := range plan.Anomalies {
		r.plan[a.id()] = false
		if !slices.Contains(products, a.Product) {
			products = append(products, a.Product)
		}
	}
	if err := r.walk(ctx, products); err != nil {
		return nil, err
	}
	for id, found := range r.plan {
		if !found {
			return nil, domain.NewError(domain.CodePlanOutdated,
				fmt.Sprintf("%s of %s, user %q, is not there any more as it was listed", id.kind, id.product, id.user), nil)
		}
	}
	return products, nil
}

// reset begins the counts anew.
func (r *reconciliation) reset() {
	r.cutoff = r.clock.Now().Add(-r.cfg.SafeAge)
	r.report.Found, r.report.Anomalies = make(map[string]int64), []Anomaly{}
	r.report.Products, r.report.Flows, r.report.Orders, r.report.Capped = 0, 0, 0, false
}

// walk goes through the products, or all where products is nil.
func (r *reconciliation) walk(ctx context.Context, products []string) error {
	if products != nil {
		for _, p := range products {
			if err := r.product(ctx, p); err != nil {
				return fmt.Errorf("reconcile %s: %w", p, err)
			}
		}
		return r.untold(ctx, func(product string) bool { return slices.Contains(products, product) })
	}
	for after := ""; ; {
		stocks, err := r.eyes.Catalog.List(ctx, after, r.cfg.PageMax)
		if err != nil {
			return err
		}
		for _, s := range stocks {
			if err := r.product(ctx, s.Product()); err != nil {
				return fmt.Errorf("reconcile %s: %w", s.Product(), err)
			}
		}
		if len(stocks) < r.cfg.PageMax {
			return r.untold(ctx, func(string) bool { return true })
		}
		after = stocks[len(stocks)-1].Product()
	}
}

// product compares one product, flows first and totals last. One that is not on sale is left to the
// rebuild that is under way, or to its operator.
func (r *reconciliation) product(ctx context.Context, product string) error {
	r.report.Products++
	views, err := r.eyes.Admin.View(ctx, []string{product})
	if err != nil {
		return err
	}
	stocks, err := r.eyes.Catalog.Stocks(ctx, []string{product})
	if err != nil {
		return err
	}
	if !(stockLook{stock: stocks[0], view: views[0]}).sound() {
		return nil
	}
	if err := r.openFlows(ctx, product, views[0].Sequence); err != nil {
		return err
	}
	if err := r.rows(ctx, product); err != nil {
		return err
	}
	return r.totals(ctx, product)
}

// openFlows finishes the flows that have been open for too long, oldest first, up to the sequence
// that the gate had at the start, so that a running sale does not lead it on for ever.
func (r *reconciliation) openFlows(ctx context.Context, product string, upTo int64) error {
	for after := int64(0); after < upTo; {
		flows, err := r.eyes.Flows.Page(ctx, product, after, r.cfg.PageMax)
		if err != nil || len(flows) == 0 {
			return err
		}
		r.report.Flows += int64(len(flows))
		after = flows[len(flows)-1].Sequence()
		old := slices.DeleteFunc(slices.Clone(flows), func(f domain.Flow) bool { return f.At().After(r.cutoff) })
		if len(old) > 0 {
			if err := r.finishFlows(ctx, old); err != nil {
				return err
			}
		}
		if len(flows) < r.cfg.PageMax {
			return nil
		}
	}
	return nil
}

func (r *reconciliation) finishFlows(ctx context.Context, old []domain.Flow) error {
	orders, err := r.eyes.Ledger.Fates(ctx, keysOfFlows(old))
	if err != nil {
		return err
	}
	var rowless, withRow []*discovery
	for i, f := range old {
		switch {
		case orders[i].IsZero():
			d := discover(AnomalyOpenWithoutRow, f.Key(), f.Quantity(), r.policyAction(),
				fmt.Sprintf("open since %s, epoch %d, sequence %d", f.At().Format(time.RFC3339), f.Epoch(), f.Sequence()))
			d.flow = f
			rowless = append(rowless, d)
		case !orders[i].CreatedAt().After(r.cutoff):
			d := discover(AnomalyOpenWithRow, f.Key(), f.Quantity(), actionSettled, "open, and the order is "+orders[i].Status().String())
			d.order = orders[i]
			withRow = append(withRow, d)
		}
	}
	if err := r.tell(ctx, r.admit(withRow)); err != nil {
		return err
	}
	r.list(withRow)
	err = r.finishRowless(ctx, r.admit(rowless))
	r.list(rowless)
	return err
}

func discover(kind string, key domain.Key, units int64, action, evidence string) *discovery {
	return &discovery{Anomaly: Anomaly{Kind: kind, Product: key.Product(), User: key.User(), Token: key.Token(), Units: units,
		Evidence: evidence, Action: action}}
}

func (r *reconciliation) policyAction() string {
	switch r.report.Policy {
	case PolicyRollBack:
		return actionRolledBack
	case PolicyReportOnly:
		return actionNone
	case PolicySendAgain:
		return actionSentAgain
	}
	return actionNone
}

// admit notes what was found, and gives what is to be repaired now.
func (r *reconciliation) admit(found []*discovery) (repair []*discovery) {
	for _, d := range found {
		if r.plan != nil {
			if _, listed := r.plan[d.id()]; !listed {
				continue
			}
			r.plan[d.id()] = true
		}
		r.report.Found[d.Kind]++
		if !r.repairs || d.Action == actionNone {
			continue
		}
		if r.granted >= r.cfg.RepairsMax {
			r.report.Capped = true
			continue
		}
		r.granted++
		repair = append(repair, d)
	}
	return repair
}

// list writes what was found, and what became of it, into the report.
func (r *reconciliation) list(found []*discovery) {
	for _, d := range found {
		if r.plan != nil {
			if _, listed := r.plan[d.id()]; !listed {
				continue
			}
		}
		if d.Done {
			r.report.Repaired++
		}
		if len(r.report.Anomalies) >= r.cfg.ListedMax {
			r.report.Capped = true
			continue
		}
		r.report.Anomalies = append(r.report.Anomalies, d.Anomaly)
	}
}

// tell tells the gate the fates of rows, and looks whether flow and row agree now. Where they still do
// not, although the gate can be read, it has been proved wrong.
func (r *reconciliation) tell(ctx context.Context, found []*discovery) error {
	if len(found) == 0 {
		return nil
	}
	orders := make([]domain.Order, len(found))
	for i, d := range found {
		orders[i] = d.order
	}
	if err := r.teller.tell(ctx, orders); err != nil {
		return err
	}
	replies, err := r.eyes.Gate.Check(ctx, keysOfOrders(orders))
	if err != nil {
		return err
	}
	for i, d := range found {
		d.Done = replies[i].Readable && replies[i].Flow.State() == d.order.Status().FlowState()
		if !d.Done && replies[i].Readable && d.Kind == AnomalyFlowDisagrees && r.driftAction() == actionRebuilt {
			if err := r.rebuild(ctx, d, "a flow is "+replies[i].Flow.State().String()+" though its order is "+d.order.Status().String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// finishRowless does by policy what becomes of open flows that have no row.
func (r *reconciliation) finishRowless(ctx context.Context, found []*discovery) error {
	if r.report.Policy == PolicyRollBack {
		return r.rollBack(ctx, found)
	}
	slices.SortStableFunc(found, func(a, b *discovery) int { return cmp.Compare(kindOf(a), kindOf(b)) })
	for len(found) > 0 {
		n := r.fitting(found)
		batch := domain.Batch{ID: r.ids.Unique(), Kind: kindOf(found[0]), Again: true}
		for _, d := range found[:n] {
			batch.Items = append(batch.Items, domain.DeductionOf(d.flow))
		}
		result, err := r.sender.Send(ctx, batch)
		if result != port.SendCommitted {
			r.log.Warn("open flows could not be sent again", "event", "send_again_failed", "flows", n, "error", err)
		}
		for _, d := range found[:n] {
			d.Done = result == port.SendCommitted
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		found = found[n:]
	}
	return nil
}

// kindOf is the kind of message that carries the flow.
func kindOf(d *discovery) domain.BatchKind { return domain.DeductionOf(d.flow).Kind() }

// fitting is how many of the flows go into one message, which holds flows of one kind; at least one.
func (r *reconciliation) fitting(found []*discovery) int {
	bytes := 0
	for i, d := range found[:min(len(found), r.cfg.SendMax)] {
		bytes += r.sender.BytesOf(domain.DeductionOf(d.flow))
		if i > 0 && (bytes > r.sender.BatchBytesMax() || kindOf(d) != kindOf(found[0])) {
			return i
		}
	}
	return min(len(found), r.cfg.SendMax)
}

// rollBack decides the fates first: whichever row stands is what the gate is told. The buyer may have
// been told "accepted", so each one is on record under the operator's name.
func (r *reconciliation) rollBack(ctx context.Context, found []*discovery) error {
	if len(found) == 0 {
		return nil
	}
	claims := make([]port.FateClaim, len(found))
	for i, d := range found {
		f := d.flow
		claims[i] = port.FateClaim{Key: f.Key(), Quantity: f.Quantity(), Status: domain.OrderCancelled, Epoch: f.Epoch(),
			Sequence: f.Sequence(), Attempt: f.Attempt()}
		if err := r.record(ctx, d, "reconcile.roll-back", "flow without an order", "cancelled unless an order stands"); err != nil {
			return err
		}
	}
	orders, err := r.eyes.Ledger.Decide(ctx, claims)
	if err != nil {
		return err
	}
	for i, d := range found {
		if d.order = orders[i]; d.order.Status() != domain.OrderCancelled {
			d.Action = actionSettled // its message was faster
		}
	}
	return r.tell(ctx, found)
}

func (r *reconciliation) record(ctx context.Context, d *discovery, action, before, after string) error {
	type side struct {
		User  string `json:"userId,omitempty"`
		Token string `json:"token,omitempty"`
		Units int64  `json:"units"`
		State string `json:"state"`
	}
	was, err := json.Marshal(side{d.User, d.Token, d.Units, before})
	if err != nil {
		return err
	}
	is, err := json.Marshal(side{d.User, d.Token, d.Units, after})
	if err != nil {
		return err
	}
	audit := port.Audit{Actor: r.report.Actor, Action: action, Reason: "reconciliation " + r.report.ID}
	if r.report.Reason != "" {
		audit.Reason += ": " + r.report.Reason
	}
	if err := r.audits.Record(ctx, audit, d.Product, string(was), string(is)); err != nil {
		return fmt.Errorf("record a repair: %w", err)
	}
	return nil
}

// rows looks in the other direction: rows that the gate acknowledged, and whose flow is missing or in
// another state. Those that it has not acknowledged are untold's, open flows are openFlows'.
func (r *reconciliation) rows(ctx context.Context, product string) error {
	for cursor := (port.RowCursor{}); ; {
		orders, next, err := r.epochs.Rows(ctx, product, cursor, r.cfg.PageMax)
		if err != nil {
			return err
		}
		r.report.Orders += int64(len(orders))
		old := slices.DeleteFunc(slices.Clone(orders), func(o domain.Order) bool { return !o.GateTold() || o.CreatedAt().After(r.cutoff) })
		if len(old) > 0 {
			if err := r.compareRows(ctx, old); err != nil {
				return err
			}
		}
		if len(orders) < r.cfg.PageMax {
			return nil
		}
		cursor = next
	}
}

func (r *reconciliation) compareRows(ctx context.Context, orders []domain.Order) error {
	replies, err := r.eyes.Gate.Check(ctx, keysOfOrders(orders))
	if err != nil {
		return err
	}
	var odd []domain.Order
	var flows []domain.Flow
	for i, o := range orders {
		flow := replies[i].Flow
		if replies[i].Readable && !flow.State().Open() && flow.State() != o.Status().FlowState() {
			odd, flows = append(odd, o), append(flows, flow)
		}
	}
	if len(odd) == 0 {
		return nil
	}
	now, err := r.eyes.Ledger.Fates(ctx, keysOfOrders(odd)) // cancelled between the two reads?
	if err != nil {
		return err
	}
	var found, uncounted []*discovery
	for i, o := range odd {
		if now[i].Status() != o.Status() || !now[i].GateTold() {
			continue
		}
		if o.Status() == domain.OrderAdded { // told again it would be counted again
			uncounted = append(uncounted, discover(AnomalyFlowMissing, o.Key(), o.Quantity(), r.driftAction(), "units were added, and the gate does not know that it has them"))
			continue
		}
		kind, evidence := AnomalyFlowDisagrees, fmt.Sprintf("the order is %s, the flow %s", o.Status(), flows[i].State())
		if flows[i].IsZero() {
			kind, evidence = AnomalyFlowMissing, fmt.Sprintf("the order is %s, and there is no flow", o.Status())
		}
		d := discover(kind, o.Key(), o.Quantity(), actionTold, evidence)
		d.order = o
		found = append(found, d)
	}
	for _, d := range r.admit(uncounted) {
		if err := r.rebuild(ctx, d, d.Evidence); err != nil {
			return err
		}
	}
	r.list(uncounted)
	err = r.tell(ctx, r.admit(found))
	r.list(found)
	return err
}

// untold tells the gate what the relay should have told it.
func (r *reconciliation) untold(ctx context.Context, concerns func(product string) bool) error {
	for after := ""; ; {
		orders, err := r.eyes.Outbox.Untold(ctx, r.cfg.SafeAge, after, r.cfg.PageMax)
		if err != nil || len(orders) == 0 {
			return err
		}
		var found []*discovery
		for _, o := range orders {
			if concerns(o.Key().Product()) {
				d := discover(AnomalyUntold, o.Key(), o.Quantity(), actionTold, "the order is "+o.Status().String()+", and the gate was not told")
				d.order = o
				found = append(found, d)
			}
		}
		err = r.tell(ctx, r.admit(found))
		r.list(found)
		if err != nil || len(orders) < r.cfg.PageMax {
			return err
		}
		after = orders[len(orders)-1].ID()
	}
}

// totals holds what the gate has left against what it should have. Only a difference that two looks
// agree on, while nothing young is open, is drift.
func (r *reconciliation) totals(ctx context.Context, product string) error {
	first, err := r.eyes.look(ctx, product, showOpenMax)
	if err != nil || first.whole && first.counts.Drift() == 0 {
		return err
	}
	drift, last, settled, err := r.eyes.drift(ctx, product, showOpenMax)
	if err != nil || !settled || drift == 0 || last.newest.After(r.cutoff) {
		return err
	}
	counts := last.counts
	d := &discovery{Anomaly: Anomaly{Kind: AnomalyDrift, Product: product, Units: drift, Action: r.driftAction(),
		Evidence: fmt.Sprintf("the gate has %d, the ledger %d, %d open, %d yet to be told", counts.GateRemaining,
			counts.LedgerStock, counts.OpenUnits, counts.UntoldUnits)}}
	for _, d := range r.admit([]*discovery{d}) {
		if err := r.rebuild(ctx, d, d.Evidence); err != nil {
			return err
		}
	}
	r.list([]*discovery{d})
	return nil
}

func (r *reconciliation) driftAction() string {
	if r.cfg.RepairDrift && r.report.Policy != PolicyReportOnly {
		return actionRebuilt
	}
	return actionNone
}

// rebuild hands the product to the rebuilder, on record.
func (r *reconciliation) rebuild(ctx context.Context, d *discovery, reason string) error {
	if err := r.record(ctx, d, "reconcile.rebuild", reason, "rebuilt"); err != nil {
		return err
	}
	r.suspects.Suspect(d.Product, "reconciliation: "+reason)
	d.Action, d.Done = actionRebuilt, true
	return nil
}
