package faultpoint

import (
	"context"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// pass calls do between the call's two points.
func pass[T any](ctx context.Context, p *Points, call string, do func() T, failed func(error) T) T {
	if err := p.hit(ctx, call+before); err != nil {
		return failed(err)
	}
	v := do()
	if err := p.hit(ctx, call+after); err != nil {
		return failed(err)
	}
	return v
}

// try is pass for a call that has an error.
func try[T any](ctx context.Context, p *Points, call string, do func() (T, error)) (v T, err error) {
	type both struct {
		v   T
		err error
	}
	b := pass(ctx, p, call, func() both { v, err := do(); return both{v, err} }, func(err error) both { return both{err: err} })
	return b.v, b.err
}

// Gate stands before a gate.
func (p *Points) Gate(inner port.Gate) port.Gate { return gate{inner, p} }

type gate struct {
	port.Gate
	p *Points
}

func (g gate) Deduct(ctx context.Context, now time.Time, items []port.DeductItem) []port.DeductReply {
	return pass(ctx, g.p, "deduct", func() []port.DeductReply { return g.Gate.Deduct(ctx, now, items) },
		func(err error) []port.DeductReply {
			replies := make([]port.DeductReply, len(items))
			for i := range replies {
				replies[i].Err = err // the outcome is unknown, which is true at both points
			}
			return replies
		})
}

func (g gate) Tell(ctx context.Context, fates []domain.Fate) []port.TellOutcome {
	return pass(ctx, g.p, "tell", func() []port.TellOutcome { return g.Gate.Tell(ctx, fates) },
		func(error) []port.TellOutcome { return make([]port.TellOutcome, len(fates)) })
}

// Listener stands before a transaction listener.
func (p *Points) Listener(inner port.TransactionListener) port.TransactionListener {
	return listener{inner, p}
}

type listener struct {
	port.TransactionListener
	p *Points
}

func (l listener) Confirm(ctx context.Context, batch domain.Batch) domain.Verdict {
	return pass(ctx, l.p, "confirm", func() domain.Verdict { return l.TransactionListener.Confirm(ctx, batch) },
		func(error) domain.Verdict { return domain.VerdictUnknown })
}

// Sender stands before a sender.
func (p *Points) Sender(inner port.Sender) port.Sender { return sender{inner, p} }

type sender struct {
	port.Sender
	p *Points
}

func (s sender) Send(ctx context.Context, batch domain.Batch) (port.SendResult, error) {
	return try(ctx, s.p, "send", func() (port.SendResult, error) { return s.Sender.Send(ctx, batch) })
}

// Ledger stands before a ledger.
func (p *Points) Ledger(inner port.Ledger) port.Ledger { return ledger{inner, p} }

type ledger struct {
	port.Ledger
	p *Points
}

func (l ledger) Apply(ctx context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
	return try(ctx, l.p, "apply", func() (port.ApplyResult, error) { return l.Ledger.Apply(ctx, items) })
}

func (l ledger) Decide(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	return try(ctx, l.p, "decide", func() ([]domain.Order, error) { return l.Ledger.Decide(ctx, claims) })
}

func (l ledger) Cancel(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	return try(ctx, l.p, "cancel", func() ([]domain.Order, error) { return l.Ledger.Cancel(ctx, claims) })
}

// Outbox stands before an outbox.
func (p *Points) Outbox(inner port.Outbox) port.Outbox { return outbox{inner, p} }

type outbox struct {
	port.Outbox
	p *Points
}

func (o outbox) MarkTold(ctx context.Context, orders []domain.Order) error {
	_, err := try(ctx, o.p, "told", func() (struct{}, error) { return struct{}{}, o.Outbox.MarkTold(ctx, orders) })
	return err
}

// OpenFlows stands before open flows.
func (p *Points) OpenFlows(inner port.OpenFlows) port.OpenFlows { return openFlows{inner, p} }

type openFlows struct {
	port.OpenFlows
	p *Points
}

func (o openFlows) Claim(ctx context.Context, product, holder string, ttl time.Duration) (bool, error) {
	return try(ctx, o.p, "claim", func() (bool, error) { return o.OpenFlows.Claim(ctx, product, holder, ttl) })
}

// GateAdmin stands before a gate's rebuild.
func (p *Points) GateAdmin(inner port.GateAdmin) port.GateAdmin { return gateAdmin{inner, p} }

type gateAdmin struct {
	port.GateAdmin
	p *Points
}

func (g gateAdmin) Prepare(ctx context.Context, product string, epoch int64) (bool, error) {
	return try(ctx, g.p, "prepare", func() (bool, error) { return g.GateAdmin.Prepare(ctx, product, epoch) })
}

func (g gateAdmin) WriteBack(ctx context.Context, product string, epoch int64, orders []domain.Order) (bool, error) {
	return try(ctx, g.p, "write-back", func() (bool, error) { return g.GateAdmin.WriteBack(ctx, product, epoch, orders) })
}

func (g gateAdmin) Rebuild(ctx context.Context, plan port.GatePlan) (bool, error) {
	return try(ctx, g.p, "rebuild", func() (bool, error) { return g.GateAdmin.Rebuild(ctx, plan) })
}

func (g gateAdmin) Open(ctx context.Context, product string, epoch int64) (bool, error) {
	return try(ctx, g.p, "open", func() (bool, error) { return g.GateAdmin.Open(ctx, product, epoch) })
}

// Epochs stands before the ledger's part of a rebuild.
func (p *Points) Epochs(inner port.Epochs) port.Epochs { return epochs{inner, p} }

type epochs struct {
	port.Epochs
	p *Points
}

func (e epochs) Locked(ctx context.Context, product string, epoch int64, do func(port.LockedStock) error) (bool, error) {
	return try(ctx, e.p, "reopen", func() (bool, error) { return e.Epochs.Locked(ctx, product, epoch, do) })
}
