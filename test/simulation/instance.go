package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"seckill/adapters/redislua"
	"seckill/adapters/wire"
	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

const groupsEach = 2 // groups that an instance applies at one time

// instance is one process of the service: every use case that runs by itself, wired as bootstrap does it.
type instance struct {
	w      *world
	number int
	life   int // how often it was started before

	// Under the scheduler's lock.
	dead      bool
	up        bool
	consuming []bool

	gate     *redislua.Gate
	lane     *application.DeductStock
	cancel   *application.CancelOrder
	change   *application.ChangeStock
	listener *application.TransactionListener
	handlers []port.DeliveryHandler
	runners  []application.Runner
}

func (i *instance) String() string {
	if i == nil {
		return "-"
	}
	return fmt.Sprintf("i%d.%d", i.number, i.life)
}

func (i *instance) isDead() bool {
	if i == nil {
		return false
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	return i.dead
}

// clock is the bubble's.
type clock struct{}

func (clock) Now() time.Time { return time.Now().UTC() }

// ids are a use case's own, so that two of them that run at once do not take each other's.
type ids struct {
	name string
	n    atomic.Int64
}

func (i *ids) Attempt() string { return fmt.Sprintf("%s-%d", i.name, i.n.Add(1)) }

func (i *ids) Unique() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(i.name))
	return fmt.Sprintf("%012x%010x%010x", time.Now().UnixMilli(), h.Sum64()&0xff_ffff_ffff, i.n.Add(1))
}

// chanceOf is chance from a seed.
func chanceOf(seed uint64, name string) application.Chance {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	dice := rand.New(rand.NewPCG(seed, h.Sum64()))
	var mu sync.Mutex
	return func(n time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(dice.Int64N(int64(n)))
	}
}

func (w *world) newInstance(number, life int) *instance {
	i := &instance{w: w, number: number, life: life, consuming: make([]bool, groupsEach)}
	client := w.store.client(w, i)
	w.clients = append(w.clients, client)
	var err error
	if i.gate, err = redislua.New(client, redislua.Config{Identity: askIdentity}); err != nil {
		panic(err)
	}
	log := slog.New(slog.DiscardHandler)
	if w.log != nil {
		log = w.log.With("instance", i.String())
	}
	i.wire(log)
	return i
}

func (i *instance) wire(log *slog.Logger) {
	w := i.w
	desk := func(who string) desk { return desk{w, i, who} }
	gate := func(who string) named { return named{w, i.gate, who} }
	newIDs := func(who string) *ids { return &ids{name: i.String() + "." + who} }

	lease := application.NewLease(desk("lease"), application.DefaultLeaseConfig(), log)
	rebuildConfig := application.DefaultRebuildConfig()
	rebuildConfig.Holder, rebuildConfig.PageMax, rebuildConfig.Chance = i.String(), 7, chanceOf(w.seed, i.String()+"rebuild")
	rebuild := application.NewRebuildStock(desk("rebuild"), desk("rebuild"), gate("rebuild"), gate("rebuild"),
		desk("rebuild"), client{w, i, "rebuild"}, lease, rebuildConfig, log)
	i.listener = application.NewTransactionListener(application.NewConfirmDeductions(gate("confirm")),
		application.NewResolveDeductions(gate("resolve"), desk("resolve"), desk("resolve"), rebuild, clock{}, log))
	settle := func(who string) *application.SettleDeductions {
		return application.NewSettleDeductions(desk(who), gate(who), desk(who), desk(who), desk(who), rebuild, newIDs(who),
			clock{}, wire.Encode, application.DefaultSettleConfig(), log)
	}
	for n := range groupsEach {
		i.handlers = append(i.handlers, settle(fmt.Sprint("settle", n)))
	}
	intake := application.NewIntake(application.DefaultIntakeConfig())
	var laneSender port.Sender = client{w, i, "lane"}
	if w.bad.sender != nil {
		laneSender = w.bad.sender(laneSender, gate("lane"))
	}
	i.lane = application.NewDeductStock(gate("lane"), laneSender, desk("lane"), lease, intake, rebuild, clock{}, newIDs("lane"),
		application.DefaultDeductConfig(), log)
	i.cancel = application.NewCancelOrder(desk("cancel"), gate("cancel"), desk("cancel"), desk("cancel"), rebuild, log)
	i.change = application.NewChangeStock(desk("change"), desk("change"), desk("change"), desk("change"), gate("change"),
		client{w, i, "change"}, desk("change"), lease, rebuild, clock{}, newIDs("change"),
		application.ChangeStockConfig{GateTimeout: 2 * time.Second, SendTimeout: 3 * time.Second}, log)
	relayConfig := application.DefaultRelayConfig()
	relayConfig.PageMax, relayConfig.Chance = 50, chanceOf(w.seed, i.String()+"relay")
	relay := application.NewRelayOpenFlows(gate("relay"), gate("relay"), gate("relay"), desk("relay"), desk("relay"),
		client{w, i, "relay"}, desk("relay"), client{w, i, "relay"}, intake, rebuild, newIDs("relay"), relayConfig, log)
	watch := application.NewWatchGates(desk("watch"), desk("watch"), gate("watch"), rebuild, application.DefaultWatchConfig(), log)
	replay := application.NewReplayParked(desk("replay"), desk("replay"), settle("replay"), wire.Decode, application.DefaultReplayConfig(), log)

	i.runners = []application.Runner{lease, rebuild, i.lane, relay, watch, replay}
	if w.bad.relayOff {
		i.runners = []application.Runner{lease, rebuild, i.lane, watch, replay}
	}
	if w.bad.runner != nil {
		i.runners = append(i.runners, w.bad.runner(w, gate("bad"), desk("bad")))
	}
}

// start starts the runners one by one, at times of their own, and again what fails.
func (i *instance) start() {
	for n, r := range i.runners {
		for r.Start(context.Background()) != nil {
			if i.isDead() {
				return
			}
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Duration(1_000_003 * (n + 1) * (i.number + 2)))
	}
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.up = !i.dead
	i.w.poke()
}

// stop ends the goroutines of an instance that is dead already.
func (i *instance) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for n := range i.runners {
		_ = i.runners[len(i.runners)-1-n].Stop(ctx)
	}
}

// named is a gate whose calls carry the name of the use case that makes them.
type named struct {
	w    *world
	gate *redislua.Gate
	who  string
}

// Deduct implements port.Gate. The lane's look-up stage takes whatever waits when it looks, which would
// be Go's doing here; so one purchase of a call goes there at most, and the others are told what it would say.
func (n named) Deduct(ctx context.Context, now time.Time, items []port.DeductItem) []port.DeductReply {
	replies := n.gate.Deduct(by(ctx, n.who), now, items)
	unloaded := false
	for i, r := range replies {
		switch r.Outcome {
		case port.DeductRewound:
			n.w.seen.hit("rewind noticed")
		case port.DeductRefused:
			n.w.seen.hit("tombstone met")
		case port.DeductNotLoaded:
			n.w.seen.hit("cold gate")
			if unloaded {
				replies[i].Outcome = port.DeductNotReady
			}
			unloaded = true
		default:
		}
	}
	return replies
}

// Check implements port.Gate.
func (n named) Check(ctx context.Context, keys []domain.Key) ([]port.CheckReply, error) {
	return n.gate.Check(by(ctx, n.who), keys)
}

// Adopt implements port.Gate.
func (n named) Adopt(ctx context.Context, now time.Time, items []port.AdoptItem) []port.AdoptReply {
	replies := n.gate.Adopt(by(ctx, n.who), now, items)
	for _, r := range replies {
		switch r.Outcome {
		case port.AdoptHeld:
			n.w.seen.hit("adopt")
		case port.AdoptNoRoom:
			n.w.seen.hit("adopt found no room")
		default:
		}
	}
	return replies
}

// Tell implements port.Gate.
func (n named) Tell(ctx context.Context, fates []domain.Fate) []port.TellOutcome {
	return n.gate.Tell(by(ctx, n.who), fates)
}

// Page implements port.OpenFlows.
func (n named) Page(ctx context.Context, product string, after int64, limit int) ([]domain.Flow, error) {
	return n.gate.Page(by(ctx, n.who), product, after, limit)
}

// Claim implements port.OpenFlows.
func (n named) Claim(ctx context.Context, product, holder string, ttl time.Duration) (bool, error) {
	return n.gate.Claim(by(ctx, n.who), product, holder, ttl)
}

// View implements port.GateAdmin.
func (n named) View(ctx context.Context, products []string) ([]port.GateView, error) {
	return n.gate.View(by(ctx, n.who), products)
}

// Shut implements port.GateAdmin.
func (n named) Shut(ctx context.Context, products []string) error {
	return n.gate.Shut(by(ctx, n.who), products)
}

// Prepare implements port.GateAdmin.
func (n named) Prepare(ctx context.Context, product string, epoch int64) (bool, error) {
	return n.gate.Prepare(by(ctx, n.who), product, epoch)
}

// WriteBack implements port.GateAdmin.
func (n named) WriteBack(ctx context.Context, product string, epoch int64, orders []domain.Order) (bool, error) {
	return n.gate.WriteBack(by(ctx, n.who), product, epoch, orders)
}

// Rebuild implements port.GateAdmin.
func (n named) Rebuild(ctx context.Context, plan port.GatePlan) (bool, error) {
	return n.gate.Rebuild(by(ctx, n.who), plan)
}

// Open implements port.GateAdmin.
func (n named) Open(ctx context.Context, product string, epoch int64) (bool, error) {
	return n.gate.Open(by(ctx, n.who), product, epoch)
}

// SetTerms implements port.GateAdmin.
func (n named) SetTerms(ctx context.Context, product string, terms domain.Terms) (bool, error) {
	return n.gate.SetTerms(by(ctx, n.who), product, terms)
}
