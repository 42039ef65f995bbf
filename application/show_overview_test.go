package application_test

import (
	"context"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

func overviewOf(eyes application.StockEyes) *application.ShowOverview {
	return overviewWith(eyes, &application.LaneStats{})
}

func overviewWith(eyes application.StockEyes, counts *application.LaneStats) *application.ShowOverview {
	counts.Answered[application.ToldAccepted], counts.Answered[application.ToldNotEnough] = 5, 7
	counts.Answered[application.ToldRepeat], counts.Answered[application.ToldUnknown] = 2, 1
	return application.NewShowOverview(eyes, func(ctx context.Context) application.PipelineView { return application.PipelineView{} },
		func() application.LaneStats { return *counts },
		func() []application.AcceptedPurchase {
			return []application.AcceptedPurchase{{Token: "newest"}, {Token: "older"}}
		},
		func(context.Context) (map[string]application.PartStatus, bool) {
			return map[string]application.PartStatus{"gate": {OK: true}}, true
		}, wallClock{})
}

// seen looks twice, a second apart, and gives the one product as it was seen last.
func seen(t *testing.T, show *application.ShowOverview) application.ProductLine {
	t.Helper()
	show.Show(t.Context())
	time.Sleep(time.Second)
	v := show.Show(t.Context())
	if len(v.Products) != 1 {
		t.Fatalf("%+v", v)
	}
	return v.Products[0]
}

func TestTwoLooksThatAgreeProveThatBothSidesDoOrDoNot(t *testing.T) {
	t.Parallel()
	inBubble(t, "in order", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
		s.buy(t, "p", "b")
		show := overviewOf(s.eyes)
		first := show.Show(t.Context())
		if p := first.Products[0]; p.Balance != application.VerdictUnknown || p.Drift != nil {
			t.Errorf("one look proves it: %+v", p)
		}
		p := seen(t, show)
		if *p.Total != 10 || *p.Sold != 2 || *p.Confirmed != 1 || *p.Gate != 8 || *p.Ledger != 9 || *p.InFlight != 1 ||
			*p.Drift != 0 || p.Balance != application.VerdictHolds || *p.OldestOpen != 1 {
			t.Errorf("%+v", p)
		}
		if first.Accepted() != 5 || first.Refused() != 7 || !first.Parts["gate"].OK || len(first.Latest) != 2 || first.Latest[0].Token != "newest" {
			t.Errorf("%+v", first)
		}
	})
	inBubble(t, "drift", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.change("p", func(f *domain.StockFields) { f.Stock -= 3; f.Version++ })
		if p := seen(t, overviewOf(s.eyes)); *p.Drift != 3 || p.Balance != application.VerdictBroken {
			t.Errorf("%+v", p)
		}
	})
	inBubble(t, "not open", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		_ = s.Suspend(t.Context(), []string{"p"}, "test", false)
		if p := seen(t, overviewOf(s.eyes)); p.Drift != nil || p.Balance != application.VerdictUnknown || p.SuspendedAt == nil {
			t.Errorf("%+v", p)
		}
	})
	inBubble(t, "a gate that has forgotten is not empty", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.store.Forget("p")
		if p := seen(t, overviewOf(s.eyes)); p.Gate != nil || p.Sold != nil || p.InFlight != nil || *p.Ledger != 10 {
			t.Errorf("%+v", p)
		}
	})
}

func TestAPartThatIsAwayOrHangsBlanksNoOther(t *testing.T) {
	t.Parallel()
	inBubble(t, "gate", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		hangs := portmock.NewMockGateAdmin(gomock.NewController(t))
		hangs.EXPECT().View(gomock.Any(), gomock.Any()).DoAndReturn(func(ctx context.Context, _ []string) ([]port.GateView, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}).AnyTimes()
		eyes := s.eyes
		eyes.Admin = hangs
		if p := seen(t, overviewOf(eyes)); p.Gate != nil || p.Sold != nil || *p.Ledger != 10 || p.Balance != application.VerdictUnknown {
			t.Errorf("%+v", p)
		}
	})
	inBubble(t, "ledger", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		show := overviewOf(s.eyes)
		seen(t, show)
		s.fault = times(99, "List", domain.ErrUnavailable)
		v := show.Show(t.Context())
		if v.Listed || len(v.Products) != 1 || v.Answers == nil {
			t.Fatalf("%+v", v)
		}
		if p := v.Products[0]; *p.Gate != 10 || p.Ledger != nil || p.Total != nil || p.State != application.StockUnknown || p.Drift != nil {
			t.Errorf("%+v", p)
		}
		s.fault = nil
		if p := seen(t, show); p.Balance != application.VerdictHolds {
			t.Errorf("after it came back: %+v", p)
		}
	})
}

// Negative waiting times are a fault that consoles shipped with: the clocks of a service and its gate differ.
func TestAFlowFromTheFutureHasWaitedForNoTime(t *testing.T) {
	t.Parallel()
	inBubble(t, "", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		item := port.DeductItem{Command: commandFor(keyIn("p", "a")), Attempt: "a"}
		s.gate.Deduct(t.Context(), time.Now().Add(time.Hour), []port.DeductItem{item})
		if p := seen(t, overviewOf(s.eyes)); p.OldestOpen == nil || *p.OldestOpen != 0 {
			t.Errorf("%v", p.OldestOpen)
		}
	})
}

func TestAnswerTimesAreUnknownWhereNobodyLookedOrBought(t *testing.T) {
	t.Parallel()
	inBubble(t, "", func(t *testing.T) {
		counts := &application.LaneStats{}
		show := overviewWith(newShop(nil).eyes, counts)
		for _, step := range []struct {
			words    string
			answered int64
			later    time.Duration
			known    bool
		}{
			{"a first look", 5, time.Second, false},
			{"some were answered", 5, time.Second, true},
			{"none was answered", 0, time.Second, false},
			{"nobody looked for long", 5, time.Minute, false},
			{"looked again", 5, 2 * time.Second, true},
		} {
			time.Sleep(step.later)
			counts.Times[20] += step.answered
			if got := show.Show(t.Context()).Times; (got != nil) != step.known {
				t.Errorf("%s: %+v", step.words, got)
			}
		}
	})
}
