package bootstrap

import (
	"go.uber.org/fx"

	"seckill/adapters/oteltrace"
	"seckill/application/port"
)

// tracesModule makes spans where the environment names an endpoint for them; else there is nothing of it.
func tracesModule() fx.Option {
	return fx.Options(
		fx.Module("traces", fx.Provide(newTracing, asRunner(func(t *oteltrace.Tracing) part {
			if t == nil {
				return part{name: "traces"}
			}
			return part{name: "traces", stop: t.Stop}
		}))),
		fx.Decorate(func(t *oteltrace.Tracing, inner port.DeliveryHandler) port.DeliveryHandler { return t.Handler(inner) }),
	)
}

type tracingParams struct {
	fx.In
	Config  Config
	Version Version `optional:"true"`
}

func newTracing(p tracingParams) (*oteltrace.Tracing, error) {
	return oteltrace.FromEnvironment(oteltrace.Config{Version: string(p.Version), Database: storeConfig(p.Config).Dialect,
		Topic: p.Config.RocketMQ.Topic, ConsumerGroup: p.Config.RocketMQ.ConsumerGroup})
}
