package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/hooks"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

const (
	// expiryNever is beyond any outage: the client sends messages back that are older than its expiry.
	expiryNever = 7 * 24 * time.Hour
	// reconsumeMax is explicit and unused: nothing is sent back.
	reconsumeMax = 16
	// returnGrace lets the client note the results of callbacks that have just returned, before it
	// shuts down. Too short costs a redelivery.
	returnGrace = 50 * time.Millisecond
)

// Consumer hands the topic's messages to a handler. It is a port.BacklogReader.
type Consumer struct {
	cfg       Config
	handler   port.DeliveryHandler
	log       *slog.Logger
	directory *directory
	tracker   *tracker
	reach     *reach
	client    mq.PushConsumer
	ours      func(*primitive.MessageExt) bool // nil: every message of the topic is

	parcels  chan *parcel
	ctx      context.Context // of the handler; ends when Stop runs out of patience
	abandon  context.CancelFunc
	draining context.Context // ends when Stop begins
	drain    context.CancelFunc
	released chan struct{} // closed when the client has shut down

	mu       sync.Mutex
	running  bool
	stopping bool
	calls    sync.WaitGroup // callbacks inside
	gather   sync.WaitGroup
}

var _ port.BacklogReader = (*Consumer)(nil)

// parcel is what one callback hands over.
type parcel struct {
	deliveries []port.Delivery
	finished   chan bool
}

// NewConsumer makes a consumer, which writes down in own what falls to it; it connects when it is started.
func NewConsumer(cfg Config, own *Assigned, handler port.DeliveryHandler, log *slog.Logger) *Consumer {
	c := &Consumer{cfg: cfg, handler: handler, log: log, directory: newDirectory(cfg), tracker: newTracker(cfg.Topic, own),
		reach: newReach(cfg), parcels: make(chan *parcel), released: make(chan struct{})}
	c.ctx, c.abandon = context.WithCancel(context.Background())
	c.draining, c.drain = context.WithCancel(context.Background())
	return c
}

// Name is "rocketmq-consumer".
func (c *Consumer) Name() string { return "rocketmq-consumer" }

// Start begins to consume. The topic must be there: it is looked for a bounded number of times,
// before any client is made, since each client that fails leaves goroutines of the library's behind.
// CodeUnavailable names what is missing; then nothing of it runs on.
func (c *Consumer) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running || c.stopping {
		return domain.NewError(domain.CodeInternal, "a consumer starts once", nil)
	}
	BridgeLogs(c.log)
	if err := c.directory.connect(ctx); err != nil {
		return errors.Join(err, c.directory.close())
	}
	for range c.cfg.GroupsMax {
		c.gather.Go(c.gatherLoop)
	}
	if err := c.open(); err != nil {
		c.drain()
		return errors.Join(domain.NewError(domain.CodeUnavailable,
			"the consumer cannot start at name server "+strings.Join(c.cfg.NameServers, ","), err), c.shutdown())
	}
	c.running = true
	return nil
}

func (c *Consumer) open() (err error) {
	c.client, err = mq.NewPushConsumer(c.options()...)
	if err != nil {
		return err
	}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: c.cfg.Tag}
	if err := c.client.Subscribe(c.cfg.Topic, selector, c.callback); err != nil {
		return err
	}
	return c.client.Start()
}

func (c *Consumer) options() []consumer.Option {
	return []consumer.Option{
		consumer.WithGroupName(c.cfg.ConsumerGroup),
		consumer.WithInstance(instanceName("consumer")),
		consumer.WithNsResolver(newResolver(c.cfg.NameServers, c.cfg.DirectoryTimeout)),
		consumer.WithCredentials(credentials(c.cfg)),
		consumer.WithRemotingTimeout(dialTimeout, readTimeout, writeTimeout),
		consumer.WithConsumerModel(consumer.Clustering),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeMessageBatchMaxSize(pullMax),
		consumer.WithPullBatchSize(pullMax),
		consumer.WithConsumeGoroutineNums(c.cfg.CallbacksMax),
		consumer.WithMaxReconsumeTimes(reconsumeMax),
		consumer.WithConsumeTimeout(expiryNever),
		consumer.WithPullThresholdForTopic(c.cfg.PulledMax),
		consumer.WithPullThresholdSizeForTopic(c.cfg.PulledMebibytes),
		consumer.WithStrategy(c.tracker.allocate),
		consumer.WithFilterMessageHook([]hooks.FilterMessageHook{c.pulled}),
	}
}

// pulled sees every pull, in its queue's order, before it is dispatched.
func (c *Consumer) pulled(pull *hooks.FilterMessageContext) ([]*primitive.MessageExt, error) {
	messages := pull.Msg
	if c.ours != nil {
		messages = slices.DeleteFunc(slices.Clone(messages), func(m *primitive.MessageExt) bool { return !c.ours(m) })
	}
	c.tracker.pull(pull.MQ, messages)
	return messages, nil
}

// Stop holds new callbacks, waits for those inside until ctx ends, and disconnects.
func (c *Consumer) Stop(ctx context.Context) error {
	c.mu.Lock()
	if c.stopping || !c.running {
		c.stopping = true
		c.mu.Unlock()
		return nil
	}
	c.stopping = true
	c.mu.Unlock()
	c.drain()
	quiet := make(chan struct{})
	go func() {
		c.gather.Wait()
		c.calls.Wait()
		close(quiet)
	}()
	var late error
	select {
	case <-quiet:
		pause(ctx.Done(), returnGrace)
	case <-ctx.Done():
		late = fmt.Errorf("the handler did not end: %w", ctx.Err())
	}
	c.abandon()
	return errors.Join(late, c.shutdown())
}

func (c *Consumer) shutdown() error {
	defer close(c.released)
	err := c.directory.close()
	if c.client != nil {
		err = errors.Join(err, c.client.Shutdown())
	}
	return err
}

// Check says whether the name servers answer and know the topic. CodeUnavailable.
func (c *Consumer) Check(ctx context.Context) error { return c.directory.check(ctx) }

// Backlog is port.BacklogReader's: the queues that this instance consumes, as of the last pulls. It is not known while a
// broker that has one of them does not answer.
func (c *Consumer) Backlog(ctx context.Context) port.Backlog {
	messages, brokers := c.tracker.lag()
	if len(brokers) == 0 || !c.reach.all(ctx, brokers) {
		return port.Backlog{}
	}
	return port.Backlog{Known: true, Messages: messages}
}

// callback takes one pull of one queue. It returns success when all of it is finished; a consumer
// that stops holds it until its result counts for nothing, as it does for a queue that has been taken away.
func (c *Consumer) callback(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	if c.enter() && c.finishSafely(messages) {
		return consumer.ConsumeSuccess, nil
	}
	if c.draining.Err() != nil {
		<-c.released
	}
	return consumer.ConsumeRetryLater, nil
}

// finishSafely sends a pull on which this adapter panics back to the broker: the one way left
// that does not lose it.
func (c *Consumer) finishSafely(messages []*primitive.MessageExt) (finished bool) {
	defer c.calls.Done()
	defer func() {
		if cause := recover(); cause != nil {
			c.log.Error("the consumer panicked", "event", "consumer_panic", "panic", fmt.Sprint(cause))
			finished = false
		}
	}()
	return c.finish(messages)
}

func (c *Consumer) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return false
	}
	c.calls.Add(1)
	return true
}

// finish hands the messages over, barriers alone and in their place.
func (c *Consumer) finish(messages []*primitive.MessageExt) bool {
	queue := messages[0].Queue
	deliveries := make([]port.Delivery, len(messages))
	for i, m := range messages {
		deliveries[i] = deliveryOf(m)
		if end, err := strconv.ParseInt(m.GetProperty(primitive.PropertyMaxOffset), 10, 64); err == nil {
			c.tracker.told(queue, end)
		}
	}
	for from := 0; from < len(messages); {
		to := from
		for to < len(messages) && deliveries[to].Batch.Kind != domain.BatchBarrier {
			to++
		}
		var ok bool
		if to > from {
			ok = c.submit(deliveries[from:to])
		} else {
			to++
			ok = c.tracker.waitBefore(c.draining, queue, messages[from].QueueOffset) && c.handle(deliveries[from:to])
		}
		if !ok {
			return false
		}
		c.tracker.finish(queue, messages[from:to])
		from = to
	}
	return true
}

func deliveryOf(m *primitive.MessageExt) port.Delivery {
	d := port.Delivery{Body: m.Body, Origin: port.Origin{
		MessageID: m.MsgId, Queue: queueName(m.Queue), Offset: m.QueueOffset, Times: int(m.ReconsumeTimes),
		Trace: m.GetProperty(wire.TraceProperty)}}
	batch, err := wire.Decode(m.Body)
	if err != nil {
		d.Malformed = err.Error()
		return d
	}
	d.Batch = batch
	return d
}

// submit gives a callback's messages to a gatherer and waits for their end.
func (c *Consumer) submit(deliveries []port.Delivery) bool {
	p := &parcel{deliveries: deliveries, finished: make(chan bool, 1)}
	select {
	case c.parcels <- p:
		return <-p.finished
	case <-c.draining.Done():
		return false
	}
}

// gatherLoop hands groups to the handler: whatever waits, up to GatherMax.
func (c *Consumer) gatherLoop() {
	for {
		select {
		case <-c.draining.Done():
			return
		case first := <-c.parcels:
			group, deliveries := c.group(first)
			finished := c.handle(deliveries)
			for _, p := range group {
				p.finished <- finished
			}
		}
	}
}

func (c *Consumer) group(first *parcel) ([]*parcel, []port.Delivery) {
	group, deliveries := []*parcel{first}, first.deliveries
	for len(deliveries) < c.cfg.GatherMax {
		select {
		case p := <-c.parcels:
			group = append(group, p)
			deliveries = append(deliveries[:len(deliveries):len(deliveries)], p.deliveries...)
		default:
			return group, deliveries
		}
	}
	return group, deliveries
}

// handle gives a group to the handler until it is finished; false when the consumer stops first.
func (c *Consumer) handle(deliveries []port.Delivery) bool {
	wait := c.cfg.RetryMin
	for {
		err := c.callHandler(deliveries)
		if err == nil {
			return true
		}
		c.log.Warn("a group is not finished and is handed over again", "event", "delivery_retry", "messages", len(deliveries), "error", err)
		if !pause(c.draining.Done(), wait) {
			return false
		}
		wait = min(2*wait, c.cfg.RetryMax)
	}
}

func (c *Consumer) callHandler(deliveries []port.Delivery) (err error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.HandleTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the handler panicked: %v", cause)
		}
	}()
	return c.handler.Handle(ctx, deliveries)
}
