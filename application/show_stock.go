package application

import (
	"context"
	"errors"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// showOpenMax is the most open flows that a product may have for its drift to be worked out while
// somebody waits for the answer.
const showOpenMax = 5_000

// The words for a product's state; StockView has those of domain.SaleState, and unknown.
const (
	StockOpen       = "open"
	StockPaused     = "paused"
	StockUpcoming   = "upcoming"
	StockOver       = "over"
	StockRebuilding = "rebuilding"
	StockSoldOut    = "sold-out"
	StockUnknown    = "unknown"
)

// ShowStock shows a product to buyers, and both of its sides to operators.
type ShowStock struct {
	eyes  StockEyes
	clock port.Clock
}

// NewShowStock wires the use case.
func NewShowStock(eyes StockEyes, clock port.Clock) *ShowStock { return &ShowStock{eyes, clock} }

// Public gives what every buyer may see. A gate that cannot be read leaves Remaining nil and the state
// to the ledger. CodeProductNotFound, CodeUnavailable.
func (s *ShowStock) Public(ctx context.Context, product string) (PublicStock, error) {
	stocks, err := s.eyes.Catalog.Stocks(ctx, []string{product})
	if err != nil {
		return PublicStock{}, err
	}
	stock := stocks[0]
	if stock.IsZero() {
		return PublicStock{}, domain.NewError(domain.CodeProductNotFound, product, nil)
	}
	terms := stock.Terms()
	public := PublicStock{Product: product, Total: stock.Total(), OpensAt: terms.OpensAt, ClosesAt: terms.ClosesAt,
		LimitPerBuyer: terms.LimitPerBuyer}
	views, err := s.eyes.Admin.View(ctx, []string{product})
	if err != nil {
		public.State = publicState(stock, nil, s.clock.Now())
		return public, nil //nolint:nilerr // what could not be read is shown as unread
	}
	if views[0].Loaded && views[0].SameServer && !views[0].Rewound && views[0].Building == 0 && views[0].Epoch > 0 {
		public.Remaining = &views[0].Remaining
	}
	public.State = publicState(stock, &views[0], s.clock.Now())
	return public, nil
}

// publicState gives what a buyer should do about a product; view is nil where it could not be read.
func publicState(stock domain.Stock, view *port.GateView, now time.Time) string {
	terms := stock.Terms()
	switch {
	case !terms.ClosesAt.IsZero() && !now.Before(terms.ClosesAt):
		return StockOver
	case now.Before(terms.OpensAt):
		return StockUpcoming
	case terms.Paused:
		return StockPaused
	case stock.State() != domain.SaleOpen:
		return StockRebuilding
	case view == nil:
		return StockOpen
	case !view.Loaded || !view.SameServer || view.Rewound || view.Shut || view.Building > 0:
		return StockRebuilding
	case view.Remaining == 0:
		return StockSoldOut
	}
	return StockOpen
}

// Show gives both sides; a side that cannot be read is nil. Confirmed is the units that the ledger has
// given away, read from the stock row: the sum over all orders is VerifyBooks' to take.
// CodeProductNotFound.
func (s *ShowStock) Show(ctx context.Context, product string) (StockView, error) {
	drift, look, settled, err := s.eyes.drift(ctx, product, showOpenMax)
	if errors.Is(err, domain.ErrProductNotFound) {
		return StockView{}, err
	}
	view := StockView{Product: product, State: StockUnknown}
	if err != nil {
		return view, s.showWhatIsThere(ctx, &view)
	}
	view.addLedger(look.stock)
	view.addGate(look.view)
	if settled {
		view.Drift = &drift
	}
	return view, nil
}

// Edition gives domain.Stock's of a product. CodeProductNotFound, CodeUnavailable.
func (s *ShowStock) Edition(ctx context.Context, product string) (string, error) {
	stocks, err := s.eyes.Catalog.Stocks(ctx, []string{product})
	switch {
	case err != nil:
		return "", err
	case stocks[0].IsZero():
		return "", domain.NewError(domain.CodeProductNotFound, product, nil)
	}
	return stocks[0].Edition(), nil
}

// showWhatIsThere reads each side by itself.
func (s *ShowStock) showWhatIsThere(ctx context.Context, view *StockView) error {
	if stocks, err := s.eyes.Catalog.Stocks(ctx, []string{view.Product}); err == nil {
		if stocks[0].IsZero() {
			return domain.NewError(domain.CodeProductNotFound, view.Product, nil)
		}
		view.addLedger(stocks[0])
	}
	if views, err := s.eyes.Admin.View(ctx, []string{view.Product}); err == nil {
		view.addGate(views[0])
	}
	return nil
}

// List gives both sides of at most limit products with an id above after, in order of id. A gate that cannot be read
// is nil, as in Show; drift is nil while anything moves, for any product. CodeUnavailable where the ledger cannot be read.
func (s *ShowStock) List(ctx context.Context, after string, limit int) ([]StockView, error) {
	first, err := s.eyes.glance(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	var second []stockLook
	if still, err := s.eyes.Outbox.Untold(ctx, 0, "", 1); err == nil && len(still) == 0 && len(first) > 0 {
		second, _ = s.eyes.glance(ctx, after, limit) // none: no drift is told
	}
	views := make([]StockView, len(first))
	for i, look := range first {
		views[i] = StockView{Product: look.stock.Product()}
		views[i].addLedger(look.stock)
		views[i].addGate(look.view)
		if i >= len(second) || !look.whole || !look.sound() || !second[i].sound() {
			continue
		}
		if drift, settled := domain.SettledDrift(look.counts, second[i].counts); settled {
			views[i].Drift = &drift
		}
	}
	return views, nil
}

func (v *StockView) addLedger(stock domain.Stock) {
	terms, sold := stock.Terms(), stock.Sold()
	v.Edition = stock.Edition()
	v.State, v.Reason, v.Paused, v.Epoch, v.Total = stock.State().String(), stock.Reason(), terms.Paused, stock.Epoch(), stock.Total()
	v.LimitPerBuyer, v.Confirmed = terms.LimitPerBuyer, &sold
	v.LastClosedSeconds = stock.LastClosed().Seconds()
	if at := stock.SuspendedAt(); !at.IsZero() {
		v.SuspendedAt = &at
	}
	if !terms.OpensAt.IsZero() {
		v.OpensAt = &terms.OpensAt
	}
	if !terms.ClosesAt.IsZero() {
		v.ClosesAt = &terms.ClosesAt
	}
	v.Ledger = &LedgerSide{Stock: stock.Remaining(), Version: stock.Version()}
}

// addGate leaves the side nil where the gate has no record: missing is never zero.
func (v *StockView) addGate(view port.GateView) {
	if !view.Loaded {
		return
	}
	v.Sequence, v.InFlight = &view.Sequence, &view.OpenFlows
	v.Gate = &GateSide{Remaining: view.Remaining, Epoch: view.Epoch, Shut: view.Shut, Server: view.Server}
}
