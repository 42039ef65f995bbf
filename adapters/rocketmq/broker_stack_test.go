//go:build stack

package rocketmq_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"seckill/adapters/rocketmq"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/contract"
)

func need(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set", name)
	}
	return value
}

func quiet() *slog.Logger {
	if os.Getenv("SECKILLTEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// settings have a topic and groups of their own, on the test broker whose transactionTimeOut is
// two seconds and whose interval is one.
func settings(t testing.TB) rocketmq.Config {
	name := "t" + rand.Text()[:12]
	cfg := rocketmq.DefaultConfig()
	cfg.NameServers = []string{need(t, "SECKILLTEST_ROCKETMQ_NAMESRV")}
	cfg.Topic, cfg.Tag = "topic_"+name, "stock_deduct"
	cfg.ProducerGroup, cfg.ConsumerGroup = "producer_"+name, "consumer_"+name
	cfg.CheckTimeout, cfg.CheckInterval = 2*time.Second, time.Second
	cfg.RetryMin, cfg.RetryMax = 5*time.Millisecond, 50*time.Millisecond
	return cfg
}

func withTopic(t testing.TB) rocketmq.Config {
	t.Helper()
	cfg := settings(t)
	if err := rocketmq.EnsureTopic(context.Background(), cfg, need(t, "SECKILLTEST_ROCKETMQ_BROKER"), 4); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// world is a topic with its groups.
type world struct {
	cfg           rocketmq.Config
	consumerFirst bool
	publisher     mq.Producer
}

func newWorld(t *testing.T, consumerFirst bool) *world {
	w := &world{cfg: withTopic(t), consumerFirst: consumerFirst}
	var err error
	w.publisher, err = mq.NewProducer(producer.WithNsResolver(primitive.NewPassthroughResolver(w.cfg.NameServers)),
		producer.WithGroupName("publisher_"+w.cfg.Topic), producer.WithInstanceName("publisher-"+rand.Text()))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.publisher.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.publisher.Shutdown() })
	return w
}

func (w *world) publish(ctx context.Context, body []byte, times int) error {
	for range times {
		result, err := w.publisher.SendSync(ctx, primitive.NewMessage(w.cfg.Topic, body).WithTag(w.cfg.Tag))
		if err != nil {
			return err
		}
		if result.Status != primitive.SendOK {
			return fmt.Errorf("status %d", result.Status)
		}
	}
	return nil
}

func (w *world) Start(t *testing.T, parts contract.BrokerParts) *contract.BrokerNode {
	dead := new(atomic.Bool)
	p := rocketmq.NewProducer(w.cfg, mute{parts.Listener, dead}, parts.Barriers, parts.IDs, quiet())
	c := rocketmq.NewConsumer(w.cfg, deaf{parts.Handler, dead}, quiet())
	starts := []func(context.Context) error{p.Start, c.Start}
	if w.consumerFirst {
		starts = []func(context.Context) error{c.Start, p.Start}
	}
	for _, start := range starts {
		if err := start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	stop := func(ctx context.Context) error {
		if err := c.Stop(ctx); err != nil {
			return err
		}
		return p.Stop(ctx)
	}
	return &contract.BrokerNode{
		Sender: p, Drainer: p, Backlog: c, Publish: w.publish, Stop: stop,
		Crash: func() {
			dead.Store(true)
			ended, end := context.WithCancel(context.Background())
			end()
			_, _ = c.Stop(ended), p.Stop(ended)
		},
	}
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

// Field case F01: which of the two is built first must not matter.
func TestBrokerContract(t *testing.T) {
	t.Parallel()
	for name, consumerFirst := range map[string]bool{"producer first": false, "consumer first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract.RunBroker(t, contract.BrokerSuite{
				World:    func(t *testing.T) contract.BrokerWorld { return newWorld(t, consumerFirst) },
				Patience: 90 * time.Second,
			})
		})
	}
}
