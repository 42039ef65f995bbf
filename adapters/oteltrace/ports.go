package oteltrace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"seckill/application/port"
	"seckill/domain"
)

const (
	linksMax = 128 // of one span; the SDK keeps no more by default
	idsMax   = 16  // products named by one span
)

// requests gives links to the requests that wait for these keys.
func (t *Tracing) requests(n int, key func(int) domain.Key) []trace.Link {
	var links []trace.Link
	for i := range n {
		if own, there := t.waiting.Load(key(i)); there && len(links) < linksMax {
			links = append(links, trace.Link{SpanContext: *own.(*trace.SpanContext)})
		}
	}
	return links
}

// call is a span around one call of a server.
func (t *Tracing) call(ctx context.Context, system, operation string, size int, links []trace.Link) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, operation+" "+system, //nolint:spancheck // the caller ends it
		trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("db.system.name", system), attribute.String("db.operation.name", operation),
			attribute.String("db.query.summary", operation), attribute.Int("db.operation.batch.size", size)))
}

func products(n int, key func(int) domain.Key) attribute.KeyValue {
	var named []string
	seen := map[string]bool{}
	for i := 0; i < n && len(named) < idsMax; i++ {
		if p := key(i).Product(); !seen[p] {
			seen[p] = true
			named = append(named, p)
		}
	}
	return attribute.StringSlice("seckill.products", named)
}

// Gate traces the calls of a gate that sell.
func (t *Tracing) Gate(inner port.Gate) port.Gate {
	if t == nil {
		return inner
	}
	return gate{inner, t}
}

type gate struct {
	port.Gate
	t *Tracing
}

func (g gate) Deduct(ctx context.Context, now time.Time, items []port.DeductItem) []port.DeductReply {
	key := func(i int) domain.Key { return items[i].Command.Key() }
	ctx, span := g.t.call(ctx, "redis", "deduct", len(items), g.t.requests(len(items), key))
	defer span.End()
	replies := g.Gate.Deduct(ctx, now, items)
	if !span.IsRecording() {
		return replies
	}
	accepted := 0
	for _, r := range replies {
		switch r.Outcome {
		case port.DeductAccepted:
			accepted++
		case port.DeductUnknown:
			failAs(span, string(domain.CodeOutcomeUnknown))
		case port.DeductAway:
			failAs(span, string(domain.CodeUnavailable))
		default:
		}
	}
	span.SetAttributes(products(len(items), key), attribute.Int("seckill.accepted", accepted))
	return replies
}

func (g gate) Check(ctx context.Context, keys []domain.Key) ([]port.CheckReply, error) {
	ctx, span := g.t.call(ctx, "redis", "check", len(keys), nil)
	defer span.End()
	replies, err := g.Gate.Check(ctx, keys)
	fail(span, err)
	return replies, err
}

func (g gate) Tell(ctx context.Context, fates []domain.Fate) []port.TellOutcome {
	ctx, span := g.t.call(ctx, "redis", "tell", len(fates), nil)
	defer span.End()
	outcomes := g.Gate.Tell(ctx, fates)
	for _, o := range outcomes {
		if o == port.TellUnknown {
			failAs(span, string(domain.CodeUnavailable))
		}
	}
	return outcomes
}

// Ledger traces the calls of a ledger that decide.
func (t *Tracing) Ledger(inner port.Ledger) port.Ledger {
	if t == nil {
		return inner
	}
	return ledger{inner, t}
}

type ledger struct {
	port.Ledger
	t *Tracing
}

func (l ledger) Apply(ctx context.Context, items []port.ApplyItem) (port.ApplyResult, error) {
	ctx, span := l.t.call(ctx, l.t.cfg.Database, "apply", len(items), nil)
	defer span.End()
	result, err := l.Ledger.Apply(ctx, items)
	if span.IsRecording() {
		span.SetAttributes(products(len(items), func(i int) domain.Key { return items[i].Deduction.Key }))
	}
	fail(span, err)
	return result, err
}

func (l ledger) Fates(ctx context.Context, keys []domain.Key) ([]domain.Order, error) {
	ctx, span := l.t.call(ctx, l.t.cfg.Database, "fates", len(keys), nil)
	defer span.End()
	orders, err := l.Ledger.Fates(ctx, keys)
	fail(span, err)
	return orders, err
}

func (l ledger) Decide(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	ctx, span := l.t.call(ctx, l.t.cfg.Database, "decide", len(claims), nil)
	defer span.End()
	orders, err := l.Ledger.Decide(ctx, claims)
	fail(span, err)
	return orders, err
}

func (l ledger) Cancel(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	ctx, span := l.t.call(ctx, l.t.cfg.Database, "cancel", len(claims), nil)
	defer span.End()
	orders, err := l.Ledger.Cancel(ctx, claims)
	fail(span, err)
	return orders, err
}
