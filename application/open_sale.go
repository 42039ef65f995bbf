package application

import (
	"context"
	"fmt"
	"log/slog"

	"seckill/application/port"
	"seckill/domain"
)

// OpenSale puts a product on sale.
type OpenSale struct {
	catalog port.Catalog
	rebuild *RebuildStock
	log     *slog.Logger
}

// NewOpenSale wires the use case.
func NewOpenSale(catalog port.Catalog, rebuild *RebuildStock, log *slog.Logger) *OpenSale {
	return &OpenSale{catalog: catalog, rebuild: rebuild, log: log}
}

// Open puts the sale on record and builds its gate. created is false when the same sale was there
// already; another total or other terms for a known product are CodeProductExists. The total is
// compared with what is on sale now: after a stock change, the sale of the beginning is another one. A gate
// that cannot be built now leaves the product suspended, and is built as soon as it can be.
func (o *OpenSale) Open(ctx context.Context, sale domain.Sale, audit port.Audit) (stock domain.Stock, created bool, err error) {
	stock, created, err = o.catalog.Create(ctx, sale, audit)
	if err != nil {
		return domain.Stock{}, false, err
	}
	if !created {
		if !stock.OffersAsNew(sale) {
			return domain.Stock{}, false, domain.NewError(domain.CodeProductExists,
				fmt.Sprintf("%s is known with other terms", sale.Product()), nil)
		}
		return stock, false, nil
	}
	if err := o.rebuild.BuildNew(ctx, sale.Product()); err != nil {
		o.log.Warn("a new sale has to wait for its gate", "event", "build_late", "product", sale.Product(), "error", err)
		return stock, true, nil
	}
	if now, err := o.catalog.Stocks(ctx, []string{sale.Product()}); err == nil && !now[0].IsZero() {
		stock = now[0]
	}
	return stock, true, nil
}
