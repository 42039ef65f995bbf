package oteltrace

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Request begins the span of a request, within its caller's trace if it names one. done ends it with the status of the answer and,
// where it is a problem, its code.
func (t *Tracing) Request(r *http.Request, route string) (ctx context.Context, done func(status int, code string)) {
	ctx = propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, r.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("http.route", route), attribute.String("url.scheme", "http")))
	return ctx, func(status int, code string) {
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
