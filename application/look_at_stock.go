package application

import (
	"context"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Bounds of a look: beyond them a product counts as moving.
const (
	lookPage     = 500
	untoldMax    = 5_000 // untold rows of all products that are gone through for one product
	lookTriesMax = 3
	lookPause    = 100 * time.Millisecond // between two looks that should agree
)

// StockEyes are the ports that it takes to see both sides of a product.
type StockEyes struct {
	Catalog port.Catalog
	Gate    port.Gate
	Admin   port.GateAdmin
	Flows   port.OpenFlows
	Ledger  port.Ledger
	Outbox  port.Outbox
}

// stockLook is one look at both sides of a product.
type stockLook struct {
	stock  domain.Stock
	view   port.GateView
	counts domain.Counts
	newest time.Time // of the open flows without a row; zero: there are none
	whole  bool      // everything that is on its way was counted
}

// sound reports whether the gate's numbers mean anything.
func (l stockLook) sound() bool {
	return l.view.Loaded && l.view.SameServer && !l.view.Rewound && l.view.Building == 0 &&
		l.stock.State() == domain.SaleOpen && l.view.Epoch == l.stock.Epoch()
}

// look reads the gate's record, the stock row, and then what is on its way. openMax bounds the open
// flows that are gone through. CodeProductNotFound where the ledger has no such product.
func (e StockEyes) look(ctx context.Context, product string, openMax int64) (l stockLook, err error) {
	views, err := e.Admin.View(ctx, []string{product})
	if err != nil {
		return l, err
	}
	stocks, err := e.Catalog.Stocks(ctx, []string{product})
	if err != nil {
		return l, err
	}
	if stocks[0].IsZero() {
		return l, domain.NewError(domain.CodeProductNotFound, product, nil)
	}
	l.stock, l.view, l.whole = stocks[0], views[0], true
	l.counts = countsOf(l.stock, l.view)
	if l.view.OpenFlows > openMax {
		l.whole = false
		return l, nil
	}
	if err := e.countOpen(ctx, &l); err != nil {
		return l, err
	}
	return l, e.countUntold(ctx, &l)
}

// glance reads records and stock rows of a page of products; a look is whole where nothing is open.
func (e StockEyes) glance(ctx context.Context, after string, limit int) ([]stockLook, error) {
	stocks, err := e.Catalog.List(ctx, after, limit)
	if err != nil || len(stocks) == 0 {
		return nil, err
	}
	views, err := e.Admin.View(ctx, productsOf(stocks))
	if err != nil {
		views = make([]port.GateView, len(stocks))
	}
	looks := make([]stockLook, len(stocks))
	for i, stock := range stocks {
		looks[i] = stockLook{stock: stock, view: views[i], whole: views[i].OpenFlows == 0, counts: countsOf(stock, views[i])}
	}
	return looks, nil
}

func countsOf(stock domain.Stock, view port.GateView) domain.Counts {
	return domain.Counts{Product: stock.Product(), GateRemaining: view.Remaining, LedgerStock: stock.Remaining(),
		Version: stock.Version(), Epoch: view.Epoch, Sequence: view.Sequence}
}

// countOpen sums the open flows that have no row, up to the sequence that was seen first.
func (e StockEyes) countOpen(ctx context.Context, l *stockLook) error {
	if l.view.OpenFlows == 0 {
		return nil
	}
	for after := int64(0); ; {
		flows, err := e.Flows.Page(ctx, l.stock.Product(), after, lookPage)
		if err != nil || len(flows) == 0 {
			return err
		}
		orders, err := e.Ledger.Fates(ctx, keysOfFlows(flows))
		if err != nil {
			return err
		}
		for i, o := range orders {
			if !o.IsZero() {
				continue
			}
			l.counts.OpenUnits += flows[i].Quantity()
			if at := flows[i].At(); at.After(l.newest) {
				l.newest = at
			}
		}
		after = flows[len(flows)-1].Sequence()
		if len(flows) < lookPage || after >= l.view.Sequence {
			return nil
		}
	}
}

// countUntold sums what the untold rows of the product will do to the gate.
func (e StockEyes) countUntold(ctx context.Context, l *stockLook) error {
	read := 0
	for after := ""; ; {
		orders, err := e.Outbox.Untold(ctx, 0, after, lookPage)
		if err != nil || len(orders) == 0 {
			return err
		}
		if err := e.countFates(ctx, l, orders); err != nil {
			return err
		}
		read += len(orders)
		if len(orders) < lookPage {
			return nil
		}
		if read >= untoldMax {
			l.whole = false
			return nil
		}
		after = orders[len(orders)-1].ID()
	}
}

func (e StockEyes) countFates(ctx context.Context, l *stockLook, orders []domain.Order) error {
	var mine []domain.Order
	for _, o := range orders {
		if o.Key().Product() == l.stock.Product() {
			mine = append(mine, o)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	replies, err := e.Gate.Check(ctx, keysOfOrders(mine))
	if err != nil {
		return err
	}
	for i, o := range mine {
		l.counts.UntoldUnits += o.Fate().Move(replies[i].Flow.State(), l.view.BaseVersion, l.view.Remaining).Units
	}
	return nil
}

// drift gives the units that the gate has too much, if two looks agree on them with nothing moving
// between; settled is false while something moves, or the gate is not on sale.
func (e StockEyes) drift(ctx context.Context, product string, openMax int64) (drift int64, last stockLook, settled bool, err error) {
	first, err := e.look(ctx, product, openMax)
	if err != nil {
		return 0, first, false, err
	}
	for range lookTriesMax {
		if !first.sound() || !first.whole {
			return 0, first, false, nil
		}
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
			return 0, first, false, ctx.Err()
		}
		second, err := e.look(ctx, product, openMax)
		if err != nil {
			return 0, second, false, err
		}
		if !second.sound() || !second.whole {
			return 0, second, false, nil
		}
		if drift, ok := domain.SettledDrift(first.counts, second.counts); ok {
			return drift, second, true, nil
		}
		first = second
	}
	return 0, first, false, nil
}

func keysOfOrders(orders []domain.Order) []domain.Key {
	keys := make([]domain.Key, len(orders))
	for i, o := range orders {
		keys[i] = o.Key()
	}
	return keys
}
