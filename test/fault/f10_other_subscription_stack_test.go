//go:build stack

package fault

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/test/harness"
	"seckill/test/shop"
)

// F10: another version joins the consumer group that wants another topic as well, as in a rolling deploy. It is
// given queues of ours, and hands back what it gets; every purchase is applied all the same, while it is there
// and after it has gone.
func TestF10MembersWithDifferentSubscriptions(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Start()
	n := tenth(t, 1000)
	product := onSale(t, s, int64(10*n)+1000, 0)
	handedBack, leave := joins(t, s)
	crowd := crowdOf(product, "u", n)
	atOnce(s, crowd)
	for _, p := range crowd {
		converge(t, s, p)
	}
	// One after another, which takes them through every queue, until the other version was given one of them.
	shop.Eventually(t, time.Minute, "the other version is given messages", func() (bool, string) {
		p := &purchase{product: product, user: fmt.Sprint("one", len(crowd)), token: "t", quantity: 1}
		p.buy(s)
		converge(t, s, p)
		crowd = append(crowd, p)
		return handedBack.Load() > 0, ""
	})
	holds(t, s, product, int64(len(crowd)), int64(len(crowd)), crowd...)
	leave()
	late := crowdOf(product, "late", n)
	atOnce(s, late)
	for _, p := range late {
		converge(t, s, p)
	}
	crowd = append(crowd, late...)
	holds(t, s, product, int64(len(crowd)), int64(len(crowd)), crowd...)
	s.Stop()
}

// joins makes a member of the shop's consumer group that subscribes to one more topic, and waits until it has a share
// of the queues.
func joins(t *testing.T, s *shop.Shop) (handedBack *atomic.Int64, leave func()) {
	t.Helper()
	handedBack = new(atomic.Int64)
	_, another := harness.Topic(t)
	var share atomic.Int64
	allocate := func(group, id string, all []*primitive.MessageQueue, members []string) []*primitive.MessageQueue {
		mine := consumer.AllocateByAveragely(group, id, all, members)
		if len(all) > 0 && all[0].Topic == s.Topic && len(members) > 1 {
			share.Store(int64(len(mine)))
		}
		return mine
	}
	c, err := rocketmq.NewPushConsumer(consumer.WithGroupName(s.Group+"_consumer"), consumer.WithInstance(harness.UniqueID(t)),
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{s.NameServers})), consumer.WithStrategy(allocate),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		t.Fatal(err)
	}
	handBack := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		handedBack.Add(int64(len(messages)))
		return consumer.ConsumeRetryLater, nil
	}
	for topic, tag := range map[string]string{s.Topic: "stock_deduct", another: "*"} {
		if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tag}, handBack); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	gone := false
	leave = func() {
		if !gone {
			gone = true
			_ = c.Shutdown()
		}
	}
	t.Cleanup(leave)
	shop.Eventually(t, time.Minute, "the other version has queues", func() (bool, string) { return share.Load() > 0, "" })
	return handedBack, leave
}
