package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// BrokerParts is what a broker adapter is given and drives.
type BrokerParts struct {
	Listener port.TransactionListener
	Handler  port.DeliveryHandler
	Barriers port.BarrierLog
	IDs      port.IDs
}

// BrokerNode is one running instance of a broker adapter.
type BrokerNode struct {
	Sender  port.Sender
	Drainer port.Drainer
	Backlog port.BacklogReader

	// Publish stores a committed message of any body, as another producer would, so many times.
	Publish func(ctx context.Context, body []byte, times int) error
	// Stop is the orderly end.
	Stop func(ctx context.Context) error
	// Crash is the other one: what was on the way stays as it was.
	Crash func()
}

// BrokerWorld is what outlives an instance: a folder, or a topic with its groups.
type BrokerWorld interface {
	// Start starts an instance; it is stopped or crashed before the next one starts.
	Start(t *testing.T, parts BrokerParts) *BrokerNode
}

// BrokerSuite is an adapter under test.
type BrokerSuite struct {
	// World makes an empty one.
	World func(t *testing.T) BrokerWorld
	// Patience is how long anything may take, check-backs and a rebalance included.
	Patience time.Duration
}

// RunBroker runs the contract of port.Sender, port.Drainer, port.BacklogReader, and of the way in which
// port.TransactionListener and port.DeliveryHandler are driven.
func RunBroker(t *testing.T, suite BrokerSuite) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *brokerCase)
	}{
		{"a committed batch is delivered as it was sent", committedIsDelivered},
		{"a full batch passes", fullBatchPasses},
		{"a rolled back batch is never delivered", rolledBackIsNot},
		{"an unknown verdict is decided by check-back", checkBackDecides},
		{"a check-back comes after a crash, with nothing sent", checkBackAfterCrash},
		{"committed and unfinished is delivered after a crash", deliveredAfterCrash},
		{"a refused delivery comes again and others go on", refusedComesAgain},
		{"a context that ends leaves the send going on", contextEnds},
		{"a panicking listener is unknown and later checks are answered", listenerPanics},
		{"a panicking handler is a refusal", handlerPanics},
		{"bodies of anyone arrive with what is wrong with them", malformedArrives},
		{"one message may arrive three times", duplicatesArrive},
		{"drain proves deliveries and check-backs", drainProves},
		{"drain waits for an unfinished delivery", drainWaits},
		{"stop waits for the handler, and what is not finished comes again", stopWaits},
		{"the backlog is what waits", backlogShows},
		{"many senders at once all arrive", manySenders},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, newBrokerCase(t, suite))
		})
	}
}

// brokerCase is one case: a world, a scripted application and the instance that runs.
type brokerCase struct {
	*brokerScript
	world    BrokerWorld
	patience time.Duration
}

func newBrokerCase(t *testing.T, suite BrokerSuite) *brokerCase {
	return &brokerCase{brokerScript: newBrokerScript(), world: suite.World(t), patience: suite.Patience}
}

func (c *brokerCase) start(t *testing.T) *BrokerNode {
	t.Helper()
	node := c.world.Start(t, BrokerParts{Listener: c.brokerScript, Handler: c.brokerScript, Barriers: c.barriers, IDs: c})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.patience)
		defer cancel()
		if err := node.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return node
}

func (c *brokerCase) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(c.patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not so: %s", c.patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *brokerCase) send(t *testing.T, node *BrokerNode, batch domain.Batch, want port.SendResult) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	got, err := node.Sender.Send(ctx, batch)
	if got != want || (err == nil) != (want == port.SendCommitted) {
		t.Fatalf("send: got %v, %v; want %v", got, err, want)
	}
}

func (c *brokerCase) drain(t *testing.T, node *BrokerNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	if err := node.Drainer.Drain(ctx); err != nil {
		t.Fatalf("drain: %v", err)
	}
}

func committedIsDelivered(t *testing.T, c *brokerCase) {
	node := c.start(t)
	batch := brokerBatch("b1", 3)
	c.send(t, node, batch, port.SendCommitted)
	c.until(t, "delivered", func() bool { return c.delivered("b1") > 0 })
	got := c.deliveriesOf("b1")[0]
	if got.Origin.MessageID == "" || got.Origin.Queue == "" || got.Malformed != "" || got.Batch.Kind != domain.BatchDeduct ||
		!slices.Equal(got.Batch.Items, batch.Items) {
		t.Fatalf("got %+v", got)
	}
	if node.Drainer.CheckWindow() <= 0 {
		t.Error("no check window")
	}
}

func fullBatchPasses(t *testing.T, c *brokerCase) {
	node := c.start(t)
	batch := brokerBatch("b1", 0)
	for bytes := 0; ; {
		item := brokerItem(fmt.Sprintf("user-%059d", len(batch.Items)))
		if bytes += node.Sender.BytesOf(item); bytes > node.Sender.BatchBytesMax() {
			break
		}
		batch.Items = append(batch.Items, item)
	}
	c.send(t, node, batch, port.SendCommitted)
	c.until(t, "delivered", func() bool { return c.delivered("b1") > 0 })
	if got := c.deliveriesOf("b1")[0].Batch.Items; len(got) != len(batch.Items) {
		t.Fatalf("%d items of %d arrived", len(got), len(batch.Items))
	}
}

func rolledBackIsNot(t *testing.T, c *brokerCase) {
	node := c.start(t)
	c.onConfirm("b1", domain.VerdictRollback)
	c.send(t, node, brokerBatch("b1", 1), port.SendUnknown)
	c.send(t, node, brokerBatch("b2", 1), port.SendCommitted)
	c.drain(t, node)
	if c.delivered("b1") != 0 || c.delivered("b2") == 0 || c.asked("b1") != 0 {
		t.Fatalf("b1 delivered %d times and asked about %d times, b2 delivered %d times", c.delivered("b1"), c.asked("b1"), c.delivered("b2"))
	}
}

func checkBackDecides(t *testing.T, c *brokerCase) {
	node := c.start(t)
	for _, id := range []string{"commit", "rollback", "later"} {
		c.onConfirm(id, domain.VerdictUnknown)
	}
	c.onResolve("commit", domain.VerdictCommit)
	c.onResolve("rollback", domain.VerdictRollback)
	c.onResolve("later", domain.VerdictUnknown, domain.VerdictCommit)
	for _, id := range []string{"commit", "rollback", "later"} {
		c.send(t, node, brokerBatch(id, 1), port.SendUnknown)
	}
	c.until(t, "both delivered", func() bool { return c.delivered("commit") > 0 && c.delivered("later") > 0 })
	c.until(t, "asked about the rollback", func() bool { return c.asked("rollback") > 0 })
	c.drain(t, node)
	if c.delivered("rollback") != 0 {
		t.Fatal("the rolled back batch was delivered")
	}
}

func checkBackAfterCrash(t *testing.T, c *brokerCase) {
	node := c.start(t)
	c.onConfirm("b1", domain.VerdictUnknown)
	c.onResolve("b1", domain.VerdictUnknown)
	c.send(t, node, brokerBatch("b1", 1), port.SendUnknown)
	node.Crash()
	c.onResolve("b1", domain.VerdictCommit)
	c.start(t)
	c.until(t, "delivered by check-back", func() bool { return c.delivered("b1") > 0 })
}

func deliveredAfterCrash(t *testing.T, c *brokerCase) {
	node := c.start(t)
	c.refuse(func(d port.Delivery) bool { return d.Batch.ID == "b1" })
	c.send(t, node, brokerBatch("b1", 1), port.SendCommitted)
	c.until(t, "tried", func() bool { return c.tried("b1") > 0 })
	node.Crash()
	c.refuse(nil)
	c.start(t)
	c.until(t, "delivered again", func() bool { return c.delivered("b1") > 0 })
}

func refusedComesAgain(t *testing.T, c *brokerCase) {
	node := c.start(t)
	c.refuse(func(d port.Delivery) bool { return d.Batch.ID == "b1" })
	c.send(t, node, brokerBatch("b1", 1), port.SendCommitted)
	c.until(t, "refused three times", func() bool { return c.tried("b1") >= 3 })
	c.send(t, node, brokerBatch("b2", 1), port.SendCommitted)
	c.until(t, "the other is delivered meanwhile", func() bool { return c.delivered("b2") > 0 })
	if c.delivered("b1") != 0 {
		t.Fatal("refused and finished")
	}
	c.refuse(nil)
	c.until(t, "delivered at last", func() bool { return c.delivered("b1") > 0 })
	if times := c.delivered("b2"); times != 1 {
		t.Errorf("the other was delivered %d times", times)
	}
}

func contextEnds(t *testing.T, c *brokerCase) {
	node := c.start(t)
	asked, goOn := make(chan struct{}), make(chan struct{})
	c.duringConfirm("b1", func(context.Context) { close(asked); <-goOn })
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	got, err := node.Sender.Send(ctx, brokerBatch("b1", 1))
	if got != port.SendUnknown || err == nil {
		t.Fatalf("got %v, %v", got, err)
	}
	close(goOn)
	c.until(t, "delivered although nobody waited", func() bool { return c.delivered("b1") > 0 })
}

func listenerPanics(t *testing.T, c *brokerCase) {
	node := c.start(t)
	c.duringConfirm("b1", func(context.Context) { panic("confirm") })
	c.onConfirm("b2", domain.VerdictUnknown)
	var panics atomic.Int32
	for _, id := range []string{"b1", "b2"} {
		c.onResolve(id, domain.VerdictUnknown, domain.VerdictCommit)
		c.duringResolve(id, func(context.Context) {
			if panics.Add(1) <= 2 {
				panic("resolve")
			}
		})
		c.send(t, node, brokerBatch(id, 1), port.SendUnknown)
	}
	c.until(t, "later checks are answered", func() bool { return c.delivered("b1") > 0 && c.delivered("b2") > 0 })
}

func handlerPanics(t *testing.T, c *brokerCase) {
	node := c.start(t)
	var panics atomic.Int32
	c.refuse(func(d port.Delivery) bool {
		if d.Batch.ID == "b1" && panics.Add(1) <= 2 {
			panic("handle")
		}
		return false
	})
	c.send(t, node, brokerBatch("b1", 1), port.SendCommitted)
	c.send(t, node, brokerBatch("b2", 1), port.SendCommitted)
	c.until(t, "both delivered", func() bool { return c.delivered("b1") > 0 && c.delivered("b2") > 0 })
}

func malformedArrives(t *testing.T, c *brokerCase) {
	node := c.start(t)
	ctx := context.Background()
	bad := []string{"null", "[]", `{"productId":"p","uid":"u"`, `{"productId":"p","uid":"u","token":"t","quantity":"1"}`,
		`{"productId":"p","uid":"u","token":"t","quantity":-1}`, strings.Repeat("{", 1<<20), "\x00\x01\x02"}
	for _, body := range bad {
		if err := node.Publish(ctx, []byte(body), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.Publish(ctx, []byte(`{"productId":"p","uid":"u","token":"t","quantity":2}`), 1); err != nil {
		t.Fatal(err)
	}
	c.until(t, "all arrived", func() bool { return c.malformed() >= len(bad) && c.delivered("") > 0 })
	if d := c.deliveriesOf("")[0]; !d.Batch.Plain || len(d.Batch.Items) != 1 || d.Batch.Items[0].Quantity != 2 {
		t.Fatalf("got %+v", d)
	}
	for _, d := range c.deliveriesOf("malformed") {
		if !slices.Contains(bad, string(d.Body)) {
			t.Errorf("a body of %d bytes is not as it was sent", len(d.Body))
		}
	}
}

func duplicatesArrive(t *testing.T, c *brokerCase) {
	node := c.start(t)
	if err := node.Publish(context.Background(), []byte(`{"productId":"p","uid":"u","token":"t","quantity":1}`), 3); err != nil {
		t.Fatal(err)
	}
	c.until(t, "three deliveries", func() bool { return c.delivered("") >= 3 })
	ids := map[string]bool{}
	for _, d := range c.deliveriesOf("") {
		ids[d.Origin.MessageID] = true
	}
	if len(ids) < 3 {
		t.Errorf("three messages have %d ids", len(ids))
	}
}

func drainProves(t *testing.T, c *brokerCase) {
	node := c.start(t)
	c.onConfirm("half", domain.VerdictUnknown)
	c.onConfirm("never", domain.VerdictUnknown)
	c.onResolve("half", domain.VerdictCommit)
	c.onResolve("never", domain.VerdictUnknown)
	c.beforeHandle(func(ctx context.Context) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	})
	c.send(t, node, brokerBatch("half", 1), port.SendUnknown)
	c.send(t, node, brokerBatch("never", 1), port.SendUnknown)
	for i := range 20 {
		c.send(t, node, brokerBatch(fmt.Sprint("b", i), 1), port.SendCommitted)
	}
	c.drain(t, node)
	for i := range 20 {
		if c.delivered(fmt.Sprint("b", i)) == 0 {
			t.Errorf("b%d is not finished", i)
		}
	}
	if c.delivered("half") == 0 || c.asked("never") == 0 {
		t.Errorf("half delivered %d times, never asked about %d times", c.delivered("half"), c.asked("never"))
	}
	c.onResolve("never", domain.VerdictRollback)
}

func drainWaits(t *testing.T, c *brokerCase) {
	node := c.start(t)
	c.refuse(func(d port.Delivery) bool { return d.Batch.ID == "b1" })
	c.send(t, node, brokerBatch("b1", 1), port.SendCommitted)
	c.until(t, "tried", func() bool { return c.tried("b1") > 0 })
	drained := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	go func() { drained <- node.Drainer.Drain(ctx) }()
	c.until(t, "tried more often", func() bool { return c.tried("b1") >= 4 })
	select {
	case err := <-drained:
		t.Fatalf("drained with an unfinished delivery: %v", err)
	default:
	}
	c.refuse(nil)
	if err := <-drained; err != nil {
		t.Fatalf("drain: %v", err)
	}
	if c.delivered("b1") == 0 {
		t.Fatal("drained before the delivery was finished")
	}
	over, end := context.WithCancel(context.Background())
	end()
	c.refuse(func(d port.Delivery) bool { return d.Batch.ID == "b2" })
	c.send(t, node, brokerBatch("b2", 1), port.SendCommitted)
	if err := node.Drainer.Drain(over); err == nil {
		t.Fatal("drained although the context had ended")
	}
	c.refuse(nil)
}

func stopWaits(t *testing.T, c *brokerCase) {
	node := c.start(t)
	inside, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.beforeHandle(func(context.Context) {
		once.Do(func() { close(inside) })
		<-goOn
	})
	c.send(t, node, brokerBatch("b1", 1), port.SendCommitted)
	<-inside
	stopped := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	go func() { stopped <- node.Stop(ctx) }()
	select {
	case err := <-stopped:
		t.Fatalf("stopped with the handler inside: %v", err)
	case <-time.After(50 * time.Millisecond): // nothing to wait for: it is the absence that is looked at
	}
	close(goOn)
	if err := <-stopped; err != nil {
		t.Fatalf("stop: %v", err)
	}
	if c.delivered("b1") == 0 {
		t.Fatal("stopped and not finished")
	}
	if result, err := node.Sender.Send(context.Background(), brokerBatch("b2", 1)); result != port.SendUnknown || err == nil {
		t.Fatalf("a stopped broker said %v, %v", result, err)
	}
	again := c.start(t)
	c.send(t, again, brokerBatch("b3", 1), port.SendCommitted)
	c.drain(t, again)
	if c.delivered("b3") == 0 {
		t.Error("nothing is delivered after the second start")
	}
}

func backlogShows(t *testing.T, c *brokerCase) {
	node := c.start(t)
	c.refuse(func(port.Delivery) bool { return true })
	for i := range 5 {
		c.send(t, node, brokerBatch(fmt.Sprint("b", i), 1), port.SendCommitted)
	}
	ctx := context.Background()
	c.until(t, "five wait", func() bool { return node.Backlog.Backlog(ctx) == port.Backlog{Known: true, Messages: 5} })
	c.refuse(nil)
	c.until(t, "none waits", func() bool { return node.Backlog.Backlog(ctx) == port.Backlog{Known: true, Messages: 0} })
}

func manySenders(t *testing.T, c *brokerCase) {
	node := c.start(t)
	const senders, each = 8, 25
	var group sync.WaitGroup
	for s := range senders {
		group.Go(func() {
			for i := range each {
				id := fmt.Sprintf("b-%d-%d", s, i)
				if got, err := node.Sender.Send(context.Background(), brokerBatch(id, 2)); got != port.SendCommitted {
					t.Errorf("%s: got %v, %v", id, got, err)
				}
			}
		})
	}
	group.Wait()
	c.drain(t, node)
	for s := range senders {
		for i := range each {
			if id := fmt.Sprintf("b-%d-%d", s, i); c.delivered(id) == 0 {
				t.Errorf("%s is not finished after the drain", id)
			}
		}
	}
}

var errRefused = errors.New("refused by the script")
