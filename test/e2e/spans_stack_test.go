//go:build stack

package e2e

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"seckill/application"
	"seckill/test/shop"
)

// collected is what a service has exported.
type collected struct {
	url string
	mu  sync.Mutex
	all []*spans.Span
}

func collect(t *testing.T) *collected {
	t.Helper()
	c := &collected{}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("%s: %v, %d bytes", r.URL.Path, err, len(body))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range sent.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				c.all = append(c.all, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(receiver.Close)
	c.url = receiver.URL
	return c
}

// joined are the names of the spans that one is joined to, over parents and links in either direction.
func (c *collected) joined(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.all, func(s *spans.Span) bool { return s.GetName() == name })
	if at < 0 {
		return nil
	}
	known := map[string]bool{string(c.all[at].GetSpanId()): true}
	names := []string{name}
	for grown, found := true, map[int]bool{at: true}; grown; {
		grown = false
		for i, s := range c.all {
			ends := []string{string(s.GetSpanId()), string(s.GetParentSpanId())}
			for _, l := range s.GetLinks() {
				ends = append(ends, string(l.GetSpanId()))
			}
			if found[i] || !slices.ContainsFunc(ends, func(id string) bool { return id != "" && known[id] }) {
				continue
			}
			found[i], grown = true, true
			names = append(names, s.GetName())
			for _, id := range ends {
				known[id] = known[id] || id != ""
			}
		}
	}
	return names
}

// The built service on real servers: what is bought is one connected set of spans across HTTP, gate, broker, consumer
// and ledger, within the caller's trace.
func TestAPurchaseIsFollowedByItsSpans(t *testing.T) {
	onBoth(t, func(t *testing.T, profile string) {
		c := collect(t)
		s := shop.New(t, profile, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url)
		s.Start()
		product := onSale(t, s, 10)
		const caller = "0af7651916cd43dd8448eb211c80319c"
		const route = "POST /api/v1/products/{productId}/orders"
		a := s.Ask(t.Context(), http.MethodPost, s.Buyers()+"/api/v1/products/"+product+"/orders", s.Token("alice"),
			`{"quantity":1}`, "Idempotency-Key", "t1", "traceparent", "00-"+caller+"-b7ad6b7169203331-01")
		if !a.Accepted() {
			t.Fatal(a)
		}
		s.WaitOrder(product, "alice", "t1", application.OrderConfirmed)
		s.Stop() // sends what has not been sent yet
		want := []string{"deduct redis", "check redis", "tell redis"}
		for _, role := range []string{"send", "confirm", "process"} {
			want = append(want, role+" "+cmp.Or(s.Topic, "seckill_topic"))
		}
		want = append(want, "apply "+map[string]string{shop.Embedded: "sqlite", shop.Stack: "mysql"}[profile])
		shop.Eventually(t, time.Minute, "every span has come", func() (bool, string) {
			got := c.joined(route)
			missing := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return slices.Contains(got, name) })
			return len(missing) == 0, fmt.Sprintf("%v are not joined, but %v", missing, got)
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, span := range c.all {
			if span.GetName() == route && hex.EncodeToString(span.GetTraceId()) != caller {
				t.Errorf("the caller's trace is not gone on with: %x", span.GetTraceId())
			}
		}
	})
}
