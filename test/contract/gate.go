package contract

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// GatePorts is what a gate offers.
type GatePorts interface {
	port.Gate
	port.OpenFlows
	port.GateAdmin
}

// GateFixture makes gates for the suite.
type GateFixture struct {
	New        func(testing.TB) GatePorts                           // a process that has seen nothing, on the store that all share
	Forget     func(tb testing.TB, product string)                  // the store loses everything about a product
	Picture    func(tb testing.TB, product string) (restore func()) // restore takes a product back to now
	MoveServer func(tb testing.TB, product string)                  // the record names another server
}

// gateWorld is one case of the suite: a product and a process.
type gateWorld struct {
	testing.TB
	GateFixture
	gate    GatePorts
	product string
	epoch   int64
	now     time.Time
}

// RunGate runs the contract of port.Gate, port.OpenFlows and port.GateAdmin.
func RunGate(t *testing.T, fixture GateFixture) {
	t.Helper()
	cases := map[string]func(*gateWorld){
		"accepted deductions take units and are open":            gateAccepts,
		"the same attempt is accepted again and takes nothing":   gateRepeatsAttempt,
		"another attempt is a repeat with the original flow":     gateRepeatsToken,
		"a repeat for the last unit is not told not enough":      gateRepeatBeforeStock,
		"another quantity under a token is a conflict":           gateConflict,
		"refusals change nothing":                                gateRefusalsLeaveNoTrace,
		"window, pause and limit":                                gateTerms,
		"a limit counts living flows only":                       gateLimitFollowsFlows,
		"one unit and 500 buyers":                                gateOneUnit,
		"mixed quantities never go below zero":                   gateMixedQuantities,
		"no record is not sold out":                              gateNotLoaded,
		"ids that read alike when joined stay apart":             gateIDs,
		"a batch of many products answers each item":             gateBatch,
		"a big batch of one product keeps its order":             gateBigBatch,
		"check reads flows and says when absence proves nothing": gateChecks,
		"adopt takes units whatever the terms say, once":         gateAdopts,
		"what is refused for good is refused at once":            gateRefuses,
		"tell follows the settling table":                        gateTells,
		"tell is refused where it could be lost":                 gateTellsNotNow,
		"a confirmed order proves that its flow was lost":        gateTellsWhatItForgot,
		"pages of open flows":                                    gatePages,
		"claims":                                                 gateClaims,
		"a rebuild under a higher epoch is followed by everyone": gateRebuilds,
		"a step of a rebuild that was overtaken is refused":      gateRebuildOvertaken,
		"a rebuild is refused when anything moved":               gateRebuildMoved,
		"write-back gives flows the state of their row":          gateWritesBack,
		"another server is a rewind, for everything":             gateMovedServer,
		"an older picture is noticed by who saw more":            gateFallsBack,
		"an own flow that is missing is noticed":                 gateMissesOwnFlow,
		"terms follow their revision":                            gateTakesTerms,
		"shut stops buyers and not repeats":                      gateShuts,
		"an addition is counted once, whatever is told when":     gateAdditions,
		"additions told in any order and again":                  gateAdditionsShuffled,
		"a withdrawal takes what is left, and no more":           gateWithdrawal,
		"withdrawals beside 200 buyers":                          gateWithdrawalsBesideBuyers,
		"rows of stock changes are written back":                 gateWritesChangesBack,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(newGateWorld(t, fixture))
		})
	}
}

func newGateWorld(tb testing.TB, fixture GateFixture) *gateWorld {
	return &gateWorld{TB: tb, GateFixture: fixture, gate: fixture.New(tb), product: "p-" + rand.Text(),
		now: time.UnixMilli(1_700_000_000_123).UTC()}
}

// sell builds and opens the gate with remaining units.
func (w *gateWorld) sell(remaining int64, terms domain.Terms) {
	w.Helper()
	w.build(remaining, 1, terms)
	w.must(w.gate.Open(w.Context(), w.product, w.epoch))
}

// build takes the road of a rebuild, up to the opening.
func (w *gateWorld) build(remaining, version int64, terms domain.Terms, rows ...domain.Order) {
	w.Helper()
	w.epoch++
	w.must(w.gate.Prepare(w.Context(), w.product, w.epoch))
	w.must(w.gate.WriteBack(w.Context(), w.product, w.epoch, rows))
	view := w.view()
	w.must(w.gate.Rebuild(w.Context(), port.GatePlan{Product: w.product, Epoch: w.epoch, Remaining: remaining,
		Version: version, Terms: terms, Sequence: view.Sequence, Server: view.Server}))
}

func (w *gateWorld) must(done bool, err error) {
	w.Helper()
	if err != nil || !done {
		w.Fatalf("a step was refused: %v, %v", done, err)
	}
}

func (w *gateWorld) refused(done bool, err error) {
	w.Helper()
	if err != nil || done {
		w.Fatalf("a step was not refused: %v, %v", done, err)
	}
}

func (w *gateWorld) view() port.GateView {
	w.Helper()
	return viewOf(w, w.gate, w.product)
}

func viewOf(w *gateWorld, gate GatePorts, product string) port.GateView {
	w.Helper()
	views, err := gate.View(w.Context(), []string{product})
	if err != nil || len(views) != 1 {
		w.Fatalf("view: %v, %v", views, err)
	}
	return views[0]
}

func (w *gateWorld) key(user, token string) domain.Key {
	w.Helper()
	key, err := domain.StoredKey(w.product, user, token)
	if err != nil {
		w.Fatal(err)
	}
	return key
}

func (w *gateWorld) item(user, token string, quantity int64, attempt string) port.DeductItem {
	w.Helper()
	return deductItem(w, w.product, user, token, quantity, attempt)
}

func deductItem(tb testing.TB, product, user, token string, quantity int64, attempt string) port.DeductItem {
	tb.Helper()
	command, err := domain.NewDeductCommand(product, user, token, quantity)
	if err != nil {
		tb.Fatal(err)
	}
	return port.DeductItem{Command: command, Attempt: attempt}
}

// deduct is one command through the world's own process.
func (w *gateWorld) deduct(user, token string, quantity int64, attempt string) port.DeductReply {
	w.Helper()
	return w.gate.Deduct(w.Context(), w.now, []port.DeductItem{w.item(user, token, quantity, attempt)})[0]
}

func (w *gateWorld) expect(reply port.DeductReply, outcome port.DeductOutcome, remaining int64) {
	w.Helper()
	if reply.Outcome != outcome || reply.Remaining != remaining || reply.Err != nil {
		w.Fatalf("got outcome %d with %d left (%v), want %d with %d", reply.Outcome, reply.Remaining, reply.Err, outcome, remaining)
	}
}

func (w *gateWorld) flow(user, token string) domain.Flow {
	w.Helper()
	replies, err := w.gate.Check(w.Context(), []domain.Key{w.key(user, token)})
	if err != nil {
		w.Fatal(err)
	}
	return replies[0].Flow
}

func (w *gateWorld) tell(fate domain.Fate) port.TellOutcome {
	w.Helper()
	return w.gate.Tell(w.Context(), []domain.Fate{fate})[0]
}

// fate is of an order that the gate had before its last rebuild.
func (w *gateWorld) fate(user, token string, quantity int64, status domain.OrderStatus, fromBirth bool, version int64) domain.Fate {
	w.Helper()
	return domain.Fate{Key: w.key(user, token), Quantity: quantity, Status: status, FromBirth: fromBirth,
		Epoch: max(0, w.epoch-1), Sequence: 1, StockVersion: version, At: w.now}
}

func (w *gateWorld) order(user, token string, quantity int64, status domain.OrderStatus) domain.Order {
	w.Helper()
	order, err := domain.NewOrder(domain.OrderFields{ID: strings.Repeat("0", 32), Key: w.key(user, token),
		Quantity: quantity, Status: status, Epoch: w.epoch, Sequence: 7, Attempt: "row", CreatedAt: w.now})
	if err != nil {
		w.Fatal(err)
	}
	return order
}

func gateAccepts(w *gateWorld) {
	w.sell(10, domain.Terms{})
	before := w.view()
	reply := w.deduct("alice", "t1", 3, "a1")
	w.expect(reply, port.DeductAccepted, 7)
	f := reply.Flow
	if f.Key() != w.key("alice", "t1") || f.Quantity() != 3 || f.From() != 10 || f.To() != 7 || f.State() != domain.FlowDeducted ||
		f.Epoch() != w.epoch || f.Sequence() != before.Sequence+1 || f.Attempt() != "a1" || !f.At().Equal(w.now) {
		w.Fatalf("flow %+v", f)
	}
	after := w.view()
	if after.Remaining != 7 || after.OpenFlows != 1 || after.Sequence != before.Sequence+1 || !after.OldestOpenAt.Equal(w.now) {
		w.Fatalf("view %+v", after)
	}
}

func gateRepeatsAttempt(w *gateWorld) {
	w.sell(10, domain.Terms{})
	first := w.deduct("alice", "t1", 3, "a1")
	again := w.deduct("alice", "t1", 3, "a1")
	w.expect(again, port.DeductAccepted, 7)
	if again.Flow != first.Flow {
		w.Fatalf("flow %+v, first %+v", again.Flow, first.Flow)
	}
	w.tell(w.fate("alice", "t1", 3, domain.OrderConfirmed, true, 2))
	w.expect(w.deduct("alice", "t1", 3, "a1"), port.DeductAccepted, 7)
	w.tell(w.fate("alice", "t1", 3, domain.OrderCancelled, false, 3))
	released := w.deduct("alice", "t1", 3, "a1") // cancelled meanwhile: its state, not accepted
	w.expect(released, port.DeductRepeat, 10)
	if released.Flow.State() != domain.FlowReleased {
		w.Fatalf("state %s", released.Flow.State())
	}
}

func gateRepeatsToken(w *gateWorld) {
	w.sell(10, domain.Terms{})
	first := w.deduct("alice", "t1", 3, "a1")
	again := w.deduct("alice", "t1", 3, "a2")
	w.expect(again, port.DeductRepeat, 7)
	if again.Flow != first.Flow {
		w.Fatalf("flow %+v, first %+v", again.Flow, first.Flow)
	}
}

func gateRepeatBeforeStock(w *gateWorld) {
	w.sell(1, domain.Terms{})
	w.expect(w.deduct("alice", "t1", 1, "a1"), port.DeductAccepted, 0)
	w.expect(w.deduct("alice", "t1", 1, "a2"), port.DeductRepeat, 0)
	w.expect(w.deduct("bob", "t1", 1, "a3"), port.DeductNotEnough, 0)
}

func gateConflict(w *gateWorld) {
	w.sell(10, domain.Terms{})
	first := w.deduct("alice", "t1", 3, "a1")
	other := w.deduct("alice", "t1", 2, "a1")
	w.expect(other, port.DeductConflict, 7)
	if other.Flow != first.Flow {
		w.Fatalf("flow %+v, first %+v", other.Flow, first.Flow)
	}
}

func gateRefusalsLeaveNoTrace(w *gateWorld) {
	w.sell(10, domain.Terms{LimitPerBuyer: 1})
	w.expect(w.deduct("u", "t", 1, "a"), port.DeductAccepted, 9)
	before := w.view()
	for i := range 100 {
		w.expect(w.deduct("u", fmt.Sprintf("t%d", i), 1, fmt.Sprintf("a%d", i)), port.DeductLimit, 9)
	}
	if after := w.view(); after != before {
		w.Fatalf("refusals changed %+v to %+v", before, after)
	}
	for i := range 9 {
		w.expect(w.deduct(fmt.Sprintf("v%d", i), "t", 1, "a"), port.DeductAccepted, int64(8-i))
	}
	before = w.view()
	w.expect(w.deduct("late", "t", 1, "a"), port.DeductNotEnough, 0)
	if after := w.view(); after != before || !w.flow("late", "t").IsZero() {
		w.Fatalf("a refusal changed %+v to %+v", before, after)
	}
	w.tell(w.fate("v3", "t", 1, domain.OrderCancelled, true, 2)) // a return is on sale at once, everywhere
	other := w.New(w).Deduct(w.Context(), w.now, []port.DeductItem{w.item("late", "t", 1, "b")})[0]
	w.expect(other, port.DeductAccepted, 0)
}

func gateTerms(w *gateWorld) {
	w.sell(10, domain.Terms{OpensAt: w.now.Add(time.Second), ClosesAt: w.now.Add(2 * time.Second), LimitPerBuyer: 2, Revision: 1})
	start := w.now
	for _, c := range []struct {
		after   time.Duration
		outcome port.DeductOutcome
	}{{999 * time.Millisecond, port.DeductClosed}, {2 * time.Second, port.DeductClosed}, {time.Second, port.DeductAccepted}} {
		w.now = start.Add(c.after)
		if got := w.deduct("alice", "t1", 2, "a1"); got.Outcome != c.outcome {
			w.Fatalf("after %s: outcome %d", c.after, got.Outcome)
		}
	}
	w.expect(w.deduct("alice", "t2", 1, "a2"), port.DeductLimit, 8)
	w.must(w.gate.SetTerms(w.Context(), w.product, domain.Terms{Paused: true, Revision: 2}))
	w.expect(w.deduct("bob", "t1", 1, "a1"), port.DeductClosed, 8)
	w.expect(w.deduct("alice", "t1", 2, "a9"), port.DeductRepeat, 8)
}

func gateLimitFollowsFlows(w *gateWorld) {
	w.sell(10, domain.Terms{LimitPerBuyer: 3})
	replies := w.gate.Deduct(w.Context(), w.now, []port.DeductItem{
		w.item("alice", "t1", 2, "a1"), w.item("alice", "t2", 2, "a2"), w.item("alice", "t3", 1, "a3")})
	for i, want := range []port.DeductOutcome{port.DeductAccepted, port.DeductLimit, port.DeductAccepted} {
		w.expect(replies[i], want, 7)
	}
	w.tell(w.fate("alice", "t1", 2, domain.OrderConfirmed, true, 2))
	w.expect(w.deduct("alice", "t4", 1, "a4"), port.DeductLimit, 7)
	w.tell(w.fate("alice", "t1", 2, domain.OrderCancelled, false, 3))
	w.expect(w.deduct("alice", "t4", 2, "a4"), port.DeductAccepted, 7)
}

func gateOneUnit(w *gateWorld) {
	w.sell(1, domain.Terms{})
	if accepted := w.rush(500, func(int) int64 { return 1 }); accepted != 1 {
		w.Fatalf("%d units accepted", accepted)
	}
}

func gateMixedQuantities(w *gateWorld) {
	w.sell(7, domain.Terms{})
	accepted := w.rush(300, func(i int) int64 { return int64(i%3 + 1) })
	if left := w.view().Remaining; accepted != 7 || left != 0 {
		w.Fatalf("%d units accepted, %d left", accepted, left)
	}
}

// rush lets buyers come at once, each by itself, and gives the units that were accepted.
func (w *gateWorld) rush(buyers int, quantity func(int) int64) int64 {
	w.Helper()
	items := make([]port.DeductItem, buyers)
	for i := range items {
		items[i] = w.item(fmt.Sprintf("u%d", i), "t", quantity(i), "a")
	}
	replies := make([]port.DeductReply, buyers)
	var all sync.WaitGroup
	for i := range items {
		all.Go(func() {
			for range 100 { // more buyers than connections: whoever did not get through asks again
				replies[i] = w.gate.Deduct(w.Context(), w.now, items[i:i+1])[0]
				if replies[i].Outcome != port.DeductAway {
					return
				}
			}
		})
	}
	all.Wait()
	var units int64
	for i, r := range replies {
		switch r.Outcome {
		case port.DeductAccepted:
			units += items[i].Command.Quantity()
		case port.DeductNotEnough:
		default:
			w.Fatalf("buyer %d: outcome %d, %v", i, r.Outcome, r.Err)
		}
	}
	return units
}

func gateNotLoaded(w *gateWorld) {
	w.expect(w.deduct("alice", "t1", 1, "a1"), port.DeductNotLoaded, 0)
	if v := w.view(); v.Loaded || v.SameServer || v.Rewound || v.Shut {
		w.Fatalf("view %+v", v)
	}
	w.sell(5, domain.Terms{})
	w.expect(w.deduct("alice", "t1", 1, "a1"), port.DeductAccepted, 4)
	w.Forget(w, w.product)
	w.expect(w.deduct("alice", "t1", 1, "a1"), port.DeductNotLoaded, 0)
	if err := w.gate.Shut(w.Context(), []string{w.product}); err != nil {
		w.Fatal(err)
	}
	if v := w.view(); v.Loaded {
		w.Fatalf("shutting made a record: %+v", v)
	}
}

func gateIDs(w *gateWorld) {
	w.sell(10, domain.Terms{})
	w.expect(w.deduct("a:b", "c", 1, "x"), port.DeductAccepted, 9)
	w.expect(w.deduct("a", "b:c", 1, "x"), port.DeductAccepted, 8)
	w.expect(w.deduct("Abc", "t", 1, "x"), port.DeductAccepted, 7)
	w.expect(w.deduct("abc", "t", 1, "x"), port.DeductAccepted, 6)
	w.expect(w.deduct("abc", "T", 1, "x"), port.DeductAccepted, 5)
	long := strings.Repeat("x", domain.IDMax)
	w.expect(w.deduct(long, long, 1, long), port.DeductAccepted, 4)
	if f := w.flow(long, long); f.Attempt() != long {
		w.Fatalf("flow %+v", f)
	}
}

func gateBatch(w *gateWorld) {
	w.sell(2, domain.Terms{})
	unknown := "p-" + rand.Text()
	replies := w.gate.Deduct(w.Context(), w.now, []port.DeductItem{
		w.item("u1", "t", 1, "a"), deductItem(w, unknown, "u1", "t", 1, "a"), w.item("u2", "t", 2, "a"),
		w.item("u3", "t", 1, "a"), w.item("u1", "t", 1, "b"), deductItem(w, unknown, "u2", "t", 1, "a")})
	for i, want := range []port.DeductOutcome{port.DeductAccepted, port.DeductNotLoaded, port.DeductNotEnough,
		port.DeductAccepted, port.DeductRepeat, port.DeductNotLoaded} {
		if replies[i].Outcome != want {
			w.Fatalf("item %d: outcome %d, want %d", i, replies[i].Outcome, want)
		}
	}
	if got := w.gate.Deduct(w.Context(), w.now, nil); len(got) != 0 {
		w.Fatalf("no items gave %v", got)
	}
}

func gateBigBatch(w *gateWorld) {
	w.sell(1000, domain.Terms{})
	items := make([]port.DeductItem, 1300)
	for i := range items {
		items[i] = w.item(fmt.Sprintf("u%d", i), "t", 1, "a")
	}
	for i, r := range w.gate.Deduct(w.Context(), w.now, items) {
		want := port.DeductAccepted
		if i >= 1000 {
			want = port.DeductNotEnough
		}
		if r.Outcome != want {
			w.Fatalf("item %d: outcome %d, %v", i, r.Outcome, r.Err)
		}
	}
	if v := w.view(); v.Remaining != 0 || v.OpenFlows != 1000 {
		w.Fatalf("view %+v", v)
	}
}

func checkOf(w *gateWorld, gate GatePorts, user, token string) port.CheckReply {
	w.Helper()
	replies, err := gate.Check(w.Context(), []domain.Key{w.key(user, token)})
	if err != nil {
		w.Fatal(err)
	}
	return replies[0]
}

func gateChecks(w *gateWorld) {
	if r := checkOf(w, w.gate, "alice", "t1"); r.Readable || !r.Flow.IsZero() || r.Epoch != 0 {
		w.Fatalf("of nothing: %+v", r)
	}
	w.sell(5, domain.Terms{})
	flow := w.deduct("alice", "t1", 1, "a1").Flow
	if r := checkOf(w, w.gate, "alice", "t1"); !r.Readable || r.Flow != flow || r.Epoch != w.epoch {
		w.Fatalf("of a flow: %+v", r)
	}
	if r := checkOf(w, w.gate, "alice", "t2"); !r.Readable || !r.Flow.IsZero() {
		w.Fatalf("of no flow: %+v", r)
	}
	w.must(w.gate.Prepare(w.Context(), w.product, w.epoch+1))
	if r := checkOf(w, w.gate, "alice", "t2"); r.Readable {
		w.Fatalf("while it is built: %+v", r)
	}
	w.MoveServer(w, w.product)
	if r := checkOf(w, w.gate, "alice", "t2"); r.Readable {
		w.Fatalf("on another server: %+v", r)
	}
}

func adoptOf(w *gateWorld, user, token string, quantity int64) port.AdoptReply {
	w.Helper()
	return w.gate.Adopt(w.Context(), w.now, []port.AdoptItem{{Key: w.key(user, token), Quantity: quantity, Attempt: "ad"}})[0]
}

// gateRefuses: whoever is told "no" for good has the tombstone at once, so that no purchase slips in before the row.
func gateRefuses(w *gateWorld) {
	w.sell(5, domain.Terms{Revision: 1})
	adopt := func(user string, quantity int64, otherwise port.AdoptOtherwise, want port.AdoptOutcome, state domain.FlowState) {
		w.Helper()
		item := port.AdoptItem{Key: w.key(user, "t"), Quantity: quantity, Attempt: "ad", Otherwise: otherwise}
		before := w.view()
		got := w.gate.Adopt(w.Context(), w.now, []port.AdoptItem{item})[0]
		after := w.view()
		if got.Outcome != want || w.flow(user, "t").State() != state {
			w.Fatalf("%s: outcome %d, want %d; flow %s, want %s", user, got.Outcome, want, w.flow(user, "t").State(), state)
		}
		if want != port.AdoptHeld && after.Remaining != before.Remaining {
			w.Fatalf("%s: %d left, then %d", user, before.Remaining, after.Remaining)
		}
	}
	adopt("u1", 6, port.AdoptOrLeave, port.AdoptNoRoom, domain.FlowAbsent)
	sequence := w.view().Sequence
	adopt("u1", 6, port.AdoptOrRefuse, port.AdoptNoRoom, domain.FlowRefused)
	adopt("u1", 6, port.AdoptOrRefuse, port.AdoptRefused, domain.FlowRefused)
	adopt("u1", 1, port.AdoptOrLeave, port.AdoptRefused, domain.FlowRefused)
	adopt("u2", 1, port.RefuseAlone, port.AdoptRefused, domain.FlowRefused)
	if got := w.view().Sequence; got != sequence+2 {
		w.Fatalf("sequence %d, want %d: every change raises it", got, sequence+2)
	}
	adopt("u3", 2, port.AdoptOrRefuse, port.AdoptHeld, domain.FlowDeducted)
	adopt("u3", 2, port.RefuseAlone, port.AdoptHeld, domain.FlowDeducted)
	if reply := w.deduct("u2", "t", 1, "a1"); reply.Outcome != port.DeductRefused {
		w.Fatalf("a purchase under a refused token: %d", reply.Outcome)
	}
	w.tell(w.fate("u2", "t", 1, domain.OrderRejected, true, 2))
	if v := w.view(); v.Remaining != 3 || v.OpenFlows != 1 {
		w.Fatalf("view %+v", v)
	}
}

func gateAdopts(w *gateWorld) {
	expect := func(got port.AdoptReply, want port.AdoptOutcome) {
		w.Helper()
		epoch := int64(0)
		if want == port.AdoptHeld {
			epoch = w.epoch
		}
		if got.Outcome != want || got.Epoch != epoch {
			w.Fatalf("got %+v, want %d", got, want)
		}
	}
	expect(adoptOf(w, "u1", "t", 1), port.AdoptWait)
	w.sell(5, domain.Terms{Paused: true, LimitPerBuyer: 1, Revision: 1})
	expect(adoptOf(w, "u1", "t", 3), port.AdoptHeld)
	expect(adoptOf(w, "u1", "t", 3), port.AdoptHeld)
	if v := w.view(); v.Remaining != 2 || v.OpenFlows != 1 {
		w.Fatalf("view %+v", v)
	}
	if f := w.flow("u1", "t"); f.State() != domain.FlowDeducted || f.From() != 5 || f.To() != 2 || f.Attempt() != "ad" {
		w.Fatalf("flow %+v", f)
	}
	expect(adoptOf(w, "u1", "t", 1), port.AdoptConflict) // another quantity: its own message decides
	expect(adoptOf(w, "u2", "t", 3), port.AdoptNoRoom)
	w.tell(w.fate("u1", "t", 3, domain.OrderConfirmed, true, 2))
	expect(adoptOf(w, "u1", "t", 3), port.AdoptHeld)
	w.tell(w.fate("u1", "t", 3, domain.OrderCancelled, false, 3))
	expect(adoptOf(w, "u1", "t", 3), port.AdoptRefused)
	w.tell(w.fate("u3", "t", 1, domain.OrderRejected, true, 3))
	expect(adoptOf(w, "u3", "t", 1), port.AdoptRefused)
	if err := w.gate.Shut(w.Context(), []string{w.product}); err != nil {
		w.Fatal(err)
	}
	expect(adoptOf(w, "u4", "t", 1), port.AdoptWait)
	plain := w.gate.Adopt(w.Context(), w.now, []port.AdoptItem{{Key: w.key("u5", "t"), Quantity: 1}})[0]
	expect(plain, port.AdoptWait)
}

// gateTells compares a gate with the settling table in each of its cells, twice, since a fate
// that is told again must change nothing.
func gateTells(w *gateWorld) {
	states := []domain.FlowState{domain.FlowAbsent, domain.FlowDeducted, domain.FlowSettled, domain.FlowReleased, domain.FlowRefused}
	fates := []struct {
		status    domain.OrderStatus
		fromBirth bool
	}{{domain.OrderConfirmed, true}, {domain.OrderCancelled, false}, {domain.OrderCancelled, true}, {domain.OrderRejected, true}}
	const base = 10
	for _, state := range states {
		for _, f := range fates {
			for _, version := range []int64{base - 1, base, base + 1} {
				for _, remaining := range []int64{1, 5} {
					w.product = "p-" + rand.Text()
					w.epoch = 0
					w.tellCell(state, w.fate("u", "t", 2, f.status, f.fromBirth, version), base, remaining)
				}
			}
		}
	}
}

func (w *gateWorld) tellCell(state domain.FlowState, fate domain.Fate, base, remaining int64) {
	w.Helper()
	var rows []domain.Order
	switch state {
	case domain.FlowSettled:
		rows = append(rows, w.order("u", "t", 2, domain.OrderConfirmed))
	case domain.FlowReleased:
		rows = append(rows, w.order("u", "t", 2, domain.OrderCancelled))
	case domain.FlowRefused:
		rows = append(rows, w.order("u", "t", 2, domain.OrderRejected))
	case domain.FlowDeducted:
		remaining += 2
	case domain.FlowAbsent:
	}
	w.build(remaining, base, domain.Terms{}, rows...)
	w.must(w.gate.Open(w.Context(), w.product, w.epoch))
	if state == domain.FlowDeducted {
		remaining -= 2
		w.expect(w.deduct("u", "t", 2, "a"), port.DeductAccepted, remaining)
	}
	for range 3 {
		move := fate.Move(state, base, remaining)
		before := w.view()
		got := w.tell(fate)
		after := w.view()
		want := port.TellDone
		if move.Suspect {
			want = port.TellSuspect
		}
		if got != want || w.flow("u", "t").State() != move.To || after.Remaining != remaining+move.Units {
			w.Fatalf("%s told %s (birth %v, version %d), %d left: outcome %d, then %s with %d left; table says %+v", state,
				fate.Status, fate.FromBirth, fate.StockVersion, remaining, got, w.flow("u", "t").State(), after.Remaining, move)
		}
		if changed := move.To != state || after.VersionTold != before.VersionTold; changed != (after.Sequence > before.Sequence) {
			w.Fatalf("%s told %s: sequence %d to %d", state, fate.Status, before.Sequence, after.Sequence)
		}
		if after.VersionTold != max(base, fate.StockVersion) || (after.OpenFlows == 1) != move.To.Open() {
			w.Fatalf("%s told %s: view %+v", state, fate.Status, after)
		}
		state, remaining = move.To, after.Remaining
	}
}

// gateTellsWhatItForgot: an order of the gate's own epoch has its flow there, of its own sequence.
func gateTellsWhatItForgot(w *gateWorld) {
	w.sell(5, domain.Terms{})
	own := w.deduct("own", "t", 1, "a").Flow
	told := func(user string, sequence int64, status domain.OrderStatus) port.TellOutcome {
		fate := w.fate(user, "t", 1, status, true, 9)
		fate.Epoch, fate.Sequence = w.epoch, sequence
		return w.tell(fate)
	}
	for _, c := range []struct {
		user     string
		sequence int64
		status   domain.OrderStatus
		want     port.TellOutcome
	}{
		{"absent", 1, domain.OrderConfirmed, port.TellSuspect}, // its unit is taken, to be on the safe side
		{"absent", 1, domain.OrderConfirmed, port.TellDone},    // it is there now, and said once
		{"cancelled", 1, domain.OrderCancelled, port.TellDone},
		{"own", own.Sequence() + 1, domain.OrderConfirmed, port.TellSuspect},
	} {
		if got := told(c.user, c.sequence, c.status); got != c.want || w.view().Remaining != 3 {
			w.Fatalf("%+v: %d, %d left", c, got, w.view().Remaining)
		}
	}
	right := w.deduct("right", "t", 1, "b").Flow
	if got := told("right", right.Sequence(), domain.OrderConfirmed); got != port.TellDone || w.view().OpenFlows != 0 {
		w.Fatalf("%d, %+v", got, w.view())
	}
}

func gateTellsNotNow(w *gateWorld) {
	expect := func(want port.TellOutcome) {
		w.Helper()
		if got := w.tell(w.fate("u", "t", 1, domain.OrderConfirmed, true, 5)); got != want {
			w.Fatalf("outcome %d, want %d", got, want)
		}
	}
	expect(port.TellNotNow)
	w.must(w.gate.Prepare(w.Context(), w.product, 1))
	expect(port.TellNotNow) // the write-back that follows might undo what was acknowledged
	w.sell0(3)
	if err := w.gate.Shut(w.Context(), []string{w.product}); err != nil {
		w.Fatal(err)
	}
	expect(port.TellDone)
	w.MoveServer(w, w.product)
	expect(port.TellNotNow)
}

// sell0 finishes an attempt that was prepared under epoch 1.
func (w *gateWorld) sell0(remaining int64) {
	w.Helper()
	w.epoch = 0
	w.sell(remaining, domain.Terms{})
}

func gatePages(w *gateWorld) {
	page := func(after int64, limit int) []domain.Flow {
		w.Helper()
		flows, err := w.gate.Page(w.Context(), w.product, after, limit)
		if err != nil {
			w.Fatal(err)
		}
		return flows
	}
	if got := page(0, 10); len(got) != 0 {
		w.Fatalf("of nothing: %v", got)
	}
	w.sell(100, domain.Terms{})
	var made []domain.Flow
	for i := range 7 {
		made = append(made, w.deduct(fmt.Sprintf("u%d", i%3), fmt.Sprintf("t%d", i), 1, "a").Flow)
	}
	w.tell(w.fate("u1", "t1", 1, domain.OrderConfirmed, true, 2))
	open := append(append([]domain.Flow{}, made[0]), made[2:]...)
	var got []domain.Flow
	for after := int64(0); ; {
		flows := page(after, 2)
		if len(flows) == 0 {
			break
		}
		got = append(got, flows...)
		after = flows[len(flows)-1].Sequence()
	}
	if len(got) != len(open) {
		w.Fatalf("%d flows, want %d", len(got), len(open))
	}
	for i := range got {
		if got[i] != open[i] {
			w.Fatalf("flow %d is %+v, want %+v", i, got[i], open[i])
		}
	}
}

func gateClaims(w *gateWorld) {
	claim := func(holder string, ttl time.Duration) bool {
		w.Helper()
		ok, err := w.gate.Claim(w.Context(), w.product, holder, ttl)
		if err != nil {
			w.Fatal(err)
		}
		return ok
	}
	if !claim("i1", time.Hour) || claim("i2", time.Hour) || !claim("i1", time.Hour) {
		w.Fatal("a claim excludes others, and its holder renews it")
	}
}

func gateRebuilds(w *gateWorld) {
	w.sell(10, domain.Terms{})
	other := w.New(w)
	for i := range 5 {
		w.deduct(fmt.Sprintf("u%d", i), "t", 1, "a")
		other.Deduct(w.Context(), w.now, []port.DeductItem{w.item(fmt.Sprintf("o%d", i), "t", 1, "a")})
	}
	w.Forget(w, w.product) // both have seen more than the new record will show
	w.epoch++
	w.must(w.gate.Prepare(w.Context(), w.product, w.epoch))
	if v := w.view(); !v.Loaded || !v.Shut || v.Rewound || !v.SameServer || v.Building != w.epoch || v.Epoch != 0 {
		w.Fatalf("prepared: %+v", v)
	}
	w.expect(w.deduct("u0", "t", 1, "a"), port.DeductNotReady, 0)
	rows := []domain.Order{w.order("u0", "t", 1, domain.OrderConfirmed)}
	w.must(w.gate.WriteBack(w.Context(), w.product, w.epoch, rows))
	v := w.view()
	plan := port.GatePlan{Product: w.product, Epoch: w.epoch, Remaining: 4, Version: 9, Sequence: v.Sequence, Server: v.Server,
		Terms: domain.Terms{LimitPerBuyer: 1, Revision: 3}}
	w.must(w.gate.Rebuild(w.Context(), plan))
	w.must(w.gate.Rebuild(w.Context(), plan)) // a reply that was lost
	built := w.view()
	if !built.Shut || built.Building != 0 || built.Epoch != w.epoch || built.Remaining != 4 || built.BaseVersion != 9 ||
		built.VersionTold != 9 || built.Revision != 3 || built.Sequence != v.Sequence+1 || built.Rewound {
		w.Fatalf("rebuilt: %+v", built)
	}
	w.refused(w.gate.Open(w.Context(), w.product, w.epoch+1))
	w.must(w.gate.Open(w.Context(), w.product, w.epoch))
	w.must(w.gate.Open(w.Context(), w.product, w.epoch))
	w.expect(w.deduct("u0", "t", 1, "b"), port.DeductRepeat, 4)
	w.expect(w.deduct("u0", "t2", 1, "b"), port.DeductLimit, 4)
	got := other.Deduct(w.Context(), w.now, []port.DeductItem{w.item("u9", "t", 1, "a")})[0]
	w.expect(got, port.DeductAccepted, 3)
	if got.Flow.Epoch() != w.epoch {
		w.Fatalf("flow %+v", got.Flow)
	}
}

func gateRebuildOvertaken(w *gateWorld) {
	w.sell(10, domain.Terms{})
	ctx := w.Context()
	w.refused(w.gate.Prepare(ctx, w.product, w.epoch)) // its epoch is the record's
	w.must(w.gate.Prepare(ctx, w.product, 5))
	w.must(w.gate.Prepare(ctx, w.product, 5)) // a reply that was lost
	w.must(w.gate.Prepare(ctx, w.product, 7))
	w.refused(w.gate.Prepare(ctx, w.product, 6))
	w.refused(w.gate.WriteBack(ctx, w.product, 5, []domain.Order{w.order("u", "t", 1, domain.OrderConfirmed)}))
	v := w.view()
	plan := port.GatePlan{Product: w.product, Epoch: 5, Remaining: 3, Version: 2, Sequence: v.Sequence, Server: v.Server}
	w.refused(w.gate.Rebuild(ctx, plan))
	w.refused(w.gate.Open(ctx, w.product, w.epoch)) // being built
	plan.Epoch = 7
	w.must(w.gate.Rebuild(ctx, plan))
	w.refused(w.gate.Open(ctx, w.product, 5))
	w.must(w.gate.Open(ctx, w.product, 7))
	w.Forget(w, w.product)
	w.refused(w.gate.WriteBack(ctx, w.product, 7, nil))
	w.refused(w.gate.Rebuild(ctx, plan))
	w.refused(w.gate.Open(ctx, w.product, 7))
	w.refused(w.gate.SetTerms(ctx, w.product, domain.Terms{Revision: 9}))
	if v := w.view(); v.Loaded {
		w.Fatalf("a refused step made a record: %+v", v)
	}
}

func gateRebuildMoved(w *gateWorld) {
	w.sell(10, domain.Terms{})
	ctx := w.Context()
	w.must(w.gate.Prepare(ctx, w.product, 2))
	v := w.view()
	plan := port.GatePlan{Product: w.product, Epoch: 2, Remaining: 3, Version: 2, Sequence: v.Sequence, Server: v.Server}
	w.must(w.gate.SetTerms(ctx, w.product, domain.Terms{Revision: 4, LimitPerBuyer: 2}))
	w.refused(w.gate.Rebuild(ctx, plan)) // the sequence moved
	plan.Sequence, plan.Server = w.view().Sequence, "another"
	w.refused(w.gate.Rebuild(ctx, plan))
	plan.Server = v.Server
	w.MoveServer(w, w.product)
	w.refused(w.gate.Rebuild(ctx, plan))
	w.refused(w.gate.WriteBack(ctx, w.product, 2, nil))
	if v := w.view(); v.SameServer || !v.Rewound || v.Epoch != 1 {
		w.Fatalf("view %+v", v)
	}
	w.must(w.gate.Prepare(ctx, w.product, 3)) // takes over this server
	if v := w.view(); !v.SameServer || v.Rewound || v.Building != 3 {
		w.Fatalf("view %+v", v)
	}
}

func gateWritesBack(w *gateWorld) {
	w.sell(20, domain.Terms{})
	var made []domain.Flow
	for i := range 4 {
		made = append(made, w.deduct(fmt.Sprintf("u%d", i), "t", 2, "a").Flow)
	}
	w.epoch = 2
	w.must(w.gate.Prepare(w.Context(), w.product, 2))
	before := w.view()
	w.must(w.gate.WriteBack(w.Context(), w.product, 2, []domain.Order{
		w.order("u0", "t", 2, domain.OrderConfirmed), w.order("u1", "t", 2, domain.OrderCancelled),
		w.order("u2", "t", 2, domain.OrderRejected), w.order("new", "t", 3, domain.OrderConfirmed)}))
	for user, want := range map[string]domain.FlowState{"u0": domain.FlowSettled, "u1": domain.FlowReleased,
		"u2": domain.FlowRefused, "u3": domain.FlowDeducted, "new": domain.FlowSettled} {
		if got := w.flow(user, "t").State(); got != want {
			w.Fatalf("%s is %s, want %s", user, got, want)
		}
	}
	if f := w.flow("u0", "t"); f.From() != made[0].From() || f.Attempt() != "a" {
		w.Fatalf("what the flow knew got lost: %+v", f)
	}
	if f := w.flow("new", "t"); f.Quantity() != 3 || f.Sequence() != 7 || f.Attempt() != "row" || !f.At().Equal(w.now) {
		w.Fatalf("flow %+v", f)
	}
	after := w.view()
	if after.Remaining != before.Remaining || after.OpenFlows != 1 || after.Sequence <= before.Sequence {
		w.Fatalf("view %+v", after)
	}
	w.writesBackMany()
}

// writesBackMany writes a whole page of 1,000.
func (w *gateWorld) writesBackMany() {
	w.Helper()
	rows := make([]domain.Order, 1000)
	for i := range rows {
		rows[i] = w.order(fmt.Sprintf("many%d", i), "t", 1, domain.OrderConfirmed)
	}
	w.must(w.gate.WriteBack(w.Context(), w.product, 2, rows))
	if f := w.flow("many999", "t"); f.State() != domain.FlowSettled {
		w.Fatalf("flow %+v", f)
	}
}

func gateMovedServer(w *gateWorld) {
	w.sell(10, domain.Terms{})
	w.deduct("alice", "t1", 1, "a1")
	w.MoveServer(w, w.product)
	w.expect(w.deduct("alice", "t1", 1, "a1"), port.DeductRewound, 9) // not even a repeat
	w.expect(w.deduct("bob", "t1", 1, "a1"), port.DeductRewound, 9)
	if got := adoptOf(w, "bob", "t1", 1); got.Outcome != port.AdoptWait {
		w.Fatalf("adopt %+v", got)
	}
	w.refused(w.gate.Open(w.Context(), w.product, w.epoch))
	w.refused(w.gate.SetTerms(w.Context(), w.product, domain.Terms{Revision: 9}))
	if v := w.view(); v.SameServer || !v.Rewound || !v.Loaded || v.Remaining != 9 {
		w.Fatalf("view %+v", v)
	}
	w.sell(9, domain.Terms{})
	w.expect(w.deduct("bob", "t1", 1, "a1"), port.DeductAccepted, 8)
}

func gateFallsBack(w *gateWorld) {
	w.sell(10, domain.Terms{})
	w.deduct("alice", "t1", 1, "a1")
	restore := w.Picture(w, w.product)
	other := w.New(w)
	viewOf(w, other, w.product)
	w.deduct("alice", "t2", 1, "a1")
	watcher := w.New(w)
	viewOf(w, watcher, w.product) // has seen the sequence, has made no flow
	restore()
	w.expect(w.deduct("bob", "t1", 1, "a1"), port.DeductRewound, 9)
	got := watcher.Deduct(w.Context(), w.now, []port.DeductItem{w.item("bob", "t1", 1, "a1")})[0]
	w.expect(got, port.DeductRewound, 9)
	if v := viewOf(w, watcher, w.product); !v.Rewound || !v.SameServer {
		w.Fatalf("view %+v", v)
	}
	w.refused(w.gate.Open(w.Context(), w.product, w.epoch))
	got = other.Deduct(w.Context(), w.now, []port.DeductItem{w.item("bob", "t1", 1, "a1")})[0]
	w.expect(got, port.DeductAccepted, 8) // saw no more than the picture: only identity could tell
	w.sell(9, domain.Terms{})
	w.expect(w.deduct("bob", "t9", 1, "a1"), port.DeductAccepted, 8)
}

func gateMissesOwnFlow(w *gateWorld) {
	w.sell(10, domain.Terms{})
	restore := w.Picture(w, w.product)
	w.deduct("alice", "t1", 1, "a1")
	restore()
	other := w.New(w)
	for i := range 3 { // others sell on, past the sequence that this process saw
		other.Deduct(w.Context(), w.now, []port.DeductItem{w.item(fmt.Sprintf("o%d", i), "t", 1, "a")})
	}
	w.expect(w.deduct("bob", "t1", 1, "a1"), port.DeductRewound, 7)
	if v := w.view(); !v.Rewound {
		w.Fatalf("view %+v", v)
	}
}

func gateTakesTerms(w *gateWorld) {
	w.sell(10, domain.Terms{Revision: 2})
	ctx := w.Context()
	w.refused(w.gate.SetTerms(ctx, w.product, domain.Terms{Revision: 2, Paused: true}))
	before := w.view().Sequence
	w.must(w.gate.SetTerms(ctx, w.product, domain.Terms{Revision: 3, Paused: true}))
	w.refused(w.gate.SetTerms(ctx, w.product, domain.Terms{Revision: 3, Paused: true}))
	if v := w.view(); v.Revision != 3 || v.Sequence != before+1 {
		w.Fatalf("view %+v", v)
	}
	w.expect(w.deduct("u", "t", 1, "a"), port.DeductClosed, 10)
	w.must(w.gate.SetTerms(ctx, w.product, domain.Terms{Revision: 4}))
	w.expect(w.deduct("u", "t", 1, "a"), port.DeductAccepted, 9)
}

func gateShuts(w *gateWorld) {
	w.sell(10, domain.Terms{})
	w.deduct("alice", "t1", 1, "a1")
	w.tell(w.fate("gone", "t", 1, domain.OrderRejected, true, 1))
	before := w.view().Sequence
	for range 2 {
		if err := w.gate.Shut(w.Context(), []string{w.product}); err != nil {
			w.Fatal(err)
		}
	}
	if v := w.view(); !v.Shut || v.Sequence != before+1 {
		w.Fatalf("view %+v", v)
	}
	w.expect(w.deduct("bob", "t1", 1, "a1"), port.DeductNotReady, 9)
	w.expect(w.deduct("alice", "t1", 1, "a2"), port.DeductRepeat, 9)
	w.expect(w.deduct("gone", "t", 1, "a2"), port.DeductRefused, 9)
	w.must(w.gate.Open(w.Context(), w.product, w.epoch))
	w.expect(w.deduct("bob", "t1", 1, "a1"), port.DeductAccepted, 8)
}
