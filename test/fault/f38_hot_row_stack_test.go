//go:build stack

package fault

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/test/shop"
)

// F38, and F39 with snapshot isolation: instances that apply to one hot row at the same time lose every
// race for its version now and then, and no order.
func TestF38OneHotRow(t *testing.T) {
	t.Parallel()
	t.Run("F38_versions_move", func(t *testing.T) {
		t.Parallel()
		hotRow(t, "")
	})
	t.Run("F39_snapshots_are_isolated", func(t *testing.T) {
		t.Parallel()
		hotRow(t, "?innodb_snapshot_isolation=ON")
	})
}

func hotRow(t *testing.T, parameters string) {
	s := shop.New(t, shop.Stack)
	s.Set("SECKILL_DATABASE__DSN=" + s.DSN + parameters)
	s.Start()
	twin := shop.New(t, shop.Stack, "SECKILL_REDIS__ADDRS="+s.Redis, "SECKILL_DATABASE__DSN="+s.DSN+parameters,
		"SECKILL_ROCKETMQ__TOPIC="+s.Topic, "SECKILL_ROCKETMQ__PRODUCER_GROUP="+s.Group+"_producer",
		"SECKILL_ROCKETMQ__CONSUMER_GROUP="+s.Group+"_consumer")
	twin.Start()
	n := tenth(t, 2000)
	product := onSale(t, s, int64(2*n), 0)
	twin.WaitOpen(product)
	half := crowdOf(product, "here", n/2)
	other := crowdOf(product, "there", n/2)
	var bodies [][]byte
	for i := range n {
		bodies = append(bodies, []byte(plainMessage(product, fmt.Sprintf("plain%d", i), "t", "1")))
	}
	var rest sync.WaitGroup
	rest.Go(func() { atOnce(s, half) })
	rest.Go(func() { atOnce(twin, other) })
	s.Publish(bodies...)
	rest.Wait()
	all := append(half, other...)
	for _, p := range all {
		converge(t, s, p)
	}
	shop.Eventually(t, time.Minute, "every plain message is an order", func() (bool, string) {
		v, a := s.Stock(product)
		return v.Ledger != nil && v.Ledger.Stock == 0, a.String()
	})
	waitLag(t, s)
	holds(t, s, product, int64(2*n), int64(2*n), all...)
	if v := s.Pipeline(); v.Parked == nil || *v.Parked != 0 {
		t.Errorf("parked: %+v", v)
	}
	twin.Stop()
	s.Stop()
}
