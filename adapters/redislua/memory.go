package redislua

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"seckill/domain"
)

// seen is what this process has seen of one product's gate.
type seen struct {
	epoch    int64
	sequence int64
	own      domain.Key // newest flow of that epoch that this process made; zero: none
	ownAt    int64      // its sequence
}

// memory keeps seen for the products used last. It never moves backwards.
type memory struct {
	mu  sync.Mutex
	lru *simplelru.LRU[string, seen]
}

func newMemory(size int) (*memory, error) {
	lru, err := simplelru.NewLRU[string, seen](size, nil)
	if err != nil {
		return nil, err
	}
	return &memory{lru: lru}, nil
}

func (m *memory) of(product string) seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, _ := m.lru.Get(product)
	return s
}

// note takes what a sound record showed, and the newest flow that this process made in the
// call, if any. A late reply about an older epoch says nothing.
func (m *memory) note(product string, epoch, sequence int64, own domain.Flow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, _ := m.lru.Get(product)
	if epoch < s.epoch {
		return
	}
	if epoch > s.epoch {
		s = seen{epoch: epoch}
	}
	s.sequence = max(s.sequence, sequence)
	if !own.IsZero() && own.Epoch() == epoch && own.Sequence() > s.ownAt {
		s.own, s.ownAt = own.Key(), own.Sequence()
	}
	m.lru.Add(product, s)
}
