package gatemodel

import (
	"context"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Gate is one process on a store. Safe for concurrent use: the store has one lock.
type Gate struct {
	store *Store
	seen  map[string]seen
}

type seen struct {
	epoch, sequence int64
	own             flowID
	ownAt           int64
}

var (
	_ port.Gate      = (*Gate)(nil)
	_ port.OpenFlows = (*Gate)(nil)
	_ port.GateAdmin = (*Gate)(nil)
)

// New makes a process that has seen nothing.
func New(store *Store) *Gate { return &Gate{store: store, seen: map[string]seen{}} }

type state int

const (
	absent state = iota
	rewound
	building
	shut
	open
)

// judge says what a record is to this process.
func (g *Gate) judge(product string, r *record) state {
	switch {
	case !r.loaded:
		return absent
	case g.rewound(product, r):
		return rewound
	case r.building > 0 || r.epoch == 0:
		return building
	case r.shut:
		return shut
	}
	return open
}

func (g *Gate) rewound(product string, r *record) bool {
	if r.server != g.store.identity {
		return true
	}
	s := g.seen[product]
	if r.building > s.epoch || r.epoch > s.epoch {
		return false // a higher epoch ends the memory
	}
	if r.epoch < s.epoch || r.sequence < s.sequence {
		return true
	}
	_, there := r.flows[s.own]
	return s.ownAt > 0 && !there
}

// note remembers what a sound record showed after a call.
func (g *Gate) note(product string, st state, r *record, own domain.FlowFields) {
	s := g.seen[product]
	if st == absent || st == rewound || r.epoch < s.epoch {
		return
	}
	if r.epoch > s.epoch {
		s = seen{epoch: r.epoch}
	}
	s.sequence = max(s.sequence, r.sequence)
	if own.State != domain.FlowAbsent && own.Epoch == r.epoch && own.Sequence > s.ownAt {
		s.own, s.ownAt = flowID{own.Key.User(), own.Key.Token()}, own.Sequence
	}
	g.seen[product] = s
}

// byProduct calls f for each product with the indices of its items, in order.
func byProduct(n int, product func(int) string, f func(product string, items []int)) {
	groups := map[string][]int{}
	var order []string
	for i := range n {
		p := product(i)
		if groups[p] == nil {
			order = append(order, p)
		}
		groups[p] = append(groups[p], i)
	}
	for _, p := range order {
		f(p, groups[p])
	}
}

func flowOf(f domain.FlowFields) domain.Flow {
	flow, err := domain.NewFlow(f)
	if err != nil {
		panic(err) // the model made it
	}
	return flow
}

// Deduct implements port.Gate.
func (g *Gate) Deduct(_ context.Context, now time.Time, items []port.DeductItem) []port.DeductReply {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	replies := make([]port.DeductReply, len(items))
	byProduct(len(items), func(i int) string { return items[i].Command.Key().Product() }, func(p string, of []int) {
		r := g.store.of(p)
		st := g.judge(p, r)
		var own domain.FlowFields
		for _, i := range of {
			outcome, flow := decide(r, st, now, items[i])
			replies[i] = port.DeductReply{Outcome: outcome}
			if flow.State != domain.FlowAbsent {
				replies[i].Flow = flowOf(flow)
			}
			if outcome == port.DeductAccepted && flow.Sequence > own.Sequence {
				own = flow
			}
		}
		for _, i := range of {
			replies[i].Remaining = r.remaining
		}
		g.note(p, st, r, own)
	})
	return replies
}

func decide(r *record, st state, now time.Time, item port.DeductItem) (port.DeductOutcome, domain.FlowFields) {
	key, quantity := item.Command.Key(), item.Command.Quantity()
	none := domain.FlowFields{}
	switch st {
	case absent:
		return port.DeductNotLoaded, none
	case rewound:
		return port.DeductRewound, none
	case building:
		return port.DeductNotReady, none
	case shut, open: // the token is looked at first
	}
	id := flowID{key.User(), key.Token()}
	if f, known := r.flows[id]; known {
		switch {
		case f.State == domain.FlowRefused:
			return port.DeductRefused, none
		case f.Quantity != quantity:
			return port.DeductConflict, f
		case f.Attempt == item.Attempt && f.State.Alive():
			return port.DeductAccepted, f
		}
		return port.DeductRepeat, f
	}
	t := r.terms
	early := !t.OpensAt.IsZero() && now.Before(t.OpensAt)
	late := !t.ClosesAt.IsZero() && !now.Before(t.ClosesAt)
	switch {
	case st == shut:
		return port.DeductNotReady, none
	case t.Paused || early || late:
		return port.DeductClosed, none
	case t.LimitPerBuyer > 0 && r.held(key.User())+quantity > t.LimitPerBuyer:
		return port.DeductLimit, none
	case r.remaining < quantity:
		return port.DeductNotEnough, none
	}
	return port.DeductAccepted, take(r, key, quantity, item.Attempt, now)
}

// take writes a deducted flow.
func take(r *record, key domain.Key, quantity int64, attempt string, now time.Time) domain.FlowFields {
	r.sequence++
	f := domain.FlowFields{Key: key, Quantity: quantity, From: r.remaining, To: r.remaining - quantity,
		State: domain.FlowDeducted, Epoch: r.epoch, Sequence: r.sequence, Attempt: attempt, At: now}
	r.remaining -= quantity
	r.flows[flowID{key.User(), key.Token()}] = f
	return f
}

// Check implements port.Gate.
func (g *Gate) Check(_ context.Context, keys []domain.Key) ([]port.CheckReply, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	replies := make([]port.CheckReply, len(keys))
	byProduct(len(keys), func(i int) string { return keys[i].Product() }, func(p string, of []int) {
		r := g.store.of(p)
		st := g.judge(p, r)
		for _, i := range of {
			replies[i] = port.CheckReply{Readable: st == shut || st == open, Epoch: r.epoch}
			if f, known := r.flows[flowID{keys[i].User(), keys[i].Token()}]; known {
				replies[i].Flow = flowOf(f)
			}
		}
		g.note(p, st, r, domain.FlowFields{})
	})
	return replies, nil
}

// Adopt implements port.Gate.
func (g *Gate) Adopt(_ context.Context, now time.Time, items []port.AdoptItem) []port.AdoptReply {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	replies := make([]port.AdoptReply, len(items))
	byProduct(len(items), func(i int) string { return items[i].Key.Product() }, func(p string, of []int) {
		r := g.store.of(p)
		st := g.judge(p, r)
		var own domain.FlowFields
		before, refused := r.sequence, false
		for _, i := range of {
			if st != open {
				replies[i].Outcome = port.AdoptWait
				continue
			}
			item := items[i]
			f, known := r.flows[flowID{item.Key.User(), item.Key.Token()}]
			switch {
			case known && !f.State.Alive():
				replies[i].Outcome = port.AdoptRefused
				continue
			case known && f.Quantity != item.Quantity:
				replies[i].Outcome = port.AdoptConflict
				continue
			case !known && item.Otherwise == port.RefuseAlone:
				replies[i].Outcome = port.AdoptRefused
				refuse(r, item, now)
				refused = true
				continue
			case !known && r.remaining < item.Quantity:
				replies[i].Outcome = port.AdoptNoRoom
				if item.Otherwise == port.AdoptOrRefuse {
					refuse(r, item, now)
					refused = true
				}
				continue
			case !known:
				f = take(r, item.Key, item.Quantity, item.Attempt, now)
			}
			replies[i] = port.AdoptReply{Outcome: port.AdoptHeld, Epoch: r.epoch}
			if f.Sequence > own.Sequence {
				own = f
			}
		}
		if refused && r.sequence == before {
			r.sequence++
		}
		g.note(p, st, r, own)
	})
	return replies
}

// refuse writes a tombstone.
func refuse(r *record, item port.AdoptItem, now time.Time) {
	r.flows[flowID{item.Key.User(), item.Key.Token()}] = domain.FlowFields{Key: item.Key, Quantity: item.Quantity,
		State: domain.FlowRefused, Epoch: r.epoch, At: now}
}

// Tell implements port.Gate.
func (g *Gate) Tell(_ context.Context, fates []domain.Fate) []port.TellOutcome {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	outcomes := make([]port.TellOutcome, len(fates))
	byProduct(len(fates), func(i int) string { return fates[i].Key.Product() }, func(p string, of []int) {
		r := g.store.of(p)
		st := g.judge(p, r)
		changed := false
		for _, i := range of {
			if st != open && st != shut {
				outcomes[i] = port.TellNotNow
				continue
			}
			var moved bool
			outcomes[i], moved = tell(r, fates[i])
			changed = changed || moved
		}
		if changed {
			r.sequence++
		}
		g.note(p, st, r, domain.FlowFields{})
	})
	return outcomes
}

func tell(r *record, fate domain.Fate) (port.TellOutcome, bool) {
	id := flowID{fate.Key.User(), fate.Key.Token()}
	f, known := r.flows[id]
	move := fate.Move(f.State, r.base, r.remaining)
	move.Suspect = move.Suspect || fate.Disproves(r.epoch, f.State, f.Epoch, f.Sequence)
	changed := false
	if move.To != f.State {
		if !known {
			f = domain.FlowFields{Key: fate.Key, Quantity: fate.Quantity, Epoch: fate.Epoch, Sequence: fate.Sequence, At: fate.At}
		}
		f.State = move.To
		r.flows[id] = f
		r.remaining += move.Units
		changed = true
	}
	if fate.StockVersion > r.told {
		r.told, changed = fate.StockVersion, true
	}
	if move.Suspect {
		return port.TellSuspect, changed
	}
	return port.TellDone, changed
}
