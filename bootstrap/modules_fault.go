package bootstrap

import (
	"log/slog"

	"go.uber.org/fx"

	"seckill/adapters/faultpoint"
	"seckill/application/port"
)

// faultModule puts the fault points before the ports, if any is armed, and the wrong clock before the
// right one; otherwise there is nothing of them.
func faultModule(c Config) fx.Option {
	return fx.Options(faultClock(c), faultPoints(c))
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

func faultPoints(c Config) fx.Option {
	if len(c.Fault.Points) == 0 {
		return fx.Options()
	}
	return fx.Options(
		fx.Provide(func(log *slog.Logger) (*faultpoint.Points, error) {
			log.Warn("fault points are armed: this service breaks on purpose", "event", "fault_points_armed", "points", c.Fault.Points)
			return faultpoint.Parse(c.Fault.Points, log)
		}),
		fx.Decorate(
			(*faultpoint.Points).Gate, (*faultpoint.Points).GateAdmin, (*faultpoint.Points).OpenFlows,
			(*faultpoint.Points).Sender, (*faultpoint.Points).Listener,
			(*faultpoint.Points).Ledger, (*faultpoint.Points).Outbox, (*faultpoint.Points).Epochs,
		),
	)
}
