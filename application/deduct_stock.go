package application

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"seckill/application/port"
	"seckill/domain"
)

// What a caller is told where nothing of the driver's words may show.
var (
	errQueueFull    = domain.NewError(domain.CodeBusy, "too many purchases wait; ask again with the same token", nil)
	errLeftTheQueue = domain.NewError(domain.CodeBusy, "the request ended before its turn; nothing was taken", nil)
	errCrowded      = domain.NewError(domain.CodeBusy, "too much is on its way; nothing was taken", nil)
	errGateAway     = domain.NewError(domain.CodeBusy, "the stock cannot be reached; nothing was taken", nil)
	errUnknown      = domain.NewError(domain.CodeOutcomeUnknown, "the outcome is not known yet; ask again with the same token", nil)
	errRebuilding   = domain.NewError(domain.CodeRebuilding, "the stock of this product is being rebuilt; ask again with the same token", nil)
)

// DeductStock takes purchases: it deducts at the gate, hands what was accepted to the broker, and
// answers each caller. After a successful deduct nobody is refused any more.
type DeductStock struct {
	gate     port.Gate
	sender   port.Sender
	catalog  port.Catalog
	leases   Leases
	intake   *Intake
	suspects Suspects
	clock    port.Clock
	ids      port.IDs
	cfg      DeductConfig
	log      *slog.Logger

	lane  *lane
	pool  sync.Pool
	items []port.DeductItem                 // of the deduct stage alone
	known *simplelru.LRU[string, knownness] // of the look-up stage alone

	batches, commands, sentBatches, sentFlows atomic.Int64
	full                                      atomic.Int64
	told                                      answerCounts
	times                                     timeCounts
	latest                                    latestPurchases
	quietGate, quietSend, quietLookUp         sparse
}

type knownness struct {
	exists bool
	until  time.Time
}

var _ Runner = (*DeductStock)(nil)

// NewDeductStock wires the lane; Start opens it.
func NewDeductStock(gate port.Gate, sender port.Sender, catalog port.Catalog, leases Leases, intake *Intake,
	suspects Suspects, clock port.Clock, ids port.IDs, cfg DeductConfig, log *slog.Logger) *DeductStock {
	d := &DeductStock{gate: gate, sender: sender, catalog: catalog, leases: leases, intake: intake,
		suspects: suspects, clock: clock, ids: ids, log: log}
	if most := sender.BatchBytesMax(); cfg.SendBytesMax <= 0 || cfg.SendBytesMax > most {
		cfg.SendBytesMax = most
	}
	d.cfg = cfg
	d.pool.New = func() any { return newPurchase() }
	d.items = make([]port.DeductItem, 0, cfg.BatchMax)
	d.known, _ = simplelru.NewLRU[string, knownness](max(cfg.KnownMax, 1), nil) // fails for a size below one alone
	d.lane = newLane(cfg, stages{deduct: d.deduct, send: d.send, lookUp: d.lookUp})
	return d
}

// Name names the runner.
func (d *DeductStock) Name() string { return "lane" }

// Start opens the lane.
func (d *DeductStock) Start(context.Context) error {
	d.lane.start()
	return nil
}

// Stop refuses new purchases, finishes those that wait, and waits for the sends.
func (d *DeductStock) Stop(ctx context.Context) error { return d.lane.stop(ctx) }

// Stats are the lane's counts.
func (d *DeductStock) Stats() LaneStats {
	return LaneStats{Waiting: d.lane.occupied(), Batches: d.batches.Load(), Commands: d.commands.Load(),
		SentBatches: d.sentBatches.Load(), SentFlows: d.sentFlows.Load(),
		Full: d.full.Load(), Answered: d.told.all(), Times: d.times.all()}
}

// Latest are some of the purchases accepted last, newest first; never many.
func (d *DeductStock) Latest() []AcceptedPurchase { return d.latest.all() }

// Deduct takes one purchase. A Receipt means that the order appears, or, replayed, how it stands.
// Codes of refusal: product-not-found, stock-not-enough, limit-reached, token-refused, token-reused,
// sale-closed; busy and rebuilding say that nothing was taken, outcome-unknown that something
// may have been: in all three the same token asked again tells the truth.
func (d *DeductStock) Deduct(ctx context.Context, command domain.DeductCommand) (Receipt, error) {
	begun := time.Now()
	receipt, err := d.take(ctx, command)
	ended := time.Now()
	d.told.note(receipt, err)
	d.times.note(ended.Sub(begun))
	if err == nil && !receipt.Replayed {
		d.latest.note(ended, receipt.Order)
	}
	return receipt, err
}

func (d *DeductStock) take(ctx context.Context, command domain.DeductCommand) (Receipt, error) {
	p := d.pool.Get().(*purchase)
	p.item = port.DeductItem{Command: command, Attempt: d.ids.Attempt()}
	p.state.Store(purchaseWaiting)
	if !d.lane.enter(p) {
		d.pool.Put(p)
		d.full.Add(1)
		return Receipt{}, errQueueFull
	}
	select {
	case a := <-p.done:
		d.pool.Put(p)
		return a.receipt, a.err
	case <-ctx.Done():
		// The lane may still hold p, so it does not go back to the pool.
		if p.state.CompareAndSwap(purchaseWaiting, purchaseGone) {
			return Receipt{}, errLeftTheQueue
		}
		return Receipt{}, errUnknown
	}
}

// deduct is the first stage: one call of the gate for all that waited.
func (d *DeductStock) deduct(batch []*purchase) {
	defer d.answerPanic(batch, "deduct stage", errUnknown)
	batch = d.shed(d.admit(batch))
	if len(batch) == 0 {
		return
	}
	d.items = d.items[:0]
	for _, p := range batch {
		d.items = append(d.items, p.item)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.DeductTimeout)
	replies := d.gate.Deduct(ctx, d.clock.Now(), d.items)
	cancel()
	d.batches.Add(1)
	d.commands.Add(int64(len(batch)))
	// All that is decided is answered before anything that is accepted may have to wait for the senders.
	for i := range batch {
		if !toSend(replies[i]) {
			d.answerReply(batch, i, replies[i])
		}
	}
	for i, p := range batch {
		if p != nil {
			p.flow, p.remaining = domain.DeductionOf(replies[i].Flow), replies[i].Remaining
			p.replayed = replies[i].Outcome == port.DeductRepeat
			p.bytes = d.sender.BytesOf(p.flow)
			batch[i] = nil
			d.lane.accept(p)
		}
	}
}

// toSend says whether a message has to be stored before the caller may be told anything definite: for what was
// accepted now, and for a repeat of what has no row yet. Whether the first message of that one is stored is not
// known: it may be under way at this moment, and would be gone with an instance and a gate that die together. Sent
// again it is met by its row.
func toSend(r port.DeductReply) bool {
	return r.Outcome == port.DeductAccepted || r.Outcome == port.DeductRepeat && r.Flow.State() == domain.FlowDeducted
}

// admit keeps those whose caller is still there and whose product may be sold now. It compacts
// the batch in place.
func (d *DeductStock) admit(batch []*purchase) []*purchase {
	kept := batch[:0]
	for i, p := range batch {
		here := p.state.CompareAndSwap(purchaseWaiting, purchaseTaken)
		may := here && d.leases.MaySell(p.item.Command.Key().Product())
		batch[i] = nil
		switch {
		case may:
			kept = append(kept, p)
		case here:
			p.done <- answer{err: errRebuilding}
		}
	}
	return kept
}

// shed keeps those that may be taken now. While too much is on its way, nobody who is new is taken, so
// that nothing is deducted which nobody can send on; who is known is answered all the same.
func (d *DeductStock) shed(batch []*purchase) []*purchase {
	state := d.intake.State()
	if len(batch) == 0 || state == IntakeOpen {
		return batch
	}
	kept := 0
	if state == IntakeAway && d.intake.TryOne() {
		kept = 1
	}
	rest := batch[kept:]
	keys := make([]domain.Key, len(rest))
	for i, p := range rest {
		keys[i] = p.item.Command.Key()
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.DeductTimeout)
	replies, err := d.gate.Check(ctx, keys)
	cancel()
	if err != nil {
		answerRest(rest, errGateAway)
		return batch[:kept]
	}
	for i, p := range rest {
		flow := replies[i].Flow
		if flow.IsZero() || !replies[i].Readable {
			answerAt(rest, i, answer{err: errCrowded})
			continue
		}
		// One without a row is told unknown: there is no point in sending it again now.
		known := port.DeductReply{Outcome: port.DeductRepeat, Flow: flow}
		if flow.Quantity() != p.item.Command.Quantity() {
			known.Outcome = port.DeductConflict
		}
		d.answerReply(rest, i, known)
	}
	return batch[:kept]
}

// answerReply answers whatever is not sent.
func (d *DeductStock) answerReply(batch []*purchase, i int, r port.DeductReply) {
	p := batch[i]
	product := p.item.Command.Key().Product()
	switch r.Outcome {
	case port.DeductAway, port.DeductUnknown:
		if d.quietGate.pass() {
			d.log.Warn("the gate did not answer", "event", "gate_away", "product", product, "error", r.Err)
		}
	case port.DeductRewound:
		d.suspects.Suspect(product, "the gate has forgotten something")
	case port.DeductNotLoaded:
		batch[i] = nil
		if !d.lane.lookUp(p) {
			p.done <- answer{err: errRebuilding}
		}
		return
	default:
	}
	receipt, err := receiptOf(p.item.Command, r)
	answerAt(batch, i, answer{receipt, err})
}

// receiptOf is the table of answers for the outcomes that end with the deduct stage.
func receiptOf(c domain.DeductCommand, r port.DeductReply) (Receipt, error) {
	switch r.Outcome {
	case port.DeductAway:
		return Receipt{}, errGateAway
	case port.DeductRewound, port.DeductNotReady:
		return Receipt{}, errRebuilding
	case port.DeductRepeat:
		status := statusOfFlow(r.Flow.State())
		switch status {
		case OrderRejected, "":
			return Receipt{}, domain.ErrTokenRefused
		case OrderPending: // nothing is sent now, see toSend
			return Receipt{}, errUnknown
		}
		order := OrderView{Key: c.Key(), Quantity: r.Flow.Quantity(), Status: status, CreatedAt: r.Flow.At()}
		return Receipt{Order: order, Replayed: true, Remaining: r.Remaining}, nil
	case port.DeductConflict:
		return Receipt{}, domain.NewError(domain.CodeTokenReused,
			fmt.Sprintf("the token stands for a purchase of %d", r.Flow.Quantity()), nil)
	case port.DeductRefused:
		return Receipt{}, domain.ErrTokenRefused
	case port.DeductClosed:
		return Receipt{}, domain.ErrSaleClosed
	case port.DeductLimit:
		return Receipt{}, domain.ErrLimitReached
	case port.DeductNotEnough:
		return Receipt{}, domain.NewError(domain.CodeStockNotEnough, strconv.FormatInt(r.Remaining, 10)+" left", nil)
	default:
		return Receipt{}, errUnknown // the safe answer: the script may have run
	}
}

// statusOfFlow is the order's status as the gate alone knows it; empty where it knows nothing.
func statusOfFlow(s domain.FlowState) string {
	switch s {
	case domain.FlowDeducted:
		return OrderPending
	case domain.FlowSettled:
		return OrderConfirmed
	case domain.FlowReleased:
		return OrderCancelled
	case domain.FlowRefused:
		return OrderRejected
	default:
		return ""
	}
}

// send is the second stage: one message for all that was accepted meanwhile, or asked again without a row yet. Whatever happens to
// it, the flows are in the open set, and the relay finishes them.
func (d *DeductStock) send(batch []*purchase) {
	defer d.answerPanic(batch, "send stage", errUnknown)
	items := make([]domain.Deduction, len(batch)) // its own: the sending may outlive this call
	for i, p := range batch {
		items[i] = p.flow
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.SendTimeout)
	result, err := d.sender.Send(ctx, domain.Batch{ID: d.ids.Unique(), Kind: domain.BatchDeduct, Items: items})
	cancel()
	d.intake.NoteSend(result)
	d.sentBatches.Add(1)
	d.sentFlows.Add(int64(len(batch)))
	if result != port.SendCommitted {
		if d.quietSend.pass() {
			d.log.Warn("a message's outcome is unknown; the relay finishes its flows",
				"event", "send_unknown", "flows", len(batch), "error", err)
		}
		answerRest(batch, errUnknown)
		return
	}
	for i, p := range batch {
		// Only what was stored within the lease is sure to be met by the drain of a rebuild: an instance that slept, or an
		// old master that still took the deduction, may have been overtaken by one.
		if !d.leases.MaySell(p.flow.Key.Product()) {
			answerAt(batch, i, answer{err: errUnknown})
			continue
		}
		order := OrderView{Key: p.flow.Key, Quantity: p.flow.Quantity, Status: OrderPending, CreatedAt: p.flow.At}
		answerAt(batch, i, answer{receipt: Receipt{Order: order, Replayed: p.replayed, Remaining: p.remaining}})
	}
}

// lookUp tells products that the gate has lost from those that never were. It stands beside the
// lane, so that a slow database holds up nobody else; what it learns lives about a second, so
// that a flood of unknown ids costs one small query a batch at most.
func (d *DeductStock) lookUp(batch []*purchase) {
	defer d.answerPanic(batch, "look-up stage", errRebuilding)
	d.learn(batch)
	now := time.Now()
	for i, p := range batch {
		product := p.item.Command.Key().Product()
		k, ok := d.known.Peek(product)
		if ok && !k.exists && now.Before(k.until) {
			answerAt(batch, i, answer{err: domain.ErrProductNotFound})
			continue
		}
		if ok && k.exists {
			d.suspects.Suspect(product, "the gate has no record of the product")
		}
		answerAt(batch, i, answer{err: errRebuilding})
	}
}

// learn asks the database about those products of the batch that are not remembered.
func (d *DeductStock) learn(batch []*purchase) {
	now := time.Now()
	var ask []string
	asked := make(map[string]struct{})
	for _, p := range batch {
		product := p.item.Command.Key().Product()
		if k, ok := d.known.Peek(product); ok && now.Before(k.until) {
			continue
		}
		if _, twice := asked[product]; !twice {
			asked[product] = struct{}{}
			ask = append(ask, product)
		}
	}
	if len(ask) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.LookUpTimeout)
	defer cancel()
	stocks, err := d.catalog.Stocks(ctx, ask)
	if err != nil {
		if d.quietLookUp.pass() {
			d.log.Warn("products could not be looked up", "event", "lookup_failed", "products", len(ask), "error", err)
		}
		return
	}
	for i, product := range ask {
		d.known.Add(product, knownness{exists: !stocks[i].IsZero(), until: time.Now().Add(d.cfg.KnownAge)})
	}
}

// answerPanic is deferred by a stage, so that its panic ends neither the lane nor a caller's wait.
func (d *DeductStock) answerPanic(batch []*purchase, stage string, err error) {
	if cause := recover(); cause != nil {
		reportPanic(d.log, stage, cause)
	}
	answerRest(batch, err)
}
