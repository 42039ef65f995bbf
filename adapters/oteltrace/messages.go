package oteltrace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

// message is a span around what is done with messages, named as the conventions say.
func (t *Tracing) message(ctx context.Context, operation, kind string, spanKind trace.SpanKind, count int, links []trace.Link) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, operation+" "+t.cfg.Topic, //nolint:spancheck // the caller ends it
		trace.WithSpanKind(spanKind), trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("messaging.system", "rocketmq"), attribute.String("messaging.operation.name", operation),
			attribute.String("messaging.operation.type", kind), attribute.String("messaging.destination.name", t.cfg.Topic),
			attribute.Int("messaging.batch.message_count", count)))
}

// Sender traces what is sent; the adapter puts the span's context into the message.
func (t *Tracing) Sender(inner port.Sender) port.Sender {
	if t == nil {
		return inner
	}
	return sender{inner, t}
}

type sender struct {
	port.Sender
	t *Tracing
}

func (s sender) Send(ctx context.Context, batch domain.Batch) (port.SendResult, error) {
	key := func(i int) domain.Key { return batch.Items[i].Key }
	ctx, span := s.t.message(ctx, "send", "send", trace.SpanKindProducer, 1, s.t.requests(len(batch.Items), key))
	defer span.End()
	result, err := s.Sender.Send(ctx, batch)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("messaging.rocketmq.message.keys", batch.ID), attribute.Int("seckill.flows", len(batch.Items)),
			products(len(batch.Items), key))
	}
	if result != port.SendCommitted {
		failAs(span, string(domain.CodeOutcomeUnknown))
	}
	return result, err
}

// Listener traces what the broker asks about half messages, under the span that sent them.
func (t *Tracing) Listener(inner port.TransactionListener) port.TransactionListener {
	if t == nil {
		return inner
	}
	return listener{inner, t}
}

type listener struct {
	inner port.TransactionListener
	t     *Tracing
}

func (l listener) Confirm(ctx context.Context, batch domain.Batch) domain.Verdict {
	return l.ask(ctx, "confirm", batch, l.inner.Confirm)
}

func (l listener) Resolve(ctx context.Context, batch domain.Batch) domain.Verdict {
	return l.ask(ctx, "resolve", batch, l.inner.Resolve)
}

func (l listener) ask(ctx context.Context, question string, batch domain.Batch, listen func(context.Context, domain.Batch) domain.Verdict) domain.Verdict {
	ctx, span := l.t.message(ctx, question, "settle", trace.SpanKindInternal, 1, nil)
	defer span.End()
	verdict := listen(ctx, batch)
	span.SetAttributes(attribute.String("seckill.verdict", verdict.String()))
	return verdict
}

// Handler traces what is delivered, linked to each message's send.
func (t *Tracing) Handler(inner port.DeliveryHandler) port.DeliveryHandler {
	if t == nil {
		return inner
	}
	return handler{inner, t}
}

type handler struct {
	inner port.DeliveryHandler
	t     *Tracing
}

func (h handler) Handle(ctx context.Context, deliveries []port.Delivery) error {
	var links []trace.Link
	for _, d := range deliveries {
		if sent := trace.SpanContextFromContext(wire.WithTrace(context.Background(), d.Origin.Trace)); sent.IsValid() && len(links) < linksMax {
			links = append(links, trace.Link{SpanContext: sent})
		}
	}
	ctx, span := h.t.message(ctx, "process", "process", trace.SpanKindConsumer, len(deliveries), links)
	defer span.End()
	span.SetAttributes(attribute.String("messaging.consumer.group.name", h.t.cfg.ConsumerGroup))
	err := h.inner.Handle(ctx, deliveries)
	fail(span, err)
	return err
}
