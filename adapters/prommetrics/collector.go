package prommetrics

import (
	"database/sql"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"seckill/application"
)

// Sources are what is read at each scrape; none of them may ask a server.
type Sources struct {
	Lane      func() application.LaneStats
	Settle    func() application.SettleStats
	Rebuild   func() application.RebuildStats
	Relay     func() application.RelayStats
	Reconcile func() application.ReconcileStats
	Intake    func() application.IntakeState
	Survey    func() application.Survey
	Ledger    func() (conflicts, again int64)
	GatePool  func() (open, idle int64)
	InFlight  map[string]func() int64 // requests at work, by door
	Databases map[string]*sql.DB
}

// Watch adds what is read from sources. It is called once.
func (m *Metrics) Watch(s Sources) {
	m.registry.MustRegister(&collector{s})
	for name, db := range s.Databases {
		m.registry.MustRegister(collectors.NewDBStatsCollector(db, name))
	}
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descActive = desc("http_server_active_requests", "Requests at work, probes not counted.", "door")

	descDeductions = desc("seckill_deductions_total", "Purchases by what their buyers were told.", "result")
	descProducts   = desc("seckill_products", "Products in the catalog.")
	descProductsOK = desc("seckill_products_readable", "1 if the catalog could be read.")
	descTotal      = desc("seckill_product_on_sale_units", "Units put on sale, stock changes included.", "product")
	descRemaining  = desc("seckill_product_gate_units", "Units that the gate has left.", "product")
	descStock      = desc("seckill_product_ledger_units", "Units that the ledger has left.", "product")
	descSold       = desc("seckill_product_sold_units", "Units that the gate has given away.", "product")
	descConfirmed  = desc("seckill_product_confirmed_units", "Units that the ledger has given away.", "product")
	descOpenOf     = desc("seckill_product_open_flows", "Flows of the product that are open.", "product")
	descSuspended  = desc("seckill_product_suspended", "1 while the product is suspended or damaged.", "product")
	descDrift      = desc("seckill_stock_drift_units", "Units that the gate has too much (below zero: too few), while nothing is on its way.", "product")
	descOversold   = desc("seckill_oversold_units", "Units confirmed beyond what was put on sale, or below zero at either side.", "product")

	descWaiting = desc("seckill_lane_waiting_purchases", "Purchases that wait in the lane.")
	descFull    = desc("seckill_lane_full_total", "Purchases refused because the lane was full.")
	descIntake  = desc("seckill_intake_state", "1 for the state of the intake.", "state")
	descPool    = desc("seckill_gate_connections", "Connections to Redis, open and of those idle.", "state")

	descLag       = desc("seckill_consumer_lag_messages", "Messages that wait for the consumer group.")
	descLagOK     = desc("seckill_consumer_lag_readable", "1 if the lag could be read.")
	descSentAgain = desc("seckill_relay_sent_again_flows_total", "Open flows that the relay sent again.")

	descRows      = desc("seckill_apply_rows_total", "Order rows that settling wrote.")
	descGroups    = desc("seckill_apply_groups_total", "Transactions of settling that wrote rows.")
	descParkings  = desc("seckill_parkings_total", "Messages that settling parked.")
	descConflicts = desc("seckill_ledger_version_conflicts_total", "Guarded updates that found another version.")
	descTryAgain  = desc("seckill_ledger_transactions_again_total", "Transactions that were tried once more.")

	descOpen       = desc("seckill_open_flows", "Flows of all products that are open.")
	descOpenOK     = desc("seckill_open_flows_readable", "1 if the open flows of every product could be read.")
	descOldest     = desc("seckill_oldest_open_flow_age_seconds", "Age of the oldest open flow, 0 where none is open; at least this where some gate could not be read.")
	descUntold     = desc("seckill_untold_orders", "Orders whose fate the gate has not acknowledged, counted up to a few thousand.")
	descUntoldOK   = desc("seckill_untold_orders_readable", "1 if the untold orders could be read.")
	descParked     = desc("seckill_parked_messages", "Parked messages that wait.")
	descParkedOK   = desc("seckill_parked_messages_readable", "1 if the parked messages could be counted.")
	descBooksOK    = desc("seckill_books_readable", "1 unless the last sum of a product's orders failed.")
	descFound      = desc("seckill_reconcile_found_total", "Anomalies that applied reconciliations found.", "kind")
	descRepaired   = desc("seckill_reconcile_repaired_total", "Repairs of reconciliations.")
	descReconBad   = desc("seckill_reconcile_failures_total", "Applied reconciliations that failed.")
	descReconcile  = desc("seckill_reconcile_last_success_timestamp_seconds", "Time of the last applied reconciliation of all products; at first, of the start.")
	descRebuilt    = desc("seckill_rebuilds_total", "Gates that this instance rebuilt.")
	descRebuildBad = desc("seckill_rebuild_failures_total", "Attempts to rebuild that failed.")
	descRebuilding = desc("seckill_rebuilds_pending", "Products on the road to a rebuilt gate.")
)

// collector reads the sources. It describes nothing beforehand, since its samples come and go; each is checked against
// the list of metrics by a test.
type collector struct{ s Sources }

func (*collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	e := emitter(out)
	for door, n := range c.s.InFlight {
		e.gauge(descActive, float64(n()), door)
	}
	c.sale(e)
	c.books(e)
	c.survey(e, c.s.Survey())
}

func (c *collector) sale(e emitter) {
	lane := c.s.Lane()
	for answer, n := range lane.Answered {
		e.count(descDeductions, n, application.DeductAnswer(answer).String())
	}
	e.gauge(descWaiting, float64(lane.Waiting))
	e.count(descFull, lane.Full)
	now := c.s.Intake()
	for _, state := range []application.IntakeState{application.IntakeOpen, application.IntakeCrowded, application.IntakeAway} {
		e.gauge(descIntake, oneIf(state == now), string(state))
	}
	open, idle := c.s.GatePool()
	e.gauge(descPool, float64(open), "open")
	e.gauge(descPool, float64(idle), "idle")
}

var anomalyKinds = []string{application.AnomalyOpenWithoutRow, application.AnomalyOpenWithRow, application.AnomalyFlowMissing,
	application.AnomalyFlowDisagrees, application.AnomalyUntold, application.AnomalyDrift}

func (c *collector) books(e emitter) {
	settle, rebuild, reconcile := c.s.Settle(), c.s.Rebuild(), c.s.Reconcile()
	e.count(descSentAgain, c.s.Relay().SentAgain)
	e.count(descRows, settle.Rows)
	e.count(descGroups, settle.Groups)
	e.count(descParkings, settle.Parked)
	conflicts, again := c.s.Ledger()
	e.count(descConflicts, conflicts)
	e.count(descTryAgain, again)
	e.count(descRebuilt, rebuild.Rebuilt)
	e.count(descRebuildBad, rebuild.Failures)
	e.gauge(descRebuilding, float64(rebuild.Pending))
	for _, kind := range anomalyKinds {
		e.count(descFound, reconcile.Found[kind], kind)
	}
	e.count(descRepaired, reconcile.Repaired)
	e.count(descReconBad, reconcile.Failures)
	e.gauge(descReconcile, float64(reconcile.LastSuccess.UnixMilli())/1000)
}

func (c *collector) survey(e emitter, v application.Survey) {
	e.read(descLag, descLagOK, v.LagMessages)
	e.read(descOpen, descOpenOK, v.OpenFlows)
	e.read(descUntold, descUntoldOK, v.Untold)
	e.read(descParked, descParkedOK, v.Parked)
	e.read(descProducts, descProductsOK, v.Count)
	e.gauge(descBooksOK, oneIf(v.BooksRead))
	if v.OldestOpen != nil {
		e.gauge(descOldest, v.OldestOpen.Seconds())
	}
	for _, p := range v.Products {
		e.product(p, p.Product)
	}
	if v.Others != nil {
		e.product(*v.Others, "other")
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

type emitter chan<- prometheus.Metric

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (e emitter) count(d *prometheus.Desc, n int64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func (e emitter) known(d *prometheus.Desc, n *int64, labels ...string) {
	if n != nil {
		e.gauge(d, float64(*n), labels...)
	}
}

func (e emitter) read(value, readable *prometheus.Desc, n *int64) {
	e.known(value, n)
	e.gauge(readable, oneIf(n != nil))
}

func (e emitter) product(p application.SurveyedProduct, name string) {
	e.gauge(descTotal, float64(p.Total), name)
	e.gauge(descStock, float64(p.Stock), name)
	e.gauge(descConfirmed, float64(p.Total-p.Stock), name)
	e.gauge(descSuspended, oneIf(p.Suspended), name)
	if p.Remaining != nil {
		e.gauge(descRemaining, float64(*p.Remaining), name)
		e.gauge(descSold, float64(p.Total-*p.Remaining), name)
	}
	e.known(descOpenOf, p.OpenFlows, name)
	e.known(descDrift, p.Drift, name)
	e.known(descOversold, p.Oversold, name)
}
