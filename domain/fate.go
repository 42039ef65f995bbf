package domain

import "time"

// Fate is an order's status as the gate is told it.
type Fate struct {
	Key          Key
	Quantity     int64
	Status       OrderStatus
	FromBirth    bool
	Epoch        int64
	Sequence     int64
	StockVersion int64
	At           time.Time
}

// Move is what telling a fate does to a flow and to what remains.
type Move struct {
	To      FlowState // the flow's state afterwards; equal to the state before where nothing moves
	Units   int64     // added to what remains: positive gives back, negative takes
	Suspect bool      // the gate has been proved wrong: suspend and rebuild the product
}

// Move is the settling table: what a fate does to a flow in a given state, in a gate whose
// base version is the stock version it was built from and that has remaining units left.
//
// Once-only by the flow's state, under any repetition and any order: a fate that finds the
// flow where it would lead changes nothing. A fate that finds no flow wrote its row while
// the gate had forgotten it; its units count only if the row is newer than the gate's base.
func (f Fate) Move(state FlowState, baseVersion, remaining int64) Move {
	newer := f.StockVersion > baseVersion
	switch f.Status {
	case OrderConfirmed:
		return f.moveConfirmed(state, newer, remaining)
	case OrderCancelled:
		return f.moveCancelled(state, newer)
	case OrderRejected:
		return f.moveRejected(state)
	case OrderAdded:
		return f.moveAdded(state, newer)
	default: // no row: nothing to tell
		return Move{To: state}
	}
}

func (f Fate) moveConfirmed(state FlowState, newer bool, remaining int64) Move {
	switch {
	case state == FlowDeducted:
		return Move{To: FlowSettled}
	case state != FlowAbsent: // settled already, or a late settle that a cancel overtook
		return Move{To: state}
	case !newer: // the rebuild has counted it
		return Move{To: FlowSettled}
	case remaining < f.Quantity:
		return Move{To: FlowSettled, Suspect: true}
	}
	return Move{To: FlowSettled, Units: -f.Quantity}
}

func (f Fate) moveCancelled(state FlowState, newer bool) Move {
	switch {
	case state == FlowDeducted:
		return Move{To: FlowReleased, Units: f.Quantity}
	case state == FlowAbsent:
		return Move{To: FlowReleased}
	case state != FlowSettled:
		return Move{To: state}
	case f.FromBirth: // never confirmed, so the gate cannot have settled it
		return Move{To: state, Suspect: true}
	case newer:
		return Move{To: FlowReleased, Units: f.Quantity}
	}
	return Move{To: FlowReleased}
}

func (f Fate) moveRejected(state FlowState) Move {
	switch state {
	case FlowDeducted:
		return Move{To: FlowRefused, Units: f.Quantity}
	case FlowAbsent:
		return Move{To: FlowRefused}
	case FlowSettled:
		return Move{To: state, Suspect: true}
	default: // released or refused already
		return Move{To: state}
	}
}

// moveAdded counts an addition once: a settled flow says that the gate has it.
func (f Fate) moveAdded(state FlowState, newer bool) Move {
	switch {
	case state == FlowSettled:
		return Move{To: state}
	case state != FlowAbsent: // a withdrawal under the same token lost the row to it
		return Move{To: state, Suspect: true}
	case newer:
		return Move{To: FlowSettled, Units: f.Quantity}
	}
	return Move{To: FlowSettled} // the rebuild has counted it
}

// Disproves reports whether a confirmed order proves that the gate has lost its flow: an order that was deducted
// under the gate's own epoch has its flow there, of the order's sequence. A flow that is deducted under
// another sequence was taken anew by a buyer who asked again.
func (f Fate) Disproves(gateEpoch int64, state FlowState, flowEpoch, flowSequence int64) bool {
	if f.Status != OrderConfirmed || f.Epoch != gateEpoch || gateEpoch == 0 {
		return false
	}
	return state == FlowAbsent || state == FlowDeducted && flowEpoch == f.Epoch && flowSequence != f.Sequence
}

// FlowState is the state of a flow whose fate this is, as a rebuild writes it back.
func (s OrderStatus) FlowState() FlowState {
	switch s {
	case OrderConfirmed, OrderAdded:
		return FlowSettled
	case OrderCancelled:
		return FlowReleased
	case OrderRejected:
		return FlowRefused
	default:
		return FlowAbsent
	}
}
