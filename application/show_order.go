package application

import (
	"context"

	"seckill/application/port"
	"seckill/domain"
)

// ShowOrder tells a buyer how an order stands.
type ShowOrder struct {
	ledger  port.Ledger
	gate    port.Gate
	catalog port.Catalog
}

// NewShowOrder wires the use case.
func NewShowOrder(ledger port.Ledger, gate port.Gate, catalog port.Catalog) *ShowOrder {
	return &ShowOrder{ledger, gate, catalog}
}

// Show gives the row's fate; where there is no row yet, what the gate knows. Codes: order-not-found,
// only when nobody has it and nobody may have lost it; rebuilding, when the gate may have;
// busy, when one that could know cannot be asked.
func (s *ShowOrder) Show(ctx context.Context, key domain.Key) (OrderView, error) {
	row, flow, err := s.find(ctx, key)
	switch {
	case err != nil:
		return OrderView{}, err
	case !row.IsZero():
		return viewOfRow(row), nil
	}
	return OrderView{Key: key, Quantity: flow.Quantity(), Status: statusOfFlow(flow.State()), CreatedAt: flow.At()}, nil
}

// find gives the row; where there is none, or the ledger cannot be asked, the flow.
func (s *ShowOrder) find(ctx context.Context, key domain.Key) (row domain.Order, flow domain.Flow, err error) {
	rows, ledgerErr := s.ledger.Fates(ctx, []domain.Key{key})
	if ledgerErr == nil && !rows[0].IsZero() {
		return rows[0], flow, nil
	}
	replies, err := s.gate.Check(ctx, []domain.Key{key})
	if err != nil {
		return row, flow, domain.NewError(domain.CodeBusy, "the order cannot be looked up now", err)
	}
	reply := replies[0]
	switch {
	case !reply.Flow.IsZero():
		return row, reply.Flow, nil
	case ledgerErr != nil:
		return row, flow, domain.NewError(domain.CodeBusy, "the order cannot be looked up now", ledgerErr)
	case !reply.Readable:
		return row, flow, s.unreadable(ctx, key.Product())
	}
	return row, flow, domain.ErrOrderNotFound
}

func viewOfRow(o domain.Order) OrderView {
	return OrderView{Key: o.Key(), Quantity: o.Quantity(), Status: o.Status().String(), CreatedAt: o.CreatedAt()}
}

// unreadable tells a gate that has forgotten the product from a product that never was.
func (s *ShowOrder) unreadable(ctx context.Context, product string) error {
	if stocks, err := s.catalog.Stocks(ctx, []string{product}); err == nil && stocks[0].IsZero() {
		return domain.ErrOrderNotFound
	}
	return errRebuilding
}
