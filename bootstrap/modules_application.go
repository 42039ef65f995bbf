package bootstrap

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
	"go.uber.org/fx"

	"seckill/adapters/echohttp"
	"seckill/adapters/echohttp/console"
	"seckill/adapters/gormmysql"
	"seckill/adapters/oteltrace"
	"seckill/adapters/prommetrics"
	"seckill/adapters/wire"
	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

// applicationModule has every use case; none of them runs by itself but as a runner.
func applicationModule() fx.Option {
	return fx.Module("application",
		fx.Provide(
			deductConfig, intakeConfig, relayConfig, reconcileConfig, rebuildConfig, leaseConfig,
			application.DefaultSettleConfig, application.DefaultVerifyConfig, application.DefaultReplayConfig, application.DefaultWatchConfig, application.DefaultAwaitConfig, changeStockConfig,
			func() application.Encode { return wire.Encode },
			func() application.Decode { return wire.Decode },
		),
		fx.Provide(
			fx.Annotate(func() *laterSuspects { return &laterSuspects{} }, fx.As(fx.Self()), fx.As(new(application.Suspects))),
			fx.Annotate(application.NewTransactionListener, fx.As(new(port.TransactionListener))),
			fx.Annotate(application.NewSettleDeductions, fx.As(fx.Self()), fx.As(new(port.DeliveryHandler))),
			fx.Annotate(application.NewLease, fx.As(fx.Self()), fx.As(new(application.Leases))),
			application.NewConfirmDeductions, application.NewResolveDeductions,
			newRebuild, application.NewRebuildByHand, application.NewIntake,
			application.NewDeductStock, application.NewRelayOpenFlows, application.NewReplayParked, application.NewWatchGates,
			application.NewOpenSale, application.NewPauseSale, application.NewChangeStock, application.NewShowOrder, application.NewAwaitOrder, application.NewCancelOrder, application.NewShowStock,
			newShowPipeline, newShowOverview, newTracePurchase, application.NewListParked, application.NewReconcileStock, application.NewVerifyBooks,
			newStockEyes, newReadiness, application.NewExamine, examineConfig,
		))
}

// runnersModule has what runs beside requests and sells.
func runnersModule(c Config) fx.Option {
	own := fx.Options()
	if !c.Embedded() {
		own = guardsModule()
	}
	return fx.Module("runners", roadModule(), own, fx.Provide(
		asRunner(func(d *application.DeductStock) *application.DeductStock { return d }),
		asRunner(func(r *application.RelayOpenFlows) *application.RelayOpenFlows { return r }),
		asRunner(func(r *application.ReplayParked) *application.ReplayParked { return r }),
		asRunner(func(w *application.WatchGates) *application.WatchGates { return w }),
		asRunner(newSchedule),
	))
}

// roadModule has what brings a gate back.
func roadModule() fx.Option {
	return fx.Module("road", fx.Provide(
		asRunner(func(l *application.Lease) *application.Lease { return l }),
		asRunner(func(r *application.RebuildStock) *application.RebuildStock { return r }),
		asRunner(func(c Config, r *application.RebuildStock) part {
			return part{name: "cold-road", start: func(ctx context.Context) error {
				if !c.Embedded() {
					return nil // products open one by one, and their buyers are told meanwhile
				}
				return r.WaitIdle(ctx)
			}}
		}),
	))
}

func newStockEyes(catalog port.Catalog, gate port.Gate, admin port.GateAdmin, flows port.OpenFlows, ledger port.Ledger,
	outbox port.Outbox) application.StockEyes {
	return application.StockEyes{Catalog: catalog, Gate: gate, Admin: admin, Flows: flows, Ledger: ledger, Outbox: outbox}
}

func newShowPipeline(eyes application.StockEyes, parking port.Parking, backlog port.BacklogReader, intake *application.Intake,
	lane *application.DeductStock, settle *application.SettleDeductions, rebuild *application.RebuildStock, drainer port.Drainer,
	clock port.Clock) *application.ShowPipeline {
	return application.NewShowPipeline(eyes, parking, backlog, intake, lane.Stats, settle.Stats, rebuild.Stats, drainer.CheckWindow(), clock)
}

func newTracePurchase(eyes application.StockEyes, book port.Book, parking port.Parking, backlog port.BacklogReader,
	decode application.Decode, relay *application.RelayOpenFlows, cfg application.RelayConfig, clock port.Clock) *application.TracePurchase {
	return application.NewTracePurchase(eyes, book, parking, backlog, decode, relay.SentAgain, clock, application.DefaultTraceConfig(cfg))
}

func newShowOverview(eyes application.StockEyes, pipeline *application.ShowPipeline, lane *application.DeductStock,
	readiness *application.Readiness, clock port.Clock) *application.ShowOverview {
	return application.NewShowOverview(eyes, pipeline.Show, lane.Stats, lane.Latest, readiness.Check, clock)
}

func newRebuild(epochs port.Epochs, catalog port.Catalog, gate port.GateAdmin, flows port.OpenFlows, ledger port.Ledger,
	drainer port.Drainer, lease *application.Lease, later *laterSuspects, cfg application.RebuildConfig, log *slog.Logger) *application.RebuildStock {
	r := application.NewRebuildStock(epochs, catalog, gate, flows, ledger, drainer, lease, cfg, log)
	later.rebuild.Store(r)
	return r
}

func rebuildConfig(c Config, ids port.IDs) application.RebuildConfig {
	r := application.DefaultRebuildConfig()
	r.Holder = ids.Unique()
	if c.Embedded() {
		// Alone under the folder's lock: no lease to wait for. Its Redis is always empty at the start.
		r.Holder, r.LeaseWait, r.ColdStart = "embedded", 0, true
	}
	return r
}

func leaseConfig() application.LeaseConfig { return application.DefaultLeaseConfig() }

func relayConfig(c Config) application.RelayConfig {
	r := application.DefaultRelayConfig()
	r.OpenAge = c.Relay.OpenAge
	return r
}

func reconcileConfig(c Config) application.ReconcileConfig {
	r := application.DefaultReconcileConfig()
	r.SafeAge = c.Reconcile.SafeAge
	return r
}

func newReadiness(store *gormmysql.Store, client redis.UniversalClient, broker brokerCheck) *application.Readiness {
	return application.NewReadiness(map[string]func(context.Context) error{
		"ledger": store.Ping,
		"gate":   func(ctx context.Context) error { return pingRedis(ctx, client) },
		"broker": broker,
	}, application.DefaultReadinessConfig())
}

func doorsModule() fx.Option {
	return fx.Module("doors", fx.Provide(
		newDoors,
		asRunner(func(d *doors) *echohttp.Door { return d.buyers }),
		asRunner(func(d *doors) *echohttp.Door { return d.operators }),
		asRunner(func(d *doors, c Config) part { return part{name: "readiness", stop: d.turnAway(c.Stop.Delay)} }),
	))
}

type doorsParams struct {
	fx.In
	Config    Config
	Tokens    *echohttp.Tokens
	Log       *slog.Logger
	Deduct    *application.DeductStock
	Order     *application.ShowOrder
	Await     *application.AwaitOrder
	Cancel    *application.CancelOrder
	Stock     *application.ShowStock
	Open      *application.OpenSale
	Pause     *application.PauseSale
	Changes   *application.ChangeStock
	Reconcile *application.ReconcileStock
	Trace     *application.TracePurchase
	Pipeline  *application.ShowPipeline
	Verify    *application.VerifyBooks
	Examine   *application.Examine
	Parked    *application.ListParked
	Replay    *application.ReplayParked
	Rebuild   *application.RebuildByHand
	Readiness *application.Readiness
	Overview  *application.ShowOverview
	Version   Version `optional:"true"`
	Demo      Demo    `optional:"true"`
	Metrics   *prommetrics.Metrics
	Tracing   *oteltrace.Tracing
}

func newDoors(p doorsParams) *doors {
	buyers, operators := echohttp.DefaultConfig(), echohttp.DefaultConfig()
	buyers.Meter, operators.Meter = p.Metrics, p.Metrics
	buyers.Addr, buyers.Tokens, buyers.MaxInFlight = p.Config.HTTP.Addr, p.Tokens, p.Config.HTTP.InFlightMax
	buyers.BuyerRate, buyers.BuyerBurst = p.Config.HTTP.BuyerRate, p.Config.HTTP.BuyerBurst
	operators.Addr, operators.Tokens = p.Config.Admin.Addr, p.Tokens
	if p.Tracing != nil {
		buyers.Tracer, operators.Tracer = p.Tracing, p.Tracing
	}
	d := &doors{
		buyers: echohttp.NewBuyersDoor(buyers, echohttp.BuyersDeps{Deduct: p.Deduct, Orders: p.Order, Await: p.Await, Cancel: p.Cancel,
			Stock: p.Stock, Readiness: p.Readiness}, p.Log),
		operators: echohttp.NewOperatorsDoor(operators, echohttp.OperatorsDeps{Open: p.Open, Pause: p.Pause, Changes: p.Changes, Stock: p.Stock,
			Reconcile: p.Reconcile, Trace: p.Trace, Pipeline: p.Pipeline, Verify: p.Verify, Doctor: p.Examine, Parked: p.Parked, Replay: p.Replay, Rebuild: p.Rebuild, Readiness: p.Readiness, Metrics: p.Metrics}, p.Log),
	}
	d.operators.AddConsole(consoleDeps(p))
	return d
}

// consoleDeps has a console buy in the embedded demo alone.
func consoleDeps(p doorsParams) echohttp.ConsoleDeps {
	deps := echohttp.ConsoleDeps{Overview: p.Overview, Token: string(p.Config.Console.Token),
		About: console.About{Version: string(p.Version), Profile: p.Config.Profile, Started: time.Now(), NextRun: nextRun(p.Config)}}
	if bool(p.Demo) && p.Config.Embedded() {
		deps.Demo = p.Deduct
	}
	return deps
}

// nextRun tells when the schedule reconciles next.
func nextRun(c Config) func(after time.Time) time.Time {
	schedule, err := scheduleParser.Parse(c.Reconcile.Schedule)
	if err != nil {
		return nil // Validate refuses it
	}
	return func(after time.Time) time.Time { return schedule.Next(after.UTC()) }
}

func deductConfig(c Config) application.DeductConfig {
	d := application.DefaultDeductConfig()
	d.QueueMax, d.BatchMax, d.SendersMax = c.Deduct.QueueMax, c.Deduct.BatchMax, c.Deduct.SendersMax
	d.SendTimeout = c.RocketMQ.SendTimeout + c.RocketMQ.SendTimeout/2
	return d
}

// changeStockConfig is as patient as the lane: its sends go the same way.
func changeStockConfig(d application.DeductConfig) application.ChangeStockConfig {
	return application.ChangeStockConfig{GateTimeout: d.DeductTimeout, SendTimeout: d.SendTimeout}
}

func intakeConfig(c Config) application.IntakeConfig {
	i := application.DefaultIntakeConfig()
	i.OpenMax, i.AwayMax = int64(c.Deduct.OpenMax), c.Deduct.AwayMax
	return i
}

// newSchedule runs reconcile by cron: bounded, one at a time, and never with roll-back.
func newSchedule(c Config, reconcile *application.ReconcileStock, log *slog.Logger) (part, error) {
	ctx, cancel := context.WithCancel(context.Background())
	table := cron.New(cron.WithParser(scheduleParser), cron.WithLocation(time.UTC),
		cron.WithChain(cron.Recover(cronLog{log}), cron.SkipIfStillRunning(cronLog{log})))
	_, err := table.AddFunc(c.Reconcile.Schedule, func() {
		_, err := reconcile.Reconcile(ctx, application.ReconcileRequest{Mode: application.ReconcileApply,
			Policy: application.ReconcilePolicy(c.Reconcile.Policy), Actor: "schedule"})
		if err != nil { // a run that went well is logged by the use case
			log.Error("the scheduled reconciliation failed", "event", "reconcile_failed", "error", err)
		}
	})
	if err != nil {
		cancel()
		return part{}, fmt.Errorf("reconcile.schedule: %w", err)
	}
	return part{name: "schedule",
		start: func(context.Context) error { table.Start(); return nil },
		stop: func(stopCtx context.Context) error {
			cancel()
			select {
			case <-table.Stop().Done():
				return nil
			case <-stopCtx.Done():
				return stopCtx.Err()
			}
		}}, nil
}

// cronLog is slog as cron wants it.
type cronLog struct{ log *slog.Logger }

func (c cronLog) Info(msg string, kv ...any) { c.log.Debug(msg, append(kv, "event", "cron")...) }
func (c cronLog) Error(err error, msg string, kv ...any) {
	c.log.Error(msg, append(kv, "event", "cron", "error", err)...)
}

func pingRedis(ctx context.Context, client redis.UniversalClient) error {
	if err := client.Ping(ctx).Err(); err != nil {
		return domain.NewError(domain.CodeUnavailable, "redis does not answer", err)
	}
	return nil
}

// doors are both listeners.
type doors struct{ buyers, operators *echohttp.Door }

// turnAway turns readiness off at both doors, which go on answering for so long.
func (d *doors) turnAway(delay time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		d.buyers.Draining()
		d.operators.Draining()
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		return nil
	}
}

func (*doors) url(d *echohttp.Door) string {
	addr, _ := d.Listen(context.Background()) // bound already: gives the address
	return "http://" + addr
}

func openStore(c Config, closers *closers, log *slog.Logger) (*gormmysql.Store, error) {
	s, err := gormmysql.Open(context.Background(), storeConfig(c), log)
	if err != nil {
		return nil, err
	}
	closers.add(s.Close)
	return s, nil
}
