package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/redislua"
	"seckill/adapters/wire"
	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/contract/ledgermodel"
)

// Params are how large a world is.
type Params struct {
	Requests int
	Users    int
	Safety   time.Duration // how long faults are on
	Liveness time.Duration // how long everything has afterwards to come to rest
	Trouble  int           // crashes, losses and outages
	Rate     float64       // of faults among calls that change something
	Tampered bool          // somebody gives the gate units by hand that nobody has; then only A is checked
}

// DefaultParams is a world that runs in a second.
func DefaultParams() Params {
	return Params{Requests: 200, Users: 60, Safety: 60 * time.Second, Liveness: 120 * time.Second, Trouble: 7, Rate: 0.012}
}

// world is a sale with everything that it needs, in one bubble.
type world struct {
	*scheduler
	seed       uint64
	params     Params
	bad        variant
	log        *slog.Logger // nil: nobody reads along
	store      *store
	ledger     *ledgermodel.Ledger
	broker     *broker
	seen       *sightings
	truth      *truth
	instances  []*instance
	products   []string
	requests   []*request
	errands    []*errand
	changes    []stockChange
	plain      []domain.Key        // of messages that another producer has committed
	foreigns   map[domain.Key]bool // of all that another producer has sent
	handedBack []*message          // under the scheduler's lock
	clients    []redis.UniversalClient
	raw        redis.UniversalClient // of nobody's hook
	violations []string
	residual   int
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newWorld(seed uint64, params Params, bad variant, texts map[string]string, t *trace) *world {
	w := &world{scheduler: newScheduler(seed, t), seed: seed, params: params, bad: bad, seen: newSightings(), truth: newTruth(),
		foreigns: map[domain.Key]bool{}}
	w.crash, w.rate, w.lateMax = w.die, params.Rate, 1900*time.Millisecond
	w.store = newStore(texts, bad)
	w.store.noCache = func() { w.seen.hit("script met no cache") }
	w.ledger = ledgermodel.New(bad.ledger)
	w.broker = &broker{w: w}
	w.raw = w.store.client(w, nil)
	w.clients = append(w.clients, w.raw)
	return w
}

func (w *world) violation(format string, args ...any) {
	if w.params.Tampered && !strings.HasPrefix(format, "A") && !strings.HasPrefix(format, "%s (%s)") {
		return
	}
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// poke makes the scheduler look again.
func (w *world) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// play is one run: a sale is opened, everything breaks, everything is mended, and the books are checked.
func (w *world) play() {
	w.open()
	w.faulty = true
	w.planRequests()
	w.planChanges()
	w.planTrouble()
	end := time.Now().Add(w.params.Safety)
	w.run(end, w.tend, func() bool { return false })

	w.mend()
	w.run(time.Now().Add(w.params.Liveness), w.tend, w.atRest)
	w.judge()
	w.close()
}

// open puts the products on sale and waits until all of it is up.
func (w *world) open() {
	for n := range 2 {
		product := fmt.Sprintf("p%d", n)
		limit := int64(0)
		if n == 1 {
			limit = 4
		}
		sale := must(domain.NewSale(product, 40+w.dice.Int64N(60), time.Time{}, time.Time{}, limit))
		if _, _, err := w.ledger.Create(context.Background(), sale, port.Audit{}); err != nil {
			panic(err)
		}
		w.products = append(w.products, product)
	}
	for n := range 2 + w.dice.IntN(2) {
		w.instances = append(w.instances, nil)
		w.boot(n, 0)
	}
	w.tick()
	w.run(time.Now().Add(time.Minute), w.tend, func() bool {
		up := !slices.ContainsFunc(w.instances, func(i *instance) bool { return !i.up })
		return up && w.atRest()
	})
}

// tick is the broker's beat, and Redis' expiry, which miniredis leaves to its user.
func (w *world) tick() {
	const beat = 500 * time.Millisecond
	w.at(beat, "the broker looks", func() {
		w.broker.check()
		w.store.mini.FastForward(beat)
		w.tick()
	})
}

// tend does what has to be done whenever nothing moves; it says whether something moves now.
func (w *world) tend() bool {
	w.collect()
	w.collectErrands()
	w.broker.again()
	return w.broker.hand()
}

func (w *world) boot(number, life int) {
	inst := w.newInstance(number, life)
	w.instances[number] = inst
	w.trace.add("%s starts", inst)
	go inst.start()
}

// anyInstance is one that takes requests; nil: there is none.
func (w *world) anyInstance() *instance {
	var up []*instance
	for _, i := range w.instances {
		if i.up && !i.dead {
			up = append(up, i)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[w.dice.IntN(len(up))]
}

// die kills an instance; another one comes in its place.
func (w *world) die(inst *instance) {
	w.seen.hit("crash")
	w.trace.add("%s dies", inst)
	w.abandon(inst)
	go func() {
		time.Sleep(time.Nanosecond) // whoever waits has heard its verdict when its context ends
		inst.stop()
	}()
	w.at(w.span(300*time.Millisecond, 8*time.Second), "a successor of "+inst.String(), func() {
		if w.instances[inst.number] == inst {
			w.boot(inst.number, inst.life+1)
		}
	})
}

// foreign is another producer's message in the plain form: committed, or left for its check-back.
func (w *world) foreign(c domain.DeductCommand) {
	k := c.Key()
	committed := w.chance(0.5)
	w.foreigns[k] = true
	body := must(wire.Encode(domain.Batch{Kind: domain.BatchDeduct, Plain: true, Items: []domain.Deduction{{Key: k, Quantity: c.Quantity()}}}))
	if !committed {
		w.broker.store(body)
		return
	}
	w.plain = append(w.plain, k)
	w.broker.publish(body)
}

// mend ends all faults.
func (w *world) mend() {
	w.trace.add("the faults end")
	w.faulty = false
	w.down = [serversCount]time.Time{}
	for n, inst := range w.instances {
		if inst.dead {
			w.boot(n, inst.life+1)
		}
	}
}

// atRest reports whether nothing is on its way any more, as nobody but the world can see it.
func (w *world) atRest() bool {
	ctx := context.Background()
	for _, r := range w.requests {
		if r.asking || r.open || r.told == "" {
			return false
		}
	}
	for _, e := range w.errands {
		if e.asking || e.told == "" || e.told == application.AnswerUnknown {
			return false
		}
	}
	for _, h := range w.broker.halves {
		if !h.decided && !h.lost {
			return false
		}
	}
	for _, m := range w.broker.messages {
		if !m.done {
			return false
		}
	}
	for _, s := range must(w.ledger.Stocks(ctx, w.products)) {
		record := "seckill:{" + s.Product() + "}:"
		shut := w.store.mini.HGet(record+"stock", "shut") != "0"
		open, _ := w.store.mini.ZMembers(record + "open")
		if s.State() != domain.SaleOpen || shut || len(open) > 0 || w.store.mini.HGet(record+"stock", "epoch") != fmt.Sprint(s.Epoch()) {
			return false
		}
	}
	return len(must(w.ledger.Untold(ctx, 0, "", 1))) == 0 && len(must(w.ledger.Replayable(ctx, 1))) == 0
}

// judge checks A to E with what every buyer was told.
func (w *world) judge() {
	ctx := context.Background()
	identity := w.store.identity
	if w.store.blind {
		identity = blindIdentity
	}
	gate := must(redislua.New(w.raw, redislua.Config{Identity: identity}))
	eyes := application.StockEyes{Catalog: w.ledger, Gate: gate, Admin: gate, Flows: gate, Ledger: w.ledger, Outbox: w.ledger}
	v, err := application.NewVerifyBooks(w.ledger, eyes, clock{}, application.DefaultVerifyConfig()).Verify(ctx, "", w.journal())
	if err != nil {
		w.violation("the books cannot be checked: %v", err)
		return
	}
	for _, i := range v.Invariants {
		if i.Verdict != application.VerdictHolds && (i.Name == "A" || !w.params.Tampered) {
			w.violation("%s (%s) is %s: %+v", i.Name, i.Title, i.Verdict, i.Findings)
		}
	}
	for i, row := range must(w.ledger.Fates(ctx, w.plain)) {
		if row.IsZero() {
			w.violation("D: the plain message of %s has no order", w.plain[i])
		}
	}
	w.judgeChanges()
	w.trace.add("verdict: %+v", v)
}

// journal is what every buyer was told in the end. Those whom the promise leaves out are taken out, and counted.
func (w *world) journal() []application.JournalEntry {
	var journal []application.JournalEntry
	for _, r := range w.requests {
		k := r.command.Key()
		e := application.JournalEntry{Product: k.Product(), User: k.User(), Token: k.Token(), Quantity: r.command.Quantity(), Answer: r.told}
		if e.Answer == application.AnswerRefused && w.foreigns[k] { // somebody else may have bought with the token since
			e.Answer = application.AnswerUnknown
		}
		if r.ever {
			e.Answer = application.AnswerAccepted
		}
		row := must(w.ledger.Fates(context.Background(), []domain.Key{k}))[0]
		undone := application.Answer("")
		if r.undone != nil {
			undone = r.undone.told
			if undone == application.AnswerAccepted && r.undone.status == application.OrderRejected {
				undone = application.AnswerRefused
			}
			if undone == "" {
				undone = application.AnswerUnknown
			}
			journal = append(journal, application.JournalEntry{Product: k.Product(), User: k.User(), Token: k.Token(),
				Quantity: r.command.Quantity(), Cancel: true, Answer: undone})
		}
		if row.Status() == domain.OrderCancelled {
			w.seen.hit(map[bool]string{true: "cancel before apply", false: "cancel after apply"}[row.FromBirth()])
		}
		if r.ever && row.Status() != domain.OrderConfirmed && undone != application.AnswerAccepted && w.truth.excused(k) {
			e.Answer = application.AnswerUnknown
			w.residual++
		}
		if e.Answer == application.AnswerRefused && row.Status() == domain.OrderConfirmed && w.truth.excused(k) {
			e.Answer = application.AnswerUnknown // refused by a gate that could not know of the first try
			w.residual++
		}
		if e.Answer == "" {
			e.Answer = application.AnswerUnknown
			w.violation("E: %s has no definite answer after %d asks", r, r.asks)
		}
		journal = append(journal, e)
	}
	return journal
}

// close ends every goroutine.
func (w *world) close() {
	for _, inst := range w.instances {
		w.abandon(inst)
		go inst.stop()
	}
	time.Sleep(2 * time.Minute)
	for _, c := range w.clients {
		_ = c.Close()
	}
	w.store.mini.Close()
}

func (w *world) report() string {
	return fmt.Sprintf("seed %d: %d violations\n%s\n--- the end of the trace (%d lines, hash %016x)\n%s", w.seed,
		len(w.violations), strings.Join(w.violations, "\n"), w.trace.lines, w.trace.hash, w.trace)
}
