package contract

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/application/port"
)

// RunBrokerHandover is for brokers that several instances share: while messages are sent and
// instances come, stop and crash, whatever was committed before a drain began is finished
// when it ends. Every half without a verdict has been asked about; one whose question went to an
// instance that died of it counts as answered by unknown, and is finished later.
func RunBrokerHandover(t *testing.T, suite BrokerSuite, drains int) {
	c := newBrokerCase(t, suite)
	c.beforeHandle(func(context.Context) { time.Sleep(time.Millisecond) }) // a handler that takes its time
	node := c.start(t)
	quit := make(chan struct{})
	var work sync.WaitGroup
	var mu sync.Mutex
	var committed, halves []string
	defer work.Wait()
	defer close(quit)
	work.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			id := fmt.Sprint("b", i)
			if i%50 == 0 {
				c.onConfirm(id, 0)
			}
			result, _ := node.Sender.Send(context.Background(), brokerBatch(id, 1))
			mu.Lock()
			if result == port.SendCommitted {
				committed = append(committed, id)
			} else {
				halves = append(halves, id)
			}
			mu.Unlock()
		}
	})
	var comings atomic.Int32
	work.Go(func() {
		for i := 0; ; i++ {
			other := c.start(t)
			comings.Add(1)
			select {
			case <-quit:
				return
			case <-time.After(time.Duration(500+i%3*400) * time.Millisecond):
			}
			if i%2 == 0 {
				other.Crash()
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), suite.Patience)
			if err := other.Stop(ctx); err != nil {
				t.Errorf("stop: %v", err)
			}
			cancel()
		}
	})
	for range drains {
		mu.Lock()
		before, open := len(committed), len(halves)
		mu.Unlock()
		c.drain(t, node)
		mu.Lock()
		for _, id := range committed[:before] {
			if c.delivered(id) == 0 {
				t.Errorf("%s was committed before the drain and is not finished after it", id)
			}
		}
		var late []string
		for _, id := range halves[:open] {
			if c.delivered(id) == 0 {
				late = append(late, id)
			}
		}
		t.Logf("drained %d messages and %d halves, %d of them later; %d instances came", before, open, len(late), comings.Load())
		mu.Unlock()
		for _, id := range late {
			c.until(t, id+" is finished", func() bool { return c.delivered(id) > 0 })
		}
	}
}
