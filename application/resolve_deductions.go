package application

import (
	"context"
	"log/slog"
	"slices"

	"seckill/application/port"
	"seckill/domain"
)

// A barrier half is asked about twice: its first check-back is left unanswered. What was handed before it to an
// instance that died of the question, or before it could answer, has then been asked about twice, too.
const (
	placeCheckFirst = "check-first"
	placeCheck      = "check" // where a barrier half has passed when its second check-back came
)

// ResolveDeductions is the check-back: the broker has a half message and nobody's word for it.
type ResolveDeductions struct {
	gate     port.Gate
	ledger   port.Ledger
	barriers port.BarrierLog
	suspects Suspects
	clock    port.Clock
	log      *slog.Logger
}

// NewResolveDeductions wires the use case.
func NewResolveDeductions(gate port.Gate, ledger port.Ledger, barriers port.BarrierLog, suspects Suspects,
	clock port.Clock, log *slog.Logger) *ResolveDeductions {
	return &ResolveDeductions{gate, ledger, barriers, suspects, clock, log}
}

// Resolve may be asked by any instance, as often as the broker likes.
func (r *ResolveDeductions) Resolve(ctx context.Context, batch domain.Batch) domain.Verdict {
	switch {
	case batch.Kind == domain.BatchWarmup:
		return domain.VerdictRollback
	case batch.Kind == domain.BatchBarrier:
		return r.barrier(ctx, batch.ID)
	case batch.Kind != domain.BatchDeduct && batch.Kind != domain.BatchWithdraw:
		return domain.VerdictUnknown
	}
	replies, err := r.gate.Check(ctx, keysOf(batch.Items))
	if err != nil {
		return r.unknown(ctx, "the gate could not be asked", err)
	}
	if batch.Plain {
		return r.plain(ctx, batch, replies)
	}
	return r.own(batch, replies)
}

func (r *ResolveDeductions) barrier(ctx context.Context, id string) domain.Verdict {
	places, err := r.barriers.BarrierPlaces(ctx, id)
	if err != nil {
		return r.unknown(ctx, "a barrier could not be looked up", err)
	}
	place, verdict := placeCheckFirst, domain.VerdictUnknown
	if slices.Contains(places, placeCheckFirst) {
		place, verdict = placeCheck, domain.VerdictCommit
	}
	if err := r.barriers.MarkBarrier(ctx, id, place); err != nil {
		return r.unknown(ctx, "a barrier could not be noted", err)
	}
	return verdict
}

// own resolves a message that was sent after its deduct. A flow that is absent was lost, and its
// buyer may have been told "accepted": commit, and let the consumer decide.
func (r *ResolveDeductions) own(batch domain.Batch, replies []port.CheckReply) domain.Verdict {
	for i, reply := range replies {
		// A later epoch was rebuilt without the flow; that loss is known already.
		if item := batch.Items[i]; reply.Flow.IsZero() && reply.Readable && reply.Epoch <= item.Epoch {
			r.suspects.Suspect(item.Key.Product(), "a flow that was deducted is missing")
		}
	}
	if alive, absent := census(replies); alive || absent {
		return domain.VerdictCommit
	}
	return domain.VerdictRollback
}

// plain resolves another producer's message, which claims nothing. Where the gate has no flow, a
// tombstone is written, so that the token cannot be sold after the message was dropped: at the gate first, in the
// step that sees that there is no flow. Were the row first, a buyer with the token could be told "accepted"
// between the two.
func (r *ResolveDeductions) plain(ctx context.Context, batch domain.Batch, replies []port.CheckReply) domain.Verdict {
	if alive, _ := census(replies); alive {
		return domain.VerdictCommit
	}
	var claims []port.FateClaim
	var absent []port.AdoptItem
	for i, reply := range replies {
		switch {
		case !reply.Flow.IsZero():
		case !reply.Readable:
			return domain.VerdictUnknown // absence proves nothing
		default:
			item := batch.Items[i]
			claims = append(claims, rejection(item))
			absent = append(absent, port.AdoptItem{Key: item.Key, Quantity: item.Quantity, Otherwise: port.RefuseAlone})
		}
	}
	if len(claims) == 0 {
		return domain.VerdictRollback
	}
	for _, reply := range r.gate.Adopt(ctx, r.clock.Now(), absent) {
		switch reply.Outcome {
		case port.AdoptRefused:
		case port.AdoptHeld: // bought since it was looked at
			return domain.VerdictCommit
		default:
			return domain.VerdictUnknown
		}
	}
	rows, err := r.ledger.Decide(ctx, claims)
	if err != nil {
		return r.unknown(ctx, "a tombstone could not be written", err)
	}
	verdict := domain.VerdictRollback
	fates := make([]domain.Fate, len(rows))
	for i, row := range rows {
		fates[i] = row.Fate()
		if row.Status() == domain.OrderConfirmed { // so its flow was lost, and a tombstone stands in its place
			verdict = domain.VerdictCommit
			r.suspects.Suspect(row.Key().Product(), "a flow whose order is confirmed is missing")
		}
	}
	r.gate.Tell(ctx, fates) // what is not acknowledged here the relay tells again
	return verdict
}

// rejection claims the fate of a deduction that must not become an order.
func rejection(item domain.Deduction) port.FateClaim {
	return port.FateClaim{Key: item.Key, Quantity: item.Quantity, Status: domain.OrderRejected,
		Epoch: item.Epoch, Sequence: item.Sequence, Attempt: item.Attempt}
}

func (r *ResolveDeductions) unknown(ctx context.Context, why string, err error) domain.Verdict {
	r.log.WarnContext(ctx, "a check-back is left unknown; the broker asks again", "event", "check_unknown", "why", why, "error", err)
	return domain.VerdictUnknown
}
