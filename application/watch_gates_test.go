package application_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// watchFor runs a watch for a time and gives what it suspected.
func (s *shop) watchFor(t *testing.T, d time.Duration) *suspectList {
	t.Helper()
	suspects := &suspectList{}
	cfg := application.DefaultWatchConfig()
	cfg.PageMax = 2
	watch := application.NewWatchGates(s.books, s.books, s.gate, suspects, cfg, quietLog)
	if err := watch.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(d)
	synctest.Wait()
	stopRunner(t, watch)
	return suspects
}

func TestWatchNoticesWhatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*shop){
		"flushed":        func(s *shop) { s.store.Forget("p-3") },
		"another server": func(s *shop) { s.store.MoveServer("p-3") },
		"an older epoch": func(s *shop) { s.change("p-3", func(f *domain.StockFields) { f.Epoch++ }) },
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newShop(nil)
			for i := range 5 {
				s.open(t, fmt.Sprint("p-", i), 10)
			}
			if got := s.watchFor(t, 2*time.Second).products(); len(got) != 0 {
				t.Fatalf("suspects %v of nothing", got)
			}
			lose(s)
			suspects := s.watchFor(t, 0)
			if got := suspects.products(); len(got) != 1 || got[0] != "p-3" {
				t.Errorf("suspects %v", got)
			}
		})
	}
}

// halfBlind cannot read one product.
type halfBlind struct {
	port.GateAdmin
	blind string
}

func (h halfBlind) View(ctx context.Context, products []string) ([]port.GateView, error) {
	views, err := h.GateAdmin.View(ctx, products)
	for i, p := range products {
		if p == h.blind {
			views[i] = port.GateView{Product: p, Err: domain.ErrUnavailable}
		}
	}
	return views, err
}

func TestAProductWhoseGateIsAwayHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	inBubble(t, "watched and rebuilt", func(t *testing.T) {
		s := newShop(nil)
		for _, p := range []string{"away", "p"} {
			s.open(t, p, 10)
			s.store.Forget(p)
		}
		gate := halfBlind{s.gate, "away"}
		cfg := application.DefaultRebuildConfig()
		cfg.Holder = "me"
		s.repair = application.NewRebuildStock(s.books, s.books, gate, s.gate, s.books, s.drains, s.lease, cfg, quietLog)
		watch := application.NewWatchGates(s.books, s.books, gate, s.repair, application.DefaultWatchConfig(), quietLog)
		startRunner(t, s.repair)
		startRunner(t, watch)
		s.repair.Suspect("away", "said by a buyer")
		time.Sleep(15 * time.Second)
		if s.stock("p").State() != domain.SaleOpen || s.view(t, "p").Shut || s.view(t, "p").Epoch != 2 {
			t.Errorf("%s, %+v", s.stock("p").State(), s.view(t, "p"))
		}
		if s.stock("away").State() != domain.SaleSuspended {
			t.Errorf("what is away is %s", s.stock("away").State())
		}
	})
}

func TestWatchFinishesWhatADeadInstanceLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, "a gate that was rebuilt and not opened", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		_ = s.gate.Shut(t.Context(), []string{"p"})
		if got := s.watchFor(t, 0).products(); len(got) != 0 || s.view(t, "p").Shut {
			t.Errorf("not opened, suspects %v", got)
		}
	})
	inBubble(t, "terms that the gate has not learned", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.change("p", func(f *domain.StockFields) { f.Terms.Paused, f.Terms.Revision = true, 7 })
		s.watchFor(t, 0)
		if v := s.view(t, "p"); v.Revision != 7 || s.ask(t, "p", "a").Outcome != port.DeductClosed {
			t.Errorf("gate %+v", v)
		}
	})
	inBubble(t, "a suspension that nobody ends", func(t *testing.T) {
		s := newShop(nil)
		s.sell("p", 10, domain.SaleSuspended)
		s.sell("damaged", 10, domain.SaleDamaged)
		if got := s.watchFor(t, 9*time.Second).products(); len(got) != 0 {
			t.Errorf("hurries: %v", got)
		}
		if got := s.watchFor(t, 10*time.Second).products(); len(got) != 1 || got[0] != "p" {
			t.Errorf("suspects %v", got)
		}
	})
}

func TestWatchMarksADatabaseThatWentBack(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(*domain.StockFields){
		"version": func(f *domain.StockFields) { f.Version = 1 },
		"epoch":   func(f *domain.StockFields) { f.Epoch, f.Version = 0, 100 },
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newShop(nil)
			s.open(t, "p", 10)
			s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
			s.change("p", back)
			if got := s.watchFor(t, 0).products(); len(got) != 0 || s.stock("p").State() != domain.SaleDamaged || !s.view(t, "p").Shut {
				t.Errorf("%s, suspects %v", s.stock("p").State(), got)
			}
		})
	}
}

// A rebuild between the watch's two reads must not look like a loss.
func TestWatchJudgesOnlyWhatTheLedgerSaysTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, "reopened in between", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.store.MoveServer("p")
		s.fault = func(method string) error {
			if method == "Stocks" { // the second read
				f := s.stocks["p"]
				f.Epoch++
				s.stocks["p"] = f
			}
			return nil
		}
		if got := s.watchFor(t, 0).products(); len(got) != 0 {
			t.Errorf("suspects %v", got)
		}
	})
	inBubble(t, "a ledger or a gate that is away is no loss", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.store.Forget("p")
		s.fault = times(1, "List", domain.ErrUnavailable)
		if got := s.watchFor(t, 0).products(); len(got) != 0 {
			t.Errorf("suspects %v", got)
		}
		gate := portmock.NewMockGateAdmin(gomock.NewController(t))
		gate.EXPECT().View(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable)
		suspects := &suspectList{}
		watch := application.NewWatchGates(s.books, s.books, gate, suspects, application.DefaultWatchConfig(), quietLog)
		_ = watch.Start(t.Context())
		synctest.Wait()
		stopRunner(t, watch)
		if len(suspects.products()) != 0 {
			t.Error("suspects what it could not see")
		}
	})
}

func TestOpenSale(t *testing.T) {
	t.Parallel()
	sale := must(domain.NewSale("p", 10, time.Time{}, time.Time{}, 2))
	inBubble(t, "new, repeated, other", func(t *testing.T) {
		s := newShop(nil)
		open := application.NewOpenSale(s.books, s.repair, quietLog)
		stock, created, err := open.Open(t.Context(), sale, port.Audit{Actor: "op"})
		if err != nil || !created || stock.State() != domain.SaleOpen || s.view(t, "p").Remaining != 10 {
			t.Fatalf("%v %v %v", stock.State(), created, err)
		}
		if _, created, err = open.Open(t.Context(), sale, port.Audit{}); err != nil || created {
			t.Errorf("a repeat: %v %v", created, err)
		}
		other := must(domain.NewSale("p", 11, time.Time{}, time.Time{}, 2))
		_, _, err = open.Open(t.Context(), other, port.Audit{})
		wantCode(t, err, domain.CodeProductExists)
	})
	inBubble(t, "a gate that cannot be built now", func(t *testing.T) {
		s := newShop(nil)
		s.fault = times(1, "TakeAttempt", domain.ErrUnavailable)
		stock, created, err := application.NewOpenSale(s.books, s.repair, quietLog).Open(t.Context(), sale, port.Audit{})
		if err != nil || !created || stock.State() != domain.SaleSuspended {
			t.Fatalf("%v %v %v", stock.State(), created, err)
		}
		startRunner(t, s.repair)
		s.idle(t)
		if s.stock("p").State() != domain.SaleOpen || s.view(t, "p").Shut {
			t.Error("not built later")
		}
	})
}

func TestPauseSale(t *testing.T) {
	t.Parallel()
	inBubble(t, "there and back", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		pause := application.NewPauseSale(s.books, s.gate, quietLog)
		for _, paused := range []bool{true, true, false} {
			stock, err := pause.SetPaused(t.Context(), "p", paused, "", port.Audit{Actor: "op"})
			if err != nil || stock.Terms().Paused != paused {
				t.Fatal(stock.Terms(), err)
			}
			want := port.DeductAccepted
			if paused {
				want = port.DeductClosed
			}
			if got := s.ask(t, "p", "a").Outcome; got != want {
				t.Errorf("paused %v: the gate says %v", paused, got)
			}
		}
		_, err := pause.SetPaused(t.Context(), "nobody", true, "", port.Audit{})
		wantCode(t, err, domain.CodeProductNotFound)
	})
	t.Run("a gate that is away", func(t *testing.T) {
		t.Parallel()
		s := newShop(nil)
		s.sell("p", 10, domain.SaleOpen)
		gate := portmock.NewMockGateAdmin(gomock.NewController(t))
		gate.EXPECT().SetTerms(gomock.Any(), "p", gomock.Any()).Return(false, domain.ErrUnavailable)
		stock, err := application.NewPauseSale(s.books, gate, quietLog).SetPaused(context.Background(), "p", true, "", port.Audit{})
		if err != nil || !stock.Terms().Paused {
			t.Error("the wish is lost", err)
		}
	})
}
