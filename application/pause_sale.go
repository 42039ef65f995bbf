package application

import (
	"context"
	"log/slog"

	"seckill/application/port"
	"seckill/domain"
)

// PauseSale takes a product off sale, or back on, at an operator's wish.
type PauseSale struct {
	catalog port.Catalog
	gate    port.GateAdmin
	log     *slog.Logger
}

// NewPauseSale wires the use case.
func NewPauseSale(catalog port.Catalog, gate port.GateAdmin, log *slog.Logger) *PauseSale {
	return &PauseSale{catalog: catalog, gate: gate, log: log}
}

// SetPaused writes the wish to the ledger and tells the gate. A gate that cannot be told now is told
// by WatchGates within a second of its return. Unless only is empty, the product must be of that edition.
// CodeProductNotFound, CodeEditionOutdated, CodeUnavailable.
func (p *PauseSale) SetPaused(ctx context.Context, product string, paused bool, only string, audit port.Audit) (domain.Stock, error) {
	stock, err := p.catalog.SetPaused(ctx, product, paused, only, audit)
	if err != nil {
		return domain.Stock{}, err
	}
	if _, err := p.gate.SetTerms(ctx, product, stock.Terms()); err != nil {
		p.log.Warn("the gate has yet to learn the terms of a sale", "event", "terms_late", "product", product, "error", err)
	}
	return stock, nil
}
