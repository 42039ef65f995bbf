package application

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// LostPolicy says what becomes of flows whose rows a database that went back has lost. Their buyers
// were told how they ended.
type LostPolicy string

// The policies.
const (
	LostReport  LostPolicy = "report"  // list them, and change nothing
	LostRestore LostPolicy = "restore" // write the rows again, as the gate has them
	LostDrop    LostPolicy = "drop"    // the database's truth stands: their rows are cancelled
)

// LostFlow is a flow whose row is not there, or says something else.
type LostFlow struct {
	User     string `json:"userId"`
	Token    string `json:"token"`
	Quantity int64  `json:"quantity"`
	Flow     string `json:"flow"` // as the gate has it: confirmed, cancelled, rejected
	Row      string `json:"row"`  // as the ledger has it; empty: no row
}

// RebuildAnswer says what a rebuild that was asked for found and began.
type RebuildAnswer struct {
	Product   string     `json:"productId"`
	Was       string     `json:"was"`       // open, suspended, damaged
	State     string     `json:"state"`     // now; it opens again by itself
	Lost      int64      `json:"lost"`      // flows without a row
	Restored  int64      `json:"restored"`  // of those, rows that were written again
	Dropped   int64      `json:"dropped"`   // of those, rows that were written cancelled, or that found no stock
	Disagree  int64      `json:"disagree"`  // flows whose row says something else: the row stands
	Changes   int64      `json:"changes"`   // stock changes without a row: to be made again by hand
	LostUnits int64      `json:"lostUnits"` // of confirmed flows without a row
	Flows     []LostFlow `json:"flows"`     // at most 100 of them all
}

// rebuildAuditMax is how long writing down what was done may take, once it is.
const (
	rebuildAuditMax = 5 * time.Second
	lostListedMax   = 100
)

// RebuildByHand rebuilds a product at an operator's wish, and is the way back of one that is damaged:
// rows decide, so what the gate alone still knows becomes a row first, or is dropped by one.
type RebuildByHand struct {
	catalog  port.Catalog
	epochs   port.Epochs
	ledger   port.Ledger
	gate     port.GateAdmin
	flows    port.AllFlows
	audits   port.AuditLog
	suspects Suspects
	log      *slog.Logger
}

// NewRebuildByHand wires the use case.
func NewRebuildByHand(catalog port.Catalog, epochs port.Epochs, ledger port.Ledger, gate port.GateAdmin, flows port.AllFlows,
	audits port.AuditLog, suspects Suspects, log *slog.Logger) *RebuildByHand {
	return &RebuildByHand{catalog: catalog, epochs: epochs, ledger: ledger, gate: gate, flows: flows, audits: audits,
		suspects: suspects, log: log}
}

// Rebuild suspends the product and begins its rebuild, which ends by itself. lost concerns a damaged
// product alone, and has to be named for one; with LostReport nothing is begun. A repeat goes on where
// an earlier call was cut off. CodeProductNotFound, CodeInvalidRequest, CodeUnavailable, CodeRebuilding.
func (r *RebuildByHand) Rebuild(ctx context.Context, product string, lost LostPolicy, audit port.Audit) (RebuildAnswer, error) {
	stocks, err := r.catalog.Stocks(ctx, []string{product})
	if err != nil {
		return RebuildAnswer{}, err
	}
	stock := stocks[0]
	if stock.IsZero() {
		return RebuildAnswer{}, domain.NewError(domain.CodeProductNotFound, product, nil)
	}
	answer := RebuildAnswer{Product: product, Was: stock.State().String(), State: stock.State().String(), Flows: []LostFlow{}}
	if stock.State() == domain.SaleDamaged {
		err = r.accept(ctx, stock.Epoch(), lost, &answer)
	} else if lost != LostReport {
		err = r.epochs.Suspend(ctx, []string{product}, "asked for by "+audit.Actor+": "+audit.Reason, false)
	}
	if lost == LostReport && err == nil {
		return answer, nil
	}
	if err == nil {
		answer.State = domain.SaleSuspended.String()
		r.suspects.Suspect(product, "a rebuild was asked for")
	}
	return answer, errors.Join(err, r.record(ctx, answer, audit, err))
}

// record outlives ctx: what was done has to be on record, also of a call that failed halfway.
func (r *RebuildByHand) record(ctx context.Context, answer RebuildAnswer, audit port.Audit, failed error) error {
	if failed != nil && answer.Restored+answer.Dropped == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rebuildAuditMax)
	defer cancel()
	after, err := json.Marshal(answer)
	if err != nil {
		return domain.NewError(domain.CodeInternal, "an audit row cannot be written", err)
	}
	return r.audits.Record(ctx, audit, answer.Product, fmt.Sprintf(`{"state":%q}`, answer.Was), string(after))
}

// accept goes through all flows of a damaged product, and makes it a suspended one whose numbers are
// beyond whatever the gate has been told.
func (r *RebuildByHand) accept(ctx context.Context, epoch int64, lost LostPolicy, answer *RebuildAnswer) error {
	if lost != LostReport && lost != LostRestore && lost != LostDrop {
		return &domain.Error{Code: domain.CodeInvalidRequest, Field: "lost",
			Detail: "lost must be report, restore or drop: the product is damaged"}
	}
	err := r.flows.Walk(ctx, answer.Product, func(flows []domain.Flow) error { return r.page(ctx, epoch, lost, answer, flows) })
	if err != nil || lost == LostReport {
		return err
	}
	views, err := r.gate.View(ctx, []string{answer.Product})
	if err != nil {
		return err
	}
	v := views[0]
	if err := r.epochs.Accept(ctx, answer.Product, v.VersionTold, max(v.Epoch, v.Building)); err != nil {
		return err
	}
	r.log.Warn("an operator accepted a database that went back", "event", "damage_accepted", "product", answer.Product, "lost", answer.Lost,
		"restored", answer.Restored, "dropped", answer.Dropped, "disagree", answer.Disagree, "changes", answer.Changes)
	return nil
}

// page deals with some flows. Open ones are left to the rebuild and the relay, which finish them.
func (r *RebuildByHand) page(ctx context.Context, epoch int64, lost LostPolicy, answer *RebuildAnswer, flows []domain.Flow) error {
	orders, err := r.ledger.Fates(ctx, keysOfFlows(flows))
	if err != nil {
		return err
	}
	var again []port.ApplyItem
	var claims []port.FateClaim
	for i, f := range flows {
		row := orders[i]
		agrees := f.Key().IsChange() || statusOfFlow(f.State()) == row.Status().String()
		if f.State().Open() || !row.IsZero() && agrees {
			continue
		}
		answer.list(f, row)
		switch {
		case !row.IsZero() || f.Key().IsChange():
		case f.State() == domain.FlowSettled && lost == LostRestore:
			held := domain.DeductionOf(f)
			held.Epoch = max(held.Epoch, epoch) // this gate holds its units, or the ledger would have it ask for them
			again = append(again, port.ApplyItem{Deduction: held})
		default:
			claims = append(claims, fateOf(f))
		}
	}
	if lost == LostReport {
		return nil
	}
	return errors.Join(r.restore(ctx, answer, again), r.decide(ctx, answer, claims))
}

// fateOf claims the row of a flow that ended without units, or whose units the database does not know.
func fateOf(f domain.Flow) port.FateClaim {
	claim := rejection(domain.DeductionOf(f))
	if f.State() != domain.FlowRefused {
		claim.Status = domain.OrderCancelled
	}
	return claim
}

func (a *RebuildAnswer) list(f domain.Flow, row domain.Order) {
	l := LostFlow{User: f.Key().User(), Token: f.Key().Token(), Quantity: f.Quantity(), Flow: statusOfFlow(f.State())}
	switch {
	case !row.IsZero():
		a.Disagree++
		l.Row = row.Status().String()
	case f.Key().IsChange():
		a.Changes++
	default:
		a.Lost++
		if f.State() == domain.FlowSettled {
			a.LostUnits += f.Quantity()
		}
	}
	if len(a.Flows) < lostListedMax {
		a.Flows = append(a.Flows, l)
	}
}

// restore writes confirmed rows again. While the product is damaged the ledger asks no gate for their
// units, and its own stock guards them.
func (r *RebuildByHand) restore(ctx context.Context, answer *RebuildAnswer, items []port.ApplyItem) error {
	if len(items) == 0 {
		return nil
	}
	result, err := r.ledger.Apply(ctx, items)
	if err != nil {
		return fmt.Errorf("restore %d orders: %w", len(items), err)
	}
	for _, reply := range result.Replies {
		switch {
		case reply.Outcome != port.Applied && reply.Outcome != port.Met:
			return domain.NewError(domain.CodeRebuilding, "the product is not damaged any more; ask again", nil)
		case reply.Order.Status() == domain.OrderConfirmed:
			answer.Restored++
		default:
			answer.Dropped++
		}
	}
	return nil
}

func (r *RebuildByHand) decide(ctx context.Context, answer *RebuildAnswer, claims []port.FateClaim) error {
	if len(claims) == 0 {
		return nil
	}
	if _, err := r.ledger.Decide(ctx, claims); err != nil {
		return fmt.Errorf("decide the fate of %d flows: %w", len(claims), err)
	}
	for _, c := range claims {
		if c.Status == domain.OrderCancelled {
			answer.Dropped++
		} else {
			answer.Restored++
		}
	}
	return nil
}
