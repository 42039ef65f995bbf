package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"seckill/adapters/echohttp"
)

// errBroken is speed that was bought with a broken invariant: no result at all.
var errBroken = errors.New("an invariant is broken")

// errNeeds is why a figure cannot be measured with the settings of this run.
var errNeeds = errors.New("needs the real servers and --binary")

// bench drives one service and what it is held against.
type bench struct {
	s        settings
	tokens   *echohttp.Tokens
	servers  *servers // nil with --target
	service  *service
	bare     *process
	meter    meter
	operator string
	bearers  [][]byte
	client   *http.Client
	result   *result
	serial   int
}

func newBench(s settings, tokens *echohttp.Tokens) (*bench, error) {
	b := &bench{s: s, tokens: tokens, client: &http.Client{Timeout: 20 * time.Minute}, meter: meter{"load": os.Getpid()}, result: newResult(s)}
	var err error
	if b.operator, err = tokens.Issue("bench", []string{"stock:admin", "ops:read", "reconcile:run"}, 12*time.Hour); err != nil {
		return nil, err
	}
	for i := range s.buyers {
		t, err := tokens.Issue("buyer-"+strconv.Itoa(i), []string{"order:create", "order:read"}, 12*time.Hour)
		if err != nil {
			return nil, err
		}
		b.bearers = append(b.bearers, []byte("Bearer "+t))
	}
	return b, nil
}

// round is one turn of all measurements. What several figures share is measured once in it, when it is first asked for.
type round struct {
	*bench
	salesSeen   *salesSeen
	literalSeen *float64
	filledSeen  *filled
}

// play measures figures of one number in a round.
type play struct {
	number string
	once   bool // too long to be repeated: in the first round alone
	run    func(context.Context, *round) error
}

// plays are in the order in which they take turns. What fills the servers comes last.
var plays = []play{
	{"1", false, playRows},
	{"2", false, playCPU},
	{"3", false, playRefusals},
	{"4", false, playRepeats},
	{"5", false, playConsumer},
	{"6", false, playDeductStage},
	{"7", false, playLatency},
	{"12", false, playEmbedded},
	{"13", false, playStart},
	{"8", false, playManyProducts},
	{"10", true, playBytesPerFlow},
	{"9", true, playFilledGate},
	{"11", true, playReconcile},
	{"13", true, playRebuild},
	{"14", true, playMemory},
}

// rounds plays everything that is asked for in turn, so that a noisy minute hits all of it. A play that fails is a figure
// not run, and an error at the end; a broken invariant ends everything.
func (b *bench) rounds(ctx context.Context) error {
	if err := b.warmUp(ctx); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	failed := map[string]error{}
	for n := range b.s.runs {
		r := &round{bench: b}
		for i, p := range plays {
			if !b.asked(p.number) || p.once && n > 0 {
				continue
			}
			began := time.Now()
			err := p.run(ctx, r)
			switch {
			case ctx.Err() != nil || errors.Is(err, errBroken):
				return errors.Join(err, ctx.Err())
			case errors.Is(err, errNeeds):
				b.miss(p.number, errNeeds.Error())
			case err != nil:
				err = fmt.Errorf("figure %s in round %d: %w", p.number, n+1, err)
				fmt.Fprintln(os.Stderr, "bench:", err)
				b.miss(p.number, "failed: "+err.Error())
				failed[fmt.Sprintf("%02d", i)] = err
			default:
				fmt.Fprintf(os.Stderr, "round %d: figure %s took %.1f s\n", n+1, p.number, time.Since(began).Seconds())
			}
		}
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(failed)) {
		errs = append(errs, failed[key])
	}
	return errors.Join(errs...)
}

func (b *bench) asked(number string) bool {
	return slices.ContainsFunc(figures, func(f figure) bool { return f.number() == number && b.s.wants(f) })
}

// miss notes why the figures of a number have no value, where they have none yet.
func (b *bench) miss(number, why string) {
	for _, f := range figures {
		if f.number() == number && b.result.reasons[f.id] == "" {
			b.result.miss(f.id, why)
		}
	}
}

// warmUp sells for a while, unrecorded, and lets the bare server answer.
func (b *bench) warmUp(ctx context.Context) error {
	if b.s.warmUp == 0 {
		return nil
	}
	_, products := b.names(1)
	if err := b.open(ctx, b.s.admin, products, plenty); err != nil {
		return err
	}
	c := b.crowd(b.s.target, products)
	c.window = b.s.warmUp
	if _, err := b.let(ctx, c); err != nil {
		return err
	}
	c = b.crowd(b.bare.buyers, products)
	c.window = min(b.s.warmUp, time.Second)
	if _, err := b.let(ctx, c); err != nil {
		return err
	}
	return b.drain(ctx)
}

func (b *bench) note(scenario string, values map[string]float64) {
	one := sample{scenario, values}
	b.result.addSample(one)
	fmt.Fprintln(os.Stderr, one)
}

// names gives a prefix for tokens and fresh products, all of 16 characters.
func (b *bench) names(products int) (run string, names []string) {
	b.serial++
	run = fmt.Sprintf("b%08x%02x", uint32(time.Now().UnixMilli()), b.serial%256)
	for n := range products {
		names = append(names, fmt.Sprintf("%sp%04d", run, n))
	}
	return run, names
}

// crowd is the usual load on products, with tokens of its own.
func (b *bench) crowd(door string, products []string) crowd {
	run, _ := b.names(0)
	return crowd{door: door, run: run, products: products, connections: b.s.connections, window: b.s.window}
}

// steadyCrowd is the same at half the highest rate.
func (r *round) steadyCrowd(products []string, seen salesSeen) crowd {
	c := r.crowd(r.s.target, products)
	c.rate = seen.accepted / 2
	return c
}
