package application_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// surveyOf is a survey of the shop, with what else it reads.
type surveyOf struct {
	*application.SurveySale
	shop    *shop
	parked  *portmock.MockParking
	backlog *portmock.MockBacklogReader
	away    bool // the gate
}

type awayGate struct {
	port.GateAdmin
	s *surveyOf
}

var errAway = errors.New("away")

func (a awayGate) View(ctx context.Context, products []string) ([]port.GateView, error) {
	if a.s.away {
		return nil, errAway
	}
	return a.GateAdmin.View(ctx, products)
}

func surveyWith(t *testing.T, s *shop) *surveyOf {
	t.Helper()
	control := gomock.NewController(t)
	v := &surveyOf{shop: s, parked: portmock.NewMockParking(control), backlog: portmock.NewMockBacklogReader(control)}
	eyes := s.eyes
	eyes.Admin = awayGate{s.gate, v}
	v.SurveySale = application.NewSurveySale(eyes, s.books, v.parked, v.backlog, wallClock{}, application.DefaultSurveyConfig(), quietLog)
	return v
}

func (v *surveyOf) quietly() *surveyOf {
	v.backlog.EXPECT().Backlog(gomock.Any()).Return(port.Backlog{Messages: 3, Known: true}).AnyTimes()
	v.parked.EXPECT().CountParked(gomock.Any()).Return(int64(2), nil).AnyTimes()
	return v
}

// rounds lets so many rounds pass, and gives what the last one has read.
func (v *surveyOf) rounds(t *testing.T, n int) application.Survey {
	t.Helper()
	if err := v.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Stop(t.Context()) }()
	time.Sleep(time.Duration(n)*application.DefaultSurveyConfig().Pause - time.Second)
	return v.Latest()
}

func show[T any](p *T) string {
	if p == nil {
		return "?"
	}
	return fmt.Sprint(*p)
}

func TestASurveyReadsBothSidesAndWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	inBubble(t, "in order", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.settle(t, s.buy(t, "p", "a"), domain.OrderConfirmed)
		s.buy(t, "p", "b")
		v := surveyWith(t, s).quietly().rounds(t, 2)
		got := fmt.Sprintln(show(v.Count), show(v.OpenFlows), v.OldestOpen, show(v.LagMessages), show(v.Untold), show(v.Parked), v.BooksRead, v.Others)
		if want := "1 1 5s 3 0 2 true <nil>\n"; got != want {
			t.Errorf("got %s want %s", got, want)
		}
		p := v.Products[0]
		got = fmt.Sprintln(p.Product, p.Total, p.Stock, show(p.Remaining), show(p.OpenFlows), p.Suspended, show(p.Drift), show(p.Oversold))
		if want := "p 10 9 8 1 false ? 0\n"; got != want {
			t.Errorf("got %s want %s", got, want)
		}
	})
	inBubble(t, "suspended", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		_ = s.Suspend(t.Context(), []string{"p"}, "test", false)
		if v := surveyWith(t, s).quietly().rounds(t, 2); !v.Products[0].Suspended || v.Products[0].Drift != nil {
			t.Errorf("%+v", v.Products[0])
		}
	})
}

// A failed reading is nothing, and never 0; what could be read is shown all the same.
func TestASurveySaysNothingOfWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(v *surveyOf)
		want  string // products, open flows, oldest, lag, untold, parked, then of p: stock, gate, open flows, drift, oversold
	}{
		"all well": {func(v *surveyOf) { v.quietly() }, "1 0 0s 3 0 2 true · 10 10 0 0 0"},
		"catalog": {func(v *surveyOf) {
			v.quietly().shop.fault = func(method string) error { return when(method == "List") }
		}, "? ? ? 3 0 2 true"},
		"gate":      {func(v *surveyOf) { v.quietly().away = true }, "1 ? ? 3 0 2 true · 10 ? ? ? 0"},
		"no record": {func(v *surveyOf) { v.quietly().shop.store.Forget("p") }, "1 0 0s 3 0 2 true · 10 ? ? ? 0"},
		"untold": {func(v *surveyOf) {
			v.quietly().shop.fault = func(method string) error { return when(method == "Untold") }
		}, "1 0 0s 3 ? 2 true · 10 10 0 ? 0"},
		"orders": {func(v *surveyOf) {
			v.quietly().shop.fault = func(method string) error { return when(method == "Totals") }
		}, "1 0 0s 3 0 2 false · 10 10 0 0 0"},
		"broker and parked": {func(v *surveyOf) {
			v.backlog.EXPECT().Backlog(gomock.Any()).Return(port.Backlog{}).AnyTimes()
			v.parked.EXPECT().CountParked(gomock.Any()).Return(int64(0), errAway).AnyTimes()
		}, "1 0 0s ? 0 ? true · 10 10 0 0 0"},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newShop(nil)
			s.open(t, "p", 10)
			survey := surveyWith(t, s)
			c.fault(survey)
			v := survey.rounds(t, 3)
			got := fmt.Sprint(show(v.Count), " ", show(v.OpenFlows), " ", show(v.OldestOpen), " ", show(v.LagMessages), " ", show(v.Untold), " ",
				show(v.Parked), " ", v.BooksRead)
			for _, p := range v.Products {
				got += fmt.Sprint(" · ", p.Stock, " ", show(p.Remaining), " ", show(p.OpenFlows), " ", show(p.Drift), " ", show(p.Oversold))
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	inBubble(t, "an old one is none", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		survey := surveyWith(t, s).quietly()
		survey.rounds(t, 2)
		time.Sleep(application.DefaultSurveyConfig().FreshFor + time.Second)
		if v := survey.Latest(); v.Count != nil || v.Parked != nil || v.BooksRead || len(v.Products) > 0 {
			t.Errorf("%+v", v)
		}
	})
}

func when(yes bool) error {
	if yes {
		return errAway
	}
	return nil
}

func TestASurveyCallsDriftOnlyWhatTwoRoundsAgreeOn(t *testing.T) {
	t.Parallel()
	inBubble(t, "drift", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.change("p", func(f *domain.StockFields) { f.Stock -= 3; f.Version++ })
		survey := surveyWith(t, s).quietly()
		if v := survey.rounds(t, 1); v.Products[0].Drift != nil {
			t.Errorf("after one look: %s", show(v.Products[0].Drift))
		}
		again := surveyWith(t, s).quietly()
		if v := again.rounds(t, 2); show(v.Products[0].Drift) != "3" {
			t.Errorf("after two looks: %s", show(v.Products[0].Drift))
		}
	})
	inBubble(t, "in motion", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.buy(t, "p", "a")
		if v := surveyWith(t, s).quietly().rounds(t, 4); v.Products[0].Drift != nil {
			t.Errorf("%s", show(v.Products[0].Drift))
		}
	})
	inBubble(t, "a fate that the gate has yet to be told", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.apply(flowIn(keyIn("p", "late"), domain.FlowDeducted, 1), domain.OrderConfirmed, false)
		v := surveyWith(t, s).quietly().rounds(t, 4)
		if v.Products[0].Drift != nil || show(v.Untold) != "1" {
			t.Errorf("drift %s, untold %s", show(v.Products[0].Drift), show(v.Untold))
		}
	})
}

// The rest has no name, so that nobody's catalog can fill the memory of who collects the numbers.
func TestASurveyNamesAHundredProductsOnSaleAndAddsUpTheRest(t *testing.T) {
	t.Parallel()
	inBubble(t, "many", func(t *testing.T) {
		s := newShop(nil)
		for i := range 103 {
			s.sell(fmt.Sprintf("p%03d", i), 10, domain.SaleOpen)
		}
		s.change("p000", func(f *domain.StockFields) { f.Terms.ClosesAt = time.Now() })
		s.change("p101", func(f *domain.StockFields) { f.State, f.Reason = domain.SaleSuspended, "test" })
		v := surveyWith(t, s).quietly().rounds(t, 2)
		if len(v.Products) != 100 || v.Products[0].Product != "p001" || show(v.Count) != "103" {
			t.Fatalf("%d named from %s, %s in all", len(v.Products), v.Products[0].Product, show(v.Count))
		}
		if o := v.Others; o == nil || o.Total != 30 || o.Stock != 30 || !o.Suspended || o.Remaining != nil || show(o.Oversold) != "0" {
			t.Errorf("the rest: %+v", o)
		}
	})
	inBubble(t, "drifts do not cancel each other out", func(t *testing.T) {
		s := newShop(nil)
		for product, units := range map[string]int64{"a": 3, "b": -3} {
			s.open(t, product, 10)
			s.change(product, func(f *domain.StockFields) {
				f.Stock, f.Total, f.Version = f.Stock-units, f.Total+9, f.Version+1
				f.Terms.ClosesAt = time.Now()
			})
		}
		if v := surveyWith(t, s).quietly().rounds(t, 3); v.Others == nil || show(v.Others.Drift) != "6" {
			t.Errorf("the rest: %+v", v.Others)
		}
	})
}

func TestASurveySumsTheOrdersOfOneProductAfterTheOther(t *testing.T) {
	t.Parallel()
	inBubble(t, "oversold", func(t *testing.T) {
		s := newShop(nil)
		for _, product := range []string{"p", "q"} {
			s.open(t, product, 2)
			s.settle(t, s.buy(t, product, "a"), domain.OrderConfirmed)
			s.changeRow(keyIn(product, "a"), func(f *domain.OrderFields) { f.Quantity = 5 })
		}
		survey := surveyWith(t, s).quietly()
		if err := survey.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = survey.Stop(t.Context()) }()
		time.Sleep(9 * time.Second)
		if v := survey.Latest(); show(v.Products[0].Oversold) != "3" || show(v.Products[1].Oversold) != "0" {
			t.Errorf("first p: %s and %s", show(v.Products[0].Oversold), show(v.Products[1].Oversold))
		}
		time.Sleep(30 * time.Second)
		if v := survey.Latest(); show(v.Products[1].Oversold) != "3" {
			t.Errorf("then q: %s", show(v.Products[1].Oversold))
		}
		s.changeRow(keyIn("p", "a"), func(f *domain.OrderFields) { f.Quantity = 6 }) // by nobody who moves the version
		time.Sleep(time.Hour + time.Minute)
		if v := survey.Latest(); show(v.Products[0].Oversold) != "4" {
			t.Errorf("within the hour: %s", show(v.Products[0].Oversold))
		}
	})
}
