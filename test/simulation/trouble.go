package simulation

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"seckill/domain"
)

// planTrouble spreads what is worse than a lost packet over the safety phase.
func (w *world) planTrouble() {
	kinds := []func(time.Duration){w.planCrash, w.planCrash, w.planFallBack, w.planFallBack, w.planFlush, w.planRestart, w.planOutage,
		w.planOutage, w.planLostHalves, w.planLostHalves, w.planPause, w.planStragglers}
	if w.params.Tampered {
		w.planTampering()
	}
	for range w.params.Trouble {
		kinds[w.dice.IntN(len(kinds))](w.span(2*time.Second, w.params.Safety-3*time.Second))
	}
}

// planTampering is a hand in Redis: nothing but the guard in the ledger stands between it and an oversale.
func (w *world) planTampering() {
	for _, p := range w.products {
		w.at(w.span(time.Second, 10*time.Second), "somebody adds to "+p, func() {
			record := "seckill:{" + p + "}:stock"
			if remaining, err := strconv.Atoi(w.store.mini.HGet(record, "remaining")); err == nil {
				w.store.mini.HSet(record, "remaining", strconv.Itoa(remaining+500))
			}
		})
	}
}

func (w *world) planCrash(at time.Duration) {
	w.at(at, "crash", func() {
		if inst := w.anyInstance(); inst != nil {
			w.die(inst)
		}
	})
}

// planFallBack is a power cut or the promotion of a stale replica: Redis is what it was some time ago.
func (w *world) planFallBack(at time.Duration) {
	ago := w.span(10*time.Millisecond, time.Second)
	if w.chance(0.3) {
		ago = w.span(time.Second, 8*time.Second)
	}
	ago = min(ago, at)
	var back func()
	w.at(at-ago, "Redis saves", func() { back = w.store.picture() })
	w.at(at, "Redis falls back", func() { w.lose(back, true) })
}

func (w *world) planFlush(at time.Duration) {
	w.at(at, "Redis is flushed", func() { w.lose(w.store.mini.FlushAll, w.chance(0.5)) })
}

func (w *world) planRestart(at time.Duration) {
	w.at(at, "Redis restarts", func() { w.lose(func() {}, true) })
}

// lose takes something from Redis and notes what.
func (w *world) lose(take func(), restart bool) {
	before := w.store.flows()
	take()
	w.truth.forgot(before, w.store.flows())
	if restart {
		w.store.moveServer()
		if err := w.raw.ScriptFlush(context.Background()).Err(); err != nil {
			panic(err)
		}
	}
}

// planOutage makes a server unreachable for a while.
func (w *world) planOutage(at time.Duration) {
	to := server(w.dice.IntN(int(serversCount)))
	lasts := w.span(500*time.Millisecond, 8*time.Second)
	w.at(at, fmt.Sprintf("%s is away for %s", serverNames[to], lasts), func() { w.down[to] = time.Now().Add(lasts) })
}

// planLostHalves is a broker's power cut, or a check that was given up.
func (w *world) planLostHalves(at time.Duration) {
	w.at(at, "the broker loses halves", func() {
		for _, h := range w.broker.halves {
			if !h.decided && w.chance(0.7) {
				w.broker.lose(h)
			}
		}
	})
}

// planStragglers is a loss of Redis while verdicts do not reach the broker: what they stand for comes after the
// rebuild, when the units have been sold again and the next loss has just closed the product.
func (w *world) planStragglers(at time.Duration) {
	at = min(at, max(3*time.Second, w.params.Safety-25*time.Second))
	var back func()
	w.at(at-time.Second, "Redis saves, and verdicts are slow", func() {
		back = w.store.picture()
		w.slowFrom, w.slowTo = time.Now().Add(14*time.Second), time.Now().Add(20*time.Second)
	})
	w.at(at, "Redis falls back", func() { w.lose(back, true) })
	w.at(at+9*time.Second, "verdicts are as quick as ever", func() { w.slowTo = time.Time{} })
	w.at(at+13*time.Second, "Redis restarts", func() { w.lose(func() {}, true) })
	for n := range 60 { // a crowd before the first loss, and one after its end
		after := at - w.span(0, 900*time.Millisecond)
		if n >= 10 {
			after = at + 8*time.Second + w.span(0, 4900*time.Millisecond)
		}
		k := len(w.requests)
		r := &request{number: k, command: must(domain.NewDeductCommand(w.products[0], fmt.Sprintf("u%d", k), fmt.Sprintf("t%d", k), 1))}
		w.requests = append(w.requests, r)
		w.at(after, r.String(), func() { w.ask(r) })
	}
}

// planPause is an operator who pauses a product for some seconds.
func (w *world) planPause(at time.Duration) {
	product := w.products[w.dice.IntN(len(w.products))]
	set := func(paused bool) func() {
		return func() {
			if _, err := w.ledger.SetPaused(context.Background(), product, paused, "", operator); err != nil {
				panic(err)
			}
		}
	}
	w.at(at, product+" is paused", set(true))
	w.at(min(at+w.span(time.Second, 6*time.Second), w.params.Safety-time.Second), product+" is resumed", set(false))
}

// flushFails says whether the broker stored a half with another status than OK. It is no dice of the
// scheduler's, since it is asked beside it.
func (w *world) flushFails(h *half) bool {
	w.mu.Lock()
	faulty := w.faulty
	w.mu.Unlock()
	return faulty && (uint64(h.number)*2654435761+w.seed)%61 == 0
}
