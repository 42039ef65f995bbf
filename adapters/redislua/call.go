package redislua

import (
	"context"
	"errors"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// What record.lua takes before a script's own.
const (
	recordKeys = 3
	recordArgs = 5
)

// call is one run of a script for one product.
type call struct {
	script  *redis.Script
	product string
	keys    []string
	args    []any
	items   []int // which of the caller's items it carries, in order

	reply string
	err   error
	maybe bool // some try may have run
}

// newCall begins a call of a product with what record.lua needs; room is for the script's own.
func (g *Gate) newCall(script *redis.Script, product string, keys, args int) *call {
	seen := g.memory.of(product)
	stock := g.keys.stock(product)
	own := stock // never read without a token
	if !seen.own.IsZero() {
		own = g.keys.flows(product, seen.own.User())
	}
	c := &call{script: script, product: product, keys: make([]string, 0, recordKeys+keys), args: make([]any, 0, recordArgs+args)}
	c.keys = append(c.keys, stock, g.keys.open(product), own)
	c.args = append(c.args, g.cfg.Identity, seen.epoch, seen.sequence, seen.own.Token(), g.cfg.QuantityMax)
	return c
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// run carries calls out in one pipeline. Calls that the server has no script for run again with
// its text, and calls that were interrupted run once more: the scripts are made to be repeated.
func (g *Gate) run(ctx context.Context, calls []*call) {
	if err := ctx.Err(); err != nil {
		for _, c := range calls {
			c.err = err
		}
		return
	}
	g.try(ctx, calls, false)
	g.try(ctx, pick(calls, func(c *call) bool { return redis.HasErrorPrefix(c.err, "NOSCRIPT") }), true)
	if ctx.Err() == nil {
		g.try(ctx, pick(calls, func(c *call) bool { return c.err != nil && c.maybe }), true)
	}
}

func pick(calls []*call, wanted func(*call) bool) []*call {
	var picked []*call
	for _, c := range calls {
		if wanted(c) {
			picked = append(picked, c)
		}
	}
	return picked
}

func (g *Gate) try(ctx context.Context, calls []*call, withText bool) {
	if len(calls) == 0 {
		return
	}
	pipe := g.client.Pipeline()
	commands := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		if withText {
			commands[i] = c.script.Eval(ctx, pipe, c.keys, c.args...)
		} else {
			commands[i] = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, c := range calls {
		c.reply, c.err = commands[i].Text()
		if c.err != nil && !g.certain(c.err) {
			c.maybe = true
		}
	}
}

// refusals are replies that a server gives before a script's first write.
var refusals = []string{"NOSCRIPT", "READONLY", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "MISCONF", "OOM", "NOREPLICAS",
	"TRYAGAIN", "MOVED", "ASK", "BUSY", "NOAUTH", "WRONGPASS", "NOPERM", "CROSSSLOT", "NOIDENTITY", "INVALID"}

// certain reports whether err proves that the script of this try did not run.
func (g *Gate) certain(err error) bool {
	for _, prefix := range refusals {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	if g.redirects {
		return false
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
