package oteltrace

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"seckill/domain"
)

// Request begins the span of a request, within its caller's trace if it names one. done ends it with the status of the answer and,
// where it is a problem, its code.
func (t *Tracing) Request(r *http.Request, route string) (ctx context.Context, done func(status int, code string)) {
	ctx = propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, r.Method+" "+route, //nolint:spancheck // done ends it
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", r.Method), attribute.String("http.route", route), attribute.String("url.scheme", "http")))
	return ctx, func(status int, code string) { //nolint:spancheck // as above
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		switch {
		case code == "":
		case status >= http.StatusInternalServerError:
			failAs(span, code)
		default: // the caller's fault is none of the server's
			span.SetAttributes(attribute.String("error.type", code))
		}
		span.End()
	}
}

// Awaits makes the request's span, which ctx is in, known to the batches that its purchase will be part of, until done.
func (t *Tracing) Awaits(ctx context.Context, key domain.Key) (done func()) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return func() {}
	}
	span.SetAttributes(attribute.String("seckill.product", key.Product()), attribute.String("seckill.user", key.User()),
		attribute.String("seckill.token", key.Token()))
	own := span.SpanContext()
	t.waiting.Store(key, &own) // a twin of the request takes its place, and only its own goes
	return func() { t.waiting.CompareAndDelete(key, &own) }
}
