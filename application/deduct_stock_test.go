package application_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

// sellable is a lease on every product but those named.
type sellable map[string]bool

func (s sellable) MaySell(product string) bool { return !s[product] }

type laneParts struct {
	gate     *portmock.MockGate
	sender   *portmock.MockSender
	catalog  *portmock.MockCatalog
	intake   *application.Intake
	suspects *suspectList
	deduct   *application.DeductStock
}

// laneWith starts a lane on mocks; nothing may be sold of the product "shut".
func laneWith(t *testing.T, change func(*application.DeductConfig)) laneParts {
	t.Helper()
	ctrl := gomock.NewController(t)
	p := laneParts{gate: portmock.NewMockGate(ctrl), sender: portmock.NewMockSender(ctrl),
		catalog: portmock.NewMockCatalog(ctrl), intake: openIntake(), suspects: &suspectList{}}
	p.sender.EXPECT().BatchBytesMax().Return(30_000).AnyTimes()
	p.sender.EXPECT().BytesOf(gomock.Any()).Return(100).AnyTimes()
	cfg := application.DefaultDeductConfig()
	if change != nil {
		change(&cfg)
	}
	p.deduct = application.NewDeductStock(p.gate, p.sender, p.catalog, sellable{"shut": true}, p.intake, p.suspects,
		system.Clock{}, system.NewIDs(), cfg, quietLog)
	startRunner(t, p.deduct)
	return p
}

func openIntake() *application.Intake {
	return application.NewIntake(application.DefaultIntakeConfig())
}

// answers makes the gate answer every item alike.
func (p laneParts) answers(r port.DeductReply) {
	p.gate.EXPECT().Deduct(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(
		func(_ context.Context, _ time.Time, items []port.DeductItem) []port.DeductReply {
			return allReplies(len(items), r)
		}).AnyTimes()
}

// accepts makes the gate accept everything.
func (p laneParts) accepts() {
	p.gate.EXPECT().Deduct(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(
		func(_ context.Context, _ time.Time, items []port.DeductItem) []port.DeductReply {
			return acceptAll(items)
		}).AnyTimes()
}

func acceptAll(items []port.DeductItem) []port.DeductReply {
	replies := make([]port.DeductReply, len(items))
	for i, item := range items {
		replies[i] = port.DeductReply{Outcome: port.DeductAccepted, Flow: flowIn(item.Command.Key(), domain.FlowDeducted, 7), Remaining: 4}
	}
	return replies
}

func (p laneParts) sends(result port.SendResult, err error) {
	p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).Return(result, err).AnyTimes()
}

// countedLease lets so many questions about a product be answered with yes.
type countedLease struct{ left int }

func (l *countedLease) MaySell(string) bool { l.left--; return l.left >= 0 }

// A rebuild may have drained and finished while the message was on its way.
func TestNobodyIsToldAcceptedBeyondTheLease(t *testing.T) {
	t.Parallel()
	for within, want := range map[int]domain.Code{1: domain.CodeOutcomeUnknown, 2: ""} {
		p := laneWith(t, nil)
		p.accepts()
		p.sends(port.SendCommitted, nil)
		deduct := application.NewDeductStock(p.gate, p.sender, p.catalog, &countedLease{within}, openIntake(), p.suspects,
			system.Clock{}, system.NewIDs(), application.DefaultDeductConfig(), quietLog)
		startRunner(t, deduct)
		if _, err := deduct.Deduct(t.Context(), commandFor(keyIn("p", "t"))); err != nil && domain.CodeOf(err) != want || err == nil && want != "" {
			t.Errorf("%d looks at the lease: %v", within, err)
		}
	}
}

func TestDeductAnswersEachOutcomeOfTheGate(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	flow := flowIn(k, domain.FlowDeducted, 7)
	for name, c := range map[string]struct {
		reply   port.DeductReply
		code    domain.Code
		suspect bool
	}{
		"unknown":          {port.DeductReply{Outcome: port.DeductUnknown, Err: errors.New("torn")}, domain.CodeOutcomeUnknown, false},
		"away":             {port.DeductReply{Outcome: port.DeductAway, Err: errors.New("refused")}, domain.CodeBusy, false},
		"rewound":          {port.DeductReply{Outcome: port.DeductRewound}, domain.CodeRebuilding, true},
		"conflict":         {port.DeductReply{Outcome: port.DeductConflict, Flow: flow}, domain.CodeTokenReused, false},
		"refused":          {port.DeductReply{Outcome: port.DeductRefused}, domain.CodeTokenRefused, false},
		"not ready":        {port.DeductReply{Outcome: port.DeductNotReady}, domain.CodeRebuilding, false},
		"closed":           {port.DeductReply{Outcome: port.DeductClosed}, domain.CodeSaleClosed, false},
		"limit":            {port.DeductReply{Outcome: port.DeductLimit}, domain.CodeLimitReached, false},
		"not enough":       {port.DeductReply{Outcome: port.DeductNotEnough}, domain.CodeStockNotEnough, false},
		"no known outcome": {port.DeductReply{Outcome: 200}, domain.CodeOutcomeUnknown, false},
		"repeat of a tombstone": {port.DeductReply{Outcome: port.DeductRepeat, Flow: flowIn(k, domain.FlowRefused, 7)},
			domain.CodeTokenRefused, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := laneWith(t, nil)
			p.answers(c.reply)
			_, err := p.deduct.Deduct(t.Context(), commandFor(k))
			wantCode(t, err, c.code)
			if p.suspects.has("p") != c.suspect {
				t.Errorf("suspected %v, want %v", p.suspects.products(), c.suspect)
			}
		})
	}
}

func TestDeductAnswersARepeatWithTheOrderAsItIs(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	for state, status := range map[domain.FlowState]string{domain.FlowDeducted: "pending", domain.FlowSettled: "confirmed", domain.FlowReleased: "cancelled"} {
		p := laneWith(t, nil)
		p.sends(port.SendCommitted, nil)
		p.answers(port.DeductReply{Outcome: port.DeductRepeat, Flow: flowIn(k, state, 7), Remaining: 2})
		r, err := p.deduct.Deduct(t.Context(), commandFor(k))
		if err != nil || !r.Replayed || r.Order.Status != status || r.Order.Key != k || r.Remaining != 2 || r.Order.CreatedAt.IsZero() {
			t.Errorf("%s: receipt %+v, error %v", state, r, err)
		}
	}
}

// The second click of a buyer whose first is still on its way to the broker: a gate and an instance that
// are lost together at that moment take the purchase with them.
func TestARepeatOfAnOpenPurchaseIsPromisedOnlyWhenItsMessageIsCommitted(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	p := laneWith(t, nil)
	p.answers(port.DeductReply{Outcome: port.DeductRepeat, Flow: flowIn(k, domain.FlowDeducted, 7)})
	first := p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).Return(port.SendUnknown, errors.New("flush timeout"))
	p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).After(first).DoAndReturn(func(_ context.Context, b domain.Batch) (port.SendResult, error) {
		if len(b.Items) != 1 || b.Items[0] != itemOf(k) {
			t.Errorf("sent %+v", b)
		}
		return port.SendCommitted, nil
	})
	_, err := p.deduct.Deduct(t.Context(), commandFor(k))
	wantCode(t, err, domain.CodeOutcomeUnknown)
	r, err := p.deduct.Deduct(t.Context(), commandFor(k))
	if err != nil || !r.Replayed || r.Order.Status != application.OrderPending {
		t.Errorf("receipt %+v, error %v", r, err)
	}
}

func TestAcceptedIsPromisedOnlyWhenTheMessageIsCommitted(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	p := laneWith(t, nil)
	p.accepts()
	p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, b domain.Batch) (port.SendResult, error) {
		if b.Kind != domain.BatchDeduct || b.Plain || b.ID == "" || len(b.Items) != 1 || b.Items[0] != itemOf(k) {
			t.Errorf("sent %+v", b)
		}
		return port.SendCommitted, nil
	})
	r, err := p.deduct.Deduct(t.Context(), commandFor(k))
	if err != nil || r.Replayed || r.Order.Status != "pending" || r.Order.Key != k || r.Remaining != 4 || r.Order.Quantity != 1 {
		t.Errorf("receipt %+v, error %v", r, err)
	}
	p.sends(port.SendUnknown, errors.New("flush timeout"))
	_, err = p.deduct.Deduct(t.Context(), commandFor(k))
	wantCode(t, err, domain.CodeOutcomeUnknown)
}

func TestDeductAsksNoGateForAProductThatMayNotBeSold(t *testing.T) {
	t.Parallel()
	p := laneWith(t, nil) // a call of the gate would fail the test
	_, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("shut", "t")))
	wantCode(t, err, domain.CodeRebuilding)
}

func TestAProductWithoutARecordIsLookedUpOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := laneWith(t, nil)
		p.answers(port.DeductReply{Outcome: port.DeductNotLoaded})
		p.catalog.EXPECT().Stocks(gomock.Any(), []string{"ghost"}).Return([]domain.Stock{{}}, nil).Times(2)
		p.catalog.EXPECT().Stocks(gomock.Any(), []string{"p"}).Return([]domain.Stock{stockIn("p", domain.SaleOpen)}, nil)
		for range 50 {
			_, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("ghost", "t")))
			wantCode(t, err, domain.CodeProductNotFound)
		}
		time.Sleep(1100 * time.Millisecond)
		_, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("ghost", "t")))
		wantCode(t, err, domain.CodeProductNotFound)
		if len(p.suspects.products()) > 0 {
			t.Errorf("suspected %v", p.suspects.products())
		}
		_, err = p.deduct.Deduct(t.Context(), commandFor(keyIn("p", "t")))
		wantCode(t, err, domain.CodeRebuilding)
		if !p.suspects.has("p") {
			t.Error("a product that the database knows is not suspected")
		}
		stopRunner(t, p.deduct)
	})
}

func TestAProductThatCannotBeLookedUpIsNeverCalledUnknown(t *testing.T) {
	t.Parallel()
	p := laneWith(t, nil)
	p.answers(port.DeductReply{Outcome: port.DeductNotLoaded})
	p.catalog.EXPECT().Stocks(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable)
	_, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("p", "t")))
	wantCode(t, err, domain.CodeRebuilding)
}

// held is a gate or a sender that lets one call through at a time, when told to.
type held struct {
	entered chan int // sizes of the calls
	pass    chan struct{}
}

func newHeld() held { return held{make(chan int, 100), make(chan struct{}, 100)} }

func (h held) call(n int) {
	h.entered <- n
	<-h.pass
}

func (p laneParts) holdGate(h held, answer func([]port.DeductItem) []port.DeductReply) {
	p.gate.EXPECT().Deduct(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(
		func(_ context.Context, _ time.Time, items []port.DeductItem) []port.DeductReply {
			h.call(len(items))
			return answer(items)
		}).AnyTimes()
}

// buy asks in the background, and gives the answer's error.
func (p laneParts) buy(ctx context.Context, token string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := p.deduct.Deduct(ctx, commandFor(keyIn("p", token)))
		done <- err
	}()
	return done
}

func TestTheNextBatchTakesAllThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := laneWith(t, func(c *application.DeductConfig) { c.BatchMax = 40 }), newHeld()
		p.holdGate(h, acceptAll)
		p.sends(port.SendCommitted, nil)
		answers := []<-chan error{p.buy(t.Context(), "first")}
		if n := <-h.entered; n != 1 {
			t.Fatalf("an idle lane waits for %d", n)
		}
		for i := range 50 {
			answers = append(answers, p.buy(t.Context(), fmt.Sprintf("t%d", i)))
		}
		synctest.Wait()
		if s := p.deduct.Stats(); s.Waiting != 50 {
			t.Errorf("%d wait, want 50", s.Waiting)
		}
		for _, want := range []int{40, 10} {
			h.pass <- struct{}{}
			if n := <-h.entered; n != want {
				t.Errorf("the batch has %d, want %d", n, want)
			}
		}
		h.pass <- struct{}{}
		for _, a := range answers {
			if err := <-a; err != nil {
				t.Error(err)
			}
		}
		if s := p.deduct.Stats(); s.Batches != 3 || s.Commands != 51 || s.SentFlows != 51 || s.Waiting != 0 {
			t.Errorf("stats %+v", s)
		}
		stopRunner(t, p.deduct)
	})
}

func TestAFullQueueIsBusyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := laneWith(t, func(c *application.DeductConfig) { c.QueueMax = 2 }), newHeld()
		p.holdGate(h, acceptAll)
		p.sends(port.SendCommitted, nil)
		answers := []<-chan error{p.buy(t.Context(), "a")}
		<-h.entered
		answers = append(answers, p.buy(t.Context(), "b"), p.buy(t.Context(), "c"))
		synctest.Wait()
		_, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("p", "d")))
		wantCode(t, err, domain.CodeBusy)
		h.pass <- struct{}{}
		h.pass <- struct{}{}
		for _, a := range answers {
			if err := <-a; err != nil {
				t.Error(err)
			}
		}
		stopRunner(t, p.deduct)
	})
}

func TestACallerWhoLeavesBeforeTheDeductTakesThePurchaseAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := laneWith(t, nil), newHeld()
		p.holdGate(h, acceptAll)
		p.sends(port.SendCommitted, nil)
		early, leaveEarly := context.WithCancel(t.Context())
		late, leaveLate := context.WithCancel(t.Context())
		lateAnswer := p.buy(late, "late")
		<-h.entered
		earlyAnswer, stays := p.buy(early, "early"), p.buy(t.Context(), "stays")
		synctest.Wait()
		leaveEarly()
		leaveLate()
		wantCode(t, <-earlyAnswer, domain.CodeBusy)
		wantCode(t, <-lateAnswer, domain.CodeOutcomeUnknown)
		h.pass <- struct{}{}
		if n := <-h.entered; n != 1 {
			t.Errorf("the gate was asked for %d, want the one who stays", n)
		}
		h.pass <- struct{}{}
		if err := <-stays; err != nil {
			t.Error(err)
		}
		stopRunner(t, p.deduct)
		if s := p.deduct.Stats(); s.SentFlows != 2 { // late's flow was sent though late had gone
			t.Errorf("stats %+v", s)
		}
	})
}

func TestRefusalsDoNotWaitForTheSenders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := laneWith(t, nil), newHeld()
		var sold atomic.Bool
		p.gate.EXPECT().Deduct(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(
			func(_ context.Context, _ time.Time, items []port.DeductItem) []port.DeductReply {
				if sold.CompareAndSwap(false, true) {
					return acceptAll(items)
				}
				return allReplies(len(items), port.DeductReply{Outcome: port.DeductNotEnough})
			}).AnyTimes()
		p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).DoAndReturn(func(ctx context.Context, b domain.Batch) (port.SendResult, error) {
			h.call(len(b.Items))
			return port.SendCommitted, ctx.Err()
		})
		winner := p.buy(t.Context(), "a")
		<-h.entered
		wantCode(t, <-p.buy(t.Context(), "b"), domain.CodeStockNotEnough)
		h.pass <- struct{}{}
		if err := <-winner; err != nil {
			t.Error(err)
		}
		stopRunner(t, p.deduct)
	})
}

func TestAMessageEndsByBytesAsWellAsByCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*application.DeductConfig)
		want   []int
	}{
		"by bytes": {func(c *application.DeductConfig) { c.SendBytesMax = 350 }, []int{1, 3, 3, 1}}, // 100 bytes each
		"by count": {func(c *application.DeductConfig) { c.SendMax = 4 }, []int{1, 4, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, h := laneWith(t, c.change), newHeld()
				p.accepts()
				p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, b domain.Batch) (port.SendResult, error) {
					h.call(len(b.Items))
					return port.SendCommitted, nil
				}).AnyTimes()
				answers := []<-chan error{p.buy(t.Context(), "first")}
				synctest.Wait()
				for i := range 7 {
					answers = append(answers, p.buy(t.Context(), fmt.Sprintf("t%d", i)))
				}
				synctest.Wait()
				for _, want := range c.want {
					if n := <-h.entered; n != want {
						t.Errorf("a message of %d, want %d", n, want)
					}
					h.pass <- struct{}{}
				}
				for _, a := range answers {
					if err := <-a; err != nil {
						t.Error(err)
					}
				}
				stopRunner(t, p.deduct)
			})
		})
	}
}

func TestTheHandOverHoldsBackTheDeduct(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := laneWith(t, func(c *application.DeductConfig) { c.HandOverMax, c.BatchMax, c.SendMax = 2, 1, 1 }), newHeld()
		p.accepts()
		p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, b domain.Batch) (port.SendResult, error) {
			h.call(len(b.Items))
			return port.SendCommitted, nil
		}).AnyTimes()
		var answers []<-chan error
		for i := range 10 {
			answers = append(answers, p.buy(t.Context(), fmt.Sprintf("t%d", i)))
		}
		synctest.Wait()
		// One is at the sender, two wait for it, one stands in the door; the rest is not deducted.
		if s := p.deduct.Stats(); s.Commands != 4 {
			t.Errorf("%d are deducted, want 4", s.Commands)
		}
		for range 10 {
			h.pass <- struct{}{}
		}
		for _, a := range answers {
			if err := <-a; err != nil {
				t.Error(err)
			}
		}
		stopRunner(t, p.deduct)
	})
}

func TestASendThatHangsIsUnknownAfterItsTimeAndNotTheCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := laneWith(t, nil)
		p.accepts()
		var sent context.Context
		p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).DoAndReturn(func(ctx context.Context, _ domain.Batch) (port.SendResult, error) {
			sent = ctx
			<-ctx.Done()
			return port.SendUnknown, ctx.Err()
		})
		ctx, leave := context.WithCancel(t.Context())
		answer := p.buy(ctx, "a")
		synctest.Wait()
		leave()
		wantCode(t, <-answer, domain.CodeOutcomeUnknown)
		if sent.Err() != nil {
			t.Error("the caller's leaving tore the message")
		}
		stopRunner(t, p.deduct) // waits for the send's own limit
	})
}

func TestAPanicInAStageEndsNeitherTheLaneNorAWait(t *testing.T) {
	t.Parallel()
	p := laneWith(t, nil)
	boom := true
	p.gate.EXPECT().Deduct(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(
		func(_ context.Context, _ time.Time, items []port.DeductItem) []port.DeductReply {
			if boom {
				boom = false
				panic("gate")
			}
			return acceptAll(items)
		}).AnyTimes()
	p.sender.EXPECT().Send(gomock.Any(), gomock.Any()).Do(func(context.Context, domain.Batch) { panic("sender") })
	for range 2 { // the gate's panic, then the sender's
		_, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("p", "t")))
		wantCode(t, err, domain.CodeOutcomeUnknown)
	}
	p.sends(port.SendCommitted, nil)
	if _, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("p", "t"))); err != nil {
		t.Error(err)
	}
}

func TestStopFinishesWhatWaitsAndRefusesWhatIsNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, h := laneWith(t, nil), newHeld()
		p.holdGate(h, acceptAll)
		p.sends(port.SendCommitted, nil)
		answers := []<-chan error{p.buy(t.Context(), "a")}
		<-h.entered
		answers = append(answers, p.buy(t.Context(), "b"))
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.deduct.Stop(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stop that could not end says %v", err)
		}
		_, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("p", "c")))
		wantCode(t, err, domain.CodeBusy)
		h.pass <- struct{}{}
		h.pass <- struct{}{}
		for _, a := range answers {
			if err := <-a; err != nil {
				t.Error(err)
			}
		}
		stopRunner(t, p.deduct)
		stopRunner(t, p.deduct)
	})
}

func TestALaneThatIsNotStartedIsBusyAndStops(t *testing.T) {
	t.Parallel()
	sender := portmock.NewMockSender(gomock.NewController(t))
	sender.EXPECT().BatchBytesMax().Return(30_000)
	d := application.NewDeductStock(nil, sender, nil, sellable{}, openIntake(), &suspectList{}, system.Clock{}, system.NewIDs(),
		application.DefaultDeductConfig(), quietLog)
	_, err := d.Deduct(t.Context(), commandFor(keyIn("p", "t")))
	wantCode(t, err, domain.CodeBusy)
	stopRunner(t, d)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = d.Deduct(t.Context(), commandFor(keyIn("p", "t")))
	wantCode(t, err, domain.CodeBusy)
}

// shelf is a gate of one product as a plain map; of the gate's methods it has Deduct alone.
type shelf struct {
	port.Gate
	mu        sync.Mutex
	remaining int64
	flows     map[domain.Key]domain.Flow
}

func (s *shelf) Deduct(_ context.Context, _ time.Time, items []port.DeductItem) []port.DeductReply {
	s.mu.Lock()
	defer s.mu.Unlock()
	replies := make([]port.DeductReply, len(items))
	for i, item := range items {
		k := item.Command.Key()
		switch flow, known := s.flows[k]; {
		case known:
			replies[i] = port.DeductReply{Outcome: port.DeductRepeat, Flow: flow}
		case s.remaining == 0:
			replies[i] = port.DeductReply{Outcome: port.DeductNotEnough}
		default:
			s.remaining--
			s.flows[k] = flowIn(k, domain.FlowDeducted, int64(len(s.flows)+1))
			replies[i] = port.DeductReply{Outcome: port.DeductAccepted, Flow: s.flows[k]}
		}
	}
	return replies
}

// post is a sender that loses one message in eight from sight.
type post struct {
	mu   sync.Mutex
	seen map[domain.Key]int
}

func (p *post) BatchBytesMax() int           { return 4000 }
func (p *post) BytesOf(domain.Deduction) int { return 100 }
func (p *post) Send(_ context.Context, b domain.Batch) (port.SendResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, item := range b.Items {
		p.seen[item.Key]++
	}
	if rand.N(8) == 0 {
		return port.SendUnknown, errors.New("lost from sight")
	}
	return port.SendCommitted, nil
}

func TestLaneUnderStressSellsExactlyWhatThereIs(t *testing.T) {
	t.Parallel()
	const buyers, units = 4000, 700
	gate := &shelf{remaining: units, flows: map[domain.Key]domain.Flow{}}
	sender := &post{seen: map[domain.Key]int{}}
	cfg := application.DefaultDeductConfig()
	cfg.SendersMax, cfg.HandOverMax, cfg.BatchMax = 3, 64, 128
	d := application.NewDeductStock(gate, sender, nil, sellable{}, openIntake(), &suspectList{}, system.Clock{}, system.NewIDs(), cfg, quietLog)
	startRunner(t, d)
	var promised, unknown, refused, replayed, busy atomic.Int64
	var wg sync.WaitGroup
	for w := range 100 {
		wg.Go(func() {
			for i := range buyers / 100 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == 0 {
					time.AfterFunc(time.Duration(rand.N(2000))*time.Microsecond, cancel)
				}
				r, err := d.Deduct(ctx, commandFor(keyIn("p", fmt.Sprintf("w%d-%d", w, i-i%20/19)))) // one in twenty repeats
				cancel()
				switch domain.CodeOf(err) {
				case domain.CodeOutcomeUnknown:
					unknown.Add(1)
				case domain.CodeStockNotEnough:
					refused.Add(1)
				case domain.CodeBusy:
					busy.Add(1)
				default:
					if err != nil {
						t.Error(err)
					} else if r.Replayed {
						replayed.Add(1)
					} else {
						promised.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	stopRunner(t, d)
	if sum := promised.Load() + unknown.Load() + refused.Load() + replayed.Load() + busy.Load(); sum != buyers {
		t.Errorf("%d answers for %d buyers", sum, buyers)
	}
	if gate.remaining != 0 || len(gate.flows) != units || len(sender.seen) != units {
		t.Errorf("remaining %d, flows %d, sent %d, want 0, %d, %d", gate.remaining, len(gate.flows), len(sender.seen), units, units)
	}
	var sent int64
	for k, n := range sender.seen {
		if sent += int64(n); gate.flows[k].IsZero() {
			t.Errorf("%s was sent and never taken", k)
		}
	}
	if p := promised.Load(); p > units || p+unknown.Load() < units {
		t.Errorf("%d promised and %d unknown of %d units", p, unknown.Load(), units)
	}
	if s := d.Stats(); s.SentFlows != sent || s.Waiting != 0 {
		t.Errorf("stats %+v", s)
	}
}
