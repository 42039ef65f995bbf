package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redislua"
	"seckill/application/port"
	"seckill/domain"
)

// rawGate is a gate with a product of its own that no service knows, and the same script by the bare client.
type rawGate struct {
	client  *redis.Client
	gate    *redislua.Gate
	prefix  string
	product string
	calls   *lastCall
	serial  int
}

// lastCall remembers the last script call that a client sent: what the gate's own script is called with is the gate's
// secret, so the bare client copies it.
type lastCall struct {
	mu   sync.Mutex
	args []any
}

// DialHook changes nothing.
func (*lastCall) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook changes nothing.
func (*lastCall) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook looks at what is sent.
func (c *lastCall) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, command := range commands {
			if command.Name() == "evalsha" {
				c.mu.Lock()
				c.args = slices.Clone(command.Args())
				c.mu.Unlock()
			}
		}
		return next(ctx, commands)
	}
}

func (r *round) newRawGate(ctx context.Context) (*rawGate, error) { return r.newRawGateNamed(ctx, "") }

// newRawGateNamed names the server, for one that has no replication history to tell it by.
func (r *round) newRawGateNamed(ctx context.Context, identity string) (*rawGate, error) {
	if r.servers == nil {
		return nil, errNeeds
	}
	g := &rawGate{client: redis.NewClient(&redis.Options{Addr: r.servers.redis, MaxRetries: -1, DisableIdentity: true}),
		prefix: ownName("rawgate"), product: "raw-product-0001", calls: &lastCall{}}
	g.client.AddHook(g.calls)
	var err error
	if g.gate, err = redislua.New(g.client, redislua.Config{Prefix: g.prefix, Identity: identity}); err == nil {
		err = g.open(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, g.client.Close())
	}
	return g, nil
}

// open builds the gate's record as a rebuild does.
func (g *rawGate) open(ctx context.Context) error {
	const epoch = 1
	prepared, err := g.gate.Prepare(ctx, g.product, epoch)
	if err != nil {
		return err
	}
	views, err := g.gate.View(ctx, []string{g.product})
	if err != nil {
		return err
	}
	built, err := g.gate.Rebuild(ctx, port.GatePlan{Product: g.product, Epoch: epoch, Remaining: domain.UnitsMax, Version: 1,
		Sequence: views[0].Sequence, Server: views[0].Server})
	if err != nil {
		return err
	}
	opened, err := g.gate.Open(ctx, g.product, epoch)
	if err == nil && (!prepared || !built || !opened) {
		err = errors.New("the gate refused to be built")
	}
	return err
}

func (g *rawGate) close(ctx context.Context) error {
	return errors.Join(forget(ctx, g.client, g.prefix+":*"), g.client.Close())
}

// deduct takes a batch through the port.
func (g *rawGate) deduct(ctx context.Context, batch int) ([]domain.Flow, error) {
	b := backlog{gate: g.gate, serial: g.serial}
	flows, err := b.deduct(ctx, g.product, batch)
	g.serial = b.serial
	return flows, err
}

// script takes a batch by the bare client: the call that the port made last, with other buyers.
func (g *rawGate) script(ctx context.Context, batch int) error {
	args, err := rawCall(g.calls.args, &g.serial, batch)
	if err != nil {
		return err
	}
	pipe := g.client.Pipeline()
	reply := pipe.Do(ctx, args...)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	text, err := reply.Text()
	if err == nil && strings.Count(text, " A") != batch {
		err = fmt.Errorf("the script answered %.80q to a batch of %d", text, batch)
	}
	return err
}

const (
	rawKeys  = 3 // of every script, before those of the commands
	rawArgs  = 6 // the same
	rawEach  = 4 // user, token, quantity, attempt
	rawFixed = 3 // evalsha, its script, the number of keys
)

// rawCall makes a call for a batch of new buyers out of one that was seen: its script, its first keys and arguments,
// and the way in which it names a buyer's flows.
func rawCall(seen []any, serial *int, batch int) ([]any, error) {
	keys, ok := 0, len(seen) > rawFixed
	if ok {
		keys, ok = seen[2].(int)
	}
	if !ok || keys <= rawKeys || len(seen) != rawFixed+keys+rawArgs+rawEach*(keys-rawKeys) {
		return nil, fmt.Errorf("no call of the deduct script was seen, but %d words", len(seen))
	}
	arguments := seen[rawFixed+keys:]
	flows, isText := seen[rawFixed+rawKeys].(string)
	user, isText2 := arguments[rawArgs].(string)
	prefix, found := strings.CutSuffix(flows, user)
	if !isText || !isText2 || !found {
		return nil, errors.New("a key of flows does not end with its user")
	}
	call := append([]any{seen[0], seen[1], rawKeys + batch}, seen[rawFixed:rawFixed+rawKeys]...)
	rest := slices.Clone(arguments[:rawArgs])
	for range batch {
		*serial++
		name := fmt.Sprintf("user-%011d", *serial)
		call = append(call, prefix+name)
		rest = append(rest, name, fmt.Sprintf("token%011d", *serial), "1", fmt.Sprintf("a%015d", *serial))
	}
	return append(call, rest...), nil
}

// perSecond repeats something for half a window, and gives how often it was done in a second.
func (r *round) perSecond(do func() error) (float64, error) {
	began, n := time.Now(), 0
	for time.Since(began) < r.s.window/2 {
		if err := do(); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// playDeductStage is figure 6. Port and script take turns, so that neither has the fuller Redis alone.
func playDeductStage(ctx context.Context, r *round) (err error) {
	seen, err := r.sales(ctx)
	if err != nil {
		return err
	}
	g, err := r.newRawGate(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close(context.WithoutCancel(ctx))) }()
	batch := min(max(int(seen.deductMean), 1), fillBatch)
	var throughPort, raw float64
	for range 2 {
		p, err := r.perSecond(func() error { _, err := g.deduct(ctx, batch); return err })
		if err != nil {
			return err
		}
		s, err := r.perSecond(func() error { return g.script(ctx, batch) })
		if err != nil {
			return err
		}
		throughPort, raw = throughPort+p, raw+s
	}
	r.note("deduct stage", map[string]float64{"batch": float64(batch), "portPerSecond": throughPort / 2 * float64(batch),
		"rawPerSecond": raw / 2 * float64(batch)})
	r.result.record("6", over(throughPort, raw))
	return nil
}
