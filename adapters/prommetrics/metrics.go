package prommetrics

import (
	"bytes"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// Metrics is the service's registry, with what is counted as it happens.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec

	gateTime, gateBatch, halfTime, halfBatch, applyTime, applyBatch, confirmTime prometheus.Histogram
	gateOutcomes, tells, halves, localTransactions, checkBacks, applied          counters
	applyFailures                                                                prometheus.Counter
}

// Buckets in seconds, of a request and of a step within it; and of things in a batch.
var (
	requestSeconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	stepSeconds    = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	confirmSeconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	batchSizes     = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)

// New makes the registry; version is shown as seckill_build_info.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.requests = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "http_server_request_duration_seconds",
		Help: "Time from a request's routing to its answer, by route template.", Buckets: requestSeconds},
		[]string{"http_request_method", "http_route", "http_response_status_code"})
	m.gateTime = m.histogram("seckill_gate_deduct_duration_seconds", "Time of one batch at the gate: one script call a product, in one pipeline.", stepSeconds)
	m.gateBatch = m.histogram("seckill_gate_batch_commands", "Purchases in one batch at the gate.", batchSizes)
	m.halfTime = m.histogram("seckill_half_send_duration_seconds", "Time to store a half message, run its local transaction and commit it.", stepSeconds)
	m.halfBatch = m.histogram("seckill_half_batch_flows", "Flows in one half message.", batchSizes)
	m.applyTime = m.histogram("seckill_apply_duration_seconds", "Time of one group in the database, its repeats included.", stepSeconds)
	m.applyBatch = m.histogram("seckill_apply_batch_orders", "Deductions in one group for the database.", batchSizes)
	m.confirmTime = m.histogram("seckill_accepted_to_confirmed_seconds", "Time from the deduction of a purchase to its order row, by the service's clock.", confirmSeconds)
	m.gateOutcomes = m.counters("seckill_gate_outcomes_total", "What the gate said to purchases, by outcome.", "outcome", gateOutcomes)
	m.tells = m.counters("seckill_gate_tells_total", "What the gate said to fates that it was told, by outcome.", "outcome", tellOutcomes)
	m.halves = m.counters("seckill_half_messages_total", "Half messages by what is known of them.", "outcome", sendResults)
	m.localTransactions = m.counters("seckill_local_transactions_total", "Local transactions by answer.", "verdict", verdicts)
	m.checkBacks = m.counters("seckill_check_backs_total", "Check-backs of the broker by answer.", "verdict", verdicts)
	m.applied = m.counters("seckill_apply_outcomes_total", "Deductions that were handed to the database, by what became of them; met is a duplicate.", "outcome", applyOutcomes)
	m.applyFailures = prometheus.NewCounter(prometheus.CounterOpts{Name: "seckill_apply_failures_total", Help: "Groups that the database did not take."})
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "seckill_build_info", Help: "1, with the version of the service.",
		ConstLabels: prometheus.Labels{"version": version}})
	info.Set(1)
	m.registry.MustRegister(m.requests, m.applyFailures, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

// counters are of one label with few values, by their place; all are there from the start.
type counters []prometheus.Counter

func (m *Metrics) counters(name, help, label string, values []string) counters {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	m.registry.MustRegister(vec)
	all := make(counters, len(values))
	for i, v := range values {
		all[i] = vec.WithLabelValues(v)
	}
	return all
}

// add counts n of the value at a place; the first stands for what has none.
func (c counters) add(place, n int) {
	if place >= len(c) {
		place = 0
	}
	c[place].Add(float64(n))
}

// contentType is the one form that is answered; every Prometheus reads it.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Text is every metric in Prometheus' text form.
func (m *Metrics) Text() (kind string, body []byte, err error) {
	families, err := m.registry.Gather()
	if err != nil {
		return "", nil, err
	}
	var out bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			return "", nil, err
		}
	}
	return contentType, out.Bytes(), nil
}

// Gatherer is the registry, for tests and for the list of metrics.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// statusMax is beyond every status that a door answers.
const statusMax = 600

var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace}

// Route gives what notes the answers of a route. It is asked once for each route that a door has.
func (m *Metrics) Route(method, route string) func(status int, took time.Duration) {
	if !slices.Contains(methods, method) {
		method = "_OTHER"
	}
	vec := m.requests.MustCurryWith(prometheus.Labels{"http_request_method": method, "http_route": route})
	known := new([statusMax]atomic.Pointer[prometheus.Observer])
	return func(status int, took time.Duration) {
		if status < 100 || status >= statusMax {
			status = http.StatusInternalServerError
		}
		o := known[status].Load()
		if o == nil {
			made := vec.WithLabelValues(code(status))
			o = &made
			known[status].Store(o)
		}
		(*o).Observe(took.Seconds())
	}
}

func code(status int) string {
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}
