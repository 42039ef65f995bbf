package gatemodel

import (
	"context"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Page implements port.OpenFlows.
func (g *Gate) Page(_ context.Context, product string, after int64, limit int) ([]domain.Flow, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	var flows []domain.Flow
	for _, f := range g.store.of(product).open() {
		if f.Sequence > after && len(flows) < limit {
			flows = append(flows, flowOf(f))
		}
	}
	return flows, nil
}

// Claim implements port.OpenFlows.
func (g *Gate) Claim(_ context.Context, product, holder string, ttl time.Duration) (bool, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	now := time.Now()
	if c := g.store.claims[product]; c.holder != holder && now.Before(c.until) {
		return false, nil
	}
	g.store.claims[product] = claim{holder, now.Add(ttl)}
	return true, nil
}

// View implements port.GateAdmin.
func (g *Gate) View(_ context.Context, products []string) ([]port.GateView, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	views := make([]port.GateView, len(products))
	for i, p := range products {
		r := g.store.of(p)
		st := g.judge(p, r)
		views[i] = port.GateView{Product: p, Loaded: r.loaded, SameServer: r.loaded && r.server == g.store.identity,
			Rewound: st == rewound, Shut: r.shut, Remaining: r.remaining, Epoch: r.epoch, Sequence: r.sequence,
			BaseVersion: r.base, VersionTold: r.told, Building: r.building, Server: r.server, Revision: r.terms.Revision}
		open := r.open()
		views[i].OpenFlows = int64(len(open))
		if len(open) > 0 {
			views[i].OldestOpenAt = flowOf(open[0]).At()
		}
		g.note(p, st, r, domain.FlowFields{})
	}
	return views, nil
}

// Shut implements port.GateAdmin.
func (g *Gate) Shut(_ context.Context, products []string) error {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	for _, p := range products {
		if r := g.store.of(p); r.loaded && !r.shut {
			r.shut = true
			r.sequence++
		}
	}
	return nil
}

// Prepare implements port.GateAdmin.
func (g *Gate) Prepare(_ context.Context, product string, epoch int64) (bool, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	r := g.store.of(product)
	if r.epoch >= epoch || r.building > epoch {
		return false, nil
	}
	r.loaded, r.shut, r.building, r.server = true, true, epoch, g.store.identity
	r.sequence++
	return true, nil
}

// ours reports whether a record belongs to this server.
func (g *Gate) ours(r *record) bool { return r.loaded && r.server == g.store.identity }

// WriteBack implements port.GateAdmin.
func (g *Gate) WriteBack(_ context.Context, product string, epoch int64, orders []domain.Order) (bool, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	r := g.store.of(product)
	if !g.ours(r) || r.building != epoch {
		return false, nil
	}
	for _, o := range orders {
		id := flowID{o.Key().User(), o.Key().Token()}
		f, known := r.flows[id]
		if !known || f.Quantity != o.Quantity() {
			f = domain.FlowFields{Key: o.Key(), Quantity: o.Quantity(), Epoch: o.Epoch(), Sequence: o.Sequence(),
				Attempt: o.Attempt(), At: o.CreatedAt()}
		}
		f.State = o.Status().FlowState()
		r.flows[id] = f
	}
	if len(orders) > 0 {
		r.sequence++
	}
	return true, nil
}

// Rebuild implements port.GateAdmin.
func (g *Gate) Rebuild(_ context.Context, plan port.GatePlan) (bool, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	r := g.store.of(plan.Product)
	if !g.ours(r) || r.server != plan.Server {
		return false, nil
	}
	if r.building == 0 && r.shut && r.epoch == plan.Epoch && r.sequence == plan.Sequence+1 {
		return true, nil // an earlier try of this call
	}
	if r.building != plan.Epoch || r.epoch >= plan.Epoch || r.sequence != plan.Sequence {
		return false, nil
	}
	r.epoch, r.building, r.shut = plan.Epoch, 0, true
	r.remaining, r.base, r.told = plan.Remaining, plan.Version, max(r.told, plan.Version)
	r.terms = plan.Terms
	r.sequence++
	return true, nil
}

// Open implements port.GateAdmin.
func (g *Gate) Open(_ context.Context, product string, epoch int64) (bool, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	r := g.store.of(product)
	if st := g.judge(product, r); (st != shut && st != open) || r.epoch != epoch {
		return false, nil
	}
	if r.shut {
		r.shut = false
		r.sequence++
	}
	return true, nil
}

// SetTerms implements port.GateAdmin.
func (g *Gate) SetTerms(_ context.Context, product string, terms domain.Terms) (bool, error) {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	r := g.store.of(product)
	if !g.ours(r) || terms.Revision <= r.terms.Revision {
		return false, nil
	}
	r.terms = terms
	r.sequence++
	return true, nil
}
