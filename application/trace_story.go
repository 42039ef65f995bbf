package application

import (
	"fmt"
	"math"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// view tells the facts.
func (f *traceFacts) view() TraceView {
	v := TraceView{Product: f.key.Product(), User: f.key.User(), Token: f.key.Token(), At: f.now, Status: f.status(),
		Steps: f.steps(), Missing: []string{}, Unread: []string{}, Next: f.next(), Flow: f.flowShown(), Order: f.orderShown()}
	switch {
	case !f.order.IsZero():
		v.Quantity = new(f.order.Quantity())
	case !f.gate.Flow.IsZero():
		v.Quantity = new(f.gate.Flow.Quantity())
	}
	for _, s := range v.Steps {
		if s.State == TraceWaiting || s.State == TraceMissing {
			v.Missing = append(v.Missing, s.Step)
		}
	}
	if !f.gateRead {
		v.Unread = append(v.Unread, port.PartGate)
	}
	if !f.backlog.Known {
		v.Unread = append(v.Unread, port.PartBroker)
	}
	if !f.orderRead || !f.order.IsZero() && !f.movesRead {
		v.Unread = append(v.Unread, port.PartLedger)
	}
	return v
}

func (f *traceFacts) status() string {
	if !f.order.IsZero() {
		return f.order.Status().String()
	}
	if s := statusOfFlow(f.gate.Flow.State()); s != "" {
		return s
	}
	return StockUnknown
}

func (f *traceFacts) flowShown() *TraceFlow {
	flow := f.gate.Flow
	if flow.IsZero() {
		return nil
	}
	shown := &TraceFlow{Action: flow.Action(), State: flow.State().String(), Change: flow.Change(), Epoch: flow.Epoch(),
		Sequence: flow.Sequence(), Attempt: flow.Attempt(), At: flow.At()}
	if f.sawUnits() {
		shown.From, shown.To = new(flow.From()), new(flow.To())
	}
	return shown
}

// sawUnits reports whether the flow knows from how much it was taken: a quantity is never zero.
func (f *traceFacts) sawUnits() bool { return f.gate.Flow.From() != f.gate.Flow.To() }

func (f *traceFacts) orderShown() *TraceOrder {
	o := f.order
	if o.IsZero() {
		return nil
	}
	shown := &TraceOrder{ID: o.ID(), Status: o.Status().String(), FromBirth: o.FromBirth(), Quantity: o.Quantity(), Epoch: o.Epoch(),
		Sequence: o.Sequence(), StockVersion: o.StockVersion(), Attempt: o.Attempt(), GateTold: o.GateTold(), CreatedAt: o.CreatedAt()}
	if f.movesRead {
		shown.StockFlows = []TraceMovement{}
	}
	for _, m := range f.moves {
		shown.StockFlows = append(shown.StockFlows, TraceMovement{m.OpType, m.Quantity, m.At})
	}
	return shown
}

func (f *traceFacts) steps() []TraceStep {
	steps := []TraceStep{f.deducted()}
	steps = append(steps, f.carried()...)
	if f.parked.ID != "" {
		steps = append(steps, TraceStep{TraceParked, port.PartLedger, TraceWaiting, new(f.parked.ParkedAt),
			fmt.Sprintf("message %s, parked as %s: %s", f.parked.ID, f.parked.Reason, f.parked.Detail)})
	}
	steps = append(steps, f.orderRow(), f.stockFlow())
	if f.wasReversed() {
		steps = append(steps, f.movement(TraceGivenBack, port.OpCancel))
	}
	return append(steps, f.settled())
}

func (f *traceFacts) wasReversed() bool {
	return f.order.Status() == domain.OrderCancelled && !f.order.FromBirth()
}

// tookUnits reports whether the row took units from the stock, then or now.
func (f *traceFacts) tookUnits() bool {
	return f.order.Status() == domain.OrderConfirmed || f.wasReversed()
}

func (f *traceFacts) deducted() TraceStep {
	flow := f.gate.Flow
	s := TraceStep{Step: TraceDeducted, Source: port.PartGate, State: TraceDone, Detail: "the gate could not be read"}
	switch {
	case !f.gateRead:
		s.State = TraceUnknown
	case f.sawUnits():
		s.At = new(flow.At())
		s.Detail = fmt.Sprintf("%d → %d left by attempt %s, epoch %d, sequence %d", flow.From(), flow.To(), flow.Attempt(), flow.Epoch(), flow.Sequence())
	case flow.State() == domain.FlowRefused:
		s.State, s.At, s.Detail = TraceSkipped, new(flow.At()), "a tombstone: the token is refused for good, and holds no units"
	case !flow.IsZero():
		s.At, s.Detail = new(flow.At()), "written from its row: nobody kept from how much it was taken"
	case !f.gate.Readable:
		s.State, s.Detail = TraceUnknown, "the gate has no sound record of the product now"
	case f.order.IsZero() || f.tookUnits():
		s.State, s.Detail = TraceMissing, "the gate has no flow of it"
	default:
		s.State, s.Detail = TraceSkipped, "the row was decided without units of the gate"
	}
	return s
}

// carried tells the broker's part, which can only be concluded: it keeps no index of purchases.
func (f *traceFacts) carried() []TraceStep {
	state, detail := TraceUnknown, "the broker keeps no index of purchases"
	delivered, waits := TraceWaiting, f.lag()
	switch {
	case f.tookUnits():
		state, detail = TraceDone, "the row was written from its message; the broker tells no time of it"
		delivered, waits = state, detail
	case !f.order.IsZero():
		detail = "the row was decided, with its message or without one"
		delivered, waits = state, detail
	case f.parked.ID != "":
		delivered, waits = TraceDone, "and parked, since it could not be applied"
		if f.parked.Reason == port.ParkDiscardedHalf || f.parked.Reason == port.ParkDeadLetter {
			delivered, waits = TraceMissing, "the broker has given up on it: "+string(f.parked.Reason)
		}
	case !f.orderRead, f.gate.Flow.IsZero():
		delivered = TraceUnknown
	}
	return []TraceStep{{TraceStored, port.PartBroker, state, nil, detail}, {TraceCommitted, port.PartBroker, state, nil, detail},
		{TraceDelivered, port.PartBroker, delivered, nil, waits}}
}

func (f *traceFacts) lag() string {
	if !f.backlog.Known {
		return "the consumer's lag could not be read"
	}
	return fmt.Sprintf("%d messages wait for the consumer", f.backlog.Messages)
}

// awaited is how something stands that comes with the row, while there is none.
func (f *traceFacts) awaited() (TraceState, string) {
	switch {
	case !f.orderRead:
		return TraceUnknown, "the ledger could not be read"
	case f.gate.Flow.State() == domain.FlowSettled || f.gate.Flow.State() == domain.FlowReleased:
		return TraceMissing, "the gate was told of a row that the ledger does not have"
	case f.gate.Flow.IsZero() && f.parked.ID == "":
		return TraceUnknown, "there is no row; whether one will come is not known"
	}
	return TraceWaiting, "there is no row yet"
}

func (f *traceFacts) orderRow() TraceStep {
	s := TraceStep{Step: TraceOrderRow, Source: port.PartLedger}
	if f.order.IsZero() {
		s.State, s.Detail = f.awaited()
		return s
	}
	s.State, s.At = TraceDone, new(f.order.CreatedAt())
	s.Detail = fmt.Sprintf("%s, at stock version %d", f.order.Status(), f.order.StockVersion())
	if f.wasReversed() {
		s.Detail = fmt.Sprintf("confirmed, and cancelled at stock version %d", f.order.StockVersion())
	}
	return s
}

func (f *traceFacts) stockFlow() TraceStep {
	switch {
	case f.order.IsZero():
		state, detail := f.awaited()
		return TraceStep{TraceStockFlow, port.PartLedger, state, nil, detail}
	case !f.tookUnits():
		return TraceStep{TraceStockFlow, port.PartLedger, TraceSkipped, nil, "the order took no units from the stock"}
	}
	return f.movement(TraceStockFlow, port.OpSale)
}

func (f *traceFacts) movement(step, op string) TraceStep {
	s := TraceStep{Step: step, Source: port.PartLedger, State: TraceMissing, Detail: "the order has no stock flow row of " + op}
	if !f.movesRead {
		s.State, s.Detail = TraceUnknown, "the stock flow could not be read"
	}
	for _, m := range f.moves {
		if m.OpType == op {
			s.State, s.At, s.Detail = TraceDone, new(m.At), fmt.Sprintf("%s of %d", op, m.Quantity)
		}
	}
	return s
}

func (f *traceFacts) settled() TraceStep {
	s := TraceStep{Step: TraceSettled, Source: port.PartGate, State: TraceDone, Detail: "the gate says " + f.gate.Flow.State().String()}
	agrees := f.gate.Flow.State() == f.order.Status().FlowState()
	switch {
	case !f.gateRead:
		s.State, s.Detail = TraceUnknown, "the gate could not be read"
		if f.order.GateTold() {
			s.Detail = "the gate has acknowledged the row, and could not be read now"
		}
	case f.order.IsZero():
		s.State, s.Detail = f.awaited()
	case f.gate.Flow.IsZero() && !f.gate.Readable:
		s.State, s.Detail = TraceUnknown, "the gate has no sound record of the product now"
	case !f.order.GateTold():
		s.State, s.Detail = TraceWaiting, s.Detail+", and has not acknowledged the row"
	case !agrees:
		s.State, s.Detail = TraceMissing, s.Detail+", and the row is "+f.order.Status().String()
	}
	return s
}

// next says what will happen, by whom and when.
func (f *traceFacts) next() string {
	switch {
	case !f.orderRead && f.gate.Flow.IsZero():
		return "Not known: the ledger could not be read, and the gate tells nothing. Ask again."
	case !f.orderRead:
		return "Not known: the ledger could not be read. The gate keeps the flow, so nothing is lost meanwhile. Ask again."
	case !f.order.IsZero():
		return f.nextOfRow()
	case f.parked.ID != "":
		return f.nextOfParked()
	}
	return f.nextOfFlow()
}

func (f *traceFacts) nextOfRow() string {
	switch {
	case !f.order.GateTold() && f.stock.State() != domain.SaleOpen && !f.stock.IsZero():
		return "The order is decided. The gate learns of it when the product's rebuild is done."
	case !f.order.GateTold():
		return fmt.Sprintf("The order is decided. The relay tells the gate again, within %s.", seconds(f.relay.UntoldAge+f.relay.Pause))
	case !f.gateRead:
		return "The order is decided and the gate was told. The gate could not be read now."
	case f.gate.Flow.State() == f.order.Status().FlowState():
		return "Nothing: the purchase is finished."
	case f.gate.Flow.IsZero() && !f.gate.Readable:
		return "The order is decided. The product's rebuild writes it back to the gate."
	case f.gate.Flow.State() == domain.FlowDeducted:
		return "The order is decided. The relay tells the gate its fate, " + f.inAbout(f.untilOld()) + "."
	}
	return "Gate and row disagree, and nothing is on its way. The next reconciliation tells the gate again (seckill reconcile --apply)."
}

func (f *traceFacts) nextOfParked() string {
	if f.parked.Reason == port.ParkNotOpen {
		return "The parked message is replayed by itself once the product is open."
	}
	next := fmt.Sprintf("The message waits for an operator, who replays it once what was wrong is put right (parked message %s).", f.parked.ID)
	if f.gate.Flow.State() == domain.FlowDeducted {
		next += " " + f.nextOfFlow()
	}
	return next
}

func (f *traceFacts) nextOfFlow() string {
	switch f.gate.Flow.State() {
	case domain.FlowDeducted:
	case domain.FlowRefused:
		return "No units are held. The row that says so comes with its message, if there is one."
	case domain.FlowSettled, domain.FlowReleased:
		return "The ledger has gone back behind the gate. It waits for an operator: rebuild the product, and say what becomes of lost rows."
	default:
		return "Not known: the gate has forgotten the product, and its rebuild is to come. A message that is on its way is applied. Ask again."
	}
	switch {
	case f.stock.State() == domain.SaleDamaged:
		return "The product waits for an operator, who says what becomes of rows that were lost (rebuild)."
	case f.stock.State() == domain.SaleSuspended:
		return "The product is being rebuilt. The flow keeps its units; its message is applied meanwhile, or sent again once the product is open."
	case f.backlog.Known && f.backlog.Messages > f.relay.BacklogLow:
		return fmt.Sprintf("The consumer works through %d messages. The relay sends this one again only when they grow no more.", f.backlog.Messages)
	case f.again > 0:
		return fmt.Sprintf("The relay has sent it again %d times, and does so once more %s.", f.again, f.inAbout(time.Until(f.due)))
	case f.now.Sub(f.gate.Flow.At()) < f.relay.Pause:
		return "The consumer applies its message in a moment. If it does not come, the relay sends it again " + f.inAbout(f.untilOld()) + "."
	}
	return "The relay sends it again " + f.inAbout(f.untilOld()) + "."
}

// untilOld is how long it is at most until the relay counts the flow as old.
func (f *traceFacts) untilOld() time.Duration {
	return f.relay.OpenAge + f.relay.Pause - max(0, f.now.Sub(f.gate.Flow.At()))
}

func (f *traceFacts) inAbout(d time.Duration) string {
	return "in about " + seconds(max(d, f.relay.Pause))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(math.Ceil(d.Seconds()))) }
