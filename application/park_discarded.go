package application

import (
	"context"
	"fmt"
	"log/slog"

	"seckill/application/port"
	"seckill/domain"
)

// ParkDiscarded parks what the broker itself has given up on, so that an operator sees it. The relay
// finishes its flows all the same; a replay then meets their rows.
type ParkDiscarded struct {
	parking port.Parking
	ids     port.IDs
	clock   port.Clock
	reason  port.ParkReason
	log     *slog.Logger
}

var _ port.DeliveryHandler = (*ParkDiscarded)(nil)

// NewParkDiscarded wires the use case for one of the broker's graves; reason names it.
func NewParkDiscarded(parking port.Parking, ids port.IDs, clock port.Clock, reason port.ParkReason, log *slog.Logger) *ParkDiscarded {
	return &ParkDiscarded{parking: parking, ids: ids, clock: clock, reason: reason, log: log}
}

// Handle parks whole messages. Barriers and warm-ups have no worth once they are late.
func (p *ParkDiscarded) Handle(ctx context.Context, deliveries []port.Delivery) error {
	var parked []port.Parked
	for _, d := range deliveries {
		if d.Malformed == "" && (d.Batch.Kind == domain.BatchBarrier || d.Batch.Kind == domain.BatchWarmup) {
			continue
		}
		parked = append(parked, port.Parked{ID: p.ids.Unique(), Reason: p.reason, Detail: clip(detailOf(d), parkedDetailMax),
			Product: onlyProduct(d.Batch.Items), Body: d.Body[:min(len(d.Body), port.ParkedBodyMax)],
			Origin: d.Origin, ParkedAt: p.clock.Now()})
	}
	if len(parked) == 0 {
		return nil
	}
	if err := p.parking.Park(ctx, parked); err != nil {
		return fmt.Errorf("park %d messages that the broker gave up on: %w", len(parked), err)
	}
	for _, m := range parked {
		p.log.WarnContext(ctx, "the broker has given up on a message; it is parked", "event", "parked", "reason", m.Reason,
			"detail", m.Detail, "product", m.Product, "message", m.Origin.MessageID)
	}
	return nil
}

func detailOf(d port.Delivery) string {
	if d.Malformed != "" {
		return d.Malformed
	}
	return fmt.Sprintf("%s message of %d items", d.Batch.Kind, len(d.Batch.Items))
}

// onlyProduct is the product of all items; empty where they have several, or none.
func onlyProduct(items []domain.Deduction) string {
	if len(items) == 0 {
		return ""
	}
	product := items[0].Key.Product()
	for _, item := range items {
		if item.Key.Product() != product {
			return ""
		}
	}
	return product
}
