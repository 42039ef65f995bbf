//go:build stack

package rocketmq_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
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
	return slog.New(slog.DiscardHandler)
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

// queues is how many a test's topic has.
const queues = 4

func withTopic(t testing.TB) rocketmq.Config {
	t.Helper()
	cfg := settings(t)
	if err := rocketmq.EnsureTopic(context.Background(), cfg, need(t, "SECKILLTEST_ROCKETMQ_BROKER"), queues); err != nil {
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
	own := rocketmq.NewAssigned()
	p := rocketmq.NewProducer(w.cfg, own, mute{parts.Listener, dead}, parts.Barriers, parts.IDs, quiet())
	c := rocketmq.NewConsumer(w.cfg, own, deaf{parts.Handler, dead}, quiet())
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

func TestDrainHoldsWhileInstancesComeAndGo(t *testing.T) {
	t.Parallel()
	contract.RunBrokerHandover(t, contract.BrokerSuite{
		World:    func(t *testing.T) contract.BrokerWorld { return newWorld(t, false) },
		Patience: 90 * time.Second,
	}, 4)
}

// Field case F15: a start that fails names what is missing, tries no more often than it says,
// and leaves nothing of ours running.
func TestAMissingTopicIsNamedAndNothingStaysBehind(t *testing.T) {
	cfg := settings(t)
	cfg.ConnectTriesMax, cfg.ConnectPause = 2, 10*time.Millisecond
	for range 3 {
		c := rocketmq.NewConsumer(cfg, rocketmq.NewAssigned(), nil, quiet())
		p := rocketmq.NewProducer(cfg, rocketmq.NewAssigned(), nil, nil, nil, quiet())
		for _, start := range []func(context.Context) error{c.Start, p.Start} {
			err := start(t.Context())
			if !errors.Is(err, domain.ErrUnavailable) || !strings.Contains(err.Error(), cfg.Topic) || !strings.Contains(err.Error(), cfg.NameServers[0]) {
				t.Fatalf("got %v", err)
			}
		}
		if err := errors.Join(c.Stop(t.Context()), p.Stop(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, goroutine := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(goroutine, "adapters/rocketmq.(*Consumer)") || strings.Contains(goroutine, "adapters/rocketmq.(*Producer)") {
			t.Errorf("left behind: %s", goroutine)
		}
	}
}

func TestAnUnreachableNameServerIsNamedInTime(t *testing.T) {
	t.Parallel()
	cfg := settings(t)
	cfg.NameServers, cfg.DirectoryTimeout = []string{"127.0.0.1:1"}, 500*time.Millisecond
	if err := rocketmq.Check(t.Context(), cfg); !errors.Is(err, domain.ErrUnavailable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Fatalf("got %v", err)
	}
}

type always domain.Verdict

func (a always) Confirm(context.Context, domain.Batch) domain.Verdict { return domain.Verdict(a) }
func (a always) Resolve(context.Context, domain.Batch) domain.Verdict { return domain.Verdict(a) }

type handle func([]port.Delivery) error

func (h handle) Handle(_ context.Context, deliveries []port.Delivery) error { return h(deliveries) }

type ids struct{}

func (ids) Attempt() string { return rand.Text() }
func (ids) Unique() string  { return rand.Text() }

func batch(t testing.TB, items int) domain.Batch {
	t.Helper()
	b := domain.Batch{ID: rand.Text(), Kind: domain.BatchDeduct}
	for i := range items {
		key, err := domain.NewKey("product-00000001", fmt.Sprintf("user-%011d", i), fmt.Sprintf("token-%010d", i))
		if err != nil {
			t.Fatal(err)
		}
		b.Items = append(b.Items, domain.Deduction{Key: key, Quantity: 1, Epoch: 1, Sequence: int64(i), Attempt: fmt.Sprintf("attempt-%08d", i), At: time.UnixMilli(1764633600123)})
	}
	return b
}

func started(t testing.TB, cfg rocketmq.Config, h port.DeliveryHandler) *rocketmq.Producer {
	t.Helper()
	own := rocketmq.NewAssigned()
	p := rocketmq.NewProducer(cfg, own, always(domain.VerdictCommit), nil, ids{}, quiet())
	c := rocketmq.NewConsumer(cfg, own, h, quiet())
	for _, start := range []func(context.Context) error{p.Start, c.Start} {
		if err := start(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Stop(context.Background()), p.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return p
}

// An instance that hangs, or of which the broker has missed the end, keeps what comes to its queues for up to two
// minutes. What is sent again must not go there.
func TestWhatIsSentAgainGoesToTheQueuesOfItsOwnInstance(t *testing.T) {
	t.Parallel()
	cfg := withTopic(t)
	came := func(at chan string) handle {
		return func(deliveries []port.Delivery) error {
			for _, d := range deliveries {
				at <- d.Batch.ID
			}
			return nil
		}
	}
	here, there := make(chan string, 1000), make(chan string, 1000)
	started(t, cfg, came(there))
	sender := started(t, cfg, came(here))
	missed := func(again bool) (n int) {
		for range 3 * queues {
			b := batch(t, 1)
			b.Again = again
			if result, err := sender.Send(t.Context(), b); result != port.SendCommitted {
				t.Fatalf("%v, %v", result, err)
			}
			select {
			case <-here:
			case <-there:
				n++
			}
		}
		return n
	}
	for missed(false) != 3*queues/2 { // until each has its half of the queues
	}
	for range 10 { // the other one may still be giving up a queue
		if missed(true) == 0 {
			return
		}
	}
	t.Error("what was sent again went to another instance")
}

// Field case F15, first half: what a send starts, it ends.
func TestSendsLeaveNoGoroutines(t *testing.T) {
	var finished atomic.Int64
	p := started(t, withTopic(t), handle(func(d []port.Delivery) error { finished.Add(int64(len(d))); return nil }))
	send := func(n int) {
		for range n {
			if result, err := p.Send(t.Context(), batch(t, 1)); result != port.SendCommitted {
				t.Fatal(result, err)
			}
		}
	}
	send(100)
	before := runtime.NumGoroutine()
	send(1000)
	deadline := time.Now().Add(30 * time.Second)
	for finished.Load() < 1100 || runtime.NumGoroutine() > before+20 {
		if time.Now().After(deadline) {
			t.Fatalf("%d finished; %d goroutines, %d before", finished.Load(), runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func BenchmarkSend(b *testing.B) {
	for _, items := range []int{1, 150} {
		for _, senders := range []int{1, 4, 32} {
			b.Run(fmt.Sprintf("items=%d/senders=%d", items, senders), func(b *testing.B) {
				cfg := withTopic(b)
				cfg.SendersMax = senders
				var calls, finished atomic.Int64
				p := started(b, cfg, handle(func(d []port.Delivery) error {
					calls.Add(1)
					finished.Add(int64(len(d)))
					return nil
				}))
				m := batch(b, items)
				var work sync.WaitGroup
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				for range senders {
					work.Go(func() {
						for left.Add(-1) >= 0 {
							if result, err := p.Send(context.Background(), m); result != port.SendCommitted {
								b.Error(result, err)
							}
						}
					})
				}
				work.Wait()
				b.ReportMetric(float64(b.N*items)/b.Elapsed().Seconds(), "purchases/s")
				b.StopTimer()
				for deadline := time.Now().Add(time.Minute); finished.Load() < int64(b.N) && time.Now().Before(deadline); {
					time.Sleep(10 * time.Millisecond)
				}
				b.ReportMetric(float64(finished.Load())/float64(max(calls.Load(), 1)), "messages/group")
			})
		}
	}
}

// Readiness asks again and again, so a check may leave neither goroutines nor connections.
func TestChecksLeaveNothing(t *testing.T) {
	cfg := withTopic(t)
	p := started(t, cfg, handle(func([]port.Delivery) error { return nil }))
	check := func(n int) {
		for range n {
			if err := p.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(5)
	before := runtime.NumGoroutine()
	check(100)
	deadline := time.Now().Add(20 * time.Second)
	for runtime.NumGoroutine() > before+10 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
