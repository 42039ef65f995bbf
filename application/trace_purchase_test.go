package application_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// traced is what the parts say in one case; a nil error is an answer.
type traced struct {
	reply          port.CheckReply
	gateErr        error
	row            domain.Order
	rowErr         error
	state          domain.SaleState // of the product; zero: there is none
	moves          []port.Movement
	movesErr       error
	parked         []port.Parked
	again          int
	lag            int64
	lagUnknown     bool
	age            time.Duration // of the flow
	gateAfterwards *port.CheckReply
}

func (c traced) trace(t *testing.T, k domain.Key) (application.TraceView, error) {
	t.Helper()
	ctrl := gomock.NewController(t)
	gate, ledger, catalog := portmock.NewMockGate(ctrl), portmock.NewMockLedger(ctrl), portmock.NewMockCatalog(ctrl)
	book, parking := portmock.NewMockBook(ctrl), portmock.NewMockParking(ctrl)
	backlog, clock := portmock.NewMockBacklogReader(ctrl), portmock.NewMockClock(ctrl)
	asked := gate.EXPECT().Check(gomock.Any(), []domain.Key{k}).Return([]port.CheckReply{c.reply}, c.gateErr)
	if c.gateAfterwards != nil {
		gate.EXPECT().Check(gomock.Any(), []domain.Key{k}).After(asked).Return([]port.CheckReply{*c.gateAfterwards}, nil)
	} else {
		asked.MaxTimes(2)
	}
	ledger.EXPECT().Fates(gomock.Any(), []domain.Key{k}).Return([]domain.Order{c.row}, c.rowErr)
	stock := domain.Stock{}
	if c.state != 0 {
		stock = stockIn(k.Product(), c.state)
	}
	catalog.EXPECT().Stocks(gomock.Any(), []string{k.Product()}).Return([]domain.Stock{stock}, nil).MaxTimes(1)
	book.EXPECT().Movements(gomock.Any(), []domain.Order{c.row}).Return([][]port.Movement{c.moves}, c.movesErr).MaxTimes(1)
	parking.EXPECT().FindParked(gomock.Any(), port.ParkReason(""), k.Product(), "", gomock.Any()).Return(c.parked, nil).MaxTimes(1)
	backlog.EXPECT().Backlog(gomock.Any()).Return(port.Backlog{Known: !c.lagUnknown, Messages: c.lag}).MaxTimes(1)
	clock.EXPECT().Now().Return(time.UnixMilli(1_700_000_000_000).Add(c.age)).MaxTimes(1)
	decode := func(body []byte) (domain.Batch, error) {
		if string(body) == "torn" {
			return domain.Batch{}, domain.ErrInvalidRequest
		}
		return batchOf(itemOf(k)), nil
	}
	sentAgain := func(domain.Key) (int, time.Time) { return c.again, time.Now().Add(8 * time.Second) }
	relay := application.DefaultRelayConfig()
	eyes := application.StockEyes{Gate: gate, Ledger: ledger, Catalog: catalog}
	return application.NewTracePurchase(eyes, book, parking, backlog, decode, sentAgain, clock,
		application.DefaultTraceConfig(relay)).Trace(t.Context(), k)
}

// told is the steps in a line: name, and the first letter of its state.
func told(v application.TraceView) string {
	var words []string
	for _, s := range v.Steps {
		words = append(words, s.Step+":"+string(s.State[0]))
	}
	return strings.Join(words, " ")
}

func reply(k domain.Key, s domain.FlowState) port.CheckReply {
	if s == domain.FlowAbsent {
		return port.CheckReply{Readable: true}
	}
	return port.CheckReply{Flow: flowIn(k, s, 7), Readable: true}
}

func rowOf(k domain.Key, status domain.OrderStatus, told, fromBirth bool) domain.Order {
	return must(domain.NewOrder(domain.OrderFields{ID: "id", Key: k, Quantity: 1, Status: status, FromBirth: fromBirth,
		Epoch: 3, Sequence: 7, StockVersion: 9, GateTold: told, CreatedAt: time.UnixMilli(1_700_000_001_000)}))
}

// d done, w waiting, m missing, u unknown, s skipped.
func TestATraceTellsWhereAPurchaseIsAndWhatComesNext(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	sale := []port.Movement{{OpType: port.OpSale, Quantity: 1, At: time.UnixMilli(1_700_000_001_000)}}
	both := append(slices.Clone(sale), port.Movement{OpType: port.OpCancel, Quantity: 1, At: time.UnixMilli(1_700_000_002_000)})
	parked := func(reason port.ParkReason) []port.Parked {
		return []port.Parked{{ID: "x", Body: []byte("torn")}, {ID: "m1", Reason: reason, Detail: "why", Body: []byte("b"), ParkedAt: time.UnixMilli(1_700_000_001_000)}}
	}
	const open = domain.SaleOpen
	for name, c := range map[string]struct {
		traced
		steps, status, next string
		missing, unread     int
	}{
		"finished": {traced{reply: reply(k, domain.FlowSettled), row: rowOf(k, domain.OrderConfirmed, true, true), state: open, moves: sale},
			"deducted:d stored:d committed:d delivered:d order-row:d stock-flow:d settled:d", "confirmed", "Nothing:", 0, 0},
		"just bought": {traced{reply: reply(k, domain.FlowDeducted), state: open, age: 10 * time.Millisecond},
			"deducted:d stored:u committed:u delivered:w order-row:w stock-flow:w settled:w", "pending", "in a moment", 4, 0},
		"waits for the relay": {traced{reply: reply(k, domain.FlowDeducted), state: open, age: 3 * time.Second},
			"deducted:d stored:u committed:u delivered:w order-row:w stock-flow:w settled:w", "pending", "sends it again in about 3 s", 4, 0},
		"sent again": {traced{reply: reply(k, domain.FlowDeducted), state: open, age: time.Minute, again: 2},
			"deducted:d stored:u committed:u delivered:w order-row:w stock-flow:w settled:w", "pending", "sent it again 2 times, and does so once more in about 8 s", 4, 0},
		"behind a backlog": {traced{reply: reply(k, domain.FlowDeducted), state: open, age: time.Minute, lag: 900},
			"deducted:d stored:u committed:u delivered:w order-row:w stock-flow:w settled:w", "pending", "900 messages", 4, 0},
		"suspended": {traced{reply: port.CheckReply{Flow: flowIn(k, domain.FlowDeducted, 7)}, state: domain.SaleSuspended},
			"deducted:d stored:u committed:u delivered:w order-row:w stock-flow:w settled:w", "pending", "being rebuilt", 4, 0},
		"untold": {traced{reply: reply(k, domain.FlowDeducted), row: rowOf(k, domain.OrderConfirmed, false, true), state: open, moves: sale},
			"deducted:d stored:d committed:d delivered:d order-row:d stock-flow:d settled:w", "confirmed", "tells the gate again, within 3 s", 1, 0},
		"told, and contradicted": {traced{reply: reply(k, domain.FlowAbsent), row: rowOf(k, domain.OrderConfirmed, true, true), state: open, moves: sale},
			"deducted:m stored:d committed:d delivered:d order-row:d stock-flow:d settled:m", "confirmed", "next reconciliation", 2, 0},
		"no stock flow row": {traced{reply: reply(k, domain.FlowSettled), row: rowOf(k, domain.OrderConfirmed, true, true), state: open},
			"deducted:d stored:d committed:d delivered:d order-row:d stock-flow:m settled:d", "confirmed", "Nothing:", 1, 0},
		"cancelled": {traced{reply: reply(k, domain.FlowReleased), row: rowOf(k, domain.OrderCancelled, true, false), state: open, moves: both},
			"deducted:d stored:d committed:d delivered:d order-row:d stock-flow:d given-back:d settled:d", "cancelled", "Nothing:", 0, 0},
		"cancelled from birth": {traced{reply: reply(k, domain.FlowReleased), row: rowOf(k, domain.OrderCancelled, true, true), state: open},
			"deducted:d stored:u committed:u delivered:u order-row:d stock-flow:s settled:d", "cancelled", "Nothing:", 0, 0},
		"parked": {traced{reply: reply(k, domain.FlowAbsent), state: open, parked: parked(port.ParkConflict)},
			"deducted:m stored:u committed:u delivered:d parked:w order-row:w stock-flow:w settled:w", "unknown", "parked message m1", 5, 0},
		"given up by the broker": {traced{reply: reply(k, domain.FlowDeducted), state: open, age: time.Second, parked: parked(port.ParkDeadLetter)},
			"deducted:d stored:u committed:u delivered:m parked:w order-row:w stock-flow:w settled:w", "pending", "sends it again in about 5 s", 5, 0},
		"the ledger went back": {traced{reply: reply(k, domain.FlowSettled), state: open},
			"deducted:d stored:u committed:u delivered:w order-row:m stock-flow:m settled:m", "confirmed", "gone back", 4, 0},
		"gate away": {traced{gateErr: domain.ErrUnavailable, row: rowOf(k, domain.OrderConfirmed, true, true), state: open, moves: sale},
			"deducted:u stored:d committed:d delivered:d order-row:d stock-flow:d settled:u", "confirmed", "could not be read", 0, 1},
		"gate forgotten": {traced{reply: port.CheckReply{}, state: domain.SaleSuspended},
			"deducted:u stored:u committed:u delivered:u order-row:u stock-flow:u settled:u", "unknown", "Not known", 0, 0},
		"ledger away": {traced{reply: reply(k, domain.FlowDeducted), rowErr: domain.ErrUnavailable},
			"deducted:d stored:u committed:u delivered:u order-row:u stock-flow:u settled:u", "pending", "Not known", 0, 1},
		"stock flow unread, lag unknown": {traced{reply: reply(k, domain.FlowSettled), row: rowOf(k, domain.OrderConfirmed, true, true), state: open,
			movesErr: domain.ErrUnavailable, lagUnknown: true},
			"deducted:d stored:d committed:d delivered:d order-row:d stock-flow:u settled:d", "confirmed", "Nothing:", 0, 2},
		"all away": {traced{gateErr: domain.ErrUnavailable, rowErr: domain.ErrUnavailable, lagUnknown: true},
			"deducted:u stored:u committed:u delivered:u order-row:u stock-flow:u settled:u", "unknown", "Not known", 0, 3},
		"settled between the looks": {traced{reply: reply(k, domain.FlowDeducted), gateAfterwards: new(reply(k, domain.FlowSettled)),
			row: rowOf(k, domain.OrderConfirmed, true, true), state: open, moves: sale},
			"deducted:d stored:d committed:d delivered:d order-row:d stock-flow:d settled:d", "confirmed", "Nothing:", 0, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			v, err := c.trace(t, k)
			if err != nil {
				t.Fatal(err)
			}
			if told(v) != c.steps || v.Status != c.status || !strings.Contains(v.Next, c.next) || len(v.Missing) != c.missing || len(v.Unread) != c.unread {
				t.Errorf("%s\n%s, missing %v, unread %v, next %q", told(v), v.Status, v.Missing, v.Unread, v.Next)
			}
			for _, s := range v.Steps {
				if s.Detail == "" || s.At != nil && s.State != application.TraceDone && s.Step != application.TraceParked {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

func TestATraceOfWhatNobodyKnowsIsAbsent(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	inBubble(t, "no such order", func(t *testing.T) {
		_, err := traced{reply: port.CheckReply{Readable: true}, state: domain.SaleOpen}.trace(t, k)
		wantCode(t, err, domain.CodeOrderNotFound)
	})
	inBubble(t, "no such product", func(t *testing.T) {
		_, err := traced{reply: port.CheckReply{}}.trace(t, k)
		wantCode(t, err, domain.CodeProductNotFound)
	})
}

func TestATraceShowsFlowAndRow(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	inBubble(t, "as they were written", func(t *testing.T) {
		v, err := traced{reply: reply(k, domain.FlowSettled), row: rowOf(k, domain.OrderConfirmed, true, true), state: domain.SaleOpen}.trace(t, k)
		if err != nil || *v.Flow.From != 5 || *v.Flow.To != 4 || v.Flow.Change != -1 || v.Flow.Attempt != "a-1" || *v.Quantity != 1 ||
			v.Order.StockVersion != 9 || !v.Order.GateTold || v.Order.StockFlows == nil {
			t.Errorf("%v %+v %+v", err, v.Flow, v.Order)
		}
	})
	inBubble(t, "written back", func(t *testing.T) {
		bare := must(domain.NewFlow(domain.FlowFields{Key: k, Quantity: 1, State: domain.FlowSettled, Epoch: 3, At: time.UnixMilli(1)}))
		v, err := traced{reply: port.CheckReply{Flow: bare, Readable: true}, row: rowOf(k, domain.OrderConfirmed, true, true), state: domain.SaleOpen}.trace(t, k)
		if err != nil || v.Flow.From != nil || v.Flow.To != nil {
			t.Errorf("%v %+v", err, v.Flow)
		}
	})
}

func TestTheListShowsBothSidesOfEveryProduct(t *testing.T) {
	t.Parallel()
	inBubble(t, "in pages", func(t *testing.T) {
		s := newShop(nil)
		for _, p := range []string{"p1", "p2", "p3"} {
			s.open(t, p, 10)
		}
		s.settle(t, s.buy(t, "p1", "a"), domain.OrderConfirmed)
		s.change("p2", func(f *domain.StockFields) { f.Stock -= 3; f.Version++ })
		s.buy(t, "p3", "b")
		show := application.NewShowStock(s.eyes, wallClock{})
		list, err := show.List(t.Context(), "", 2)
		if err != nil || len(list) != 2 || list[0].Product != "p1" || list[0].Gate.Remaining != 9 || list[0].Ledger.Stock != 9 ||
			*list[0].Drift != 0 || *list[1].Drift != 3 {
			t.Fatalf("%+v %v", list, err)
		}
		list, err = show.List(t.Context(), "p2", 2)
		if err != nil || len(list) != 1 || *list[0].InFlight != 1 || list[0].Drift != nil {
			t.Errorf("%+v %v", list, err)
		}
		if list, err = show.List(t.Context(), "p3", 2); err != nil || list == nil || len(list) != 0 {
			t.Errorf("%+v %v", list, err)
		}
	})
	inBubble(t, "an untold row leaves every drift open, a gate that is away blanks its side alone", func(t *testing.T) {
		s := newShop(nil)
		s.open(t, "p", 10)
		s.apply(s.buy(t, "p", "a"), domain.OrderConfirmed, false)
		s.open(t, "q", 10)
		list, err := application.NewShowStock(s.eyes, wallClock{}).List(t.Context(), "", 9)
		if err != nil || list[0].Drift != nil || list[1].Drift != nil || list[1].Gate == nil {
			t.Errorf("%+v %v", list, err)
		}
		eyes := s.eyes
		away := portmock.NewMockGateAdmin(gomock.NewController(t))
		away.EXPECT().View(gomock.Any(), gomock.Any()).DoAndReturn(func(context.Context, []string) ([]port.GateView, error) {
			return nil, domain.ErrUnavailable
		}).AnyTimes()
		eyes.Admin = away
		list, err = application.NewShowStock(eyes, wallClock{}).List(t.Context(), "", 9)
		if err != nil || list[1].Gate != nil || list[1].InFlight != nil || list[1].Drift != nil || list[1].Ledger.Stock != 10 {
			t.Errorf("%+v %v", list, err)
		}
		s.fault = times(99, "List", domain.ErrUnavailable)
		_, err = application.NewShowStock(s.eyes, wallClock{}).List(t.Context(), "", 9)
		wantCode(t, err, domain.CodeUnavailable)
	})
}
