package application

import (
	"context"

	"seckill/application/port"
	"seckill/domain"
)

// ConfirmDeductions is the local transaction: are the flows of a half message at the gate?
type ConfirmDeductions struct{ gate port.Gate }

// NewConfirmDeductions wires the use case.
func NewConfirmDeductions(gate port.Gate) *ConfirmDeductions { return &ConfirmDeductions{gate} }

// Confirm changes nothing. A batch is committed when any of its flows is alive, since the consumer
// decides one by one; what the gate does not have, it may have lost, and that is unknown.
func (c *ConfirmDeductions) Confirm(ctx context.Context, batch domain.Batch) domain.Verdict {
	switch batch.Kind {
	case domain.BatchDeduct, domain.BatchWithdraw:
		replies, err := c.gate.Check(ctx, keysOf(batch.Items))
		if err != nil {
			return domain.VerdictUnknown
		}
		switch alive, absent := census(replies); {
		case alive:
			return domain.VerdictCommit
		case absent:
			return domain.VerdictUnknown
		}
		return domain.VerdictRollback // every one of them was released or refused
	case domain.BatchWarmup:
		return domain.VerdictRollback
	default:
		return domain.VerdictUnknown // a barrier is left to its check-back
	}
}

func keysOf(items []domain.Deduction) []domain.Key {
	keys := make([]domain.Key, len(items))
	for i, item := range items {
		keys[i] = item.Key
	}
	return keys
}

// census says whether any flow is alive, and whether any is absent. A flow that the gate does have
// counts whatever else the gate has forgotten.
func census(replies []port.CheckReply) (alive, absent bool) {
	for _, r := range replies {
		alive = alive || r.Flow.State().Alive()
		absent = absent || r.Flow.IsZero()
	}
	return alive, absent
}
