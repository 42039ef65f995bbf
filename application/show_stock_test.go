package application_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

func TestTheEditionOfAProductIsNotMovedByBuyers(t *testing.T) {
	t.Parallel()
	stock := stockIn("p", domain.SaleOpen)
	sold, err := stock.Deduct(1)
	if err != nil || sold.Edition() != stock.Edition() {
		t.Errorf("%s, after a purchase %s", stock.Edition(), sold.Edition())
	}
	added, err := stock.Add(1)
	if err != nil || added.Edition() == stock.Edition() || stockIn("p", domain.SaleSuspended).Edition() == stock.Edition() {
		t.Errorf("%s, after an addition %s", stock.Edition(), added.Edition())
	}
}

func TestPublicStockSaysWhatABuyerCanDo(t *testing.T) {
	t.Parallel()
	for want, make := range map[string]func(*testing.T, *shop){
		application.StockOpen: func(*testing.T, *shop) {},
		application.StockSoldOut: func(t *testing.T, s *shop) {
			s.buy(t, "p", "a")
			s.buy(t, "p", "b")
		},
		application.StockPaused: func(_ *testing.T, s *shop) {
			s.change("p", func(f *domain.StockFields) { f.Terms.Paused = true })
		},
		application.StockUpcoming: func(_ *testing.T, s *shop) {
			s.change("p", func(f *domain.StockFields) { f.Terms.OpensAt = time.Now().Add(time.Second) })
		},
		application.StockOver: func(_ *testing.T, s *shop) {
			s.change("p", func(f *domain.StockFields) { f.Terms.ClosesAt = time.Now() })
		},
		application.StockRebuilding: func(t *testing.T, s *shop) {
			_ = s.Suspend(t.Context(), []string{"p"}, "test", false)
		},
		application.StockRebuilding + " ": func(_ *testing.T, s *shop) { s.store.Forget("p") },
	} {
		inBubble(t, want, func(t *testing.T) {
			s := newShop(nil)
			s.open(t, "p", 2)
			make(t, s)
			got, err := application.NewShowStock(s.eyes, wallClock{}).Public(t.Context(), "p")
			if err != nil || got.State+" " != want && got.State != want {
				t.Errorf("%q, %v", got.State, err)
			}
		})
	}
	inBubble(t, "missing is never zero", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 2)
		s.store.Forget("p")
		show := application.NewShowStock(s.eyes, wallClock{})
		if got, err := show.Public(t.Context(), "p"); err != nil || got.Remaining != nil {
			t.Errorf("%+v %v", got, err)
		}
		_, err := show.Public(t.Context(), "nobody")
		wantCode(t, err, domain.CodeProductNotFound)
	})
}

func TestStockViewShowsBothSides(t *testing.T) {
	t.Parallel()
	inBubble(t, "in order", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
		s.buy(t, "p", "b")
		v, err := application.NewShowStock(s.eyes, wallClock{}).Show(t.Context(), "p")
		if err != nil || v.State != "open" || v.Gate.Remaining != 8 || v.Ledger.Stock != 9 || *v.Confirmed != 1 || *v.InFlight != 1 || v.Drift == nil || *v.Drift != 0 {
			t.Errorf("%+v %v", v, err)
		}
	})
	inBubble(t, "drift", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.change("p", func(f *domain.StockFields) { f.Stock -= 3; f.Version++ })
		v, err := application.NewShowStock(s.eyes, wallClock{}).Show(t.Context(), "p")
		if err != nil || v.Drift == nil || *v.Drift != 3 {
			t.Errorf("%+v %v", v, err)
		}
	})
	inBubble(t, "no drift while it moves", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		n := 0
		s.fault = func(method string) error {
			if method == "Untold" { // a sale between every two looks
				n++
				item := port.DeductItem{Command: commandFor(keyIn("p", fmt.Sprint(n))), Attempt: "a"}
				s.gate.Deduct(t.Context(), time.Now(), []port.DeductItem{item})
			}
			return nil
		}
		v, err := application.NewShowStock(s.eyes, wallClock{}).Show(t.Context(), "p")
		if err != nil || v.Drift != nil || v.Gate == nil {
			t.Errorf("%+v %v", v, err)
		}
	})
	inBubble(t, "each side by itself", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		away := portmock.NewMockGateAdmin(gomock.NewController(t))
		away.EXPECT().View(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable).AnyTimes()
		eyes := s.eyes
		eyes.Admin = away
		v, err := application.NewShowStock(eyes, wallClock{}).Show(t.Context(), "p")
		if err != nil || v.Gate != nil || v.InFlight != nil || v.Drift != nil || v.Ledger == nil {
			t.Errorf("%+v %v", v, err)
		}
		s.fault = times(99, "Stocks", domain.ErrUnavailable)
		v, err = application.NewShowStock(s.eyes, wallClock{}).Show(t.Context(), "p")
		if err != nil || v.Gate == nil || v.Ledger != nil || v.Confirmed != nil || v.State != application.StockUnknown {
			t.Errorf("%+v %v", v, err)
		}
	})
}

func TestPipelineShowsWhatItCanRead(t *testing.T) {
	t.Parallel()
	pipeline := func(t *testing.T, s *shop, known bool) application.PipelineView {
		ctrl := gomock.NewController(t)
		parking, backlog := portmock.NewMockParking(ctrl), portmock.NewMockBacklogReader(ctrl)
		parking.EXPECT().CountParked(gomock.Any()).Return(int64(4), nil)
		backlog.EXPECT().Backlog(gomock.Any()).Return(port.Backlog{Known: known, Messages: 7})
		return application.NewShowPipeline(s.eyes, parking, backlog, openIntake(),
			func() application.LaneStats { return application.LaneStats{Waiting: 1, Batches: 2, Commands: 3} },
			func() application.SettleStats { return application.SettleStats{Groups: 5, Rows: 6} }, s.repair.Stats, 34*time.Second,
			wallClock{}).Show(t.Context())
	}
	inBubble(t, "all", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.sell("q", 10, domain.SaleOpen)
		_ = s.Suspend(t.Context(), []string{"q"}, "test", false)
		s.apply(s.buy(t, "p", "a"), domain.OrderConfirmed, false)
		time.Sleep(3 * time.Second)
		s.buy(t, "p", "b")
		v := pipeline(t, s, true)
		if *v.OpenFlows != 2 || *v.OldestOpenSecond != 3 || *v.LagMessages != 7 || *v.UntoldOrders != 1 || *v.Parked != 4 ||
			len(v.Suspended) != 1 || v.LongestClosed == nil || *v.LongestClosed != (application.ClosedProduct{Product: "q", Seconds: 3}) ||
			v.LastRebuilt == nil || v.LastRebuilt.Product != "p" || v.CheckWindow != 34 || v.LaneWaiting != 1 || v.AppliedRows != 6 {
			t.Errorf("%+v", v)
		}
	})
	inBubble(t, "an unknown is not a zero", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.fault = func(method string) error {
			if method == "List" || method == "Untold" {
				return domain.ErrUnavailable
			}
			return nil
		}
		if v := pipeline(t, s, false); v.OpenFlows != nil || v.LagMessages != nil || v.UntoldOrders != nil || *v.Parked != 4 {
			t.Errorf("%+v", v)
		}
	})
}
