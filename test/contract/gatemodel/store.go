package gatemodel

import (
	"maps"
	"sort"
	"sync"
	"time"

	"seckill/domain"
)

// flowID names a flow within its product.
type flowID struct{ user, token string }

// record is one product in the store.
type record struct {
	server               string
	epoch, sequence      int64
	remaining            int64
	base, told, building int64
	shut                 bool
	terms                domain.Terms
	flows                map[flowID]domain.FlowFields
	loaded               bool
}

func (r *record) clone() *record {
	c := *r
	c.flows = maps.Clone(r.flows)
	return &c
}

// open gives the deducted flows in order of sequence.
func (r *record) open() []domain.FlowFields {
	var open []domain.FlowFields
	for _, f := range r.flows {
		if f.State.Open() {
			open = append(open, f)
		}
	}
	sort.Slice(open, func(i, j int) bool { return open[i].Sequence < open[j].Sequence })
	return open
}

// held is what a user's living flows hold.
func (r *record) held(user string) int64 {
	var sum int64
	for id, f := range r.flows {
		if id.user == user && f.State.Alive() {
			sum += f.Quantity
		}
	}
	return sum
}

// Store is what a server would hold.
type Store struct {
	mu       sync.Mutex
	identity string
	products map[string]*record
	claims   map[string]claim
}

type claim struct {
	holder string
	until  time.Time
}

// NewStore makes an empty store of a server with that identity.
func NewStore(identity string) *Store {
	return &Store{identity: identity, products: map[string]*record{}, claims: map[string]claim{}}
}

// of gives a product's record; one that was never made is not loaded.
func (s *Store) of(product string) *record {
	r := s.products[product]
	if r == nil {
		r = &record{flows: map[flowID]domain.FlowFields{}}
		s.products[product] = r
	}
	return r
}

// Forget loses everything about a product.
func (s *Store) Forget(product string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.products, product)
}

// Picture takes a picture of a product; calling the result goes back to it.
func (s *Store) Picture(product string) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	picture := s.of(product).clone()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.products[product] = picture.clone()
	}
}

// MoveServer makes a record one that was opened on another server.
func (s *Store) MoveServer(product string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.of(product); r.loaded {
		r.server = "elsewhere"
	}
}
