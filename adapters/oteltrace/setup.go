package oteltrace

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"seckill/domain"
)

// Config names what spans speak of.
type Config struct {
	Version       string
	Database      string // mysql or sqlite
	Topic         string
	ConsumerGroup string
}

// Tracing makes spans. A nil one makes none, and wraps nothing.
type Tracing struct {
	cfg      Config
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	waiting  sync.Map // domain.Key → *trace.SpanContext of the request that waits for it
}

// Enabled reports whether the environment asks for traces.
func Enabled(env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// FromEnvironment gives what exports by OTLP over HTTP as OTEL_* says, or nil where no endpoint is set. It connects when
// the first spans go out; an endpoint that is away costs spans and nothing else.
func FromEnvironment(cfg Config) (*Tracing, error) {
	if !Enabled(os.Getenv) {
		return nil, nil //nolint:nilnil // a nil Tracing is one that traces nothing
	}
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_*: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(attribute.String("service.name", "seckill"), attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv()) // the last one wins
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return New(cfg, sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))), nil
}

// New traces by provider.
func New(cfg Config, provider *sdktrace.TracerProvider) *Tracing {
	return &Tracing{cfg: cfg, provider: provider, tracer: provider.Tracer("seckill", trace.WithInstrumentationVersion(cfg.Version))}
}

// Stop sends what is left, at most until ctx ends.
func (t *Tracing) Stop(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("the last traces were not sent: %w", err)
	}
	return nil
}

// fail marks a span by the code of what went wrong; nil leaves it as it is.
func fail(span trace.Span, err error) {
	if err != nil {
		failAs(span, string(domain.CodeOf(err)))
	}
}

func failAs(span trace.Span, code string) {
	span.SetAttributes(attribute.String("error.type", code))
	span.SetStatus(codes.Error, code)
}
