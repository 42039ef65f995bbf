package redislua

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Deduct implements port.Gate.
func (g *Gate) Deduct(ctx context.Context, now time.Time, items []port.DeductItem) []port.DeductReply {
	replies := make([]port.DeductReply, len(items))
	sound := make([]int, 0, len(items)) // an attempt that is no id would spoil its whole call
	for i, item := range items {
		if err := domain.CheckID("attempt", item.Attempt); err != nil {
			replies[i] = port.DeductReply{Outcome: port.DeductAway, Err: err}
			continue
		}
		sound = append(sound, i)
	}
	calls := g.group(deductScript, len(sound), 4,
		func(i int) string { return items[sound[i]].Command.Key().Product() }, number(now.UnixMilli()))
	for _, c := range calls {
		for n, i := range c.items {
			c.items[n] = sound[i]
			command := items[sound[i]].Command
			key := command.Key()
			c.keys = append(c.keys, g.keys.flows(key.Product(), key.User()))
			c.args = append(c.args, key.User(), key.Token(), command.Quantity(), items[sound[i]].Attempt)
		}
	}
	g.run(ctx, calls)
	for _, c := range calls {
		g.deducted(c, items, replies)
	}
	return replies
}

// deducted hands each item of a call its reply.
func (g *Gate) deducted(c *call, items []port.DeductItem, replies []port.DeductReply) {
	h, fields, err := g.parse(c)
	if err == nil && h.readable() && len(fields) != len(c.items) {
		err, c.maybe = fmt.Errorf("redislua: %d replies to %d commands", len(fields), len(c.items)), true
	}
	var own domain.Flow
	for n, i := range c.items {
		switch {
		case err != nil && c.maybe:
			replies[i] = port.DeductReply{Outcome: port.DeductUnknown, Err: err}
		case err != nil:
			replies[i] = port.DeductReply{Outcome: port.DeductAway, Err: err}
		case h.state == recordAbsent:
			replies[i] = port.DeductReply{Outcome: port.DeductNotLoaded}
		case h.state == recordRewound:
			replies[i] = port.DeductReply{Outcome: port.DeductRewound, Remaining: h.remaining}
		case h.state == recordBuilding:
			replies[i] = port.DeductReply{Outcome: port.DeductNotReady, Remaining: h.remaining}
		default:
			replies[i] = deductReply(items[i].Command.Key(), fields[n], h.remaining)
			if c.maybe && turnedAway(replies[i].Outcome) {
				replies[i] = port.DeductReply{Outcome: port.DeductUnknown, Remaining: h.remaining, Err: errMayRun}
			}
			if replies[i].Outcome == port.DeductAccepted && replies[i].Flow.Sequence() > own.Sequence() {
				own = replies[i].Flow
			}
		}
	}
	if err == nil {
		g.note(c.product, h, own)
	}
}

var errMayRun = errors.New("redislua: refused, but an earlier try of this call may still be carried out")

// turnedAway are refusals that an earlier try of the same call could yet overtake: it may be carried out later, when
// units have come back or the product is resumed.
func turnedAway(outcome port.DeductOutcome) bool {
	return outcome == port.DeductClosed || outcome == port.DeductLimit || outcome == port.DeductNotEnough
}

func deductReply(key domain.Key, field string, remaining int64) port.DeductReply {
	r := port.DeductReply{Remaining: remaining}
	switch field[:min(1, len(field))] {
	case "A":
		r.Outcome = port.DeductAccepted
	case "P":
		r.Outcome = port.DeductRepeat
	case "Q":
		r.Outcome = port.DeductConflict
	case "T":
		r.Outcome = port.DeductRefused
	case "S":
		r.Outcome = port.DeductNotReady
	case "C":
		r.Outcome = port.DeductClosed
	case "L":
		r.Outcome = port.DeductLimit
	case "N":
		r.Outcome = port.DeductNotEnough
	default:
		r.Err = fmt.Errorf("redislua: a command was answered %q", field)
	}
	if len(field) > 1 {
		if r.Flow, r.Err = parseFlow(key, field[1:]); r.Err != nil {
			r.Outcome = port.DeductUnknown
		}
	}
	return r
}
