//go:build stack

package fault

import (
	"net/http"
	"testing"

	"seckill/test/harness"
	"seckill/test/shop"
)

// F11: a consumer group with a fresh name replays the whole history of the topic, and finds everything applied; and
// a group that begins after the first purchases misses none of them.
func TestF11AFreshConsumerGroup(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Start()
	n := tenth(t, 200)
	product := onSale(t, s, int64(10*n), 0)
	yesterday := crowdOf(product, "yesterday", n)
	atOnce(s, yesterday)
	holds(t, s, product, int64(n), int64(n), yesterday...)
	before := atRest(t, s, product)

	s.Stop()
	s.Set("SECKILL_ROCKETMQ__CONSUMER_GROUP=" + harness.UniqueID(t))
	s.Start()
	s.WaitOpen(product)
	// The purchase lies behind the history in its queue, and each queue gets one.
	marks := crowdOf(product, "mark", 4*queues)
	atOnce(s, marks)
	for _, p := range marks {
		s.WaitOrder(product, p.user, p.token, "confirmed")
	}
	waitLag(t, s)
	total := int64(n + len(marks))
	holds(t, s, product, total, total, append(yesterday, marks...)...)
	if after := atRest(t, s, product); after.stock != before.stock-int64(len(marks)) || after.epoch != before.epoch {
		t.Errorf("%+v became %+v", before, after)
	}
	s.Stop()
}

// F11: orders that were accepted while nobody consumed appear when a consumer of the group starts for the first
// time. The messages are put there as an instance does that has no consumer; the relay is off.
func TestF11AConsumerThatStartsAfterTheFirstPurchases(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack, "SECKILL_RELAY__OPEN_AGE=1h")
	s.Start()
	n := tenth(t, 200)
	product := onSale(t, s, int64(n), 0)
	crowd := crowdOf(product, "early", n)
	messages := make([][]byte, n)
	for i, f := range flowsOf(t, s, crowd) {
		crowd[i].answer = shop.Answer{Status: http.StatusAccepted} // what its buyer was told
		messages[i] = messageOf(t, f)
	}
	s.Stop()
	s.Publish(messages...) // no member of the new group has ever been there
	s.Set("SECKILL_ROCKETMQ__CONSUMER_GROUP=" + harness.UniqueID(t))
	s.Start()
	s.WaitOpen(product)
	for _, p := range crowd {
		s.WaitOrder(product, p.user, p.token, "confirmed")
	}
	holds(t, s, product, int64(n), int64(n), crowd...)
	s.Stop()
}
