package bootstrap

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"seckill/adapters/faultpoint"
	"seckill/application"
	"seckill/application/port"
)

func stackConfig() Config {
	c := DefaultConfig()
	c.Profile, c.HTTP.Addr = ProfileStack, ":0"
	c.Redis.Addrs, c.RocketMQ.NameServers = []string{"127.0.0.1:1"}, []string{"127.0.0.1:1"}
	c.Database.DSN, c.Auth.Key = "u:p@tcp(127.0.0.1:1)/x", "0123456789abcdef0123456789abcdef"
	return c
}

// The graph's one Invoke asks for the group of everything that runs, so what is validated is all of it.
func TestTheGraphOfEachProfileIsComplete(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	armed := DefaultConfig()
	armed.Fault = FaultConfig{Allowed: true, Points: faultpoint.Names()}
	for i := range armed.Fault.Points {
		armed.Fault.Points[i] += "=fail"
	}
	for name, c := range map[string]Config{ProfileEmbedded: DefaultConfig(), ProfileStack: stackConfig(), "armed": armed} {
		for what, options := range map[string]fx.Option{"service": Options(c, log), "tools": toolOptions(c, log)} {
			asked := fx.Invoke(func(Services) {})
			if err := fx.ValidateApp(options, asked); err != nil {
				t.Errorf("%s of %s: %v", what, name, err)
			}
		}
	}
}

// The service has a decorator of its own for each of these, and a test may put another one inside of it.
func TestATestMayDecorateWhatTheServiceDecorates(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	c.Data = t.TempDir()
	c.HTTP.Addr, c.Admin.Addr = "127.0.0.1:0", "127.0.0.1:0"
	seen := make(map[string]bool)
	app, err := NewApp(c, slog.New(slog.DiscardHandler), fx.Decorate(
		func(inner port.Gate) port.Gate { seen["gate"] = true; return inner },
		func(inner port.Sender) port.Sender { seen["sender"] = true; return inner },
		func(inner port.Ledger) port.Ledger { seen["ledger"] = true; return inner },
		func(inner port.TransactionListener) port.TransactionListener { seen["listener"] = true; return inner },
		func(inner port.DeliveryHandler) port.DeliveryHandler { seen["handler"] = true; return inner },
	))
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	if len(seen) != 5 {
		t.Errorf("inside of the service there are only %v", seen)
	}
}

func TestWhatRunsStartsInOrderAndStopsInReverseAndIsUndoneOnAFailure(t *testing.T) {
	t.Parallel()
	var trace []string
	note := func(name string, fail bool) part {
		return part{name: name,
			start: func(context.Context) error {
				trace = append(trace, "+"+name)
				if fail {
					return errors.New("no")
				}
				return nil
			},
			stop: func(context.Context) error { trace = append(trace, "-"+name); return nil }}
	}
	log := slog.New(slog.DiscardHandler)
	l, err := newLifecycle(lifecycleParams{Log: log, Runners: []application.Runner{
		note("buyers", false), note("ledger", false), note("lane", false)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Start(t.Context()), l.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	if want := []string{"+ledger", "+lane", "+buyers", "-buyers", "-lane", "-ledger"}; !slices.Equal(trace, want) {
		t.Errorf("order %v, want %v", trace, want)
	}
	trace = nil
	l, _ = newLifecycle(lifecycleParams{Log: log, Runners: []application.Runner{note("buyers", false), note("ledger", false), note("lane", true)}})
	if err := l.Start(t.Context()); err == nil {
		t.Error("a failed start was not reported")
	}
	if want := []string{"+ledger", "+lane", "-ledger"}; !slices.Equal(trace, want) {
		t.Errorf("after a failure %v, want %v", trace, want)
	}
	if _, err := newLifecycle(lifecycleParams{Log: log, Runners: []application.Runner{note("stranger", false)}}); err == nil {
		t.Error("something that runs without a place in the order was taken")
	}
}

// One part that waits for a server which hangs, and one that never comes back, leave time for the others.
func TestAStopKeepsItsTimeWhateverItsPartsDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		var left time.Duration
		parts := []application.Runner{
			part{name: "producer", stop: func(ctx context.Context) error {
				deadline, _ := ctx.Deadline()
				left = time.Until(deadline)
				return nil
			}},
			part{name: "consumer", stop: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			part{name: "lane", stop: func(context.Context) error { <-never; return nil }},
		}
		l, err := newLifecycle(lifecycleParams{Log: slog.New(slog.DiscardHandler), Runners: parts})
		if err != nil {
			t.Fatal(err)
		}
		const grace = 16 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), grace)
		defer cancel()
		begun := time.Now()
		err = l.Stop(ctx)
		if took := time.Since(begun); took >= grace {
			t.Errorf("took %v of %v", took, grace)
		}
		if left < time.Second {
			t.Errorf("the producer had %v", left)
		}
		if err == nil || !strings.Contains(err.Error(), "stop lane") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(never)
	})
}
