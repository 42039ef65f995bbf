package application

import (
	"context"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// TraceConfig bounds a trace.
type TraceConfig struct {
	PartTimeout time.Duration // for what one part is asked; one that hangs leaves time for the others
	ParkedMax   int           // parked messages of the product that are looked through
	Relay       RelayConfig   // whose pauses tell what happens next
}

// DefaultTraceConfig answers well within a request's time, whatever is away.
func DefaultTraceConfig(relay RelayConfig) TraceConfig {
	return TraceConfig{PartTimeout: 2500 * time.Millisecond, ParkedMax: 200, Relay: relay}
}

// TraceView is one purchase as gate, broker and ledger tell it.
type TraceView struct {
	Product  string      `json:"productId"`
	User     string      `json:"userId"`
	Token    string      `json:"token"`
	At       time.Time   `json:"at"`     // when it was read
	Status   string      `json:"status"` // pending, confirmed, cancelled, rejected, unknown
	Quantity *int64      `json:"quantity"`
	Steps    []TraceStep `json:"steps"`   // in the order in which they happen
	Missing  []string    `json:"missing"` // steps that are waited for, or that should be there and are not
	Unread   []string    `json:"unread"`  // parts that could not be read
	Next     string      `json:"next"`    // what will happen, in words
	Flow     *TraceFlow  `json:"flow"`    // nil: the gate has none, or could not be read
	Order    *TraceOrder `json:"order"`   // nil: the ledger has none, or could not be read
}

// TraceState says how a step stands.
type TraceState string

// The states of a step.
const (
	TraceDone    TraceState = "done"
	TraceWaiting TraceState = "waiting" // not there yet
	TraceMissing TraceState = "missing" // it should be there and is not
	TraceUnknown TraceState = "unknown" // it could not be read, or nobody keeps it
	TraceSkipped TraceState = "skipped" // this purchase goes without it
)

// The steps.
const (
	TraceDeducted  = "deducted"   // gate
	TraceStored    = "stored"     // broker: the half message
	TraceCommitted = "committed"  // broker: the local transaction found the flow
	TraceDelivered = "delivered"  // broker
	TraceParked    = "parked"     // ledger; only where a parked message has the purchase
	TraceOrderRow  = "order-row"  // ledger
	TraceStockFlow = "stock-flow" // ledger
	TraceGivenBack = "given-back" // ledger; only of an order that was cancelled after it was confirmed
	TraceSettled   = "settled"    // gate: told the row's fate
)

// TraceStep is one step of a purchase.
type TraceStep struct {
	Step   string     `json:"step"`
	Source string     `json:"source"` // gate, broker, ledger
	State  TraceState `json:"state"`
	At     *time.Time `json:"at"` // nil: nobody keeps it
	Detail string     `json:"detail"`
}

// TraceFlow is the gate's record. From and To are nil where the flow was written from its row: nobody kept them.
type TraceFlow struct {
	Action   string    `json:"action"`
	State    string    `json:"state"` // deducted, settled, released, refused
	Change   int64     `json:"change"`
	From     *int64    `json:"from"`
	To       *int64    `json:"to"`
	Epoch    int64     `json:"epoch"`
	Sequence int64     `json:"sequence"`
	Attempt  string    `json:"attempt"`
	At       time.Time `json:"at"`
}

// TraceOrder is the ledger's row.
type TraceOrder struct {
	ID           string          `json:"id"`
	Status       string          `json:"status"`
	FromBirth    bool            `json:"fromBirth"` // false: it was confirmed before it was cancelled
	Quantity     int64           `json:"quantity"`
	Epoch        int64           `json:"epoch"`
	Sequence     int64           `json:"sequence"`
	StockVersion int64           `json:"stockVersion"`
	Attempt      string          `json:"attempt"`
	GateTold     bool            `json:"gateTold"`
	CreatedAt    time.Time       `json:"createdAt"`
	StockFlows   []TraceMovement `json:"stockFlows"` // nil: could not be read
}

// TraceMovement is a row of the ledger's stock flow.
type TraceMovement struct {
	OpType   string    `json:"opType"` // SECKILL takes, CANCEL gives back
	Quantity int64     `json:"quantity"`
	At       time.Time `json:"at"`
}

// TracePurchase tells where one purchase is, and what will become of it.
type TracePurchase struct {
	eyes      StockEyes
	book      port.Book
	parking   port.Parking
	backlog   port.BacklogReader
	decode    Decode
	sentAgain func(domain.Key) (times int, next time.Time)
	clock     port.Clock
	cfg       TraceConfig
}

// NewTracePurchase wires the use case; sentAgain is what this instance's relay has done for a flow.
func NewTracePurchase(eyes StockEyes, book port.Book, parking port.Parking, backlog port.BacklogReader, decode Decode,
	sentAgain func(domain.Key) (int, time.Time), clock port.Clock, cfg TraceConfig) *TracePurchase {
	return &TracePurchase{eyes: eyes, book: book, parking: parking, backlog: backlog, decode: decode, sentAgain: sentAgain,
		clock: clock, cfg: cfg}
}

// traceFacts are what the parts said.
type traceFacts struct {
	key     domain.Key
	now     time.Time
	relay   RelayConfig
	gate    port.CheckReply
	stock   domain.Stock
	order   domain.Order
	moves   []port.Movement
	parked  port.Parked // zero: none
	backlog port.Backlog
	again   int       // times that the relay of this instance has sent it again
	due     time.Time // when it may do so once more

	gateRead, orderRead, movesRead bool
}

// Trace reads each part by itself: one that is away blanks no other. CodeProductNotFound, or CodeOrderNotFound
// where every part was read and none of them knows the purchase.
func (t *TracePurchase) Trace(ctx context.Context, key domain.Key) (TraceView, error) {
	f := traceFacts{key: key, relay: t.cfg.Relay}
	t.readGate(ctx, &f)
	if err := t.readLedger(ctx, &f); err != nil {
		return TraceView{}, err
	}
	if f.orderRead && !f.order.IsZero() && f.gate.Flow.State() != f.order.Status().FlowState() {
		t.readGate(ctx, &f) // the row may have come between the two looks, and the gate been told
	}
	part, cancel := context.WithTimeout(ctx, t.cfg.PartTimeout)
	defer cancel()
	f.backlog = t.backlog.Backlog(part)
	f.again, f.due = t.sentAgain(key)
	f.now = t.clock.Now()
	if f.nobodyHasIt() {
		return TraceView{}, domain.ErrOrderNotFound
	}
	return f.view(), nil
}

func (t *TracePurchase) readGate(ctx context.Context, f *traceFacts) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.PartTimeout)
	defer cancel()
	replies, err := t.eyes.Gate.Check(ctx, []domain.Key{f.key})
	if f.gateRead = err == nil; f.gateRead {
		f.gate = replies[0]
	}
}

// readLedger comes after the gate, since a flow that is settled has its row: in the other order a row written
// between the two would seem lost.
func (t *TracePurchase) readLedger(ctx context.Context, f *traceFacts) error {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.PartTimeout)
	defer cancel()
	orders, err := t.eyes.Ledger.Fates(ctx, []domain.Key{f.key})
	if err != nil {
		return nil // what could not be read is shown as unread
	}
	f.orderRead, f.order = true, orders[0]
	stocks, err := t.eyes.Catalog.Stocks(ctx, []string{f.key.Product()})
	if err == nil {
		f.stock = stocks[0]
	}
	if err == nil && f.stock.IsZero() && f.order.IsZero() && f.gate.Flow.IsZero() {
		return domain.NewError(domain.CodeProductNotFound, f.key.Product(), nil)
	}
	if !f.order.IsZero() {
		moves, err := t.book.Movements(ctx, orders)
		if f.movesRead = err == nil; f.movesRead {
			f.moves = moves[0]
		}
		return nil
	}
	t.findParked(ctx, f)
	return nil
}

// findParked looks for the purchase in what waits for an operator.
func (t *TracePurchase) findParked(ctx context.Context, f *traceFacts) {
	waiting, err := t.parking.FindParked(ctx, "", f.key.Product(), "", t.cfg.ParkedMax)
	if err != nil {
		return
	}
	for _, p := range waiting {
		batch, err := t.decode(p.Body)
		if err != nil {
			continue
		}
		for _, item := range batch.Items {
			if item.Key == f.key {
				f.parked = p
				return
			}
		}
	}
}

// nobodyHasIt needs a gate that can be trusted: a rewound one has no flow of anything.
func (f *traceFacts) nobodyHasIt() bool {
	return f.gateRead && f.gate.Readable && f.gate.Flow.IsZero() && f.orderRead && f.order.IsZero() && f.parked.ID == ""
}
