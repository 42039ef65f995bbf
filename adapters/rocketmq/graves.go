package rocketmq

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/application/port"
)

// Where the broker puts what it gives up on. It makes both topics when it first needs them.
const (
	discardedHalves   = "TRANS_CHECK_MAX_TIME_TOPIC" // of all producers of the cluster
	deadLettersPrefix = "%DLQ%"                      // then the consumer group
)

// Graves consumes what the broker itself has given up on: half messages that were checked too often, and
// messages that were delivered too often. Each has a consumer group of its own.
type Graves struct {
	cfg    Config
	log    *slog.Logger
	graves []*grave

	once   sync.Once
	cancel context.CancelFunc
	done   chan struct{}
}

// grave is one topic; its consumer is made once the topic is there.
type grave struct {
	cfg       Config
	handler   port.DeliveryHandler
	ours      func(*primitive.MessageExt) bool
	directory *directory
	consumer  *Consumer
}

// NewGraves makes consumers for half messages and for dead letters; they connect when the broker has any.
func NewGraves(cfg Config, halves, letters port.DeliveryHandler, log *slog.Logger) *Graves {
	of := func(topic, role string) Config {
		own := cfg
		own.Topic, own.ConsumerGroup = topic, cfg.ConsumerGroup+role
		own.GroupsMax, own.CallbacksMax, own.PulledMax, own.PulledMebibytes = 1, 1, 2*pullMax, 16
		own.ConnectTriesMax = 1
		return own
	}
	ours := func(m *primitive.MessageExt) bool {
		return m.GetProperty(primitive.PropertyRealTopic) == cfg.Topic && m.GetProperty(primitive.PropertyProducerGroup) == cfg.ProducerGroup
	}
	g := &Graves{cfg: cfg, log: log, done: make(chan struct{}), graves: []*grave{
		{cfg: of(discardedHalves, "_discarded_halves"), handler: halves, ours: ours},
		{cfg: of(deadLettersPrefix+cfg.ConsumerGroup, "_dead_letters"), handler: letters},
	}}
	for _, grave := range g.graves {
		grave.directory = newDirectory(grave.cfg)
	}
	return g
}

// Name is "rocketmq-graves".
func (g *Graves) Name() string { return "rocketmq-graves" }

// Start begins to look for the topics; it waits for nothing.
func (g *Graves) Start(context.Context) error {
	g.once.Do(func() {
		ctx, cancel := context.WithCancel(context.Background())
		g.cancel = cancel
		go g.watch(ctx)
	})
	return nil
}

// Stop ends the looking and the consumers, at most until ctx ends.
func (g *Graves) Stop(ctx context.Context) error {
	g.once.Do(func() { g.cancel = func() {}; close(g.done) })
	g.cancel()
	select {
	case <-g.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	var errs []error
	for _, grave := range g.graves {
		errs = append(errs, grave.directory.close())
		if grave.consumer != nil {
			errs = append(errs, grave.consumer.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// watch opens each grave once its topic is there.
func (g *Graves) watch(ctx context.Context) {
	defer close(g.done)
	for {
		missing := false
		for _, grave := range g.graves {
			missing = !g.opened(ctx, grave) || missing
		}
		if !missing || !pause(ctx.Done(), g.cfg.GravesPause) {
			return
		}
	}
}

func (g *Graves) opened(ctx context.Context, grave *grave) bool {
	if grave.consumer != nil {
		return true
	}
	if grave.directory.check(ctx) != nil || ctx.Err() != nil {
		return false // not there yet, as a rule: nothing was ever given up
	}
	c := NewConsumer(grave.cfg, NewAssigned(), grave.handler, g.log)
	c.ours = grave.ours
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		g.log.Warn("what the broker gave up on cannot be read yet", "event", "grave_away", "topic", grave.cfg.Topic, "error", err)
		return false
	}
	grave.consumer = c
	return true
}
