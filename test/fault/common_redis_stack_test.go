//go:build stack

package fault

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/domain"
	"seckill/test/fault/campaign"
	"seckill/test/harness"
	"seckill/test/shop"
)

// TestOneShop plays the cases that break nothing but manners, side by side in one shop a profile.
func TestOneShop(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			s := shop.New(t, profile)
			s.Start()
			for name, play := range map[string]func(*testing.T, *shop.Shop){
				"F19_callers_that_leave":       f19CallersThatLeave,
				"F29_quantities_that_are_none": f29QuantitiesThatAreNone,
				"F30_quantities_out_of_bounds": f30QuantitiesOutOfBounds,
				"F31_ids_joined":               f31IDsJoined,
				"F32_ids_that_look_alike":      f32IDsThatLookAlike,
				"F34_json_surprises":           f34JSONSurprises,
				"F36_same_token":               f36SameToken,
				"F44_last_unit":                f44LastUnit,
				"F45_refusals_take_nothing":    f45RefusalsTakeNothing,
				"F45_a_return_ends_sold_out":   func(t *testing.T, s *shop.Shop) { f45AReturnEndsSoldOut(t, s) },
				"F48_comes_back_once":          f48ComesBackOnce,
				"F48_nothing_to_cancel":        f48NothingToCancel,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					play(t, s.For(t))
				})
			}
		})
	}
}

// tenth is a tenth of a full run's count, ten at least, or as much of it as the run's scale says.
func tenth(t *testing.T, full int) int {
	t.Helper()
	return campaign.Size(t, max(full/10, 10), full)
}

// onSale is a new product on sale.
func onSale(t *testing.T, s *shop.Shop, total, limit int64) string {
	t.Helper()
	product := harness.UniqueID(t)
	s.OpenSale(product, total, limit)
	return product
}

// purchase is one D(product, user, token, quantity) and its last answer.
type purchase struct {
	product, user, token string
	quantity             int64
	answer               shop.Answer
}

func (p *purchase) buy(s *shop.Shop) {
	p.answer = s.Buy(context.Background(), p.product, p.user, p.token, p.quantity)
}

// atOnce sends them side by side.
func atOnce(s *shop.Shop, purchases []*purchase) {
	var wg sync.WaitGroup
	for _, p := range purchases {
		wg.Go(func() { p.buy(s) })
	}
	wg.Wait()
}

// converge asks again with the same token until the answer stands.
func converge(t *testing.T, s *shop.Shop, p *purchase) {
	t.Helper()
	shop.Eventually(t, time.Minute, "an answer that stands for "+p.token, func() (bool, string) {
		if p.answer.Definite() {
			return true, ""
		}
		p.buy(s)
		return p.answer.Definite(), p.answer.String()
	})
}

// holds waits for A to E of the product, compares what was confirmed, and asks for D: what was
// accepted is there, what was refused is not.
func holds(t *testing.T, s *shop.Shop, product string, orders, units int64, purchases ...*purchase) {
	t.Helper()
	v := s.HoldsEventually(product)
	if v.Confirmed != orders || v.Units != units {
		t.Errorf("%d orders of %d units, want %d of %d", v.Confirmed, v.Units, orders, units)
	}
	for _, p := range purchases {
		order := s.Order(p.product, p.user, p.token)
		switch {
		case p.answer.Accepted():
			if order.Status != http.StatusOK || order.Text("status") != "confirmed" || order.Text("quantity") != fmt.Sprint(p.quantity) {
				t.Errorf("%s of %s was accepted, and the order is %v", p.token, p.user, order)
			}
		case p.answer.Definite():
			if order.Code() != domain.CodeOrderNotFound {
				t.Errorf("%s of %s was refused with %v, and the order is %v", p.token, p.user, p.answer, order)
			}
		default:
			t.Errorf("%s of %s has no answer: %v", p.token, p.user, p.answer)
		}
	}
}

// books are both sides of a product at rest.
type books struct {
	remaining, sequence, epoch, stock, version int64
}

// atRest waits until nothing moves and reads both sides.
func atRest(t *testing.T, s *shop.Shop, product string) books {
	t.Helper()
	s.HoldsEventually(product)
	v, a := s.Stock(product)
	if v.Gate == nil || v.Ledger == nil || v.Sequence == nil {
		t.Fatalf("both sides of %s: %v", product, a)
	}
	return books{v.Gate.Remaining, *v.Sequence, v.Epoch, v.Ledger.Stock, v.Ledger.Version}
}

// changesNothing compares both sides of the product before and after.
func changesNothing(t *testing.T, s *shop.Shop, product string, do func()) {
	t.Helper()
	before := atRest(t, s, product)
	do()
	if after := atRest(t, s, product); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
}

// refused sends a purchase with a body of the caller's own and wants a refusal by status.
func refused(t *testing.T, s *shop.Shop, product, body string, statuses ...int) {
	t.Helper()
	a := s.Ask(context.Background(), http.MethodPost, s.Buyers()+"/api/v1/products/"+product+"/orders", s.Token("alice"), body,
		"Idempotency-Key", harness.UniqueID(t))
	for _, status := range statuses {
		if a.Status == status && a.Code() != "" {
			return
		}
	}
	t.Errorf("body %.60q: %v, want %v", body, a, statuses)
}

// parked publishes bodies, which all name the product, and waits until each is parked.
func parked(t *testing.T, s *shop.Shop, product string, bodies ...string) {
	t.Helper()
	raw := make([][]byte, len(bodies))
	for i, b := range bodies {
		if !strings.Contains(b, product) {
			t.Fatalf("%q does not name %s", b, product)
		}
		raw[i] = []byte(b)
	}
	store := s.Store()
	s.Publish(raw...)
	shop.Eventually(t, time.Minute, "every message is parked", func() (bool, string) {
		all, err := store.ListParked(context.Background(), "", "", "", 1000)
		if err != nil {
			return false, err.Error()
		}
		missing := map[string]bool{}
		for _, b := range bodies {
			missing[b] = true
		}
		for _, p := range all {
			delete(missing, string(p.Body))
		}
		return len(missing) == 0, fmt.Sprintf("not parked: %v", missing)
	})
}

// plainMessage is a message of another producer; quantity is JSON text.
func plainMessage(product, user, token, quantity string) string {
	return fmt.Sprintf(`{"productId":%q,"uid":%q,"token":%q,"quantity":%s}`, product, user, token, quantity)
}

// ownMessage is a message as the service writes it, of the first epoch; quantity is JSON text.
func ownMessage(t *testing.T, product, user, token, quantity string) string {
	return fmt.Sprintf(`{"v":1,"kind":"deduct","id":%q,"sections":[{"product":%q,"epoch":1,"flows":[{"u":%q,"t":%q,"q":%s,"a":"a1","s":1,"m":1764633600000}]}]}`,
		harness.UniqueID(t), product, user, token, quantity)
}

// quantitiesNowhere sends each quantity by every road: HTTP, and on the stack both forms of a message.
func quantitiesNowhere(t *testing.T, s *shop.Shop, quantities []string) {
	t.Helper()
	product := onSale(t, s, 10, 0)
	changesNothing(t, s, product, func() {
		var messages []string
		for i, q := range quantities {
			refused(t, s, product, `{"quantity":`+q+`}`, http.StatusBadRequest)
			user := fmt.Sprintf("u%d", i)
			messages = append(messages, plainMessage(product, user, "plain", q), ownMessage(t, product, user, "own", q))
		}
		if s.Profile == shop.Stack {
			parked(t, s, product, messages...)
		}
	})
	holds(t, s, product, 0, 0)
}
