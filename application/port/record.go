package port

//go:generate go tool mockgen -source=record.go -destination=portmock/record.go -package=portmock

import (
	"context"
	"time"

	"seckill/domain"
)

// ParkReason says why a message could not be applied.
type ParkReason string

// The reasons.
const (
	ParkMalformed      ParkReason = "malformed"       // no message of ours
	ParkUnknownProduct ParkReason = "unknown-product" // the database has no such product
	ParkUnknownKind    ParkReason = "unknown-kind"    // a kind that this version cannot apply
	ParkNotOpen        ParkReason = "not-open"        // plain form while suspended: replayed by itself
	ParkConflict       ParkReason = "conflict"        // its token stands for another quantity
	ParkPoison         ParkReason = "poison"          // the database refuses it
	ParkDeadLetter     ParkReason = "dead-letter"     // the broker gave up delivering it
	ParkDiscardedHalf  ParkReason = "discarded-half"  // the broker gave up asking what became of it
)

// ParkReasons are all of them.
var ParkReasons = []ParkReason{ParkMalformed, ParkUnknownProduct, ParkUnknownKind, ParkNotOpen, ParkConflict, ParkPoison, ParkDeadLetter, ParkDiscardedHalf}

// ParkedBodyMax is the most bytes of a message that are kept, more than any message of ours
// has: a copy that long may be cut, and nothing can be replayed from it.
const ParkedBodyMax = 64 << 10

// Parked is a message that waits in the database.
type Parked struct {
	ID         string // 32 hexadecimal digits, sortable by time
	Reason     ParkReason
	Detail     string // at most 500 bytes
	Product    string // empty where unknown
	Body       []byte // a copy of the part that could not be applied; at most ParkedBodyMax, cut beyond
	Origin     Origin
	ParkedAt   time.Time
	ReplayedAt time.Time // zero while it waits
}

// Parking keeps what could not be applied.
type Parking interface {
	// Park stores messages; a repeat of the same origin, reason and body stores nothing new.
	Park(ctx context.Context, messages []Parked) error

	// ListParked gives at most limit waiting messages with an id below before (empty: the newest), newest first, of
	// that reason and that product; empty is any.
	ListParked(ctx context.Context, reason ParkReason, product, before string, limit int) ([]Parked, error)

	// FindParked gives at most limit waiting messages with an id above after, oldest first, of that
	// reason and that product; empty is any.
	FindParked(ctx context.Context, reason ParkReason, product, after string, limit int) ([]Parked, error)

	// ReadParked reads messages by id, also those that were replayed; a zero Parked stands for one that is not there.
	ReadParked(ctx context.Context, ids []string) ([]Parked, error)

	// CountParked is how many wait.
	CountParked(ctx context.Context) (int64, error)

	// Replayable gives at most limit waiting messages parked as ParkNotOpen whose product is open, oldest first.
	Replayable(ctx context.Context, limit int) ([]Parked, error)

	// MarkReplayed notes that they were applied; a repeat changes nothing.
	MarkReplayed(ctx context.Context, ids []string) error
}

// Audit says who changed what, and why.
type Audit struct {
	Actor  string // the sub of the operator's token, or "system"
	Action string
	Reason string
}

// AuditLog keeps what was changed by hand or repaired by policy.
type AuditLog interface {
	// Record appends a row; product may be empty, before and after are JSON.
	Record(ctx context.Context, audit Audit, product, before, after string) error
}

// ReportStore keeps reconcile reports, as JSON.
type ReportStore interface {
	// SaveReport stores a report under its id; a repeat replaces it.
	SaveReport(ctx context.Context, id string, createdAt time.Time, body []byte) error

	// ReadReport reads one; CodeReportNotFound.
	ReadReport(ctx context.Context, id string) ([]byte, error)

	// ListReports gives at most limit reports with an id below before (empty: the newest), newest first.
	ListReports(ctx context.Context, before string, limit int) ([][]byte, error)
}

// BookTotals are the ledger's sums of one product, read in one transaction.
type BookTotals struct {
	Stock           domain.Stock
	ConfirmedOrders int64
	ConfirmedUnits  int64
	FlowRows        int64
	FlowUnits       int64 // sum of the stock flows of the product's orders, taken less given back
	CancelledOrders int64
	ReversedOrders  int64 // those of them that were confirmed first: two flow rows each
	RejectedOrders  int64
	UntoldOrders    int64
	OpenedWith      int64 // put on sale at the start
	AddedUnits      int64 // by stock changes
	WithdrawnUnits  int64
	UntoldChanges   int64
	OrphanOrders    int64 // orders that took units, or gave them back, and have no flow row of it
	OrphanFlows     int64 // flow rows without an order
	DoubleFlows     int64 // orders with more than one deduct flow
}

// The kinds of stock flow rows.
const (
	OpSale   = "SECKILL" // takes an order's units
	OpCancel = "CANCEL"  // gives them back
)

// Movement is one row of the stock flow: units that an order took, or gave back.
type Movement struct {
	OpType   string // OpSale, OpCancel
	Quantity int64  // always positive
	Epoch    int64  // with Sequence: of the gate's flow
	Sequence int64
	At       time.Time
}

// Book is the ledger as the checker reads it.
type Book interface {
	// Totals reads the sums of a product; CodeProductNotFound.
	Totals(ctx context.Context, product string) (BookTotals, error)

	// Movements reads the stock flow rows of orders by product and id, what was taken before what was given back.
	// One without rows has none. CodeUnavailable.
	Movements(ctx context.Context, orders []domain.Order) ([][]Movement, error)
}
