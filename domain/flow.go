package domain

import "time"

// FlowState is what the gate knows of one deduction. The zero value is no state: the flow is absent.
type FlowState uint8

// The states. A flow is born Deducted (or, as a tombstone, Refused) and moves only as Fate.Move says.
const (
	FlowAbsent   FlowState = iota // the gate has no such flow
	FlowDeducted                  // units taken, no row known yet: in the open set
	FlowSettled                   // the order is confirmed
	FlowReleased                  // the order is cancelled
	FlowRefused                   // the token is refused for good (tombstone)
)

var flowStateNames = [...]string{"absent", "deducted", "settled", "released", "refused"}

// String names the state.
func (s FlowState) String() string {
	if int(s) < len(flowStateNames) {
		return flowStateNames[s]
	}
	return "invalid"
}

// Alive reports whether the flow holds units.
func (s FlowState) Alive() bool { return s == FlowDeducted || s == FlowSettled }

// Open reports whether the flow still waits for its row.
func (s FlowState) Open() bool { return s == FlowDeducted }

// The actions that flows record.
const (
	ActionDeduct = "deduct" // a sale's
	ActionChange = "change" // a stock change's
)

// FlowFields are the parts of a Flow, for its constructor.
type FlowFields struct {
	Key      Key
	Quantity int64
	From, To int64 // what remained before and after
	State    FlowState
	Epoch    int64
	Sequence int64     // the gate's sequence after this change
	Attempt  string    // the call that made it; empty in flows written back from rows
	At       time.Time // millisecond precision, UTC
}

// Flow is the gate's record of one deduction: who took what, with which token, from how much to how much.
type Flow struct{ f FlowFields }

// NewFlow checks the parts; the error has CodeInvalidRequest.
func NewFlow(f FlowFields) (Flow, error) {
	if f.Key.IsZero() {
		return Flow{}, invalid("key", "is missing")
	}
	if err := CheckQuantity("quantity", f.Quantity); err != nil {
		return Flow{}, err
	}
	if f.State == FlowAbsent || f.State > FlowRefused {
		return Flow{}, invalid("state", "is not a state of a flow")
	}
	if f.Epoch < 0 || f.Sequence < 0 || f.From < 0 || f.To < 0 {
		return Flow{}, invalid("flow", "has a negative count")
	}
	f.At = f.At.UTC().Truncate(time.Millisecond)
	return Flow{f}, nil
}

// IsZero reports whether the flow is absent.
func (f Flow) IsZero() bool { return f.f.State == FlowAbsent }

// Action is what the flow records.
func (f Flow) Action() string {
	if f.f.Key.IsChange() {
		return ActionChange
	}
	return ActionDeduct
}

// Key names the deduction.
func (f Flow) Key() Key { return f.f.Key }

// Quantity is the number of units taken, or, in the settled flow of an addition, added.
func (f Flow) Quantity() int64 { return f.f.Quantity }

// Change is the signed change of what remained: minus the quantity. An addition's flow does not know its sign:
// its row does.
func (f Flow) Change() int64 { return -f.f.Quantity }

// From is what remained before the deduction.
func (f Flow) From() int64 { return f.f.From }

// To is what remained after it.
func (f Flow) To() int64 { return f.f.To }

// State is what the gate knows of the flow; FlowAbsent for the zero Flow.
func (f Flow) State() FlowState { return f.f.State }

// Epoch is the epoch of the gate that recorded it.
func (f Flow) Epoch() int64 { return f.f.Epoch }

// Sequence is the gate's sequence after the deduction.
func (f Flow) Sequence() int64 { return f.f.Sequence }

// Attempt is the id of the call that made the flow.
func (f Flow) Attempt() string { return f.f.Attempt }

// At is when the flow was made, UTC, in milliseconds.
func (f Flow) At() time.Time { return f.f.At }
