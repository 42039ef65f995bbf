package bootstrap

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"seckill/adapters/echohttp"
	"seckill/adapters/embedded"
	"seckill/adapters/gormmysql"
	"seckill/adapters/redislua"
	"seckill/adapters/rocketmq"
	"seckill/adapters/system"
	"seckill/application"
	"seckill/application/port"
)

func systemModule() fx.Option {
	return fx.Module("system",
		fx.Provide(
			fx.Annotate(func() system.Clock { return system.Clock{} }, fx.As(new(port.Clock))),
			fx.Annotate(system.NewIDs, fx.As(new(port.IDs))),
		))
}

func tokensModule() fx.Option {
	return fx.Module("tokens", fx.Provide(func(c Config) (*echohttp.Tokens, error) { return tokensOf(c) }))
}

// gatePorts makes one gate serve its three ports.
func gatePorts() fx.Option {
	return fx.Provide(
		fx.Annotate(func(g *redislua.Gate) *redislua.Gate { return g },
			fx.As(new(port.Gate)), fx.As(new(port.OpenFlows)), fx.As(new(port.GateAdmin)), fx.As(new(port.AllFlows))),
		asRunner(func(client redis.UniversalClient) part {
			return part{name: "gate",
				start: func(ctx context.Context) error { return pingRedis(ctx, client) },
				stop:  func(context.Context) error { return client.Close() }}
		}),
	)
}

func gateModule() fx.Option {
	return fx.Module("gate", gatePorts(), fx.Provide(
		func(c Config) redis.UniversalClient { return redislua.NewClient(redisConfig(c)) },
		func(client redis.UniversalClient) (*redislua.Gate, error) {
			return redislua.New(client, redislua.Config{})
		},
	))
}

func redisConfig(c Config) redislua.ClientConfig {
	return redislua.ClientConfig{Addrs: c.Redis.Addrs, Master: c.Redis.Master,
		Username: c.Redis.Username, Password: string(c.Redis.Password),
		SentinelUsername: c.Redis.SentinelUsername, SentinelPassword: string(c.Redis.SentinelPassword)}
}

// embeddedGateModule is the same gate on a Redis in this process.
func embeddedGateModule() fx.Option {
	return fx.Module("gate", gatePorts(), fx.Provide(
		func(closers *closers) (*embedded.Redis, error) {
			r, err := embedded.StartRedis()
			if err == nil {
				closers.add(func() error { r.Close(); return nil })
			}
			return r, err
		},
		func(r *embedded.Redis) redis.UniversalClient {
			return redislua.NewClient(redislua.ClientConfig{Addrs: []string{r.Addr()}})
		},
		func(client redis.UniversalClient, r *embedded.Redis) (*redislua.Gate, error) {
			return redislua.New(client, redislua.Config{Identity: r.Identity()})
		},
	))
}

// dataFolder is the embedded profile's folder, under its exclusive lock.
type dataFolder string

func openDataFolder(c Config, closers *closers) (dataFolder, error) {
	release, err := embedded.LockFolder(c.Data)
	if err != nil {
		return "", err
	}
	closers.add(release)
	return dataFolder(c.Data), nil
}

// embeddedBrokerModule is the broker in this process. It delivers too, so it is started where the
// consumer would be; sends before that wait for nothing, since the doors are still closed.
func embeddedBrokerModule() fx.Option {
	return fx.Module("broker", fx.Provide(
		openDataFolder,
		fx.Annotate(func(folder dataFolder, listener port.TransactionListener, handler port.DeliveryHandler, log *slog.Logger) (*embedded.Broker, error) {
			return embedded.NewBroker(string(folder), embedded.DefaultBrokerConfig(), listener, handler, log)
		}, fx.As(fx.Self()), fx.As(new(port.Sender)), fx.As(new(port.Drainer)), fx.As(new(port.BacklogReader))),
		fx.Annotate(func(*embedded.Broker) brokerCheck { return func(context.Context) error { return nil } }),
	))
}

// brokerCheck says whether the broker can be reached.
type brokerCheck func(context.Context) error

func rocketConfig(c Config) rocketmq.Config {
	r := rocketmq.DefaultConfig()
	r.NameServers, r.Topic, r.Tag = c.RocketMQ.NameServers, c.RocketMQ.Topic, c.RocketMQ.Tag
	r.ProducerGroup, r.ConsumerGroup = c.RocketMQ.ProducerGroup, c.RocketMQ.ConsumerGroup
	r.AccessKey, r.SecretKey = c.RocketMQ.AccessKey, string(c.RocketMQ.SecretKey)
	r.SendTimeout, r.CheckTimeout, r.CheckInterval = c.RocketMQ.SendTimeout, c.RocketMQ.CheckTimeout, c.RocketMQ.CheckInterval
	return r
}

func brokerModule() fx.Option {
	return fx.Module("broker", fx.Provide(
		rocketConfig, rocketmq.NewAssigned,
		fx.Annotate(rocketmq.NewProducer, fx.As(fx.Self()), fx.As(new(port.Sender)), fx.As(new(port.Drainer))),
		fx.Annotate(rocketmq.NewConsumer, fx.As(fx.Self()), fx.As(new(port.BacklogReader))),
		func(p *rocketmq.Producer) brokerCheck { return p.Check },
	))
}

// consumerModule runs the broker's clients, or the broker itself.
func consumerModule(c Config) fx.Option {
	if c.Embedded() {
		return fx.Module("consumer", fx.Provide(asRunner(func(b *embedded.Broker) part {
			return part{name: "consumer", start: b.Start, stop: b.Stop}
		})))
	}
	return fx.Module("consumer", producerModule(), fx.Provide(
		asRunner(func(c *rocketmq.Consumer) part { return part{name: "consumer", start: c.Start, stop: c.Stop} }),
		asRunner(func(c rocketmq.Config, parking port.Parking, ids port.IDs, clock port.Clock, log *slog.Logger) part {
			g := rocketmq.NewGraves(c, application.NewParkDiscarded(parking, ids, clock, port.ParkDiscardedHalf, log),
				application.NewParkDiscarded(parking, ids, clock, port.ParkDeadLetter, log), log)
			return part{name: "graves", start: g.Start, stop: g.Stop}
		}),
	))
}

func producerModule() fx.Option {
	return fx.Module("producer", fx.Provide(
		asRunner(func(p *rocketmq.Producer) part { return part{name: "producer", start: p.Start, stop: p.Stop} }),
	))
}

func ledgerModule() fx.Option { return ledgerModuleOf(openStore) }

// embeddedLedgerModule opens its file only after the folder is this process's alone.
func embeddedLedgerModule() fx.Option {
	return ledgerModuleOf(func(_ dataFolder, c Config, closers *closers, log *slog.Logger) (*gormmysql.Store, error) {
		return openStore(c, closers, log)
	})
}

func ledgerModuleOf(open any) fx.Option {
	return fx.Module("ledger", fx.Provide(
		open,
		fx.Annotate(func(s *gormmysql.Store) *gormmysql.Store { return s },
			fx.As(new(port.Ledger)), fx.As(new(port.Changes)), fx.As(new(port.Outbox)), fx.As(new(port.Catalog)), fx.As(new(port.Epochs)),
			fx.As(new(port.Parking)), fx.As(new(port.AuditLog)), fx.As(new(port.ReportStore)), fx.As(new(port.Book)),
			fx.As(new(port.BarrierLog))),
		asRunner(func(s *gormmysql.Store, c Config) part {
			return part{name: "ledger", start: func(ctx context.Context) error {
				if c.Embedded() {
					return s.Migrate(ctx)
				}
				return s.Ping(ctx)
			}}
		}),
	))
}

func storeConfig(c Config) gormmysql.Config {
	if c.Embedded() {
		return gormmysql.Config{Dialect: "sqlite", Path: filepath.Join(c.Data, "ledger.db")}
	}
	return gormmysql.Config{Dialect: "mysql", DSN: string(c.Database.DSN), PoolMax: c.Database.PoolMax}
}

// laterSuspects is Suspects before the rebuilder is made: whoever suspects a gate also feeds the
// broker that the rebuilder drains.
type laterSuspects struct {
	rebuild atomic.Pointer[application.RebuildStock]
}

// Suspect passes on to the rebuilder; nothing runs before it is made.
func (l *laterSuspects) Suspect(product, reason string) {
	if r := l.rebuild.Load(); r != nil {
		r.Suspect(product, reason)
	}
}
