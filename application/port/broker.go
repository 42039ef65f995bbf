package port

//go:generate go tool mockgen -source=broker.go -destination=portmock/broker.go -package=portmock

import (
	"context"
	"time"

	"seckill/domain"
)

// SendResult is what is known of a message that was sent. The zero value is SendUnknown.
type SendResult uint8

// The results. There is no "refused": after a deduction nobody may say so.
const (
	SendUnknown   SendResult = iota // it may arrive or not; the relay finishes it
	SendCommitted                   // the half is stored and the local transaction said commit
)

// Sender hands accepted deductions to the broker as one transactional message.
type Sender interface {
	// Send stores a half message, lets the TransactionListener confirm it, and commits or rolls
	// back by its verdict. It answers when the outcome is known or ctx ends, whichever is
	// first; the sending itself goes on. Sending the same batch again may deliver it twice.
	// A batch that is Again goes where this instance consumes by itself, if it knows a place:
	// an instance that hangs may hold what comes to it for as long as the broker believes in it.
	// err says why the result is SendUnknown; it is for the log alone.
	Send(ctx context.Context, batch domain.Batch) (SendResult, error)

	// BatchBytesMax is the most bytes that the items of one message may take, as BytesOf counts them.
	BatchBytesMax() int

	// BytesOf is how many bytes an item takes in a message, at most.
	BytesOf(item domain.Deduction) int
}

// TransactionListener answers the broker about half messages. It answers within a second,
// never panics, and may be asked by any instance about any instance's message.
type TransactionListener interface {
	// Confirm is the local transaction: asked once, by the sender, after the half is stored.
	Confirm(ctx context.Context, batch domain.Batch) domain.Verdict

	// Resolve is the check-back: asked by the broker, later, as often as it likes.
	Resolve(ctx context.Context, batch domain.Batch) domain.Verdict
}

// Origin tells where a message came from.
type Origin struct {
	MessageID string
	Queue     string // topic, broker and queue
	Offset    int64
	Times     int    // deliveries before this one, as far as the broker counts them
	Trace     string // W3C trace context of its send; empty: none
}

// Delivery is one message as the consumer got it.
type Delivery struct {
	Batch     domain.Batch
	Malformed string // why the body is no batch of ours; empty when Batch is set
	Body      []byte // as it came, at most the broker's limit
	Origin    Origin
}

// DeliveryHandler is what the consumer hands its messages to.
type DeliveryHandler interface {
	// Handle returns nil when every delivery is finished for good: applied, met, or parked. On
	// an error nothing may be acknowledged, and the adapter calls again with the same
	// deliveries after a pause; it never sends a message back to the broker. Barriers
	// arrive alone in a call, after everything of their queue with a lower offset was finished.
	Handle(ctx context.Context, deliveries []Delivery) error
}

// Drainer proves that what was sent before is finished.
type Drainer interface {
	// Drain returns nil once every message that was committed before the call is finished, and
	// every half that was pending has been checked, in every queue, whoever consumed it.
	// Messages whose check-back said unknown, and parked ones, are not waited for. It must be
	// called while a consumer of the group runs somewhere. Errors: ctx's, CodeUnavailable.
	Drain(ctx context.Context) error

	// CheckWindow is how long an unanswered half takes at most until it is checked.
	CheckWindow() time.Duration
}

// Backlog is how many messages wait for the consumer. Known is false where it could not be read.
type Backlog struct {
	Known    bool
	Messages int64
}

// BacklogReader reads the consumer's lag.
type BacklogReader interface {
	Backlog(ctx context.Context) Backlog
}

// BarrierLog remembers, where every instance can see it, which barriers have passed.
type BarrierLog interface {
	// MarkBarrier notes that the barrier was finished at a place: a queue's name, or "check" for its
	// check-back. A repeat changes nothing. CodeUnavailable.
	MarkBarrier(ctx context.Context, id, place string) error

	// BarrierPlaces lists the places at which the barrier was finished. CodeUnavailable.
	BarrierPlaces(ctx context.Context, id string) ([]string, error)

	// ForgetBarriers removes those older than age.
	ForgetBarriers(ctx context.Context, age time.Duration) error
}
