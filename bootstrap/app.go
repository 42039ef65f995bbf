package bootstrap

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"seckill/adapters/echohttp"
	"seckill/adapters/echohttp/console"
	"seckill/application"
)

// startTimeout bounds a start; the embedded profile's cold road is part of it.
const startTimeout = 2 * time.Minute

// Services are what commands ask of a started graph.
type Services struct {
	fx.In
	OpenSale  *application.OpenSale
	Stock     *application.ShowStock
	Trace     *application.TracePurchase
	Verify    *application.VerifyBooks
	Reconcile *application.ReconcileStock
	Rebuild   *application.RebuildStock
	Examine   *application.Examine
	Parked    *application.ListParked
	Replay    *application.ReplayParked
	Tokens    *echohttp.Tokens
	Doors     *doors `optional:"true"`
}

// App is one wired service.
type App struct {
	Services
	config  Config
	log     *slog.Logger
	fx      *fx.App
	closers *closers
}

// closers close what constructors opened, last first, whether or not the graph was started.
type closers struct {
	mu  sync.Mutex
	all []func() error
}

func (c *closers) add(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, f)
}

// close closes all of them, once.
func (c *closers) close(log *slog.Logger) {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	for _, closeOne := range slices.Backward(all) {
		if err := closeOne(); err != nil {
			log.Warn("closing failed", "event", "close_failed", "error", err)
		}
	}
}

// Options is the whole graph of a service with its doors. The service is a module below the root, since fx takes one decorator a
// type and scope: the module's own count, trace and break the ports, and a test's, at the root, are inside of them.
func Options(c Config, log *slog.Logger) fx.Option {
	return fx.Options(base(c, log), fx.Module("service", modules(c), applicationModule(), consumerModule(c), runnersModule(c), doorsModule(),
		tracesModule(), metricsModule(), faultModule(c)))
}

// toolOptions is the graph of a command that opens the servers itself: no doors, no lane and no
// schedule. On the stack it sends and rebuilds, but leaves consuming and relaying to the running
// instances; the embedded folder is its own, so there it takes the whole cold road.
func toolOptions(c Config, log *slog.Logger) fx.Option {
	broker := producerModule()
	if c.Embedded() {
		broker = consumerModule(c)
	}
	return fx.Options(base(c, log), modules(c), applicationModule(), broker, roadModule())
}

func modules(c Config) fx.Option {
	if c.Embedded() {
		return fx.Options(embeddedGateModule(), embeddedBrokerModule(), embeddedLedgerModule(), embeddedInspectorsModule())
	}
	return fx.Options(gateModule(), brokerModule(), ledgerModule(), inspectorsModule())
}

func base(c Config, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.Supply(c, log, &closers{}),
		fx.WithLogger(func() fxevent.Logger {
			l := &fxevent.SlogLogger{Logger: log}
			l.UseLogLevel(slog.LevelDebug)
			l.UseErrorLevel(slog.LevelDebug) // Main prints what failed, once
			return l
		}),
		fx.StartTimeout(startTimeout), fx.StopTimeout(c.Stop.Grace),
		systemModule(), tokensModule(),
		fx.Provide(newLifecycle),
		fx.Invoke(func(lc fx.Lifecycle, l *Lifecycle) {
			lc.Append(fx.Hook{OnStart: l.Start, OnStop: l.Stop})
		}),
	)
}

// NewApp wires a service with its doors; more is for tests that look inside.
func NewApp(c Config, log *slog.Logger, more ...fx.Option) (*App, error) {
	return assemble(c, log, fx.Options(append(more, Options(c, log))...))
}

// NewToolApp wires what a command needs that opens the servers itself.
func NewToolApp(c Config, log *slog.Logger) (*App, error) {
	return assemble(c, log, toolOptions(c, log))
}

func assemble(c Config, log *slog.Logger, options fx.Option) (*App, error) {
	redis.SetLogger(redisLog{log})
	app := &App{config: c, log: log, closers: &closers{}}
	app.fx = fx.New(fx.Replace(app.closers), options, fx.Invoke(func(s Services) { app.Services = s }))
	if err := app.fx.Err(); err != nil {
		app.Close()
		return nil, dig.RootCause(err) // without the container's story of who asked for whom
	}
	return app, nil
}

// Start starts everything that runs, in order; after an error nothing of it is left running.
func (a *App) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return a.fx.Start(ctx)
}

// Stop stops in reverse order, within the grace time. An error names what was cut off; nothing is lost by
// that, it is finished by the next start or another instance.
func (a *App) Stop() error {
	grace, begun := a.config.Stop.Grace, time.Now()
	a.log.Info("an ordered stop begins", "event", "stopping", "grace", grace)
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := a.fx.Stop(ctx)
	a.log.Info("stopped", "event", "stopped", "took", time.Since(begun), "in_order", err == nil)
	return err
}

// closeMax is how long closing may take, also on a server that hangs.
const closeMax = time.Second

// Close closes what is left open. A second call does nothing.
func (a *App) Close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		a.closers.close(a.log)
	}()
	select {
	case <-closed:
	case <-time.After(closeMax):
		a.log.Warn("closing was left behind", "event", "close_late")
	}
}

func (a *App) onClose(f func() error) { a.closers.add(f) }

// BuyersURL is where buyers are served.
func (a *App) BuyersURL() string { return a.Doors.url(a.Doors.buyers) }

// ConsoleLink is an address that signs whoever opens it in at the console, with every operator's scope, for as long as ttl. It
// is as secret as a token.
func (a *App) ConsoleLink(ttl time.Duration) (string, error) {
	token, err := a.Tokens.Issue("operator", operatorScopes, ttl)
	if err != nil {
		return "", err
	}
	return console.Link(a.OperatorsURL(), token), nil
}

// OperatorsURL is where operators are served.
func (a *App) OperatorsURL() string { return a.Doors.url(a.Doors.operators) }
