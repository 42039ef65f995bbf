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
// when it ends, and so is every half that had no verdict.
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
		for _, id := range halves[:open] {
			if c.delivered(id) == 0 {
				t.Errorf("the half %s was stored before the drain and is not finished after it", id)
			}
		}
		t.Logf("drained %d messages and %d halves; %d instances came", before, open, comings.Load())
		mu.Unlock()
	}
}
