package wire

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// TraceProperty is the message property that carries the W3C trace context of whoever sent it.
const TraceProperty = "traceparent"

// TraceOf is the W3C trace context that ctx is in; empty where it is in none.
func TraceOf(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[TraceProperty]
}

// WithTrace puts ctx into the trace context that a message carries; one that is empty or no such context changes nothing.
func WithTrace(ctx context.Context, carried string) context.Context {
	if carried == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{TraceProperty: carried})
}
