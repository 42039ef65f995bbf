package application

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// answer is what one caller gets.
type answer struct {
	receipt Receipt
	err     error
}

// The states of a purchase in the queue. Whoever moves it out of waiting decides whether the
// deduct runs: the lane, or the caller who leaves.
const (
	purchaseWaiting int32 = iota
	purchaseTaken
	purchaseGone
)

// purchase is one caller's command on its way through the lane.
type purchase struct {
	item  port.DeductItem
	state atomic.Int32
	done  chan answer // room for one, so that the lane never waits for a caller

	// Of one that is sent, between the stages.
	flow      domain.Deduction
	replayed  bool
	bytes     int // that the flow takes in a message
	remaining int64
}

func newPurchase() *purchase { return &purchase{done: make(chan answer, 1)} }

// stages are the pieces of work of a lane. Each answers the purchases that it ends and sets their
// place in the slice to nil; a purchase that it leaves there is answered by the lane.
type stages struct {
	deduct func([]*purchase) // passes accepted ones to lane.accept, unloaded ones to lane.lookUp
	send   func([]*purchase)
	lookUp func([]*purchase)
}

// lane is the group commit: requests queue up while a batch is in flight, and the next batch
// takes all that wait. There is no timer. The deduct stage, the senders and the look-up of
// products that the gate does not know overlap; between them are bounded queues.
type lane struct {
	cfg    DeductConfig
	stages stages

	mu      sync.RWMutex // guards open against the closing of queue
	open    bool
	started bool

	queue    chan *purchase
	accepted chan *purchase
	unloaded chan *purchase
	idle     chan struct{} // closed when every stage has ended
}

func newLane(cfg DeductConfig, s stages) *lane {
	return &lane{
		cfg: cfg, stages: s,
		queue:    make(chan *purchase, cfg.QueueMax),
		accepted: make(chan *purchase, cfg.HandOverMax),
		unloaded: make(chan *purchase, cfg.HandOverMax),
		idle:     make(chan struct{}),
	}
}

// enter queues a purchase; false when the lane is full or not running.
func (l *lane) enter(p *purchase) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.open {
		return false
	}
	select {
	case l.queue <- p:
		return true
	default:
		return false
	}
}

// accept hands an accepted purchase to the senders, and waits while they have too much already:
// so the deduct stage is never further ahead than the hand-over is long.
func (l *lane) accept(p *purchase) { l.accepted <- p }

// lookUp hands over a purchase of a product that the gate has no record of; false when too many wait.
func (l *lane) lookUp(p *purchase) bool {
	select {
	case l.unloaded <- p:
		return true
	default:
		return false
	}
}

func (l *lane) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started {
		return
	}
	l.started, l.open = true, true
	var after sync.WaitGroup
	for range l.cfg.SendersMax {
		after.Go(func() { l.run(l.accepted, l.cfg.SendMax, l.cfg.SendBytesMax, l.stages.send) })
	}
	after.Go(func() { l.run(l.unloaded, l.cfg.BatchMax, 0, l.stages.lookUp) })
	go func() {
		l.run(l.queue, l.cfg.BatchMax, 0, l.stages.deduct)
		close(l.accepted)
		close(l.unloaded)
		after.Wait()
		close(l.idle)
	}()
}

// stop refuses what is new, and waits until what was taken is answered, at most until ctx ends.
func (l *lane) stop(ctx context.Context) error {
	l.mu.Lock()
	if l.open {
		l.open = false
		close(l.queue)
	}
	started := l.started
	l.started = true // a lane that was stopped does not start
	l.mu.Unlock()
	if !started {
		return nil
	}
	select {
	case <-l.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run is one stage: it waits for the first purchase, takes all that wait beside it up to countMax
// and, unless bytesMax is zero, up to bytesMax, and works on them. It ends when the queue is
// closed and empty.
func (l *lane) run(queue <-chan *purchase, countMax, bytesMax int, work func([]*purchase)) {
	batch := make([]*purchase, 0, countMax)
	var left *purchase // did not fit into the last batch
	for {
		first := left
		if first == nil {
			var more bool
			if first, more = <-queue; !more {
				return
			}
		}
		runtime.Gosched() // whoever can run now and is about to come, comes along; on an idle machine nobody is, at no cost
		batch, left = gather(append(batch[:0], first), queue, countMax, bytesMax)
		work(batch)
		clear(batch) // an answered purchase belongs to its caller again
	}
}

// gather adds to a batch of one what waits in the queue; the last one taken may not fit.
func gather(batch []*purchase, queue <-chan *purchase, countMax, bytesMax int) ([]*purchase, *purchase) {
	bytes := batch[0].bytes
	for len(batch) < countMax {
		select {
		case p, more := <-queue:
			if !more {
				return batch, nil
			}
			if bytes += p.bytes; bytesMax > 0 && bytes > bytesMax {
				return batch, p
			}
			batch = append(batch, p)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// answerAt ends the purchase at a place of the batch, once.
func answerAt(batch []*purchase, i int, a answer) {
	p := batch[i]
	batch[i] = nil
	p.done <- a
}

// answerRest ends what no one has answered: after a panic, too.
func answerRest(batch []*purchase, err error) {
	for i, p := range batch {
		if p != nil {
			answerAt(batch, i, answer{err: err})
		}
	}
}

// occupied is how long the queues are.
func (l *lane) occupied() int64 {
	return int64(len(l.queue) + len(l.accepted) + len(l.unloaded))
}

// DeductConfig bounds the lane. Nothing in it waits for a timer to fill a batch.
type DeductConfig struct {
	QueueMax      int           // requests that wait for the deduct stage; one more is refused as busy
	BatchMax      int           // commands in one call of the gate
	HandOverMax   int           // accepted flows that wait for a sender; more make the deduct stage wait
	SendersMax    int           // messages under way at one time: one gives the largest batches
	SendMax       int           // flows in one message
	SendBytesMax  int           // bytes of flows in one message; 0: what the sender allows
	DeductTimeout time.Duration // for one call of the gate
	SendTimeout   time.Duration // until the callers of a send are told that the outcome is unknown
	LookUpTimeout time.Duration // for asking the database about products that the gate does not know
	KnownMax      int           // products whose existence is remembered, each for KnownAge
	KnownAge      time.Duration
}

// DefaultDeductConfig is right for one instance beside one Redis.
func DefaultDeductConfig() DeductConfig {
	return DeductConfig{
		QueueMax: 8192, BatchMax: 512, HandOverMax: 1024, SendersMax: 1, SendMax: 200,
		DeductTimeout: 2 * time.Second, SendTimeout: 3 * time.Second, LookUpTimeout: time.Second,
		KnownMax: 4096, KnownAge: time.Second,
	}
}

// LaneStats are counts since the start; Waiting is how many purchases are in the queues now.
type LaneStats struct {
	Waiting     int64
	Batches     int64 // calls of the gate
	Commands    int64 // commands in them
	SentBatches int64
	SentFlows   int64
	Full        int64          // purchases refused because the queue was full
	Answered    [Answers]int64 // purchases by what their buyers were told
	Times       TimeCounts     // in which they were told
}
