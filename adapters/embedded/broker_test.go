package embedded_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"seckill/adapters/embedded"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/contract"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func quick() embedded.BrokerConfig {
	cfg := embedded.DefaultBrokerConfig()
	cfg.CheckTimeout, cfg.CheckInterval = 100*time.Millisecond, 50*time.Millisecond
	cfg.RetryMin, cfg.RetryMax = 5*time.Millisecond, 20*time.Millisecond
	return cfg
}

// world is a folder; a crash leaves the folder of the dead instance and goes on with a copy of its journal,
// which is what a SIGKILL leaves.
type world struct{ dir string }

func (w *world) Start(t *testing.T, parts contract.BrokerParts) *contract.BrokerNode {
	dead := new(atomic.Bool)
	broker, err := embedded.NewBroker(w.dir, quick(), mute{parts.Listener, dead}, deaf{parts.Handler, dead}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return &contract.BrokerNode{
		Sender: broker, Drainer: broker, Backlog: broker, Stop: broker.Stop,
		Publish: func(_ context.Context, body []byte, times int) error { return broker.Publish(body, times) },
		Crash: func() {
			dead.Store(true)
			w.dir = copyJournal(t, w.dir)
		},
	}
}

func copyJournal(t *testing.T, from string) string {
	to := t.TempDir()
	body, err := os.ReadFile(filepath.Join(from, "broker.journal"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "broker.journal"), body, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// mute and deaf are the application of an instance that has crashed.
type mute struct {
	port.TransactionListener
	dead *atomic.Bool
}

func (m mute) Resolve(ctx context.Context, batch domain.Batch) domain.Verdict {
	if m.dead.Load() {
		return domain.VerdictUnknown
	}
	return m.TransactionListener.Resolve(ctx, batch)
}

type deaf struct {
	port.DeliveryHandler
	dead *atomic.Bool
}

func (d deaf) Handle(ctx context.Context, deliveries []port.Delivery) error {
	if d.dead.Load() {
		return context.Canceled
	}
	return d.DeliveryHandler.Handle(ctx, deliveries)
}

func TestBrokerContract(t *testing.T) {
	t.Parallel()
	contract.RunBroker(t, contract.BrokerSuite{
		World:    func(t *testing.T) contract.BrokerWorld { return &world{dir: t.TempDir()} },
		Patience: 10 * time.Second,
	})
}
