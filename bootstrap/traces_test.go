package bootstrap

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/fx"
	"google.golang.org/protobuf/proto"

	"seckill/adapters/oteltrace"
	"seckill/application/port"
	"seckill/domain"
)

const callerTrace = "0af7651916cd43dd8448eb211c80319c"

// buyOnce serves an embedded sale, buys one unit within the caller's trace, waits for the order, and stops.
func buyOnce(t *testing.T, more ...fx.Option) {
	t.Helper()
	c := DefaultConfig()
	c.Data, c.HTTP.Addr, c.Admin.Addr = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	app, err := NewApp(c, slog.New(slog.DiscardHandler), more...)
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	sale, err := domain.NewSale("p1", 5, time.Time{}, time.Time{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := app.OpenSale.Open(t.Context(), sale, port.Audit{Actor: "op", Action: "open-sale"}); err != nil {
		t.Fatal(err)
	}
	token, err := app.Tokens.Issue("alice", []string{"order:create", "order:read"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, app.BuyersURL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k1")
		r.Header.Set("traceparent", "00-"+callerTrace+"-b7ad6b7169203331-01")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		answer, _ := io.ReadAll(res.Body)
		return string(answer)
	}
	ask("GET", "/healthz", "")
	if got := ask("POST", "/api/v1/products/p1/orders", `{"quantity":1}`); !strings.Contains(got, `"pending"`) {
		t.Errorf("the purchase is answered %s", got)
	}
	if got := ask("GET", "/api/v1/products/p1/orders/k1?wait=30s", ""); !strings.Contains(got, `"confirmed"`) {
		t.Fatalf("the order stands as %s", got)
	}
	ask("GET", "/api/v1/products/p1/orders/nobodys", "")
	if err := app.Stop(); err != nil {
		t.Fatal(err)
	}
}

// connected gives the names of the spans that one is joined to, over parents and links in either direction.
func connected(spans []sdktrace.ReadOnlySpan, from sdktrace.ReadOnlySpan) []string {
	joined := map[trace.SpanID][]trace.SpanID{}
	join := func(a, b trace.SpanID) { joined[a], joined[b] = append(joined[a], b), append(joined[b], a) }
	byID := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, s := range spans {
		own := s.SpanContext().SpanID()
		byID[own] = s
		if s.Parent().IsValid() && !s.Parent().IsRemote() || s.Parent().TraceID().String() != callerTrace {
			join(own, s.Parent().SpanID())
		}
		for _, l := range s.Links() {
			join(own, l.SpanContext.SpanID())
		}
	}
	delete(joined, trace.SpanID{})
	var names []string
	seen := map[trace.SpanID]bool{from.SpanContext().SpanID(): true}
	for todo := []trace.SpanID{from.SpanContext().SpanID()}; len(todo) > 0; todo = todo[1:] {
		if s := byID[todo[0]]; s != nil {
			names = append(names, s.Name())
		}
		for _, next := range joined[todo[0]] {
			if !seen[next] && next.IsValid() {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return names
}

func TestAPurchaseIsOneConnectedSetOfSpans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	tracing := oteltrace.New(oteltrace.Config{Database: "sqlite", Topic: "seckill_topic", ConsumerGroup: "seckill_consumer_group"},
		sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	buyOnce(t, fx.Decorate(func(*oteltrace.Tracing) *oteltrace.Tracing { return tracing }))
	spans := recorder.Ended()
	at := slices.IndexFunc(spans, func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "POST /api/v1/products/{productId}/orders" })
	if at < 0 {
		t.Fatal("the request has no span")
	}
	request := spans[at]
	if request.SpanContext().TraceID().String() != callerTrace {
		t.Errorf("the caller's trace is not gone on with: %s", request.SpanContext().TraceID())
	}
	names := connected(spans, request)
	for _, want := range []string{"deduct redis", "send seckill_topic", "confirm seckill_topic", "check redis", "process seckill_topic", "apply sqlite", "tell redis"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not joined to the request, but %v", want, names)
		}
	}
	said := map[string]string{}
	for _, s := range spans {
		for _, a := range s.Attributes() {
			said[s.Name()+" "+string(a.Key)] = a.Value.String()
		}
		if strings.Contains(s.Name(), "healthz") {
			t.Error("a probe has a span")
		}
	}
	for what, want := range map[string]string{
		"POST /api/v1/products/{productId}/orders http.route":                "/api/v1/products/{productId}/orders",
		"POST /api/v1/products/{productId}/orders http.response.status_code": "202",
		"POST /api/v1/products/{productId}/orders seckill.user":              "alice",
		"GET /api/v1/products/{productId}/orders/{token} error.type":         "order-not-found",
		"send seckill_topic messaging.system":                                "rocketmq",
		"process seckill_topic messaging.consumer.group.name":                "seckill_consumer_group",
		"apply sqlite db.system.name":                                        "sqlite",
		"deduct redis seckill.accepted":                                      "1",
	} {
		if said[what] != want {
			t.Errorf("%s is %q, want %q", what, said[what], want)
		}
	}
}

// OTEL_* alone turn it on; what was done last is sent before the process ends.
func TestTracesGoWhereTheEnvironmentSays(t *testing.T) {
	named := make(chan string, 10_000)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &sent); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		for _, of := range sent.GetResourceSpans() {
			for _, a := range of.GetResource().GetAttributes() {
				named <- a.GetKey() + "=" + a.GetValue().GetStringValue()
			}
			for _, scope := range of.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					named <- s.GetName()
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_SERVICE_NAME", "shop")
	buyOnce(t)
	close(named)
	var all []string
	for name := range named {
		all = append(all, name)
	}
	for _, want := range []string{"service.name=shop", "POST /api/v1/products/{productId}/orders", "process seckill_topic", "apply sqlite"} {
		if !slices.Contains(all, want) {
			t.Errorf("%s did not arrive, but %v", want, all)
		}
	}
}

// Without an endpoint there is no tracer, so that a request and a batch cost what they cost without one.
func TestNothingIsTracedWithoutAnEndpoint(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"no endpoint": {}, "disabled": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"no exporter": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		if oteltrace.Enabled(func(key string) string { return env[key] }) {
			t.Errorf("%s: on", name)
		}
	}
	for key := range map[string]bool{"OTEL_EXPORTER_OTLP_ENDPOINT": true, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": true} {
		t.Setenv(key, "")
	}
	tracing, err := oteltrace.FromEnvironment(oteltrace.Config{})
	if tracing != nil || err != nil {
		t.Fatalf("%v %v", tracing, err)
	}
	var handler port.DeliveryHandler = untraced{}
	if tracing.Handler(handler) != handler || tracing.Gate(nil) != nil || tracing.Sender(nil) != nil || tracing.Ledger(nil) != nil || tracing.Listener(nil) != nil {
		t.Error("something is wrapped")
	}
}

type untraced struct{}

func (untraced) Handle(context.Context, []port.Delivery) error { return nil }
