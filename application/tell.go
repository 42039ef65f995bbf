package application

import (
	"context"
	"fmt"

	"seckill/application/port"
	"seckill/domain"
)

// teller tells the gate the fates of rows and notes what it acknowledged.
type teller struct {
	gate     port.Gate
	outbox   port.Outbox
	suspects Suspects
}

// tell gives the gate the fates of orders in one call and marks those that it acknowledged and that
// were not marked yet. What was not acknowledged stays in the outbox. The error has
// domain.CodeUnavailable: the marks are missing, and telling again changes nothing at the gate.
func (t teller) tell(ctx context.Context, orders []domain.Order) error {
	if len(orders) == 0 {
		return nil
	}
	fates := make([]domain.Fate, len(orders))
	for i, o := range orders {
		fates[i] = o.Fate()
	}
	told := make([]domain.Order, 0, len(orders))
	outcomes := t.gate.Tell(ctx, fates)
	for i, o := range orders {
		if outcomes[i] == port.TellSuspect {
			t.suspects.Suspect(o.Key().Product(), "the gate and an order's fate disagree")
		}
		if (outcomes[i] == port.TellDone || outcomes[i] == port.TellSuspect) && !o.GateTold() {
			told = append(told, o)
		}
	}
	if len(told) == 0 {
		return nil
	}
	if err := t.outbox.MarkTold(ctx, told); err != nil {
		return fmt.Errorf("mark %d orders as told: %w", len(told), err)
	}
	return nil
}
