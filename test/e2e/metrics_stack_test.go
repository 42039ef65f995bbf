//go:build stack

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"seckill/test/shop"
)

// scrape reads the service's metrics as Prometheus does; samples are by name and the values of their labels.
func scrape(t *testing.T, s *shop.Shop) map[string]float64 {
	t.Helper()
	a := s.Admin(http.MethodGet, "/metrics", nil)
	if a.Status != http.StatusOK {
		t.Fatalf("metrics: %v", a)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(a.Body)))
	if err != nil {
		t.Fatal(err)
	}
	vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, slices.Collect(maps.Values(families))...)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, v := range vector {
		all[v.Metric.String()] = float64(v.Value)
	}
	return all
}

// waitSamples waits until the metrics say so.
func waitSamples(t *testing.T, s *shop.Shop, want map[string]float64) {
	t.Helper()
	shop.Eventually(t, time.Minute, "metrics", func() (bool, string) {
		got := scrape(t, s)
		for name, v := range want {
			if g, there := got[name]; !there || g != v {
				return false, fmt.Sprintf("%s is %v (there: %v), want %v", name, g, there, v)
			}
		}
		return true, ""
	})
}

// A sale as Prometheus sees it: what buyers were told, both sides of the product, and nothing left over.
func TestMetricsTellOfASale(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, profile string) {
		t.Parallel()
		s := shop.New(t, profile)
		s.Start()
		product := onSale(t, s, 2)
		for _, user := range []string{"a", "b", "c", "a"} {
			s.Buy(t.Context(), product, user, "t", 1)
		}
		of := func(name string) string { return fmt.Sprintf(`%s{product=%q}`, name, product) }
		waitSamples(t, s, map[string]float64{
			`seckill_deductions_total{result="accepted"}`: 2, `seckill_deductions_total{result="not-enough"}`: 1,
			`seckill_deductions_total{result="repeat"}`: 1, `seckill_gate_outcomes_total{outcome="accepted"}`: 2,
			`seckill_apply_outcomes_total{outcome="applied"}`: 2, "seckill_accepted_to_confirmed_seconds_count": 2,
			of("seckill_product_on_sale_units"): 2, of("seckill_product_sold_units"): 2, of("seckill_product_confirmed_units"): 2,
			of("seckill_stock_drift_units"): 0, of("seckill_oversold_units"): 0, of("seckill_product_suspended"): 0,
			"seckill_open_flows": 0, "seckill_consumer_lag_messages": 0, "seckill_consumer_lag_readable": 1, "seckill_parked_messages": 0,
			`http_server_request_duration_seconds_count{http_request_method="POST", http_response_status_code="409", http_route="/api/v1/products/{productId}/orders"}`: 1,
		})
		if a := s.Ask(t.Context(), http.MethodGet, s.Operators()+"/metrics", "", nil); a.Status != http.StatusUnauthorized {
			t.Errorf("without a token: %v", a)
		}
		s.Stop()
	})
}
