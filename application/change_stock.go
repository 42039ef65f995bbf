package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// errTaken says that the units are taken, and that it is not known yet what becomes of them.
var errTaken = domain.NewError(domain.CodeOutcomeUnknown, "the withdrawal is on its way; ask again with the same token", nil)

// ChangeStockConfig bounds a stock change.
type ChangeStockConfig struct {
	GateTimeout time.Duration // for one call of the gate
	SendTimeout time.Duration // until an operator is told that the outcome is unknown
}

// ChangeStock adds to what is on sale, or takes from it, during the sale. What is sold stays sold: an addition is
// the ledger's, and the gate is told; a withdrawal takes its units at the gate, where buyers take
// theirs, and travels to the ledger as a purchase does.
type ChangeStock struct {
	changes port.Changes
	ledger  port.Ledger
	catalog port.Catalog
	gate    port.Gate
	sender  port.Sender
	audits  port.AuditLog
	leases  Leases
	teller  teller
	clock   port.Clock
	ids     port.IDs
	cfg     ChangeStockConfig
	log     *slog.Logger
}

// NewChangeStock wires the use case.
func NewChangeStock(changes port.Changes, ledger port.Ledger, outbox port.Outbox, catalog port.Catalog, gate port.Gate,
	sender port.Sender, audits port.AuditLog, leases Leases, suspects Suspects, clock port.Clock, ids port.IDs,
	cfg ChangeStockConfig, log *slog.Logger) *ChangeStock {
	return &ChangeStock{changes: changes, ledger: ledger, catalog: catalog, gate: gate, sender: sender, audits: audits,
		leases: leases, teller: teller{gate, outbox, suspects}, clock: clock, ids: ids, cfg: cfg, log: log}
}

// Change carries a change out, once for its token, and gives it as it stands. audit names who and why. Codes of
// refusal: product-not-found, stock-not-enough, token-reused (another change has the token),
// token-refused, invalid-request (more than may be on sale); busy and rebuilding say that nothing
// was changed, outcome-unknown that something may have been: the same token asked again tells the truth.
func (s *ChangeStock) Change(ctx context.Context, change domain.StockChange, audit port.Audit) (ChangeReceipt, error) {
	receipt, err := s.carryOut(ctx, change, audit)
	switch {
	case err != nil:
		return ChangeReceipt{}, err
	case !receipt.Replayed:
		receipt.Change.Actor, receipt.Change.Reason = audit.Actor, audit.Reason
		return receipt, nil
	}
	views := []ChangeView{receipt.Change}
	if err := s.explain(ctx, change.Key().Product(), views); err != nil { // what became of it is known all the same
		s.log.Warn("who asked for a stock change cannot be read", "event", "audit_unread", "product", change.Key().Product(), "error", err)
	}
	receipt.Change = views[0]
	return receipt, nil
}

// explain puts who asked for each change, and why, into views of one product.
func (s *ChangeStock) explain(ctx context.Context, product string, views []ChangeView) error {
	asked := make([]port.AskedChange, len(views))
	for i, v := range views {
		key, err := domain.ChangeKey(product, v.Token)
		if err != nil {
			return err
		}
		asked[i] = port.AskedChange{Key: key, Delta: v.Delta}
	}
	audits, err := s.changes.Asked(ctx, product, asked)
	if err != nil {
		return err
	}
	for i := range views {
		views[i].Actor, views[i].Reason = audits[i].Actor, audits[i].Reason
	}
	return nil
}

func (s *ChangeStock) carryOut(ctx context.Context, change domain.StockChange, audit port.Audit) (ChangeReceipt, error) {
	known, err := s.look(ctx, change.Key())
	if err != nil {
		return ChangeReceipt{}, err
	}
	switch {
	case known.view != nil:
		return s.replay(ctx, change, known)
	case change.Adds(): // a gate that is away learns it later
		return s.add(ctx, change, audit)
	case known.gateErr != nil:
		return ChangeReceipt{}, s.unreadable(ctx, change.Key().Product(), known.gateErr)
	}
	return s.withdraw(ctx, change, audit)
}

// replayOf answers a token that is known.
func replayOf(change domain.StockChange, known ChangeView) (ChangeReceipt, error) {
	if known.Delta != change.Delta() {
		return ChangeReceipt{}, domain.NewError(domain.CodeTokenReused, fmt.Sprintf("the token stands for a change of %d", known.Delta), nil)
	}
	return ChangeReceipt{Change: known, Replayed: true}, nil
}

// replay sends a withdrawal on its way again before it answers, for the same reason as a purchase: see toSend.
func (s *ChangeStock) replay(ctx context.Context, change domain.StockChange, known knownChange) (ChangeReceipt, error) {
	receipt, err := replayOf(change, *known.view)
	if err == nil && !known.open.IsZero() {
		err = s.send(ctx, known.open)
	}
	return receipt, err
}

// knownChange is what is known under a key; without a view there is nothing.
type knownChange struct {
	view    *ChangeView
	open    domain.Flow // of a withdrawal on its way, which has no row
	gateErr error       // the gate may know more than it says
}

// look gives the row, or the flow of a withdrawal on its way.
func (s *ChangeStock) look(ctx context.Context, key domain.Key) (known knownChange, err error) {
	if known.view, err = s.row(ctx, key); err != nil || known.view != nil {
		return known, err
	}
	replies, err := s.gate.Check(ctx, []domain.Key{key})
	if err != nil {
		return knownChange{gateErr: domain.NewError(domain.CodeBusy, "the stock cannot be reached; nothing was changed", err)}, nil
	}
	flow := replies[0].Flow
	switch {
	case flow.State().Open():
		pending := pendingChange(flow)
		return knownChange{view: &pending, open: flow}, nil
	case !flow.IsZero(): // its row came between the two reads
		known.view, err = s.row(ctx, key)
	case !replies[0].Readable:
		known.gateErr = errRebuilding
	}
	return known, err
}

func (s *ChangeStock) row(ctx context.Context, key domain.Key) (*ChangeView, error) {
	rows, err := s.ledger.Fates(ctx, []domain.Key{key})
	if err != nil {
		return nil, domain.NewError(domain.CodeBusy, "the ledger cannot be reached; nothing was changed", err)
	}
	if rows[0].IsZero() {
		return nil, nil //nolint:nilnil // no row is an answer
	}
	view := changeOf(rows[0])
	return &view, nil
}

func changeOf(row domain.Order) ChangeView {
	status := row.Status().String()
	if row.Status() == domain.OrderAdded {
		status = OrderConfirmed
	}
	return ChangeView{ID: row.ID(), Product: row.Key().Product(), Token: row.Key().Token(), Delta: row.Delta(), Status: status,
		CreatedAt: row.CreatedAt()}
}

func pendingChange(flow domain.Flow) ChangeView {
	return ChangeView{Product: flow.Key().Product(), Token: flow.Key().Token(), Delta: flow.Change(), Status: OrderPending, CreatedAt: flow.At()}
}

// unreadable tells a gate that has forgotten a product from a product that never was.
func (s *ChangeStock) unreadable(ctx context.Context, product string, gateErr error) error {
	if stocks, err := s.catalog.Stocks(ctx, []string{product}); err == nil && stocks[0].IsZero() {
		return domain.NewError(domain.CodeProductNotFound, product, nil)
	}
	return gateErr
}

// add writes the row, which decides, and tells the gate. A tell that fails the relay repeats.
func (s *ChangeStock) add(ctx context.Context, change domain.StockChange, audit port.Audit) (ChangeReceipt, error) {
	audit.Action = port.AuditAdd
	replies, err := s.changes.Add(ctx, []port.Addition{{Key: change.Key(), Quantity: change.Quantity(), Audit: audit}})
	switch {
	case errors.Is(err, domain.ErrProductNotFound) || errors.Is(err, domain.ErrInvalidRequest):
		return ChangeReceipt{}, err
	case err != nil:
		return ChangeReceipt{}, domain.NewError(domain.CodeOutcomeUnknown, "the addition may have been written; ask again with the same token", err)
	}
	row := replies[0].Row
	if !replies[0].Added {
		return replayOf(change, changeOf(row))
	}
	s.log.Info("units were put on sale", "event", "stock_added", "product", row.Key().Product(), "units", row.Quantity(), "actor", audit.Actor)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.GateTimeout)
	defer cancel()
	if err := s.teller.tell(ctx, []domain.Order{row}); err != nil {
		s.log.Warn("a told addition could not be marked; the relay tells it again", "event", "mark_told_failed", "error", err)
	}
	return ChangeReceipt{Change: changeOf(row)}, nil
}

// withdraw takes the units at the gate, whatever window, pause and limit say, and sends them on. Once they are taken
// there is no refusal any more.
func (s *ChangeStock) withdraw(ctx context.Context, change domain.StockChange, audit port.Audit) (ChangeReceipt, error) {
	key := change.Key()
	if !s.leases.MaySell(key.Product()) { // this gate may be one that others have left
		return ChangeReceipt{}, errRebuilding
	}
	if err := s.writeDown(ctx, change, audit); err != nil {
		return ChangeReceipt{}, err
	}
	ctx = context.WithoutCancel(ctx) // whoever hangs up does not tear it
	flow, mine, err := s.take(ctx, change)
	if err != nil {
		return ChangeReceipt{}, err
	}
	if !mine { // the same token at the same time
		known, err := s.look(ctx, key)
		if err != nil || known.view == nil {
			return ChangeReceipt{}, errTaken
		}
		return s.replay(ctx, change, known)
	}
	if err := s.send(ctx, flow); err != nil {
		return ChangeReceipt{}, err
	}
	s.log.Info("units are being withdrawn", "event", "stock_withdrawn", "product", key.Product(), "units", change.Quantity(), "actor", audit.Actor)
	return ChangeReceipt{Change: pendingChange(flow)}, nil
}

// send stores a withdrawal's message; until then nobody is told that it is on its way.
func (s *ChangeStock) send(ctx context.Context, flow domain.Flow) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SendTimeout)
	defer cancel()
	batch := domain.Batch{ID: s.ids.Unique(), Kind: domain.BatchWithdraw, Items: []domain.Deduction{domain.DeductionOf(flow)}}
	if result, err := s.sender.Send(ctx, batch); result != port.SendCommitted {
		s.log.Warn("a withdrawal's message has an unknown outcome; the relay finishes it", "event", "send_unknown", "product", flow.Key().Product(), "error", err)
		return errTaken
	}
	return nil
}

// writeDown puts the withdrawal on record as it is asked, with what the ledger has and what it would have then.
func (s *ChangeStock) writeDown(ctx context.Context, change domain.StockChange, audit port.Audit) error {
	product := change.Key().Product()
	stocks, err := s.catalog.Stocks(ctx, []string{product})
	if err != nil {
		return domain.NewError(domain.CodeBusy, "the ledger cannot be reached; nothing was changed", err)
	}
	stock := stocks[0]
	if stock.IsZero() {
		return domain.NewError(domain.CodeProductNotFound, product, nil)
	}
	audit.Action = port.AuditWithdraw
	was, is := port.ChangeStates(change.Key(), change.Delta(), stock)
	if err := s.audits.Record(ctx, audit, product, was, is); err != nil {
		return domain.NewError(domain.CodeBusy, "the audit log cannot be written; nothing was changed", err)
	}
	return nil
}

// take is the gate's answer to a withdrawal; mine is false for units that another call of the same token has taken.
func (s *ChangeStock) take(ctx context.Context, change domain.StockChange) (flow domain.Flow, mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.GateTimeout)
	defer cancel()
	attempt := s.ids.Attempt()
	item := port.AdoptItem{Key: change.Key(), Quantity: change.Quantity(), Attempt: attempt}
	switch s.gate.Adopt(ctx, s.clock.Now(), []port.AdoptItem{item})[0].Outcome {
	case port.AdoptHeld:
	case port.AdoptNoRoom:
		return flow, false, domain.NewError(domain.CodeStockNotEnough, "fewer units are left than would be withdrawn", nil)
	case port.AdoptRefused:
		return flow, false, domain.ErrTokenRefused
	case port.AdoptWait:
		return flow, false, errRebuilding
	case port.AdoptConflict:
		return flow, false, domain.NewError(domain.CodeTokenReused, "the token stands for another change", nil)
	case port.AdoptUnknown:
		return flow, false, errTaken
	}
	replies, err := s.gate.Check(ctx, []domain.Key{change.Key()})
	if err != nil || replies[0].Flow.IsZero() {
		return flow, false, errTaken
	}
	return replies[0].Flow, replies[0].Flow.Attempt() == attempt, nil
}

// Show gives one change. CodeChangeNotFound only when nobody has it and nobody may have lost it; rebuilding
// when the gate may have; busy or unavailable when one that could know cannot be asked.
func (s *ChangeStock) Show(ctx context.Context, product, token string) (ChangeView, error) {
	key, err := domain.ChangeKey(product, token)
	if err != nil {
		return ChangeView{}, err
	}
	known, err := s.look(ctx, key)
	switch {
	case err != nil:
		return ChangeView{}, err
	case known.view != nil:
		views := []ChangeView{*known.view}
		err := s.explain(ctx, product, views)
		return views[0], err
	case known.gateErr != nil:
		if err := s.unreadable(ctx, product, known.gateErr); !errors.Is(err, domain.ErrProductNotFound) {
			return ChangeView{}, err
		}
	}
	return ChangeView{}, domain.ErrChangeNotFound
}

// List gives at most limit (1 to 200) of a product's changes that have a row, newest first, from below the id
// before (empty: the newest). CodeProductNotFound, CodeUnavailable.
func (s *ChangeStock) List(ctx context.Context, product, before string, limit int) ([]ChangeView, error) {
	rows, err := s.changes.Changes(ctx, product, before, min(max(limit, 1), 200))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		stocks, err := s.catalog.Stocks(ctx, []string{product})
		if err != nil {
			return nil, err
		}
		if stocks[0].IsZero() {
			return nil, domain.NewError(domain.CodeProductNotFound, product, nil)
		}
	}
	views := make([]ChangeView, len(rows))
	for i, row := range rows {
		views[i] = changeOf(row)
	}
	if len(views) == 0 {
		return views, nil
	}
	return views, s.explain(ctx, product, views)
}
