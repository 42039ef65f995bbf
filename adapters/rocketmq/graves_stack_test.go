//go:build stack

package rocketmq_test

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/adapters/rocketmq"
	"seckill/adapters/wire"
	"seckill/application/port"
)

// A member of the group that sends its messages back once too often makes dead letters of them.
func TestDeadLettersReachTheirHandlerOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	w.cfg.GravesPause = 100 * time.Millisecond
	var mu sync.Mutex
	got := map[string]int{}
	all := make(chan struct{})
	letters := handle(func(deliveries []port.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range deliveries {
			if got[d.Batch.ID]++; len(got) == 3 && got[d.Batch.ID] == 1 {
				close(all)
			}
		}
		return nil
	})
	g := rocketmq.NewGraves(w.cfg, handle(func([]port.Delivery) error { return nil }), letters, quiet())
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	want := map[string]bool{}
	for range 3 {
		b := batch(t, 2)
		body, err := wire.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		want[b.ID] = true
		if err := w.publish(t.Context(), body, 1); err != nil {
			t.Fatal(err)
		}
	}
	sendsBack(t, w.cfg)
	select {
	case <-all:
	case <-time.After(90 * time.Second):
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("%v of %v", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	for id := range want {
		if got[id] != 1 {
			t.Errorf("%s came %d times", id, got[id])
		}
	}
}

// sendsBack is a member of the group that gives up on every message at once.
func sendsBack(t *testing.T, cfg rocketmq.Config) {
	t.Helper()
	c, err := mq.NewPushConsumer(consumer.WithGroupName(cfg.ConsumerGroup), consumer.WithInstance("sends-back-"+rand.Text()),
		consumer.WithNsResolver(primitive.NewPassthroughResolver(cfg.NameServers)), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		t.Fatal(err)
	}
	giveUp := func(ctx context.Context, _ ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		if c, ok := primitive.GetConcurrentlyCtx(ctx); ok {
			c.DelayLevelWhenNextConsume = -1 // straight to the dead letters
		}
		return consumer.ConsumeRetryLater, nil
	}
	if err := c.Subscribe(cfg.Topic, consumer.MessageSelector{Type: consumer.TAG, Expression: cfg.Tag}, giveUp); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Shutdown() })
}

// Without a name server graves wait, and a stop does not.
func TestGravesStopWhileTheyLookForTheirTopics(t *testing.T) {
	t.Parallel()
	cfg := settings(t)
	cfg.NameServers = []string{"127.0.0.1:1"}
	g := rocketmq.NewGraves(cfg, nil, nil, quiet())
	for range 2 {
		if err := g.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := g.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
