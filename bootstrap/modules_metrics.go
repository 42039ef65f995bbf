package bootstrap

import (
	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"seckill/adapters/gormmysql"
	"seckill/adapters/prommetrics"
	"seckill/application"
)

// Version is that of the binary.
type Version string

// metricsModule counts what the service does, and surveys the sale for it.
func metricsModule() fx.Option {
	return fx.Module("metrics",
		fx.Provide(newMetrics, application.DefaultSurveyConfig, application.NewSurveySale,
			asRunner(func(s *application.SurveySale) *application.SurveySale { return s })),
		fx.Invoke(watch),
	)
}

type metricsParams struct {
	fx.In
	Version Version `optional:"true"`
}

func newMetrics(p metricsParams) *prommetrics.Metrics { return prommetrics.New(string(p.Version)) }

type watchParams struct {
	fx.In
	Metrics   *prommetrics.Metrics
	Lane      *application.DeductStock
	Settle    *application.SettleDeductions
	Rebuild   *application.RebuildStock
	Relay     *application.RelayOpenFlows
	Reconcile *application.ReconcileStock
	Intake    *application.Intake
	Survey    *application.SurveySale
	Store     *gormmysql.Store
	Redis     redis.UniversalClient
	Doors     *doors
}

// watch shows the metrics everything that they read when they are asked for; it comes last, since the doors count too.
func watch(p watchParams) {
	p.Metrics.Watch(prommetrics.Sources{
		Lane: p.Lane.Stats, Settle: p.Settle.Stats, Rebuild: p.Rebuild.Stats, Relay: p.Relay.Stats, Reconcile: p.Reconcile.Stats,
		Intake: p.Intake.State, Survey: p.Survey.Latest,
		Ledger: func() (conflicts, again int64) {
			s := p.Store.Stats()
			return s.Conflicts, s.Again
		},
		GatePool: func() (open, idle int64) {
			s := p.Redis.PoolStats()
			return int64(s.TotalConns), int64(s.IdleConns)
		},
		InFlight:  map[string]func() int64{"buyers": p.Doors.buyers.InFlight, "operators": p.Doors.operators.InFlight},
		Databases: p.Store.Pools(),
	})
}
