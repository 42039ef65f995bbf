package redislua

import (
	"context"
	"fmt"
	"strings"

	"seckill/application/port"
	"seckill/domain"
)

// View implements port.GateAdmin.
func (g *Gate) View(ctx context.Context, products []string) ([]port.GateView, error) {
	calls := make([]*call, len(products))
	for i, p := range products {
		calls[i] = g.newCall(viewScript, p, 0, 0)
	}
	g.run(ctx, calls)
	views := make([]port.GateView, len(products))
	members := make([]string, len(products)) // the first open flow of each product that has one
	failed := 0
	for i, c := range calls {
		var err error
		if views[i], members[i], err = g.viewOf(c); err != nil {
			views[i] = port.GateView{Product: c.product, Err: unavailable(err)}
			failed++
		}
	}
	if failed > 0 && failed == len(views) {
		return nil, views[0].Err
	}
	g.addOldest(ctx, views, members)
	return views, nil
}

func (g *Gate) viewOf(c *call) (port.GateView, string, error) {
	h, fields, err := g.parse(c)
	if err != nil {
		return port.GateView{}, "", err
	}
	g.note(c.product, h, domain.Flow{})
	return gateView(c.product, h, fields)
}

// addOldest reads when the first open flow of each view was made, as far as that can be read.
func (g *Gate) addOldest(ctx context.Context, views []port.GateView, members []string) {
	var first []domain.Key
	var of []int
	for i, member := range members {
		if views[i].Err != nil || member == "|" {
			continue
		}
		if key, err := memberKey(views[i].Product, member); err == nil {
			first, of = append(first, key), append(of, i)
		}
	}
	if len(first) == 0 {
		return
	}
	packed, err := g.readFlows(ctx, first)
	if err != nil {
		return
	}
	for n, p := range packed {
		if flow, err := parseFlow(first[n], p); err == nil {
			views[of[n]].OldestOpenAt = flow.At()
		}
	}
}

// gateView reads view.lua's reply; the second value is the first open member, "|" for none.
func gateView(product string, h head, fields []string) (port.GateView, string, error) {
	if len(fields) != 1 {
		return port.GateView{}, "", fmt.Errorf("redislua: a view of %d fields", len(fields))
	}
	parts := strings.SplitN(fields[0], "|", 10)
	if len(parts) != 10 {
		return port.GateView{}, "", fmt.Errorf("redislua: a view of %d parts", len(parts))
	}
	var n [5]int64
	if err := parseNumbers([]string{parts[3], parts[4], parts[5], parts[7], parts[8]}, n[:]); err != nil {
		return port.GateView{}, "", err
	}
	return port.GateView{
		Product: product, Loaded: h.state != recordAbsent,
		SameServer: parts[0] == "1", Rewound: parts[1] == "1", Shut: parts[2] == "1",
		Remaining: h.remaining, Epoch: h.epoch, Sequence: h.sequence,
		BaseVersion: n[0], VersionTold: n[1], Building: n[2], Server: parts[6], Revision: n[3], OpenFlows: n[4],
	}, parts[9], nil
}

// Shut implements port.GateAdmin.
func (g *Gate) Shut(ctx context.Context, products []string) error {
	calls := make([]*call, len(products))
	for i, p := range products {
		calls[i] = g.newCall(shutScript, p, 0, 0)
	}
	g.run(ctx, calls)
	for _, c := range calls {
		if c.err != nil {
			return unavailable(fmt.Errorf("%s: %w", c.product, c.err))
		}
	}
	return nil
}

// Prepare implements port.GateAdmin.
func (g *Gate) Prepare(ctx context.Context, product string, epoch int64) (bool, error) {
	return g.step(ctx, g.newCall(prepareScript, product, 0, 1), number(epoch))
}

// WriteBack implements port.GateAdmin.
func (g *Gate) WriteBack(ctx context.Context, product string, epoch int64, orders []domain.Order) (bool, error) {
	for rest := orders; ; {
		page := rest[:min(len(rest), itemMax)]
		rest = rest[len(page):]
		c := g.newCall(writeBackScript, product, len(page), 1+8*len(page))
		c.args = append(c.args, number(epoch))
		for _, o := range page {
			key := o.Key()
			c.keys = append(c.keys, g.keys.flows(product, key.User()))
			c.args = append(c.args, key.User(), key.Token(), number(o.Quantity()), flowLetters[o.Status().FlowState()],
				number(o.Epoch()), number(o.Sequence()), number(millis(o.CreatedAt())), o.Attempt())
		}
		if done, err := g.step(ctx, c); !done || err != nil || len(rest) == 0 {
			return done, err
		}
	}
}

// Rebuild implements port.GateAdmin.
func (g *Gate) Rebuild(ctx context.Context, plan port.GatePlan) (bool, error) {
	c := g.newCall(rebuildScript, plan.Product, 0, 10)
	c.args = append(c.args, number(plan.Epoch), number(plan.Sequence), plan.Server, number(plan.Remaining),
		number(plan.Version))
	return g.step(ctx, c, termsArgs(plan.Terms)...)
}

// Open implements port.GateAdmin.
func (g *Gate) Open(ctx context.Context, product string, epoch int64) (bool, error) {
	return g.step(ctx, g.newCall(openScript, product, 0, 1), number(epoch))
}

// SetTerms implements port.GateAdmin.
func (g *Gate) SetTerms(ctx context.Context, product string, terms domain.Terms) (bool, error) {
	return g.step(ctx, g.newCall(termsScript, product, 0, 5), termsArgs(terms)...)
}

func termsArgs(t domain.Terms) []any {
	paused := "0"
	if t.Paused {
		paused = "1"
	}
	return []any{number(millis(t.OpensAt)), number(millis(t.ClosesAt)), number(t.LimitPerBuyer), paused, number(t.Revision)}
}

// step runs a script that answers done or refused.
func (g *Gate) step(ctx context.Context, c *call, args ...any) (bool, error) {
	c.args = append(c.args, args...)
	g.run(ctx, []*call{c})
	_, fields, err := g.parse(c)
	if err != nil {
		return false, unavailable(err)
	}
	return len(fields) == 1 && fields[0] == "1", nil
}
