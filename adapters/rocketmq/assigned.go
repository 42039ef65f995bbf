package rocketmq

import (
	"slices"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// Assigned are the queues that this instance consumes, as of its Consumer's last rebalance. The Producer sends to them
// what it sends again.
type Assigned struct {
	mu     sync.Mutex
	queues []*primitive.MessageQueue
	turn   int
}

// NewAssigned is of an instance that consumes nothing yet.
func NewAssigned() *Assigned { return &Assigned{} }

func (a *Assigned) note(queues []*primitive.MessageQueue) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queues = slices.Clone(queues)
}

// all is not changed by later rebalances.
func (a *Assigned) all() []*primitive.MessageQueue {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.queues
}

// next gives one queue after the other; nil while there is none.
func (a *Assigned) next() *primitive.MessageQueue {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queues) == 0 {
		return nil
	}
	a.turn++
	return a.queues[a.turn%len(a.queues)]
}
