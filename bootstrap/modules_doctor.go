package bootstrap

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"go.uber.org/fx"

	"seckill/adapters/embedded"
	"seckill/adapters/gormmysql"
	"seckill/adapters/redislua"
	"seckill/adapters/rocketmq"
	"seckill/adapters/system"
	"seckill/application"
	"seckill/application/port"
)

// inspectorsModule looks at the real servers.
func inspectorsModule() fx.Option {
	return fx.Module("inspectors", fx.Provide(
		func(c Config, client redis.UniversalClient, clock port.Clock) *redislua.Inspector {
			return redislua.NewInspector(client, redisConfig(c), clock)
		},
		stackInspectors,
	))
}

// embeddedInspectorsModule looks at the folder and the file; the rest of it is this process.
func embeddedInspectorsModule() fx.Option {
	return fx.Module("inspectors", fx.Provide(
		func(c Config, store *gormmysql.Store, clock port.Clock) []application.PartInspector {
			return []application.PartInspector{
				{Part: port.PartService, Inspector: system.NewInspector(systemSettings(c))},
				{Part: port.PartService, Inspector: embedded.NewInspector(c.Data)},
				{Part: port.PartLedger, Inspector: gormmysql.NewInspector(store, storeConfig(c), clock)},
			}
		},
	))
}

func stackInspectors(c Config, gate *redislua.Inspector, store *gormmysql.Store, clock port.Clock) []application.PartInspector {
	return []application.PartInspector{
		{Part: port.PartService, Inspector: system.NewInspector(systemSettings(c))},
		{Part: port.PartGate, Inspector: gate},
		{Part: port.PartBroker, Inspector: rocketmq.NewInspector(rocketConfig(c), clock)},
		{Part: port.PartLedger, Inspector: gormmysql.NewInspector(store, storeConfig(c), clock)},
	}
}

// systemSettings are those that an inspection of the service looks at.
func systemSettings(c Config) system.Settings {
	s := system.Settings{SigningKey: []byte(c.Auth.Key), Addresses: []string{c.HTTP.Addr, c.Admin.Addr}}
	if !c.Embedded() {
		s.Addresses = append(append(s.Addresses, c.Redis.Addrs...), c.RocketMQ.NameServers...)
		s.Addresses = append(s.Addresses, gormmysql.Address(string(c.Database.DSN))...)
	}
	return s
}

func examineConfig(c Config) application.ExamineConfig {
	e := application.DefaultExamineConfig()
	e.CheckTimeout, e.CheckInterval = c.RocketMQ.CheckTimeout, c.RocketMQ.CheckInterval
	e.PoolMax, e.InFlightMax = c.Database.PoolMax, c.HTTP.InFlightMax
	return e
}

// guardsModule looks at the real servers when a service starts: it does not sell on a gate that may evict
// flows, and says the rest of what is wrong once, loudly, without holding up the start.
func guardsModule() fx.Option {
	return fx.Module("guards", fx.Provide(
		asRunner(func(gate *redislua.Inspector) part {
			return part{name: "eviction", start: gate.RefuseEviction}
		}),
		asRunner(func(examine *application.Examine, log *slog.Logger) part {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			close(done)
			return part{name: "examine",
				start: func(context.Context) error {
					done = make(chan struct{})
					go func() {
						defer close(done)
						if found, err := examine.Examine(ctx); err == nil {
							found.LogFindings(log)
						}
					}()
					return nil
				},
				stop: func(stopCtx context.Context) error {
					cancel()
					select {
					case <-done:
						return nil
					case <-stopCtx.Done():
						return stopCtx.Err()
					}
				}}
		}),
	))
}

// examineOf is an examination without the rest of a service: it needs no part to be reachable.
func examineOf(c Config, opened *closers, log *slog.Logger) (*application.Examine, error) {
	redis.SetLogger(redisLog{log})
	client := redislua.NewClient(redisConfig(c))
	opened.add(client.Close)
	gate, err := redislua.New(client, redislua.Config{})
	if err != nil {
		return nil, err
	}
	store, err := gormmysql.Connect(storeConfig(c), log)
	if err != nil {
		return nil, err
	}
	opened.add(store.Close)
	clock := system.Clock{}
	inspectors := stackInspectors(c, redislua.NewInspector(client, redisConfig(c), clock), store, clock)
	return application.NewExamine(inspectors, store, gate, clock, examineConfig(c)), nil
}
