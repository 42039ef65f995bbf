//go:build stack

package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/scale"
	"seckill/test/shop"
)

const (
	units    = 20
	tokens   = 40 // of one or two units each: some go without
	clients  = 6
	asks     = 30 // of each client; with the last round, fewer than 300 operations a history
	together = 5  // histories that are made at once
)

// L11: purchases and cancels of one product look as if they had happened one after another, also over a kill.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	histories := scale.Count(t, 50, 500)
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		for _, kills := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, kills %v", profile, kills), func(t *testing.T) {
				t.Parallel()
				s := shop.New(t, profile)
				s.Start()
				for n := 0; n < histories/4+1; n += together {
					round(t, s, kills)
				}
			})
		}
	}
}

// round makes some histories at once, and kills the service in their middle.
func round(t *testing.T, s *shop.Shop, kills bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	recorders := make([]*recorder, together)
	reached := make(chan struct{}, together*clients*asks)
	var all sync.WaitGroup
	for i := range recorders {
		product := harness.UniqueID(t)
		s.OpenSale(product, units, 0)
		r := &recorder{t: t, shop: s, product: product, begun: time.Now(), gateDies: kills && s.Profile == shop.Embedded}
		recorders[i] = r
		for c := range clients {
			all.Go(func() { r.client(ctx, c, reached) })
		}
	}
	if kills {
		for range together * clients * asks / 3 { // however fast the machine is, a third has been asked
			select {
			case <-reached:
			case <-ctx.Done():
				t.Fatal("the clients do not come on")
			}
		}
		s.Kill()
		s.Start()
	}
	all.Wait()
	for _, r := range recorders {
		r.last(ctx)
		r.judge()
		s.HoldsEventually(r.product)
	}
}

// judge fails the test where no order explains the answers. A history with very many answers that never
// came can have more orders than can be searched: that is no verdict, and said.
func (r *recorder) judge() {
	r.t.Helper()
	model := Model(units, tokens)
	switch porcupine.CheckOperationsTimeout(model, r.history, checkMax) {
	case porcupine.Unknown:
		r.t.Logf("%s: no verdict on %d operations within %v", r.product, len(r.history), checkMax)
	case porcupine.Illegal:
		r.t.Errorf("%s: no order explains these %d operations", r.product, len(r.history))
		for _, o := range Break(model, r.history) {
			r.t.Logf("%12d %19d client %d: %s", o.Call, o.Return, o.ClientId, model.DescribeOperation(o.Input, o.Output))
		}
	case porcupine.Ok:
	}
}

// recorder keeps what the clients of one product asked and were told.
type recorder struct {
	t       *testing.T
	shop    *shop.Shop
	product string
	begun   time.Time
	// gateDies: the service is killed, and its gate with it.
	gateDies bool

	mu      sync.Mutex
	history []porcupine.Operation
}

func (r *recorder) client(ctx context.Context, client int, reached chan<- struct{}) {
	for range asks {
		what := Buy
		if rand.IntN(8) == 0 {
			what = Cancel
		}
		r.ask(ctx, client, what, rand.IntN(tokens))
		reached <- struct{}{}
	}
}

// last asks for every token until the answer is definite.
func (r *recorder) last(ctx context.Context) {
	for token := range tokens {
		for ctx.Err() == nil && !r.ask(ctx, 0, Buy, token) {
		}
	}
	if ctx.Err() != nil {
		r.t.Errorf("%s: the answers do not converge", r.product)
	}
}

// ask sends one request and notes it; it says whether the answer is definite. While nobody listens, it waits.
func (r *recorder) ask(ctx context.Context, client int, what What, token int) bool {
	request := Request{what, token, 1 + token%2}
	user, name := fmt.Sprintf("u%d", token), fmt.Sprintf("t%d", token)
	for ctx.Err() == nil {
		call := time.Since(r.begun).Nanoseconds()
		var a shop.Answer
		if what == Buy {
			a = r.shop.Buy(ctx, r.product, user, name, int64(request.Quantity))
		} else {
			a = r.shop.Cancel(r.product, user, name)
		}
		answer, ran := r.answerOf(what, a)
		if !ran {
			time.Sleep(20 * time.Millisecond) // between two tries
			continue
		}
		r.note(client, request, answer, call)
		return answer != Unknown
	}
	return false
}

// answerOf says what an answer means, and whether anything ran at all.
func (r *recorder) answerOf(what What, a shop.Answer) (answer Answer, ran bool) {
	switch code := a.Code(); {
	case errors.Is(a.Err, syscall.ECONNREFUSED), code == domain.CodeBusy, code == domain.CodeRebuilding:
		return Unknown, false
	case a.Err != nil, code == domain.CodeOutcomeUnknown:
		return Unknown, true
	case what == Cancel && a.Status == http.StatusOK:
		return Done, true
	case what == Cancel && code == domain.CodeOrderNotFound:
		return Absent, true
	case what == Buy && a.Accepted() && a.Header.Get("Idempotency-Replayed") == "true":
		return Repeat, true
	case what == Buy && a.Accepted():
		return Accepted, true
	case what == Buy && code == domain.CodeStockNotEnough:
		return SoldOut, true
	}
	r.t.Errorf("%s: %v was answered %v", r.product, what, a)
	return Unknown, true
}

// toldOrForgotten reports whether a token's purchase cannot be forgotten, or its Forget is there already: the gate dies
// once. It is called with mu held.
func (r *recorder) toldOrForgotten(token int, before int64) bool {
	return slices.ContainsFunc(r.history, func(o porcupine.Operation) bool {
		told := o.Return < before && (o.Output == Accepted || o.Output == Repeat)
		return o.Input.(Request).Token == token && (told || o.Input.(Request).What == Forget)
	})
}

func (r *recorder) note(client int, request Request, answer Answer, call int64) {
	end := time.Since(r.begun).Nanoseconds()
	if answer == Unknown {
		end = Never
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, porcupine.Operation{ClientId: client, Input: request, Output: answer, Call: call, Return: end})
	if request.What == Buy && answer == Unknown && r.gateDies && !r.toldOrForgotten(request.Token, call) {
		r.history = append(r.history, porcupine.Operation{ClientId: client, Input: Request{Forget, request.Token, request.Quantity}, Output: Done, Call: call, Return: Never})
	}
	if request.What == Cancel && answer == Unknown {
		back := Request{Return, request.Token, request.Quantity}
		r.history = append(r.history, porcupine.Operation{ClientId: client, Input: back, Output: Done, Call: call, Return: Never})
	}
}
