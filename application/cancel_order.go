package application

import (
	"context"
	"log/slog"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// tellMax is how long a buyer who cancels waits for the gate to be told; the relay tells it otherwise.
const tellMax = 2 * time.Second

// CancelOrder ends a buyer's own order and gives its units back: the row first, which decides, then the gate.
// Until the gate has heard of it, which takes the relay's few seconds where this does not reach it, the units
// are not on sale, and the same purchase asked again is answered with what the gate knows.
type CancelOrder struct {
	orders *ShowOrder
	ledger port.Ledger
	teller teller
	log    *slog.Logger
	quiet  sparse
}

// NewCancelOrder wires the use case.
func NewCancelOrder(ledger port.Ledger, gate port.Gate, outbox port.Outbox, catalog port.Catalog, suspects Suspects,
	log *slog.Logger) *CancelOrder {
	return &CancelOrder{orders: NewShowOrder(ledger, gate, catalog), ledger: ledger, teller: teller{gate, outbox, suspects}, log: log}
}

// Cancel gives the order as it stands afterwards: cancelled, or rejected where there is nothing to give
// back. A repeat gives the same. Codes: order-not-found, only when nobody has it and nobody may have lost
// it; then no row is left either, so that a purchase with this token which is on its way is not
// blocked. Rebuilding and busy say that nothing was changed, outcome-unknown that the order may be
// cancelled: in all three the same request again tells the truth.
func (c *CancelOrder) Cancel(ctx context.Context, key domain.Key) (OrderView, error) {
	row, flow, err := c.orders.find(ctx, key)
	if err != nil {
		return OrderView{}, err
	}
	if row.IsZero() || row.Status() == domain.OrderConfirmed {
		if row, err = c.decide(ctx, cancellation(row, flow)); err != nil {
			return OrderView{}, err
		}
	}
	if !row.GateTold() {
		c.tell(ctx, row)
	}
	return viewOfRow(row), nil
}

func (c *CancelOrder) decide(ctx context.Context, claim port.FateClaim) (domain.Order, error) {
	rows, err := c.ledger.Cancel(ctx, []port.FateClaim{claim})
	if domain.CodeOf(err) == domain.CodeUnavailable {
		err = domain.NewError(domain.CodeOutcomeUnknown, "whether the order is cancelled is not known yet; cancel it again", err)
	}
	if err != nil {
		return domain.Order{}, err
	}
	return rows[0], nil
}

// tell outlives the caller. What it does not bring about the relay does, so it changes nothing for the buyer.
func (c *CancelOrder) tell(ctx context.Context, row domain.Order) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellMax)
	defer cancel()
	if err := c.teller.tell(ctx, []domain.Order{row}); err != nil && c.quiet.pass() {
		c.log.WarnContext(ctx, "a cancelled order could not be marked as told; the relay tells it again",
			"event", "mark_told_failed", "error", err)
	}
}

// cancellation claims the end of an order that is confirmed, or of a flow that has no row yet.
func cancellation(row domain.Order, flow domain.Flow) port.FateClaim {
	if !row.IsZero() {
		return port.FateClaim{Key: row.Key(), Quantity: row.Quantity(), Status: domain.OrderCancelled, Epoch: row.Epoch(),
			Sequence: row.Sequence(), Attempt: row.Attempt()}
	}
	return port.FateClaim{Key: flow.Key(), Quantity: flow.Quantity(), Status: domain.OrderCancelled, Epoch: flow.Epoch(),
		Sequence: flow.Sequence(), Attempt: flow.Attempt()}
}
