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
		switch state {
		case FlowDeducted:
			return Move{To: FlowSettled}
		case FlowAbsent:
			if !newer {
				return Move{To: FlowSettled}
			}
			if remaining < f.Quantity {
				return Move{To: FlowSettled, Suspect: true}
			}
			return Move{To: FlowSettled, Units: -f.Quantity}
		}
		return Move{To: state} // settled already, or a late settle that a cancel overtook
	case OrderCancelled:
		switch state {
		case FlowDeducted:
			return Move{To: FlowReleased, Units: f.Quantity}
		case FlowSettled:
			if f.FromBirth {
				return Move{To: state, Suspect: true}
			}
			if newer {
				return Move{To: FlowReleased, Units: f.Quantity}
			}
			return Move{To: FlowReleased}
		case FlowAbsent:
			return Move{To: FlowReleased}
		}
		return Move{To: state}
	case OrderRejected:
		switch state {
		case FlowDeducted:
			return Move{To: FlowRefused, Units: f.Quantity}
		case FlowSettled:
			return Move{To: state, Suspect: true}
		case FlowAbsent:
			return Move{To: FlowRefused}
		}
		return Move{To: state}
	}
	return Move{To: state}
}

// FlowState is the state of a flow whose fate this is, as a rebuild writes it back.
func (s OrderStatus) FlowState() FlowState {
	switch s {
	case OrderConfirmed:
		return FlowSettled
	case OrderCancelled:
		return FlowReleased
	case OrderRejected:
		return FlowRefused
	}
	return FlowAbsent
}
