package prommetrics

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

var update = flag.Bool("update", false, "write the list of metrics anew")

func ptr[T any](v T) *T { return &v }

// full is a survey that has read everything.
func full() application.Survey {
	p := application.SurveyedProduct{Product: "p", Total: 10, Stock: 6, Remaining: ptr[int64](5), OpenFlows: ptr[int64](1),
		Suspended: true, Drift: ptr[int64](-2), Oversold: ptr[int64](3)}
	return application.Survey{At: time.Now(), Products: []application.SurveyedProduct{p}, Others: &p, Count: ptr[int64](104),
		OpenFlows: ptr[int64](1), OldestOpen: ptr(1500 * time.Millisecond), LagMessages: ptr[int64](7), Untold: ptr[int64](0),
		Parked: ptr[int64](2), BooksRead: true}
}

// watching is the registry with every source.
func watching(survey application.Survey) *Metrics {
	m := New("v1.2.3")
	m.Watch(Sources{
		Lane:    func() application.LaneStats { return application.LaneStats{Waiting: 4, Full: 2} },
		Settle:  func() application.SettleStats { return application.SettleStats{Groups: 3, Rows: 9, Parked: 1} },
		Rebuild: func() application.RebuildStats { return application.RebuildStats{} },
		Relay:   func() application.RelayStats { return application.RelayStats{SentAgain: 5} },
		Reconcile: func() application.ReconcileStats {
			return application.ReconcileStats{LastSuccess: time.Unix(1700000000, 0), Found: map[string]int64{application.AnomalyDrift: 1}, Repaired: 1}
		},
		Intake:    func() application.IntakeState { return application.IntakeAway },
		Survey:    func() application.Survey { return survey },
		Ledger:    func() (conflicts, again int64) { return 1, 2 },
		GatePool:  func() (open, idle int64) { return 20, 19 },
		InFlight:  map[string]func() int64{"buyers": func() int64 { return 1 }, "operators": func() int64 { return 0 }},
		Databases: map[string]*sql.DB{"shared": {}},
	})
	m.Route("POST", "/api/v1/products/{productId}/orders")(202, 20*time.Millisecond)
	return m
}

// samples are all samples by name and labels; of a histogram its count and sum.
func samples(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			name := f.GetName() + labelsOf(s)
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				all[name+" count"], all[name+" sum"] = float64(s.GetHistogram().GetSampleCount()), s.GetHistogram().GetSampleSum()
			case dto.MetricType_COUNTER:
				all[name] = s.GetCounter().GetValue()
			default:
				all[name] = s.GetGauge().GetValue()
			}
		}
	}
	return all
}

func labelsOf(s *dto.Metric) string {
	var labels []string
	for _, l := range s.GetLabel() {
		labels = append(labels, l.GetValue())
	}
	if len(labels) == 0 {
		return ""
	}
	return "{" + strings.Join(labels, ",") + "}"
}

func wantSamples(t *testing.T, m *Metrics, want map[string]float64) {
	t.Helper()
	got := samples(t, m)
	for name, v := range want {
		if g, there := got[name]; !there || g != v {
			t.Errorf("%s is %v (there: %v), want %v", name, g, there, v)
		}
	}
}

func TestMetricsKeepPrometheusRules(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(watching(full()).Gatherer())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Two scrapes of a service that runs have the same families, whatever happened between: dashboards find them from the start.
func TestEveryFamilyIsThereFromTheStartButForWhatWasNotRead(t *testing.T) {
	t.Parallel()
	empty, whole := samples(t, watching(application.Survey{})), samples(t, watching(full()))
	for name := range whole {
		perProduct := strings.Contains(name, "{p}") || strings.Contains(name, "{other}")
		read := slices.Contains([]string{"seckill_consumer_lag_messages", "seckill_open_flows", "seckill_untold_orders", "seckill_parked_messages",
			"seckill_products", "seckill_oldest_open_flow_age_seconds"}, name)
		if _, there := empty[name]; there == (perProduct || read) {
			t.Errorf("%s: there without a survey: %v", name, there)
		}
	}
	for _, name := range []string{"consumer_lag", "open_flows", "untold_orders", "parked_messages", "products", "books"} {
		if name = "seckill_" + name + "_readable"; empty[name] != 0 || whole[name] != 1 {
			t.Errorf("%s is %v without and %v with a reading", name, empty[name], whole[name])
		}
	}
}

func TestWhatASurveyReadIsShown(t *testing.T) {
	t.Parallel()
	want := map[string]float64{"seckill_oldest_open_flow_age_seconds": 1.5, "seckill_parked_messages": 2, "seckill_consumer_lag_messages": 7,
		"seckill_intake_state{sends-fail}": 1, "seckill_intake_state{open}": 0, "seckill_lane_full_total": 2,
		"seckill_reconcile_last_success_timestamp_seconds": 1.7e9, "seckill_reconcile_found_total{stock-drift}": 1,
		"seckill_build_info{v1.2.3}": 1, "http_server_active_requests{buyers}": 1}
	for _, product := range []string{"p", "other"} {
		for name, v := range map[string]float64{"seckill_product_sold_units": 5, "seckill_product_confirmed_units": 4, "seckill_product_gate_units": 5,
			"seckill_product_ledger_units": 6, "seckill_product_on_sale_units": 10, "seckill_product_open_flows": 1,
			"seckill_product_suspended": 1, "seckill_stock_drift_units": -2, "seckill_oversold_units": 3} {
			want[name+"{"+product+"}"] = v
		}
	}
	wantSamples(t, watching(full()), want)
}

// The values of every label but these are words of our own.
func TestNoLabelGrowsWithWhatIsAsked(t *testing.T) {
	t.Parallel()
	m := watching(full())
	for _, method := range []string{"BREW", "GET", "get"} {
		m.Route(method, "unmatched")(404, time.Millisecond)
	}
	for _, status := range []int{0, -1, 99, 600, 1 << 40} {
		m.Route("GET", "/healthz")(status, time.Millisecond)
	}
	wantSamples(t, m, map[string]float64{
		"http_server_request_duration_seconds{GET,404,unmatched} count":    1,
		"http_server_request_duration_seconds{_OTHER,404,unmatched} count": 2,
		"http_server_request_duration_seconds{GET,500,/healthz} count":     5,
	})
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				if l.GetName() == "product" && f.GetType() != dto.MetricType_GAUGE {
					t.Errorf("%s has the label product and is no gauge", f.GetName())
				}
			}
		}
	}
}

// fake is every counted port; each gives what it was made with.
type fake struct {
	port.Gate
	port.Ledger
	replies []port.DeductReply
	tells   []port.TellOutcome
	result  port.SendResult
	verdict domain.Verdict
	applied port.ApplyResult
	err     error
}

func (f *fake) Deduct(context.Context, time.Time, []port.DeductItem) []port.DeductReply {
	return f.replies
}
func (f *fake) Tell(context.Context, []domain.Fate) []port.TellOutcome { return f.tells }
func (f *fake) Send(context.Context, domain.Batch) (port.SendResult, error) {
	return f.result, f.err
}
func (f *fake) BatchBytesMax() int                                   { return 1 }
func (f *fake) BytesOf(domain.Deduction) int                         { return 1 }
func (f *fake) Confirm(context.Context, domain.Batch) domain.Verdict { return f.verdict }
func (f *fake) Resolve(context.Context, domain.Batch) domain.Verdict { return f.verdict }
func (f *fake) Apply(context.Context, []port.ApplyItem) (port.ApplyResult, error) {
	return f.applied, f.err
}

type fixedClock time.Time

func (c fixedClock) Now() time.Time { return time.Time(c) }

func TestPortsAreCountedByOutcomeAndPassOnWhatTheySay(t *testing.T) {
	t.Parallel()
	m := watching(full())
	f := &fake{replies: []port.DeductReply{{Outcome: port.DeductAccepted}, {Outcome: port.DeductAccepted}, {Outcome: port.DeductRewound}},
		tells: []port.TellOutcome{port.TellDone, port.TellSuspect}, result: port.SendCommitted, verdict: domain.VerdictCommit}
	gate := m.Gate(f)
	if n := len(gate.Deduct(t.Context(), time.Now(), make([]port.DeductItem, 3))); n != 3 {
		t.Errorf("%d replies", n)
	}
	gate.Tell(t.Context(), make([]domain.Fate, 2))
	batch := domain.Batch{Items: make([]domain.Deduction, 2)}
	if r, err := m.Sender(f).Send(t.Context(), batch); r != port.SendCommitted || err != nil {
		t.Error(r, err)
	}
	f.result, f.err = port.SendUnknown, domain.NewError(domain.CodeUnavailable, "away", nil)
	if r, err := m.Sender(f).Send(t.Context(), batch); r != port.SendUnknown || err == nil {
		t.Error(r, err)
	}
	if v := m.Listener(f).Confirm(t.Context(), batch); v != domain.VerdictCommit {
		t.Error(v)
	}
	f.verdict = domain.VerdictRollback
	m.Listener(f).Resolve(t.Context(), batch)
	wantSamples(t, m, map[string]float64{
		"seckill_gate_outcomes_total{accepted}": 2, "seckill_gate_outcomes_total{rewound}": 1, "seckill_gate_outcomes_total{unknown}": 0,
		"seckill_gate_batch_commands sum": 3, "seckill_gate_deduct_duration_seconds count": 1,
		"seckill_gate_tells_total{done}": 1, "seckill_gate_tells_total{suspect}": 1,
		"seckill_half_messages_total{committed}": 1, "seckill_half_messages_total{unknown}": 1, "seckill_half_batch_flows sum": 4,
		"seckill_local_transactions_total{commit}": 1, "seckill_check_backs_total{rollback}": 1,
	})
}

func TestTheLedgerIsCountedByWhatBecameOfEachDeduction(t *testing.T) {
	t.Parallel()
	now := time.Now()
	order := func(status domain.OrderStatus) domain.Order {
		key, err := domain.NewKey("p", "u", "t")
		if err != nil {
			t.Fatal(err)
		}
		o, err := domain.NewOrder(domain.OrderFields{ID: fmt.Sprintf("%032d", 1), Key: key, Quantity: 1, Status: status, FromBirth: true})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	m := watching(full())
	f := &fake{applied: port.ApplyResult{Replies: []port.ApplyReply{{Outcome: port.Applied, Order: order(domain.OrderConfirmed)},
		{Outcome: port.Applied, Order: order(domain.OrderRejected)}, {Outcome: port.Met, Order: order(domain.OrderConfirmed)}, {Outcome: port.Deferred}}}}
	items := make([]port.ApplyItem, 4)
	items[0].Deduction.At = now.Add(-3 * time.Second)
	ledger := m.Ledger(f, fixedClock(now))
	if r, err := ledger.Apply(t.Context(), items); err != nil || len(r.Replies) != 4 {
		t.Error(r, err)
	}
	f.err = domain.NewError(domain.CodeUnavailable, "away", nil)
	if _, err := ledger.Apply(t.Context(), items); err == nil {
		t.Error("the fault was kept back")
	}
	wantSamples(t, m, map[string]float64{
		"seckill_apply_outcomes_total{applied}": 1, "seckill_apply_outcomes_total{rejected}": 1, "seckill_apply_outcomes_total{met}": 1,
		"seckill_apply_outcomes_total{deferred}": 1, "seckill_apply_failures_total": 1, "seckill_apply_batch_orders sum": 8,
		"seckill_accepted_to_confirmed_seconds count": 1, "seckill_accepted_to_confirmed_seconds sum": 3,
	})
}

func TestTheTextFormSaysWhatItIs(t *testing.T) {
	t.Parallel()
	kind, body, err := watching(full()).Text()
	if err != nil || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("%q %v", kind, err)
	}
	for _, line := range []string{"# TYPE seckill_oversold_units gauge", `seckill_oversold_units{product="p"} 3`, "seckill_consumer_lag_readable 1"} {
		if !strings.Contains(string(body), "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}

//go:generate go test -run TestTheListOfMetricsIsThatOfTheRegistry -update .

const listFile = "../../bootstrap/reference/metrics.md"

// The list is generated: go generate ./adapters/prommetrics.
func TestTheListOfMetricsIsThatOfTheRegistry(t *testing.T) {
	t.Parallel()
	want := listOf(t, watching(full()))
	if *update {
		if err := os.WriteFile(listFile, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(listFile); err != nil || string(got) != want {
		t.Errorf("%s is stale (%v): go generate ./adapters/prommetrics", listFile, err)
	}
}

func listOf(t *testing.T, m *Metrics) string {
	t.Helper()
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString(`# Metrics

Generated from the registry by ` + "`go generate ./adapters/prommetrics`" + `; a test compares. Beside these there are those of the Go runtime
and the process (` + "`go_…`, `process_…`" + `) as every Prometheus client of Go has them. A reading that failed is an absent sample and a
` + "`…_readable`" + ` of 0. The label ` + "`product`" + ` names the first hundred products on sale; the others are added up as ` + "`other`" + `.

| metric | type | labels | |
| --- | --- | --- | --- |
`)
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "go_") && !strings.HasPrefix(f.GetName(), "go_sql_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), labelsIn(f), f.GetHelp())
	}
	return out.String()
}

// labelsIn are the labels of a family, with their words where they have few of their own.
func labelsIn(f *dto.MetricFamily) string {
	values := map[string]map[string]bool{}
	for _, s := range f.GetMetric() {
		for _, l := range s.GetLabel() {
			if values[l.GetName()] == nil {
				values[l.GetName()] = map[string]bool{}
			}
			values[l.GetName()][l.GetValue()] = true
		}
	}
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		label := "`" + name + "`"
		if words := slices.Sorted(maps.Keys(values[name])); len(words) > 1 && name != "product" {
			label += ": " + strings.Join(words, " ")
		}
		labels = append(labels, label)
	}
	return strings.Join(labels, ", ")
}

// What counting costs a batch of 64 purchases, beside the same port without it.
func BenchmarkGate(b *testing.B) {
	inner := &fake{replies: make([]port.DeductReply, 64)}
	items := make([]port.DeductItem, 64)
	for name, gate := range map[string]port.Gate{"bare": inner, "counted": New("").Gate(inner)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				gate.Deduct(context.Background(), time.Time{}, items)
			}
		})
	}
}

// What metering costs a request.
func BenchmarkRoute(b *testing.B) {
	note := New("").Route("POST", "/api/v1/products/{productId}/orders")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			note(202, 20*time.Millisecond)
		}
	})
}
