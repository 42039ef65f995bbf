package simulation

import (
	"context"
	"strings"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/contract/ledgermodel"
)

var operator = port.Audit{Actor: "operator", Action: "simulated", Reason: "simulated"}

// blindIdentity is what a blind store calls itself for ever.
const blindIdentity = "the-only-server"

// variant is a service with one rule missing. Nothing of it is in the service: each takes the rule away
// from outside, at a port or in a script's text.
type variant struct {
	name          string
	ledger        ledgermodel.Flaw
	script        func(name, text string) string
	blind         bool
	adoptOff      bool
	relayOff      bool
	refuseUnknown bool
	tampered      bool // the rule is needed only where somebody has changed Redis by hand
	sender        func(port.Sender, port.Gate) port.Sender
	runner        func(*world, named, desk) application.Runner
}

// badVariants are the ten that a checker has to find.
var badVariants = []variant{
	{name: "units given back when no order is found", runner: newGiver},
	{name: "no unique key", ledger: ledgermodel.NoUniqueKey},
	{name: "no stock guard", ledger: ledgermodel.NoGuard, tampered: true},
	{name: "given back twice", script: swapIn("tell",
		"if letter == 'D' then return 'T', quantity, false end",
		"if letter == 'D' or letter == 'T' then return 'T', quantity, false end",
		"if to ~= letter then", "if to ~= letter or gained ~= 0 then")},
	{name: "nothing is adopted", adoptOff: true},
	{name: "no identity and no memory", blind: true},
	{name: "settling is not idempotent", script: swapIn("tell",
		"if letter == 'D' then return 'S', 0, false end",
		"if letter == 'D' then return 'S', 0, false end\n    if letter == 'S' and remaining >= quantity then return 'S', -quantity, false end",
		"if to ~= letter then", "if to ~= letter or gained ~= 0 then")},
	{name: "no relay", relayOff: true},
	{name: "given back before the database has decided", sender: func(s port.Sender, g port.Gate) port.Sender { return hasty{s, g} }},
	{name: "refused after the deduct", refuseUnknown: true},
}

// swapIn makes other words of a script: pairs of what stands there and what shall.
func swapIn(script string, pairs ...string) func(name, text string) string {
	return func(name, text string) string {
		if name != script {
			return text
		}
		other := strings.NewReplacer(pairs...).Replace(text)
		if other == text {
			panic(script + ".lua no longer says what this variant takes away")
		}
		return other
	}
}

// hasty gives units back when a send's outcome is unknown.
type hasty struct {
	port.Sender
	gate port.Gate
}

// Send implements port.Sender.
func (h hasty) Send(ctx context.Context, batch domain.Batch) (port.SendResult, error) {
	result, err := h.Sender.Send(ctx, batch)
	if result != port.SendCommitted {
		fates := make([]domain.Fate, len(batch.Items))
		for i, item := range batch.Items {
			fates[i] = releaseOf(item)
		}
		h.gate.Tell(context.Background(), fates)
	}
	return result, err
}

func releaseOf(d domain.Deduction) domain.Fate {
	return domain.Fate{Key: d.Key, Quantity: d.Quantity, Status: domain.OrderCancelled, FromBirth: true, Epoch: d.Epoch, Sequence: d.Sequence, At: d.At}
}

// giver is the repair that breaks things: every few seconds it releases old flows that have no order.
type giver struct {
	gate   named
	ledger desk
	cancel context.CancelFunc
	done   chan struct{}
	w      *world
}

func newGiver(w *world, gate named, ledger desk) application.Runner {
	return &giver{gate: gate, ledger: ledger, w: w, done: make(chan struct{})}
}

func (g *giver) Name() string { return "giver" }

func (g *giver) Start(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	go func() {
		defer close(g.done)
		for {
			select {
			case <-time.After(2 * time.Second):
				g.round(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

func (g *giver) round(ctx context.Context) {
	for _, p := range g.w.products {
		flows, err := g.gate.Page(ctx, p, 0, 100)
		if err != nil || len(flows) == 0 {
			continue
		}
		var keys []domain.Key
		var old []domain.Flow
		for _, f := range flows {
			if time.Since(f.At()) > 3*time.Second {
				keys, old = append(keys, f.Key()), append(old, f)
			}
		}
		orders, err := g.ledger.Fates(ctx, keys)
		if err != nil {
			continue
		}
		var fates []domain.Fate
		for i, o := range orders {
			if o.IsZero() {
				fates = append(fates, releaseOf(domain.DeductionOf(old[i])))
			}
		}
		if len(fates) > 0 {
			g.gate.Tell(ctx, fates)
		}
	}
}

func (g *giver) Stop(context.Context) error {
	if g.cancel != nil {
		g.cancel()
		<-g.done
	}
	return nil
}

// pretendAdopted says of every deduction that the gate holds its units.
func (w *world) pretendAdopted(items []port.ApplyItem) []port.ApplyItem {
	pretended := make([]port.ApplyItem, len(items))
	for i, item := range items {
		stocks, err := w.ledger.Stocks(context.Background(), []string{item.Deduction.Key.Product()})
		if err == nil && !stocks[0].IsZero() {
			item.AdoptedEpoch = stocks[0].Epoch()
		}
		pretended[i] = item
	}
	return pretended
}
