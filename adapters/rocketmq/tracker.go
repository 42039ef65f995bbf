package rocketmq

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// staleAfter is how long the books of an assignment are kept after a newer one of its queue
// began: a pull of the old one may still be on its way, no longer than a long poll.
const staleAfter = 2 * time.Minute

// tracker keeps books of what has been pulled and not finished, per assignment of a queue. The
// client makes a queue object for each assignment, and its address is the assignment's name.
type tracker struct {
	topic string
	own   *Assigned

	mu      sync.Mutex
	changed *sync.Cond
	books   map[*primitive.MessageQueue]*book
	current map[string]*book // by queue name: the newest assignment's
}

type book struct {
	open   map[int64]struct{} // pulled and not finished
	next   int64              // after the highest offset pulled
	end    int64              // after the highest offset that the broker has told of
	pulled time.Time
}

func newTracker(topic string, own *Assigned) *tracker {
	t := &tracker{topic: topic, own: own, books: make(map[*primitive.MessageQueue]*book), current: make(map[string]*book)}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// pull notes what a pull has brought, before any of it is dispatched.
func (t *tracker) pull(queue *primitive.MessageQueue, messages []*primitive.MessageExt) {
	if queue.Topic != t.topic || len(messages) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b, known := t.books[queue]
	if !known {
		t.forget(queueName(queue))
		b = &book{open: make(map[int64]struct{})}
		t.books[queue] = b
		t.current[queueName(queue)] = b
	}
	b.pulled = time.Now()
	for _, m := range messages {
		b.open[m.QueueOffset] = struct{}{}
		b.next = max(b.next, m.QueueOffset+1)
	}
}

// forget drops the books of a queue's earlier assignments.
func (t *tracker) forget(name string) {
	for queue, b := range t.books {
		if queueName(queue) == name && time.Since(b.pulled) > staleAfter {
			delete(t.books, queue)
			t.changed.Broadcast()
		}
	}
}

// told notes how far the broker said that the queue goes.
func (t *tracker) told(queue *primitive.MessageQueue, end int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b, known := t.books[queue]; known {
		b.end = max(b.end, end)
	}
}

func (t *tracker) finish(queue *primitive.MessageQueue, messages []*primitive.MessageExt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b, known := t.books[queue]; known {
		for _, m := range messages {
			delete(b.open, m.QueueOffset)
		}
	}
	t.changed.Broadcast()
}

// waitBefore waits until everything that was pulled before offset in this assignment is finished;
// false when ctx ends or the assignment is over.
func (t *tracker) waitBefore(ctx context.Context, queue *primitive.MessageQueue, offset int64) bool {
	defer context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.changed.Broadcast()
	})()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		b, known := t.books[queue]
		if !known || ctx.Err() != nil {
			return false
		}
		if b.lowest() >= offset {
			return true
		}
		t.changed.Wait()
	}
}

// lowest is the lowest offset that is not finished.
func (b *book) lowest() int64 {
	lowest := b.next
	for offset := range b.open {
		lowest = min(lowest, offset)
	}
	return lowest
}

// allocate is the client's even strategy; it notes what falls to this consumer.
func (t *tracker) allocate(group, id string, all []*primitive.MessageQueue, members []string) []*primitive.MessageQueue {
	mine := consumer.AllocateByAveragely(group, id, all, members)
	if len(all) == 0 || all[0].Topic != t.topic {
		return mine
	}
	t.own.note(mine)
	return mine
}

// lag is how many messages of the assigned queues wait, as far as the last pulls told, and the brokers that have these
// queues: none while no queue is assigned.
func (t *tracker) lag() (messages int64, brokers []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, queue := range t.own.all() {
		if b, pulled := t.current[queueName(queue)]; pulled {
			messages += max(b.end, b.next) - b.lowest()
		}
		if !slices.Contains(brokers, queue.BrokerName) {
			brokers = append(brokers, queue.BrokerName)
		}
	}
	return messages, brokers
}
