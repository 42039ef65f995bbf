package application_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/adapters/system"
	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// relayParts are a relay's neighbours: stocks, views, open flows, rows and untold rows are plain
// values that a test sets, and what is sent is kept with the second in which it was.
type relayParts struct {
	flows    *portmock.MockOpenFlows
	gate     *portmock.MockGate
	admin    *portmock.MockGateAdmin
	ledger   *portmock.MockLedger
	outbox   *portmock.MockOutbox
	sender   *portmock.MockSender
	catalog  *portmock.MockCatalog
	backlog  *portmock.MockBacklogReader
	intake   *application.Intake
	suspects *suspectList
	cfg      application.RelayConfig
	relay    *application.RelayOpenFlows

	start  time.Time
	stocks []domain.Stock
	views  map[string]*port.GateView
	open   map[string][]domain.Flow
	rows   map[domain.Key]domain.Order
	untold []domain.Order
	lag    port.Backlog
	result port.SendResult
	each   func(second int) // called by the relay as each round begins
	sent   []sending
	told   []domain.Key
	marked int
}

type sending struct {
	second int
	kind   domain.BatchKind
	tokens []string
}

func relayWith(t *testing.T, change func(*application.RelayConfig)) *relayParts {
	ctrl := gomock.NewController(t)
	p := &relayParts{flows: portmock.NewMockOpenFlows(ctrl), gate: portmock.NewMockGate(ctrl), admin: portmock.NewMockGateAdmin(ctrl),
		ledger: portmock.NewMockLedger(ctrl), outbox: portmock.NewMockOutbox(ctrl), sender: portmock.NewMockSender(ctrl),
		catalog: portmock.NewMockCatalog(ctrl), backlog: portmock.NewMockBacklogReader(ctrl), suspects: &suspectList{}, intake: openIntake(),
		start: time.Now(), views: map[string]*port.GateView{}, open: map[string][]domain.Flow{},
		rows: map[domain.Key]domain.Order{}, result: port.SendCommitted}
	cfg := application.DefaultRelayConfig()
	if change != nil {
		change(&cfg)
	}
	p.answer()
	p.cfg = cfg
	p.build()
	return p
}

// build makes the relay of its parts.
func (p *relayParts) build() {
	p.relay = application.NewRelayOpenFlows(p.flows, p.gate, p.admin, p.ledger, p.outbox, p.sender, p.catalog, p.backlog, p.intake,
		p.suspects, system.NewIDs(), p.cfg, quietLog)
}

func (p *relayParts) answer() {
	anything := gomock.Any()
	p.sender.EXPECT().BytesOf(anything).Return(100).AnyTimes()
	p.sender.EXPECT().BatchBytesMax().Return(30_000).AnyTimes()
	p.sender.EXPECT().Send(anything, anything).DoAndReturn(func(_ context.Context, b domain.Batch) (port.SendResult, error) {
		s := sending{second: int(time.Since(p.start) / time.Second), kind: b.Kind}
		for _, item := range b.Items {
			s.tokens = append(s.tokens, item.Key.Token())
		}
		p.sent = append(p.sent, s)
		return p.result, nil
	}).AnyTimes()
	p.backlog.EXPECT().Backlog(anything).DoAndReturn(func(any) port.Backlog { return p.lag }).AnyTimes()
	p.admin.EXPECT().View(anything, anything).DoAndReturn(func(_ any, products []string) ([]port.GateView, error) {
		views := make([]port.GateView, len(products))
		for i, product := range products {
			views[i] = *p.views[product]
			views[i].OpenFlows = int64(len(p.open[product]))
		}
		return views, nil
	}).AnyTimes()
	p.flows.EXPECT().Page(anything, anything, anything, anything).DoAndReturn(p.page).AnyTimes()
	p.ledger.EXPECT().Fates(anything, anything).DoAndReturn(func(_ any, keys []domain.Key) ([]domain.Order, error) {
		rows := make([]domain.Order, len(keys))
		for i, k := range keys {
			rows[i] = p.rows[k]
		}
		return rows, nil
	}).AnyTimes()
	p.gate.EXPECT().Tell(anything, anything).DoAndReturn(func(_ any, fates []domain.Fate) []port.TellOutcome {
		outcomes := make([]port.TellOutcome, len(fates))
		for i, f := range fates {
			p.told, outcomes[i] = append(p.told, f.Key), port.TellDone
		}
		return outcomes
	}).AnyTimes()
	p.outbox.EXPECT().MarkTold(anything, anything).DoAndReturn(func(_ any, orders []domain.Order) error {
		p.marked += len(orders)
		return nil
	}).AnyTimes()
}

// quietly adds the answers that single tests give themselves.
func (p *relayParts) quietly() *relayParts {
	anything := gomock.Any()
	p.catalog.EXPECT().List(anything, anything, anything).DoAndReturn(func(_ any, after string, limit int) ([]domain.Stock, error) {
		if p.each != nil {
			p.each(int(time.Since(p.start) / time.Second))
		}
		var page []domain.Stock
		for _, s := range p.stocks {
			if s.Product() > after && len(page) < limit {
				page = append(page, s)
			}
		}
		return page, nil
	}).AnyTimes()
	p.flows.EXPECT().Claim(anything, anything, anything, anything).Return(true, nil).AnyTimes()
	p.outbox.EXPECT().Untold(anything, anything, anything, anything).DoAndReturn(
		func(_ any, _ time.Duration, after string, limit int) ([]domain.Order, error) {
			var page []domain.Order
			for _, o := range p.untold {
				if o.ID() > after && len(page) < limit {
					page = append(page, o)
				}
			}
			return page, nil
		}).AnyTimes()
	return p
}

func (p *relayParts) page(_ any, product string, after int64, limit int) ([]domain.Flow, error) {
	var page []domain.Flow
	for _, f := range p.open[product] {
		if f.Sequence() > after && len(page) < limit {
			page = append(page, f)
		}
	}
	return page, nil
}

// sells puts an open product with open flows of the sequences 1 to n there.
func (p *relayParts) sells(product string, n int) {
	p.stocks = append(p.stocks, stockIn(product, domain.SaleOpen))
	p.views[product] = &port.GateView{Product: product, Loaded: true, SameServer: true, Epoch: 3, Sequence: int64(n)}
	for i := range n {
		p.open[product] = append(p.open[product], flowIn(keyIn(product, fmt.Sprintf("%s-%d", product, i+1)), domain.FlowDeducted, int64(i+1)))
	}
}

// runFor runs the relay inside a bubble.
func (p *relayParts) runFor(t *testing.T, d time.Duration) {
	t.Helper()
	if err := p.relay.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(d)
	synctest.Wait()
	stopRunner(t, p.relay)
}

func (p *relayParts) sentTokens() map[string]int {
	count := map[string]int{}
	for _, s := range p.sent {
		for _, token := range s.tokens {
			count[token]++
		}
	}
	return count
}

func inBubble(t *testing.T, name string, run func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, run)
	})
}

func TestRelaySendsAFlowAgainOnceItIsOldByItsOwnClock(t *testing.T) {
	t.Parallel()
	inBubble(t, "not before", func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 2)
		p.runFor(t, 4900*time.Millisecond)
		if len(p.sent) > 0 {
			t.Errorf("sent %v", p.sent)
		}
	})
	inBubble(t, "then, all products in one message", func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 2)
		p.sells("q", 1)
		p.runFor(t, 5500*time.Millisecond)
		if len(p.sent) != 1 || p.sent[0].second != 5 || len(p.sent[0].tokens) != 3 {
			t.Errorf("sent %v", p.sent)
		}
	})
	inBubble(t, "only those that are old", func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 1)
		p.each = func(second int) {
			if second == 3 {
				p.views["p"].Sequence = 2
				p.open["p"] = append(p.open["p"], flowIn(keyIn("p", "young"), domain.FlowDeducted, 2))
			}
		}
		p.runFor(t, 7500*time.Millisecond)
		if got := p.sentTokens(); got["p-1"] != 1 || got["young"] != 0 {
			t.Errorf("sent %v", p.sent)
		}
	})
	inBubble(t, "a gate that was rebuilt starts anew", func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 1)
		p.each = func(second int) {
			if second == 5 {
				p.views["p"].Epoch = 4
			}
		}
		p.runFor(t, 9500*time.Millisecond)
		if len(p.sent) > 0 {
			t.Errorf("sent %v", p.sent)
		}
	})
}

func TestRelayWaitsLongerBeforeEachFurtherTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 1)
		p.runFor(t, 100*time.Second)
		if n := len(p.sent); n < 5 || n > 14 { // pauses of 2.5–5, 5–10, then 10–20 seconds
			t.Fatalf("sent %d times: %v", n, p.sent)
		}
		for i := 3; i < len(p.sent); i++ {
			if gap := p.sent[i].second - p.sent[i-1].second; gap < 9 || gap > 22 {
				t.Errorf("a pause of %d s before try %d", gap, i+1)
			}
		}
	})
}

func TestRelayTellsAFlowThatHasARowAndSendsItNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 2)
		decided := p.open["p"][0].Key()
		p.rows[decided] = orderIn(decided, domain.OrderConfirmed)
		p.runFor(t, 5500*time.Millisecond)
		if got := p.sentTokens(); got["p-1"] != 0 || got["p-2"] != 1 {
			t.Errorf("sent %v", p.sent)
		}
		if len(p.told) != 1 || p.told[0] != decided || p.marked != 1 {
			t.Errorf("told %v, marked %d", p.told, p.marked)
		}
	})
}

func TestRelayStopsARoundAtTheFirstUnknownAndBeginsTheNextWithOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := relayWith(t, func(c *application.RelayConfig) { c.SendMax = 2 }).quietly()
		p.result = port.SendUnknown
		p.sells("p", 4)
		p.runFor(t, 6500*time.Millisecond)
		if len(p.sent) != 2 || p.sent[0].tokens[0] != "p-1" || p.sent[1].tokens[0] != "p-3" {
			t.Errorf("sent %v", p.sent)
		}
	})
}

func TestRelayHoldsOffWhileTheConsumerHasEnoughToDo(t *testing.T) {
	t.Parallel()
	inBubble(t, "large", func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 1)
		p.lag = port.Backlog{Known: true, Messages: 100_000}
		p.runFor(t, 10*time.Second)
		if len(p.sent) > 0 {
			t.Errorf("sent %v", p.sent)
		}
	})
	inBubble(t, "growing", func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 1)
		p.each = func(second int) {
			p.lag = port.Backlog{Known: true, Messages: 600 + 100*int64(second)}
		}
		p.runFor(t, 10*time.Second)
		if len(p.sent) > 0 {
			t.Errorf("sent %v", p.sent)
		}
	})
	inBubble(t, "not known", func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		p.sells("p", 1)
		p.lag = port.Backlog{Messages: 100_000}
		p.runFor(t, 5500*time.Millisecond)
		if len(p.sent) != 1 {
			t.Errorf("sent %v", p.sent)
		}
	})
}

func TestRelayLeavesAProductToTheHolderOfItsClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := relayWith(t, nil)
		p.flows.EXPECT().Claim(gomock.Any(), "mine", gomock.Any(), 5*time.Second).Return(true, nil).AnyTimes()
		p.flows.EXPECT().Claim(gomock.Any(), "other", gomock.Any(), gomock.Any()).Return(false, nil).MinTimes(1)
		p.quietly()
		p.sells("mine", 1)
		p.sells("other", 1)
		p.runFor(t, 5500*time.Millisecond)
		if got := p.sentTokens(); got["mine-1"] != 1 || got["other-1"] != 0 {
			t.Errorf("sent %v", p.sent)
		}
	})
}

func TestRelaySuspectsAProductOnSaleWhoseGateHasForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := relayWith(t, nil).quietly()
		for _, product := range []string{"fine", "lost", "rewound"} {
			p.sells(product, 0)
		}
		p.views["lost"].Loaded, p.views["rewound"].Rewound = false, true
		p.stocks = append(p.stocks, stockIn("shut", domain.SaleSuspended)) // has no view: it is not looked at
		p.runFor(t, 500*time.Millisecond)
		if got := fmt.Sprint(p.suspects.products()); got != "[lost rewound]" {
			t.Errorf("suspected %s", got)
		}
	})
}

func TestRelayLooksAtEveryProductInTurnAndAtEveryFlowOfOne(t *testing.T) {
	t.Parallel()
	inBubble(t, "products", func(t *testing.T) {
		p := relayWith(t, func(c *application.RelayConfig) { c.ProductsMax = 2 }).quietly()
		for i := range 5 {
			p.sells(fmt.Sprintf("p%d", i), 1)
		}
		p.runFor(t, 12*time.Second)
		if got := p.sentTokens(); len(got) != 5 {
			t.Errorf("sent %v", got)
		}
	})
	inBubble(t, "flows", func(t *testing.T) {
		p := relayWith(t, func(c *application.RelayConfig) { c.FlowsMax = 3 }).quietly()
		p.sells("p", 10)
		p.runFor(t, 9500*time.Millisecond)
		if got := p.sentTokens(); len(got) != 10 {
			t.Errorf("flows that stay open stand before others: sent %v", p.sent)
		}
	})
	inBubble(t, "flows of many products", func(t *testing.T) {
		p := relayWith(t, func(c *application.RelayConfig) { c.FlowsMax = 3 }).quietly()
		p.sells("a", 5)
		p.sells("b", 2)
		p.runFor(t, 15*time.Second)
		if got := p.sentTokens(); len(got) != 7 {
			t.Errorf("sent %v", p.sent)
		}
	})
}

func TestRelayTellsUntoldRowsInPages(t *testing.T) {
	t.Parallel()
	inBubble(t, "all of them", func(t *testing.T) {
		p := relayWith(t, func(c *application.RelayConfig) { c.PageMax, c.PagesMax = 3, 2 }).quietly()
		for i := range 8 {
			p.untold = append(p.untold, orderIn(keyIn("p", fmt.Sprintf("t%d", i)), domain.OrderConfirmed))
		}
		p.runFor(t, 500*time.Millisecond) // two pages of three
		if p.marked != 6 {
			t.Errorf("marked %d in one round, want 6", p.marked)
		}
		seen := map[domain.Key]bool{}
		for _, k := range p.told {
			seen[k] = true
		}
		if len(seen) != 6 {
			t.Errorf("told %v", p.told)
		}
	})
	inBubble(t, "the rest in the next round", func(t *testing.T) {
		p := relayWith(t, func(c *application.RelayConfig) { c.PageMax, c.PagesMax = 3, 2 }).quietly()
		for i := range 8 {
			p.untold = append(p.untold, orderIn(keyIn("p", fmt.Sprintf("t%d", i)), domain.OrderConfirmed))
		}
		p.runFor(t, 1500*time.Millisecond)
		seen := map[domain.Key]bool{}
		for _, k := range p.told {
			seen[k] = true
		}
		if len(seen) != 8 {
			t.Errorf("told %v", p.told)
		}
	})
}

func TestRelaySurvivesOutagesAndPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := relayWith(t, nil)
		p.outbox.EXPECT().Untold(gomock.Any(), 2*time.Second, "", gomock.Any()).Return(nil, domain.ErrUnavailable)
		gomock.InOrder(
			p.catalog.EXPECT().List(gomock.Any(), "", gomock.Any()).Return(nil, errors.New("away")),
			p.catalog.EXPECT().List(gomock.Any(), "", gomock.Any()).Do(func(context.Context, string, int) { panic("boom") }),
		)
		p.quietly()
		p.sells("p", 1)
		p.runFor(t, 8500*time.Millisecond)
		if len(p.sent) != 1 {
			t.Errorf("sent %v", p.sent)
		}
	})
}
