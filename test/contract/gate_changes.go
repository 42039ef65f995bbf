package contract

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"seckill/application/port"
	"seckill/domain"
)

const operatorsUser = domain.ChangeUser

// gateAdditions goes through the cells of the settling table that an addition can meet.
func gateAdditions(w *gateWorld) {
	const base, left = 10, 5
	for _, state := range []domain.FlowState{domain.FlowAbsent, domain.FlowDeducted, domain.FlowSettled, domain.FlowReleased, domain.FlowRefused} {
		for _, version := range []int64{base - 1, base, base + 1} {
			w.product, w.epoch = "p-"+rand.Text(), 0
			w.flowInState(state, base, left)
			fate := w.fate(operatorsUser, "k", 3, domain.OrderAdded, true, version)
			move := fate.Move(state, base, left)
			for range 3 {
				want := port.TellDone
				if move.Suspect {
					want = port.TellSuspect
				}
				got, view := w.tell(fate), w.view()
				if got != want || w.flow(operatorsUser, "k").State() != move.To || view.Remaining != left+move.Units {
					w.Fatalf("%s told of version %d: outcome %d, then %s with %d left; table says %+v", state, version, got,
						w.flow(operatorsUser, "k").State(), view.Remaining, move)
				}
				if view.VersionTold != max(base, version) {
					w.Fatalf("told of version %d: %+v", version, view)
				}
			}
		}
	}
}

// flowInState opens a gate with left units beside a flow of key k in that state.
func (w *gateWorld) flowInState(state domain.FlowState, base, left int64) {
	w.Helper()
	var rows []domain.Order
	switch state {
	case domain.FlowSettled:
		rows = append(rows, w.order(operatorsUser, "k", 3, domain.OrderAdded))
	case domain.FlowReleased:
		rows = append(rows, w.order(operatorsUser, "k", 3, domain.OrderCancelled))
	case domain.FlowRefused:
		rows = append(rows, w.order(operatorsUser, "k", 3, domain.OrderRejected))
	case domain.FlowDeducted:
		left += 2
	case domain.FlowAbsent:
	}
	w.build(left, base, domain.Terms{}, rows...)
	w.must(w.gate.Open(w.Context(), w.product, w.epoch))
	if state == domain.FlowDeducted {
		if got := adoptOf(w, operatorsUser, "k", 2); got.Outcome != port.AdoptHeld {
			w.Fatalf("adopt %+v", got)
		}
	}
}

// gateAdditionsShuffled tells additions, each several times, in batches and in no order.
func gateAdditionsShuffled(w *gateWorld) {
	const base = 20
	w.build(7, base, domain.Terms{})
	w.must(w.gate.Open(w.Context(), w.product, w.epoch))
	var fates []domain.Fate
	want := int64(7)
	for i := range int64(20) { // ten of them are older than the gate, or as old
		version := base - 9 + i
		if version > base {
			want += i + 1
		}
		for range 3 {
			fates = append(fates, w.fate(operatorsUser, fmt.Sprint("k", i), i+1, domain.OrderAdded, true, version))
		}
	}
	mathrand.Shuffle(len(fates), func(i, j int) { fates[i], fates[j] = fates[j], fates[i] })
	var all sync.WaitGroup
	for batch := range slices.Chunk(fates, 7) {
		all.Go(func() {
			for _, o := range w.gate.Tell(context.Background(), batch) {
				if o != port.TellDone {
					w.Errorf("outcome %d", o)
				}
			}
		})
	}
	all.Wait()
	if v := w.view(); v.Remaining != want || v.VersionTold != base+10 || v.OpenFlows != 0 {
		w.Fatalf("%d left, want %d: %+v", v.Remaining, want, v)
	}
}

func gateWithdrawal(w *gateWorld) {
	w.sell(5, domain.Terms{Paused: true, LimitPerBuyer: 1, Revision: 1})
	expect := func(token string, quantity int64, want port.AdoptOutcome, left int64) {
		w.Helper()
		if got := adoptOf(w, operatorsUser, token, quantity); got.Outcome != want || w.view().Remaining != left {
			w.Fatalf("got %+v, %d left; want %d, %d left", got, w.view().Remaining, want, left)
		}
	}
	expect("k1", 6, port.AdoptNoRoom, 5)
	expect("k1", 3, port.AdoptHeld, 2) // a refusal wrote nothing
	expect("k1", 3, port.AdoptHeld, 2)
	expect("k1", 2, port.AdoptConflict, 2)
	expect("k2", 3, port.AdoptNoRoom, 2)
	page, err := w.gate.Page(w.Context(), w.product, 0, 10)
	if err != nil || len(page) != 1 || page[0].Key() != w.key(operatorsUser, "k1") || page[0].Quantity() != 3 || page[0].Action() != domain.ActionChange {
		w.Fatalf("page %v, %v", page, err)
	}
	if got := w.tell(w.fate(operatorsUser, "k1", 3, domain.OrderConfirmed, true, 2)); got != port.TellDone {
		w.Fatalf("tell %d", got)
	}
	expect("k1", 3, port.AdoptHeld, 2)
	if v := w.view(); v.OpenFlows != 0 {
		w.Fatalf("view %+v", v)
	}
	expect("k3", 2, port.AdoptHeld, 0)
	w.tell(w.fate(operatorsUser, "k3", 2, domain.OrderRejected, true, 2)) // the guard refused it
	expect("k3", 2, port.AdoptRefused, 2)
}

// gateWithdrawalsBesideBuyers takes all units by two roads at once.
func gateWithdrawalsBesideBuyers(w *gateWorld) {
	const units, buyers, withdrawals, each = 150, 200, 40, 3
	w.sell(units, domain.Terms{})
	var bought, withdrawn atomic.Int64
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			reply := w.gate.Deduct(context.Background(), w.now, []port.DeductItem{w.item(fmt.Sprint("u", i), "t", 1, "a")})[0]
			if reply.Outcome == port.DeductAccepted {
				bought.Add(1)
			}
		})
	}
	for i := range withdrawals {
		for range 2 { // each of them twice
			all.Go(func() {
				item := port.AdoptItem{Key: w.key(operatorsUser, fmt.Sprint("k", i)), Quantity: each, Attempt: "a"}
				w.gate.Adopt(context.Background(), w.now, []port.AdoptItem{item})
			})
		}
	}
	all.Wait()
	for i := range withdrawals {
		if w.flow(operatorsUser, fmt.Sprint("k", i)).State().Alive() {
			withdrawn.Add(each)
		}
	}
	if v := w.view(); v.Remaining < 0 || v.Remaining != units-bought.Load()-withdrawn.Load() {
		w.Fatalf("%d bought, %d withdrawn, %d left of %d", bought.Load(), withdrawn.Load(), v.Remaining, units)
	}
}

func gateWritesChangesBack(w *gateWorld) {
	w.sell(20, domain.Terms{})
	if got := adoptOf(w, operatorsUser, "open", 2); got.Outcome != port.AdoptHeld {
		w.Fatalf("adopt %+v", got)
	}
	w.build(30, 9, domain.Terms{}, w.order(operatorsUser, "added", 5, domain.OrderAdded),
		w.order(operatorsUser, "taken", 4, domain.OrderConfirmed), w.order(operatorsUser, "refused", 3, domain.OrderRejected))
	w.must(w.gate.Open(w.Context(), w.product, w.epoch))
	for token, want := range map[string]domain.FlowState{"added": domain.FlowSettled, "taken": domain.FlowSettled,
		"refused": domain.FlowRefused, "open": domain.FlowDeducted} {
		if got := w.flow(operatorsUser, token).State(); got != want {
			w.Fatalf("%s is %s, want %s", token, got, want)
		}
	}
	for _, version := range []int64{8, 9, 10} { // written back is counted, however late the tell comes
		if got := w.tell(w.fate(operatorsUser, "added", 5, domain.OrderAdded, true, version)); got != port.TellDone || w.view().Remaining != 30 {
			w.Fatalf("told of version %d: %d, %d left", version, got, w.view().Remaining)
		}
	}
	if got := w.tell(w.fate(operatorsUser, "late", 5, domain.OrderAdded, true, 10)); got != port.TellDone || w.view().Remaining != 35 {
		w.Fatalf("a newer one: %d, %d left", got, w.view().Remaining)
	}
}
