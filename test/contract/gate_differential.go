package contract

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// differential runs the same random operations on several stores and compares every answer. Ids
// are few, so that everything collides.
type differential struct {
	testing.TB
	rng      *mathrand.Rand
	names    []string
	worlds   []*differentialWorld
	products []string
	now      time.Time
	done     int
	outcomes map[string]int
	epochs   map[string]int64 // highest epoch that a rebuild took, as a ledger would remember it
	trail    []string         // the last operations, for a failure's message
}

// differentialWorld is one store with two processes on it, and the pictures taken of it.
type differentialWorld struct {
	GateFixture
	gates    []GatePorts
	pictures map[string]func()
}

// differentialOutcomes must all have been met, or the run has proved too little.
var differentialOutcomes = []string{
	"deduct rewound", "deduct not loaded", "deduct repeat", "deduct conflict", "deduct refused", "deduct not ready",
	"deduct closed", "deduct limit", "deduct not enough", "deduct accepted",
	"adopt wait", "adopt held", "adopt no room", "adopt refused", "adopt conflict",
	"tell not now", "tell done", "tell suspect", "tell added done", "tell added suspect",
	"check readable", "check unreadable", "page", "page empty", "view rewound", "view sound",
	"prepare done", "prepare refused", "write-back done", "write-back refused", "rebuild done", "rebuild refused",
	"open done", "open refused", "terms done", "terms refused",
	"forget", "picture", "restore", "move server",
}

// RunGateDifferential lets so many random operations run on all fixtures; a failure shows the trail
// that led there. Every outcome must occur.
func RunGateDifferential(t *testing.T, seed uint64, operations int, fixtures map[string]GateFixture) {
	t.Helper()
	d := &differential{TB: t, rng: mathrand.New(mathrand.NewPCG(seed, 1)),
		now:      time.UnixMilli(1_700_000_000_000).UTC(),
		outcomes: map[string]int{}, epochs: map[string]int64{}, names: slices.Sorted(maps.Keys(fixtures))}
	for _, name := range d.names {
		f := fixtures[name]
		d.worlds = append(d.worlds, &differentialWorld{GateFixture: f, gates: []GatePorts{f.New(t), f.New(t)}, pictures: map[string]func(){}})
	}
	run := rand.Text()[:8]
	for i := range 3 {
		d.products = append(d.products, fmt.Sprintf("d%d-%s", i, run))
	}
	for d.done < operations {
		d.step()
	}
	for _, outcome := range differentialOutcomes {
		if d.outcomes[outcome] == 0 {
			t.Errorf("seed %d: %d operations never met %q", seed, d.done, outcome)
		}
	}
	t.Logf("seed %d, %d operations on %v: %v", seed, d.done, d.names, d.outcomes)
}

// step is one random operation, or the whole road of a rebuild.
func (d *differential) step() {
	p := d.products[d.rng.IntN(len(d.products))]
	switch roll := d.rng.IntN(1000); {
	case roll < 420:
		d.deduct(p)
	case roll < 560:
		d.tell(p)
	case roll < 640:
		d.adopt(p)
	case roll < 690:
		d.check(p)
	case roll < 730:
		d.page(p)
	case roll < 770:
		d.view(p)
	case roll < 785:
		d.shut(p)
	case roll < 810:
		d.prepare(p)
	case roll < 835:
		d.writeBack(p, d.guess(d.look(p).Building))
	case roll < 865:
		d.rebuild(p)
	case roll < 900:
		d.open(p)
	case roll < 930:
		d.terms(p)
	case roll < 994:
		if v := d.view(p); !v.Loaded || v.Shut || v.Rewound {
			d.heal(p)
		}
	default:
		d.breakSomething(p, roll)
	}
	if d.rng.IntN(5) == 0 {
		d.now = d.now.Add(time.Duration(d.rng.IntN(2000)) * time.Millisecond)
	}
}

// ask runs one operation on the same process of every world and compares the answers.
func (d *differential) ask(what string, operation func(GatePorts) string) string {
	d.Helper()
	d.done++
	process := d.rng.IntN(2)
	d.trail = append(d.trail, fmt.Sprintf("process %d: %s", process, what))
	if len(d.trail) > 40 {
		d.trail = d.trail[1:]
	}
	var first string
	for i, w := range d.worlds {
		answer := operation(w.gates[process])
		if i == 0 {
			first = answer
			continue
		}
		if answer != first {
			d.Fatalf("operation %d differs.\n%s: %s\n%s: %s\nTrail:\n%s", d.done, d.names[0], first, d.names[i], answer,
				strings.Join(d.trail, "\n"))
		}
	}
	d.trail[len(d.trail)-1] += " = " + first
	return first
}

func (d *differential) met(outcome string) { d.outcomes[outcome]++ }

// key is one of few, which change slowly: most collide, and some are new.
func (d *differential) key(product string) domain.Key {
	if d.rng.IntN(5) == 0 {
		return d.changeKey(product)
	}
	return d.buyerKey(product)
}

func (d *differential) buyerKey(product string) domain.Key {
	key, err := domain.NewKey(product, fmt.Sprintf("u%d", d.rng.IntN(3)), fmt.Sprintf("t%d", d.done/60+d.rng.IntN(5)))
	if err != nil {
		d.Fatal(err)
	}
	return key
}

// changeKey is one of few stock changes.
func (d *differential) changeKey(product string) domain.Key {
	key, err := domain.ChangeKey(product, fmt.Sprintf("t%d", d.done/60+d.rng.IntN(5)))
	if err != nil {
		d.Fatal(err)
	}
	return key
}

// status is one that a row of the key may have.
func (d *differential) status(key domain.Key) domain.OrderStatus {
	if key.IsChange() && d.rng.IntN(2) == 0 {
		return domain.OrderAdded
	}
	return domain.OrderStatus(1 + d.rng.IntN(3))
}

// anyProduct is mostly the product, and sometimes another: batches mix.
func (d *differential) anyProduct(product string) string {
	if d.rng.IntN(4) == 0 {
		return d.products[d.rng.IntN(len(d.products))]
	}
	return product
}

func (d *differential) quantity() int64 { return []int64{1, 1, 1, 2, 2, 3}[d.rng.IntN(6)] }
func (d *differential) attempt() string { return fmt.Sprintf("a%d", d.rng.IntN(3)) }

// guess is mostly right.
func (d *differential) guess(n int64) int64 {
	if d.rng.IntN(5) == 0 {
		return max(1, n+int64(d.rng.IntN(3))-1)
	}
	return max(1, n)
}

func showFlow(f domain.Flow) string {
	if f.IsZero() {
		return "-"
	}
	return fmt.Sprintf("{%s %s %d %d>%d e%d s%d %s %d}", f.Key(), f.State(), f.Quantity(), f.From(), f.To(), f.Epoch(),
		f.Sequence(), f.Attempt(), f.At().UnixMilli())
}

func (d *differential) deduct(product string) {
	items := make([]port.DeductItem, 1+d.rng.IntN(4))
	for i := range items {
		key := d.buyerKey(d.anyProduct(product))
		items[i] = deductItem(d, key.Product(), key.User(), key.Token(), d.quantity(), d.attempt())
	}
	names := map[port.DeductOutcome]string{port.DeductRewound: "rewound", port.DeductNotLoaded: "not loaded",
		port.DeductRepeat: "repeat", port.DeductConflict: "conflict", port.DeductRefused: "refused",
		port.DeductNotReady: "not ready", port.DeductClosed: "closed", port.DeductLimit: "limit",
		port.DeductNotEnough: "not enough", port.DeductAccepted: "accepted"}
	var replies []port.DeductReply
	d.ask(fmt.Sprintf("deduct at %d %v", d.now.UnixMilli(), items), func(g GatePorts) string {
		replies = g.Deduct(d.Context(), d.now, items)
		var b strings.Builder
		for _, r := range replies {
			fmt.Fprintf(&b, "%d %s %d %v; ", r.Outcome, showFlow(r.Flow), r.Remaining, r.Err)
		}
		return b.String()
	})
	for _, r := range replies {
		d.met("deduct " + names[r.Outcome])
	}
}

func (d *differential) adopt(product string) {
	items := make([]port.AdoptItem, 1+d.rng.IntN(3))
	for i := range items {
		items[i] = port.AdoptItem{Key: d.key(d.anyProduct(product)), Quantity: d.quantity(), Attempt: d.attempt(),
			Otherwise: port.AdoptOtherwise(d.rng.IntN(3))}
		if d.rng.IntN(3) == 0 {
			items[i].Attempt = ""
		}
	}
	names := [...]string{"unknown", "wait", "held", "no room", "refused", "conflict"}
	var replies []port.AdoptReply
	d.ask(fmt.Sprintf("adopt %v", items), func(g GatePorts) string {
		replies = g.Adopt(d.Context(), d.now, items)
		return fmt.Sprint(replies)
	})
	for _, r := range replies {
		d.met("adopt " + names[r.Outcome])
	}
}

func (d *differential) tell(product string) {
	fates := make([]domain.Fate, 1+d.rng.IntN(3))
	for i := range fates {
		p := d.anyProduct(product)
		key := d.key(p)
		fates[i] = domain.Fate{Key: key, Quantity: d.quantity(), Status: d.status(key),
			FromBirth: d.rng.IntN(2) == 0, Epoch: int64(d.rng.IntN(5)), Sequence: int64(d.rng.IntN(100)),
			StockVersion: max(0, d.look(p).BaseVersion+int64(d.rng.IntN(5))-2), At: d.now}
	}
	names := [...]string{"unknown", "not now", "done", "suspect"}
	var outcomes []port.TellOutcome
	d.ask(fmt.Sprintf("tell %v", fates), func(g GatePorts) string {
		outcomes = g.Tell(d.Context(), fates)
		return fmt.Sprintf("%d", outcomes)
	})
	for i, o := range outcomes {
		d.met("tell " + names[o])
		if fates[i].Status == domain.OrderAdded {
			d.met("tell added " + names[o])
		}
	}
}

func (d *differential) check(product string) {
	keys := []domain.Key{d.key(product), d.key(d.anyProduct(product))}
	d.ask(fmt.Sprintf("check %v", keys), func(g GatePorts) string {
		replies, err := g.Check(d.Context(), keys)
		var b strings.Builder
		fmt.Fprintf(&b, "%v", err)
		for _, r := range replies {
			fmt.Fprintf(&b, " %s %v %d;", showFlow(r.Flow), r.Readable, r.Epoch)
			if r.Readable {
				d.met("check readable")
			} else {
				d.met("check unreadable")
			}
		}
		return b.String()
	})
}

func (d *differential) page(product string) {
	after, limit := int64(d.rng.IntN(20)), 1+d.rng.IntN(5)
	d.ask(fmt.Sprintf("page %s after %d, %d", product, after, limit), func(g GatePorts) string {
		flows, err := g.Page(d.Context(), product, after, limit)
		var b strings.Builder
		fmt.Fprintf(&b, "%v", err)
		for _, f := range flows {
			b.WriteString(showFlow(f))
		}
		if len(flows) > 0 {
			d.met("page")
		} else {
			d.met("page empty")
		}
		return b.String()
	})
}

func showView(v port.GateView) string {
	oldest := v.OldestOpenAt.UnixMilli()
	v.OldestOpenAt = time.Time{}
	return fmt.Sprintf("%+v oldest %d", v, oldest)
}

func (d *differential) view(product string) port.GateView {
	var view port.GateView
	d.ask("view "+product, func(g GatePorts) string {
		views, err := g.View(d.Context(), []string{product})
		if err != nil {
			return err.Error()
		}
		view = views[0]
		return showView(view)
	})
	if view.Rewound {
		d.met("view rewound")
	} else {
		d.met("view sound")
	}
	return view
}

// look reads a record through a process of its own, so that it leaves no memory.
func (d *differential) look(product string) port.GateView {
	d.Helper()
	views, err := d.worlds[0].New(d).View(context.Background(), []string{product})
	if err != nil {
		d.Fatal(err)
	}
	return views[0]
}

func (d *differential) shut(product string) {
	d.ask("shut "+product, func(g GatePorts) string { return fmt.Sprint(g.Shut(d.Context(), []string{product})) })
}

// try runs a step that is done or refused.
func (d *differential) try(name, what string, step func(GatePorts) (bool, error)) {
	d.Helper()
	answer := d.ask(name+" "+what, func(g GatePorts) string {
		done, err := step(g)
		return fmt.Sprint(done, " ", err)
	})
	if strings.HasPrefix(answer, "true") {
		d.met(name + " done")
	} else {
		d.met(name + " refused")
	}
}

func (d *differential) prepare(product string) {
	v := d.look(product)
	epoch := d.guess(max(v.Epoch, v.Building) + 1)
	d.epochs[product] = max(d.epochs[product], epoch)
	d.try("prepare", fmt.Sprint(product, " ", epoch), func(g GatePorts) (bool, error) {
		return g.Prepare(d.Context(), product, epoch)
	})
}

func (d *differential) writeBack(product string, epoch int64) {
	rows := make([]domain.Order, d.rng.IntN(4))
	for i := range rows {
		key := d.key(product)
		order, err := domain.NewOrder(domain.OrderFields{Key: key, Quantity: d.quantity(), Status: d.status(key), Epoch: int64(d.rng.IntN(4)), Sequence: int64(d.rng.IntN(50)),
			Attempt: d.attempt(), CreatedAt: d.now})
		if err != nil {
			d.Fatal(err)
		}
		rows[i] = order
	}
	d.try("write-back", fmt.Sprint(product, " ", epoch, rows), func(g GatePorts) (bool, error) {
		return g.WriteBack(d.Context(), product, epoch, rows)
	})
}

func (d *differential) someTerms(revision int64) domain.Terms {
	t := domain.Terms{Revision: revision, Paused: d.rng.IntN(8) == 0}
	if d.rng.IntN(2) == 0 {
		t.LimitPerBuyer = int64(1 + d.rng.IntN(5))
	}
	if d.rng.IntN(3) == 0 {
		t.OpensAt = d.now.Add(time.Duration(d.rng.IntN(4000)-3000) * time.Millisecond)
	}
	if d.rng.IntN(3) == 0 {
		t.ClosesAt = d.now.Add(time.Duration(d.rng.IntN(20000)) * time.Millisecond)
	}
	return t
}

func (d *differential) rebuild(product string) {
	v := d.look(product)
	plan := port.GatePlan{Product: product, Epoch: d.guess(v.Building), Remaining: int64(d.rng.IntN(12)),
		Version: int64(d.rng.IntN(10)), Terms: d.someTerms(v.Revision), Sequence: d.guess(v.Sequence), Server: v.Server}
	d.try("rebuild", fmt.Sprintf("%+v", plan), func(g GatePorts) (bool, error) { return g.Rebuild(d.Context(), plan) })
	if d.rng.IntN(4) == 0 { // the reply got lost
		d.try("rebuild", fmt.Sprintf("%+v", plan), func(g GatePorts) (bool, error) { return g.Rebuild(d.Context(), plan) })
	}
}

func (d *differential) open(product string) {
	epoch := d.guess(d.look(product).Epoch)
	d.try("open", fmt.Sprint(product, " ", epoch), func(g GatePorts) (bool, error) { return g.Open(d.Context(), product, epoch) })
}

func (d *differential) terms(product string) {
	terms := d.someTerms(d.guess(d.look(product).Revision + 1))
	d.try("terms", fmt.Sprintf("%s %+v", product, terms), func(g GatePorts) (bool, error) {
		return g.SetTerms(d.Context(), product, terms)
	})
}

// heal takes the whole road of a rebuild without a mistake.
func (d *differential) heal(product string) {
	v := d.look(product)
	epoch := max(v.Epoch, v.Building, d.epochs[product]) + 1 + int64(d.rng.IntN(2))
	d.epochs[product] = epoch
	d.try("prepare", fmt.Sprint(product, " ", epoch), func(g GatePorts) (bool, error) { return g.Prepare(d.Context(), product, epoch) })
	d.writeBack(product, epoch)
	v = d.look(product)
	plan := port.GatePlan{Product: product, Epoch: epoch, Remaining: int64(d.rng.IntN(30)), Version: v.VersionTold + 1,
		Terms: d.someTerms(v.Revision + 1), Sequence: v.Sequence, Server: v.Server}
	d.try("rebuild", fmt.Sprintf("%+v", plan), func(g GatePorts) (bool, error) { return g.Rebuild(d.Context(), plan) })
	d.try("open", fmt.Sprint(product, " ", epoch), func(g GatePorts) (bool, error) { return g.Open(d.Context(), product, epoch) })
}

// breakSomething loses a product, takes it back to an older picture, or moves it to another server.
func (d *differential) breakSomething(product string, roll int) {
	what := ""
	for _, w := range d.worlds {
		restore := w.pictures[product]
		switch {
		case roll < 996:
			what = "forget"
			w.Forget(d, product)
		case roll < 997:
			what = "move server"
			w.MoveServer(d, product)
		case restore == nil:
			what = "picture"
			w.pictures[product] = w.Picture(d, product)
		default:
			what = "restore"
			restore()
			delete(w.pictures, product)
		}
	}
	d.trail = append(d.trail, what+" "+product)
	d.done++
	d.met(what)
}
