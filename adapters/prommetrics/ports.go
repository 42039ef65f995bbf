package prommetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/application/port"
	"seckill/domain"
)

// The words for outcomes, by their number in the port.
var (
	gateOutcomes = []string{port.DeductUnknown: "unknown", port.DeductAway: "away", port.DeductRewound: "rewound",
		port.DeductNotLoaded: "not-loaded", port.DeductRepeat: "repeat", port.DeductConflict: "conflict", port.DeductRefused: "refused",
		port.DeductNotReady: "not-ready", port.DeductClosed: "closed", port.DeductLimit: "limit", port.DeductNotEnough: "not-enough",
		port.DeductAccepted: "accepted"}
	tellOutcomes = []string{port.TellUnknown: "unknown", port.TellNotNow: "not-now", port.TellDone: "done", port.TellSuspect: "suspect"}
	sendResults  = []string{port.SendUnknown: "unknown", port.SendCommitted: "committed"}
	verdicts     = []string{"unknown", "commit", "rollback"}
	// Place 0 is what has no outcome; the last one is a row that the stock guard refused.
	applyOutcomes = []string{"none", port.Applied: "applied", port.Met: "met", port.Straggler: "straggler", port.Deferred: "deferred",
		port.UnknownProduct: "unknown-product", applyRejected: "rejected"}
)

const applyRejected = port.UnknownProduct + 1

func since(h prometheus.Histogram, begun time.Time) { h.Observe(time.Since(begun).Seconds()) }

// Gate counts what goes through a gate.
func (m *Metrics) Gate(inner port.Gate) port.Gate { return gate{inner, m} }

type gate struct {
	port.Gate
	m *Metrics
}

func (g gate) Deduct(ctx context.Context, now time.Time, items []port.DeductItem) []port.DeductReply {
	begun := time.Now()
	replies := g.Gate.Deduct(ctx, now, items)
	since(g.m.gateTime, begun)
	g.m.gateBatch.Observe(float64(len(items)))
	var counts [port.DeductAccepted + 1]int
	for _, r := range replies {
		counts[min(r.Outcome, port.DeductAccepted)]++
	}
	g.m.gateOutcomes.addAll(counts[:])
	return replies
}

func (g gate) Tell(ctx context.Context, fates []domain.Fate) []port.TellOutcome {
	outcomes := g.Gate.Tell(ctx, fates)
	var counts [port.TellSuspect + 1]int
	for _, o := range outcomes {
		counts[min(o, port.TellSuspect)]++
	}
	g.m.tells.addAll(counts[:])
	return outcomes
}

func (c counters) addAll(counts []int) {
	for place, n := range counts {
		if n > 0 {
			c.add(place, n)
		}
	}
}

// Sender counts what is sent.
func (m *Metrics) Sender(inner port.Sender) port.Sender { return sender{inner, m} }

type sender struct {
	port.Sender
	m *Metrics
}

func (s sender) Send(ctx context.Context, batch domain.Batch) (port.SendResult, error) {
	begun := time.Now()
	result, err := s.Sender.Send(ctx, batch)
	since(s.m.halfTime, begun)
	s.m.halfBatch.Observe(float64(len(batch.Items)))
	s.m.halves.add(int(result), 1)
	return result, err
}

// Listener counts the answers to the broker.
func (m *Metrics) Listener(inner port.TransactionListener) port.TransactionListener {
	return listener{inner, m}
}

type listener struct {
	port.TransactionListener
	m *Metrics
}

func (l listener) Confirm(ctx context.Context, batch domain.Batch) domain.Verdict {
	verdict := l.TransactionListener.Confirm(ctx, batch)
	l.m.localTransactions.add(verdictPlace(verdict), 1)
	return verdict
}

func (l listener) Resolve(ctx context.Context, batch domain.Batch) domain.Verdict {
	verdict := l.TransactionListener.Resolve(ctx, batch)
	l.m.checkBacks.add(verdictPlace(verdict), 1)
	return verdict
}

func verdictPlace(v domain.Verdict) int {
	switch v {
	case domain.VerdictCommit:
		return 1
	case domain.VerdictRollback:
		return 2
	default:
		return 0
	}
}

// Ledger counts what is applied; clock tells how long that took a purchase.
func (m *Metrics) Ledger(inner port.Ledger, clock port.Clock) port.Ledger {
	return ledger{inner, clock, m}
}

type ledger struct {
	port.Ledger
	clock port.Clock
	m     *Metrics
}

func (l ledger) Apply(ctx context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
	begun := time.Now()
	result, err := l.Ledger.Apply(ctx, items)
	since(l.m.applyTime, begun)
	l.m.applyBatch.Observe(float64(len(items)))
	if err != nil {
		l.m.applyFailures.Inc()
		return result, err
	}
	now := l.clock.Now()
	var counts [applyRejected + 1]int
	for i, r := range result.Replies {
		outcome := min(r.Outcome, port.UnknownProduct)
		if outcome == port.Applied {
			if r.Order.Status() == domain.OrderRejected {
				outcome = applyRejected
			} else if at := items[i].Deduction.At; !at.IsZero() {
				l.m.confirmTime.Observe(max(0, now.Sub(at).Seconds()))
			}
		}
		counts[outcome]++
	}
	l.m.applied.addAll(counts[:])
	return result, nil
}
