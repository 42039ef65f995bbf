package domain

import "time"

// BatchKind is what a message asks its consumer to do. The zero value is no kind.
type BatchKind uint8

// The kinds.
const (
	_             BatchKind = iota
	BatchDeduct             // apply deductions
	BatchWithdraw           // apply withdrawals of stock
	BatchBarrier            // proves that everything before it is finished
	BatchWarmup             // makes the broker know the producer; never committed
)

var batchKindNames = [...]string{"", "deduct", "withdraw", "barrier", "warmup"}

// String names the kind.
func (k BatchKind) String() string {
	if k > 0 && int(k) < len(batchKindNames) {
		return batchKindNames[k]
	}
	return "invalid"
}

// ParseBatchKind is the inverse of String; the error has CodeInvalidRequest.
func ParseBatchKind(s string) (BatchKind, error) {
	for i, n := range batchKindNames {
		if i > 0 && n == s {
			return BatchKind(i), nil
		}
	}
	return 0, invalid("kind", "is not a kind of message")
}

// Deduction is one purchase, or one withdrawal of stock, inside a message.
type Deduction struct {
	Key      Key
	Quantity int64
	Epoch    int64 // of the gate that deducted; meaningless in the plain form
	Sequence int64
	Attempt  string
	At       time.Time
}

// Kind is the kind of message that carries the deduction.
func (d Deduction) Kind() BatchKind {
	if d.Key.IsChange() {
		return BatchWithdraw
	}
	return BatchDeduct
}

// Batch is one message: accepted deductions of any products, all of its kind.
type Batch struct {
	ID    string
	Kind  BatchKind
	Plain bool // the plain form of another producer: claims nothing about the gate
	Again bool // its flows may have been sent before; the sender's own note, in no message
	Items []Deduction
}

// DeductionOf is a flow as a message carries it.
func DeductionOf(f Flow) Deduction {
	return Deduction{Key: f.Key(), Quantity: f.Quantity(), Epoch: f.Epoch(), Sequence: f.Sequence(),
		Attempt: f.Attempt(), At: f.At()}
}

// Verdict is the answer of a local transaction or a check-back. The zero value is unknown, the safe one.
type Verdict uint8

// The verdicts.
const (
	VerdictUnknown Verdict = iota
	VerdictCommit
	VerdictRollback
)

// String names the verdict.
func (v Verdict) String() string {
	switch v {
	case VerdictCommit:
		return "commit"
	case VerdictRollback:
		return "rollback"
	case VerdictUnknown:
	}
	return "unknown"
}
