package shop

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"seckill/adapters/embedded"
	"seckill/adapters/redislua"
	"seckill/bootstrap"
)

// here is what is behind the doors of a service in the test's process.
type here struct {
	gate   *redislua.Gate
	broker *embedded.Broker
	app    *bootstrap.App
}

// RunsHere reports whether StartHere has started it.
func (s *Shop) RunsHere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.here.app != nil
}

// StartHere runs the embedded service in the test's process, so that the test can reach behind its doors
// (Gate, Publish), or change its parts by more options. It is stopped when the test ends.
func (s *Shop) StartHere(more ...fx.Option) {
	s.t.Helper()
	c, err := bootstrap.LoadConfig("", s.env, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	more = append(more, fx.Populate(&s.here.gate, &s.here.broker))
	app, err := bootstrap.NewApp(c, slog.New(slog.DiscardHandler), more...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(app.Close)
	if err := app.Start(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := app.Stop(); err != nil {
			s.t.Error(err)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buyers, s.operators, s.here.app = app.BuyersURL(), app.OperatorsURL(), app
}
