package application_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// wallClock is the bubble's clock.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (s *shop) verifier() *application.VerifyBooks {
	return application.NewVerifyBooks(s.books, s.eyes, wallClock{}, application.DefaultVerifyConfig())
}

func (s *shop) verify(t *testing.T, journal ...application.JournalEntry) application.Verification {
	t.Helper()
	v, err := s.verifier().Verify(t.Context(), "", journal)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// verdicts joins the verdicts that are not "holds", as in "B broken, E unknown".
func verdicts(v application.Verification) string {
	var odd []string
	for _, i := range v.Invariants {
		if i.Verdict != application.VerdictHolds {
			odd = append(odd, i.Name+" "+i.Verdict)
		}
	}
	return strings.Join(odd, ", ")
}

func entry(token string, answer application.Answer) application.JournalEntry {
	return application.JournalEntry{Product: "p", User: "u-" + token, Token: token, Quantity: 1, Answer: answer}
}

func cancelEntry(token string, answer application.Answer) application.JournalEntry {
	e := entry(token, answer)
	e.Cancel = true
	return e
}

func TestVerifyHoldsForBooksInOrder(t *testing.T) {
	t.Parallel()
	inBubble(t, "drained", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.open(t, "q", 5)
		s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
		s.settle(t, s.buy(t, "p", "b"), domain.OrderRejected)
		v := s.verify(t)
		if !v.Holds || !v.Drained || verdicts(v) != "" || v.Products != 2 || v.Orders != 2 || v.Confirmed != 1 || v.Units != 1 {
			t.Errorf("%s: %+v", verdicts(v), v)
		}
		if len(v.Invariants[3].Findings) != 1 || v.Invariants[3].Checked != 0 {
			t.Errorf("without a journal, rejected orders are named and break nothing: %+v", v.Invariants[3])
		}
	})
}

func TestVerifyFindsEachBreach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breach func(*testing.T, *shop)
		want   string
	}{
		"more confirmed than put on sale": {func(_ *testing.T, s *shop) {
			s.change("p", func(f *domain.StockFields) { f.Total, f.Stock = 0, 0 })
		}, "A broken, B broken"},
		"the gate has too much": {func(_ *testing.T, s *shop) {
			s.change("p", func(f *domain.StockFields) { f.Stock--; f.Version++ })
		}, "B broken"},
		"an order without a stock flow": {func(_ *testing.T, s *shop) {
			delete(s.flows, keyIn("p", "a"))
		}, "B broken, C broken"},
		"an order with two": {func(_ *testing.T, s *shop) {
			s.flows[keyIn("p", "a")] = 2
		}, "B broken, C broken"},
		"an open flow": {func(t *testing.T, s *shop) { s.buy(t, "p", "b") }, "E unknown"},
		"one that has been open for too long": {func(t *testing.T, s *shop) {
			s.buy(t, "p", "b")
			time.Sleep(time.Minute + time.Second)
		}, "E broken"},
		"an untold order": {func(t *testing.T, s *shop) { s.apply(s.buy(t, "p", "b"), domain.OrderConfirmed, false) }, "E unknown"},
		"one that has been untold for too long": {func(_ *testing.T, s *shop) {
			s.changeRow(keyIn("p", "a"), func(f *domain.OrderFields) { f.GateTold = false })
			time.Sleep(time.Minute + time.Second)
		}, "E broken"},
		"a rebuild under way": {func(t *testing.T, s *shop) {
			_ = s.Suspend(t.Context(), []string{"p"}, "test", false)
		}, "B unknown, E unknown"},
		"damaged": {func(t *testing.T, s *shop) {
			_ = s.Suspend(t.Context(), []string{"p"}, "test", true)
		}, "B unknown, E broken"},
		"a flushed gate":      {func(_ *testing.T, s *shop) { s.store.Forget("p") }, "B unknown, E unknown"},
		"a ledger that fails": {func(_ *testing.T, s *shop) { s.fault = times(1, "Totals", domain.ErrUnavailable) }, "A unknown, B unknown, C unknown, E unknown"},
		"no list of products": {func(_ *testing.T, s *shop) { s.fault = times(1, "List", domain.ErrUnavailable) }, "A unknown, B unknown, C unknown, E unknown"},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newShop(nil)
			s.open(t, "p", 10)
			s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
			c.breach(t, s)
			if v := s.verify(t); verdicts(v) != c.want || v.Holds {
				t.Errorf("%s, want %s: %+v", verdicts(v), c.want, v.Invariants)
			}
		})
	}
}

func TestVerifyWaitsForNothingThatMovesAndCallsItUnknown(t *testing.T) {
	t.Parallel()
	inBubble(t, "motion", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.change("p", func(f *domain.StockFields) { f.Stock--; f.Version++ })
		s.fault = func(method string) error {
			if method == "Stocks" { // each look finds the ledger elsewhere
				f := s.stocks["p"]
				f.Version++
				s.stocks["p"] = f
			}
			return nil
		}
		if v := s.verify(t); !strings.Contains(verdicts(v), "B broken") { // the ledger by itself is broken here
			t.Error(verdicts(v))
		} else if n := v.Invariants[1].Broken; n != 2 {
			t.Errorf("the gate was called broken, too: %+v", v.Invariants[1])
		}
	})
}

func TestVerifyHoldsClientsJournalAgainstTheOrders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		journal []application.JournalEntry
		want    string
	}{
		"as told":                           {[]application.JournalEntry{entry("yes", application.AnswerAccepted), entry("no", application.AnswerRefused), entry("rejected", application.AnswerUnknown), entry("nothing", application.AnswerUnknown), entry("cancelled", application.AnswerUnknown)}, ""},
		"cancelled as asked":                {[]application.JournalEntry{entry("cancelled", application.AnswerAccepted), cancelEntry("cancelled", application.AnswerAccepted)}, ""},
		"perhaps as asked":                  {[]application.JournalEntry{entry("cancelled", application.AnswerAccepted), cancelEntry("cancelled", application.AnswerUnknown)}, ""},
		"a repeat after the cancel":         {[]application.JournalEntry{cancelEntry("cancelled", application.AnswerAccepted), entry("cancelled", application.AnswerAccepted)}, ""},
		"the cancel that went through":      {[]application.JournalEntry{entry("cancelled", application.AnswerAccepted), cancelEntry("cancelled", application.AnswerAccepted), cancelEntry("cancelled", application.AnswerUnknown), cancelEntry("cancelled", application.AnswerRefused)}, ""},
		"a cancel that did not go through":  {[]application.JournalEntry{entry("yes", application.AnswerAccepted), cancelEntry("yes", application.AnswerUnknown)}, ""},
		"nothing to cancel":                 {[]application.JournalEntry{cancelEntry("nothing", application.AnswerRefused), cancelEntry("rejected", application.AnswerRefused)}, ""},
		"cancelled, and nobody asked":       {[]application.JournalEntry{entry("cancelled", application.AnswerAccepted)}, "D broken"},
		"cancelled though told not":         {[]application.JournalEntry{entry("cancelled", application.AnswerAccepted), cancelEntry("cancelled", application.AnswerRefused)}, "D broken"},
		"told cancelled, and confirmed":     {[]application.JournalEntry{entry("yes", application.AnswerAccepted), cancelEntry("yes", application.AnswerAccepted)}, "D broken"},
		"told cancelled, and rejected":      {[]application.JournalEntry{cancelEntry("rejected", application.AnswerAccepted)}, "D broken"},
		"told cancelled, and nothing there": {[]application.JournalEntry{cancelEntry("nothing", application.AnswerAccepted)}, "D broken"},
		"another quantity, and cancelled":   {[]application.JournalEntry{{Product: "p", User: "u-cancelled", Token: "cancelled", Quantity: 2, Answer: application.AnswerAccepted}, cancelEntry("cancelled", application.AnswerAccepted)}, "D broken"},
		"accepted and rejected":             {[]application.JournalEntry{entry("rejected", application.AnswerAccepted)}, "D broken"},
		"accepted and nothing there":        {[]application.JournalEntry{entry("nothing", application.AnswerAccepted)}, "D broken"},
		"refused and confirmed":             {[]application.JournalEntry{entry("yes", application.AnswerRefused)}, "D broken"},
		"refused and rejected":              {[]application.JournalEntry{entry("rejected", application.AnswerRefused)}, ""},
		"the last definite answer counts":   {[]application.JournalEntry{entry("yes", application.AnswerRefused), entry("yes", application.AnswerAccepted), entry("yes", application.AnswerUnknown)}, ""},
		"another quantity":                  {[]application.JournalEntry{{Product: "p", User: "u-yes", Token: "yes", Quantity: 2, Answer: application.AnswerAccepted}}, "D broken"},
		"a product that nobody has on sale": {[]application.JournalEntry{{Product: "x", User: "u", Token: "t", Quantity: 1, Answer: application.AnswerAccepted}}, "D broken"},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newShop(nil)
			s.open(t, "p", 10)
			s.settle(t, s.buy(t, "p", "yes"), domain.OrderConfirmed)
			s.settle(t, s.buy(t, "p", "rejected"), domain.OrderRejected)
			s.settle(t, s.buy(t, "p", "cancelled"), domain.OrderCancelled)
			if v := s.verify(t, c.journal...); verdicts(v) != c.want {
				t.Errorf("%q, want %q: %+v", verdicts(v), c.want, v.Invariants[3])
			}
		})
	}
	inBubble(t, "accepted and on its way", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.buy(t, "p", "open")
		if v := s.verify(t, entry("open", application.AnswerAccepted)); verdicts(v) != "D unknown, E unknown" {
			t.Error(verdicts(v))
		}
		if v := s.verify(t, cancelEntry("open", application.AnswerAccepted)); verdicts(v) != "D broken, E unknown" {
			t.Error("told cancelled, and open:", verdicts(v))
		}
	})
	inBubble(t, "a journal that cannot be, a product that is not", func(t *testing.T) {
		s := newShop(nil)
		_, err := s.verifier().Verify(t.Context(), "", []application.JournalEntry{entry("", application.AnswerAccepted)})
		wantCode(t, err, domain.CodeInvalidRequest)
		_, err = s.verifier().Verify(t.Context(), "", []application.JournalEntry{entry("a", "perhaps")})
		wantCode(t, err, domain.CodeInvalidRequest)
		_, err = s.verifier().Verify(t.Context(), "p", nil)
		wantCode(t, err, domain.CodeProductNotFound)
	})
}

func TestVerifyListsTwentyFindingsAndCountsAll(t *testing.T) {
	t.Parallel()
	inBubble(t, "many", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		var journal []application.JournalEntry
		for i := range 600 {
			journal = append(journal, entry(fmt.Sprint("t", i), application.AnswerAccepted))
		}
		if d := s.verify(t, journal...).Invariants[3]; d.Broken != 600 || d.Checked != 600 || len(d.Findings) != 20 {
			t.Errorf("%d of %d, %d listed", d.Broken, d.Checked, len(d.Findings))
		}
	})
}

func TestVerifySaysWhenTheGateCannotBeRead(t *testing.T) {
	t.Parallel()
	inBubble(t, "away", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		away := portmock.NewMockGateAdmin(gomock.NewController(t))
		away.EXPECT().View(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable).AnyTimes()
		s.eyes.Admin = away
		if v := s.verify(t); verdicts(v) != "A unknown, B unknown, E unknown" || v.Drained {
			t.Error(verdicts(v))
		}
	})
}

func TestWaitDrainedEndsWhenNothingIsOnItsWay(t *testing.T) {
	t.Parallel()
	inBubble(t, "drains", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		flow := s.buy(t, "p", "a")
		begun := time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			order := s.apply(flow, domain.OrderConfirmed, false)
			time.Sleep(3 * time.Second)
			s.gate.Tell(context.Background(), []domain.Fate{order.Fate()})
			time.Sleep(3 * time.Second)
			_ = s.MarkTold(context.Background(), []domain.Order{order})
		}()
		if err := s.verifier().WaitDrained(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 9*time.Second || took > 10*time.Second {
			t.Errorf("took %s", took)
		}
	})
	inBubble(t, "never", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.buy(t, "p", "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := s.verifier().WaitDrained(ctx, "")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "p has 1 open flows") {
			t.Error(err)
		}
	})
}

// lateBook settles what is open just after it was read.
type lateBook struct {
	port.Book
	settle func()
}

func (b lateBook) Totals(ctx context.Context, product string) (port.BookTotals, error) {
	totals, err := b.Book.Totals(ctx, product)
	b.settle()
	return totals, err
}

func TestVerifyNeverCallsDrainedWhatItsTotalsDoNotHold(t *testing.T) {
	t.Parallel()
	inBubble(t, "settled meanwhile", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		flow := s.buy(t, "p", "a")
		book := lateBook{s.books, func() { s.settle(t, flow, domain.OrderConfirmed) }}
		v, err := application.NewVerifyBooks(book, s.eyes, wallClock{}, application.DefaultVerifyConfig()).Verify(t.Context(), "p", nil)
		if err != nil || v.Drained && v.Confirmed == 0 {
			t.Errorf("%v: drained without its order: %+v", err, v)
		}
	})
}
