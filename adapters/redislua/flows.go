package redislua

import (
	"context"
	"fmt"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Check implements port.Gate.
func (g *Gate) Check(ctx context.Context, keys []domain.Key) ([]port.CheckReply, error) {
	calls := g.group(checkScript, len(keys), 1, func(i int) string { return keys[i].Product() })
	for _, c := range calls {
		for _, i := range c.items {
			c.keys = append(c.keys, g.keys.flows(keys[i].Product(), keys[i].User()))
			c.args = append(c.args, keys[i].Token())
		}
	}
	g.run(ctx, calls)
	replies := make([]port.CheckReply, len(keys))
	for _, c := range calls {
		h, fields, err := g.parse(c)
		if err == nil && len(fields) != len(c.items) {
			err = fmt.Errorf("redislua: %d replies to %d keys", len(fields), len(c.items))
		}
		if err != nil {
			return nil, unavailable(err)
		}
		g.note(c.product, h, domain.Flow{})
		for n, i := range c.items {
			replies[i] = port.CheckReply{Readable: h.readable(), Epoch: h.epoch}
			if fields[n] == "-" {
				continue
			}
			if replies[i].Flow, err = parseFlow(keys[i], fields[n]); err != nil {
				return nil, unavailable(err)
			}
		}
	}
	return replies, nil
}

// Adopt implements port.Gate.
func (g *Gate) Adopt(ctx context.Context, now time.Time, items []port.AdoptItem) []port.AdoptReply {
	calls := g.group(adoptScript, len(items), 5,
		func(i int) string { return items[i].Key.Product() }, number(now.UnixMilli()))
	for _, c := range calls {
		for _, i := range c.items {
			item := items[i]
			if domain.CheckID("attempt", item.Attempt) != nil {
				item.Attempt = "" // it serves a buyer's own retry alone, and there is none
			}
			c.keys = append(c.keys, g.keys.flows(item.Key.Product(), item.Key.User()))
			c.args = append(c.args, item.Key.User(), item.Key.Token(), number(item.Quantity), item.Attempt,
				adoptOtherwise[item.Otherwise])
		}
	}
	g.run(ctx, calls)
	replies := make([]port.AdoptReply, len(items))
	for _, c := range calls {
		h, fields, err := g.parse(c)
		if err != nil || (h.state == recordOpen && len(fields) != len(c.items)) {
			continue // unknown
		}
		var own domain.Flow
		for n, i := range c.items {
			if h.state != recordOpen {
				replies[i].Outcome = port.AdoptWait
				continue
			}
			var flow domain.Flow
			replies[i], flow = adoptReply(items[i].Key, fields[n], h.epoch)
			if flow.Sequence() > own.Sequence() {
				own = flow
			}
		}
		g.note(c.product, h, own)
	}
	return replies
}

// adoptOtherwise are the script's words.
var adoptOtherwise = map[port.AdoptOtherwise]string{port.AdoptOrLeave: "", port.AdoptOrRefuse: "T", port.RefuseAlone: "R"}

func adoptReply(key domain.Key, field string, epoch int64) (port.AdoptReply, domain.Flow) {
	switch field[:min(1, len(field))] {
	case "H":
		flow, err := parseFlow(key, field[1:])
		if err != nil {
			return port.AdoptReply{}, domain.Flow{}
		}
		return port.AdoptReply{Outcome: port.AdoptHeld, Epoch: epoch}, flow
	case "N":
		return port.AdoptReply{Outcome: port.AdoptNoRoom}, domain.Flow{}
	case "T":
		return port.AdoptReply{Outcome: port.AdoptRefused}, domain.Flow{}
	case "Q":
		return port.AdoptReply{Outcome: port.AdoptConflict}, domain.Flow{}
	}
	return port.AdoptReply{}, domain.Flow{}
}

// Tell implements port.Gate.
func (g *Gate) Tell(ctx context.Context, fates []domain.Fate) []port.TellOutcome {
	calls := g.group(tellScript, len(fates), 8, func(i int) string { return fates[i].Key.Product() })
	for _, c := range calls {
		for _, i := range c.items {
			f := fates[i]
			c.keys = append(c.keys, g.keys.flows(f.Key.Product(), f.Key.User()))
			c.args = append(c.args, f.Key.User(), f.Key.Token(), number(f.Quantity), fateName(f), number(f.StockVersion),
				number(f.Epoch), number(f.Sequence), number(millis(f.At)))
		}
	}
	g.run(ctx, calls)
	outcomes := make([]port.TellOutcome, len(fates))
	for _, c := range calls {
		h, fields, err := g.parse(c)
		if err != nil || (h.readable() && len(fields) != len(c.items)) {
			continue // unknown
		}
		g.note(c.product, h, domain.Flow{})
		for n, i := range c.items {
			switch {
			case !h.readable():
				outcomes[i] = port.TellNotNow
			case fields[n] == "D":
				outcomes[i] = port.TellDone
			case fields[n] == "X":
				outcomes[i] = port.TellSuspect
			}
		}
	}
	return outcomes
}

// fateName is how tell.lua calls a status: a cancel from birth is a word of its own.
func fateName(f domain.Fate) string {
	if f.Status == domain.OrderCancelled && f.FromBirth {
		return "voided"
	}
	return f.Status.String()
}

// millis is a time as scripts take it; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(0, t.UnixMilli())
}
