package bootstrap

import (
	"log/slog"

	"go.uber.org/fx"

	"seckill/adapters/faultpoint"
	"seckill/adapters/oteltrace"
	"seckill/adapters/prommetrics"
	"seckill/application/port"
)

// faultModule puts the fault points before the ports, if any is armed, and the wrong clock before the
// right one; otherwise there is nothing of them. Four of the ports are counted and traced too, outside of the fault points: what is counted is
// what the use cases see. All are one decorator a port, since fx takes no second one.
func faultModule(c Config) fx.Option {
	return fx.Options(faultClock(c), aroundPorts(c))
}

func faultClock(c Config) fx.Option {
	if c.Fault.ClockOffset == 0 {
		return fx.Options()
	}
	return fx.Decorate(func(inner port.Clock, log *slog.Logger) port.Clock {
		log.Warn("the clock is wrong on purpose", "event", "fault_clock", "offset", c.Fault.ClockOffset)
		return faultpoint.Clock(inner, c.Fault.ClockOffset)
	})
}

func aroundPorts(c Config) fx.Option {
	type traces = *oteltrace.Tracing
	type metrics = *prommetrics.Metrics
	type points = *faultpoint.Points
	if len(c.Fault.Points) == 0 {
		return fx.Decorate(
			func(t traces, m metrics, inner port.Gate) port.Gate { return m.Gate(t.Gate(inner)) },
			func(t traces, m metrics, inner port.Sender) port.Sender { return m.Sender(t.Sender(inner)) },
			func(t traces, m metrics, inner port.TransactionListener) port.TransactionListener {
				return m.Listener(t.Listener(inner))
			},
			func(t traces, m metrics, clock port.Clock, inner port.Ledger) port.Ledger {
				return m.Ledger(t.Ledger(inner), clock)
			},
		)
	}
	return fx.Options(
		fx.Provide(func(log *slog.Logger) (points, error) {
			log.Warn("fault points are armed: this service breaks on purpose", "event", "fault_points_armed", "points", c.Fault.Points)
			return faultpoint.Parse(c.Fault.Points, log)
		}),
		fx.Decorate(
			func(p points, t traces, m metrics, inner port.Gate) port.Gate { return m.Gate(t.Gate(p.Gate(inner))) },
			func(p points, t traces, m metrics, inner port.Sender) port.Sender {
				return m.Sender(t.Sender(p.Sender(inner)))
			},
			func(p points, t traces, m metrics, inner port.TransactionListener) port.TransactionListener {
				return m.Listener(t.Listener(p.Listener(inner)))
			},
			func(p points, t traces, m metrics, clock port.Clock, inner port.Ledger) port.Ledger {
				return m.Ledger(t.Ledger(p.Ledger(inner)), clock)
			},
			points.GateAdmin, points.OpenFlows, points.Outbox, points.Epochs,
		),
	)
}
