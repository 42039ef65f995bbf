package application

import (
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// The words for an order as its buyer sees it. Pending has no row yet.
const (
	OrderPending   = "pending"
	OrderConfirmed = "confirmed"
	OrderCancelled = "cancelled"
	OrderRejected  = "rejected"
)

// OrderView is an order as its buyer sees it.
type OrderView struct {
	Key       domain.Key
	Quantity  int64
	Status    string
	CreatedAt time.Time
}

// Receipt answers a purchase. Replayed marks a token that was known already: Order is then
// the original order as it now is.
type Receipt struct {
	Order     OrderView
	Replayed  bool
	Remaining int64 // what the gate had left
}

// ChangeView is a stock change as an operator sees it. A withdrawal is pending until its row is there.
type ChangeView struct {
	ID        string // of its row; empty while it is pending
	Product   string
	Token     string
	Delta     int64
	Status    string // pending, confirmed, cancelled, rejected
	CreatedAt time.Time
	Actor     string // who asked for it, with Reason; both are empty where that is not known
	Reason    string
}

// ChangeReceipt answers a stock change. Replayed marks a token that was known already: Change is then as it now is.
type ChangeReceipt struct {
	Change   ChangeView
	Replayed bool
}

// PublicStock is a product as every buyer may see it.
type PublicStock struct {
	Product       string
	State         string // open, paused, upcoming, over, rebuilding, sold-out
	Total         int64
	Remaining     *int64 // nil: could not be read
	OpensAt       time.Time
	ClosesAt      time.Time
	LimitPerBuyer int64
}

// StockView shows both sides of a product to an operator; nil marks what could not be read.
type StockView struct {
	Edition       string      `json:"-"` // domain.Stock's; empty where the ledger could not be read
	Product       string      `json:"productId"`
	State         string      `json:"state"` // open, suspended, damaged
	Paused        bool        `json:"paused"`
	Reason        string      `json:"reason,omitempty"`
	Epoch         int64       `json:"epoch"`
	Sequence      *int64      `json:"sequence"`
	Total         int64       `json:"total"`
	Confirmed     *int64      `json:"confirmed"`
	InFlight      *int64      `json:"inFlight"` // open flows
	OpensAt       *time.Time  `json:"opensAt,omitempty"`
	ClosesAt      *time.Time  `json:"closesAt,omitempty"`
	LimitPerBuyer int64       `json:"limitPerBuyer"`
	Gate          *GateSide   `json:"gate"`
	Ledger        *LedgerSide `json:"ledger"`
	Drift         *int64      `json:"drift"` // units that the gate has too much; nil while anything moves

	SuspendedAt       *time.Time `json:"suspendedAt,omitempty"` // since when it is not open
	LastClosedSeconds float64    `json:"lastClosedSeconds"`     // how long it was not open before it was opened last
}

// GateSide is the gate's part of a StockView.
type GateSide struct {
	Remaining int64  `json:"remaining"`
	Epoch     int64  `json:"epoch"`
	Shut      bool   `json:"shut"`
	Server    string `json:"server"`
}

// LedgerSide is the ledger's part of a StockView.
type LedgerSide struct {
	Stock   int64 `json:"stock"`
	Version int64 `json:"version"`
}

// PipelineView is what is on its way; nil marks what could not be read.
type PipelineView struct {
	OpenFlows        *int64      `json:"openFlows"`
	OldestOpenSecond *float64    `json:"oldestOpenSeconds"`
	LagMessages      *int64      `json:"lagMessages"`
	UntoldOrders     *int64      `json:"untoldOrders"`
	Parked           *int64      `json:"parked"`
	LaneWaiting      int64       `json:"laneWaiting"`
	Intake           IntakeState `json:"intake"` // of this instance
	Suspended        []string    `json:"suspended"`

	LongestClosed *ClosedProduct `json:"longestClosed,omitempty"` // of those
	LastRebuilt   *ClosedProduct `json:"lastRebuilt,omitempty"`   // by this instance
	CheckWindow   float64        `json:"checkWindowSeconds"`      // what a rebuild after a loss waits for at most
	GatesUnread   int64          `json:"gatesUnread"`             // products that openFlows leaves out

	Batches         int64 `json:"deductBatches"`
	BatchedCommands int64 `json:"deductCommands"`
	SentBatches     int64 `json:"sentBatches"`
	SentFlows       int64 `json:"sentFlows"`
	AppliedGroups   int64 `json:"appliedGroups"`
	AppliedRows     int64 `json:"appliedRows"`
}

// ClosedProduct is how long a product is, or was, not open.
type ClosedProduct struct {
	Product string  `json:"productId"`
	Seconds float64 `json:"closedSeconds"`
}

// Finding is one counter-example of an invariant.
type Finding struct {
	Product string `json:"productId,omitempty"`
	User    string `json:"userId,omitempty"`
	Token   string `json:"token,omitempty"`
	Detail  string `json:"detail"`
}

// ReplayOutcome is what became of a parked message that was to be replayed.
type ReplayOutcome string

// The outcomes.
const (
	ReplayDone     ReplayOutcome = "replayed"  // finished, now or earlier
	ReplayLeft     ReplayOutcome = "parked"    // it stays where it is; Detail says why
	ReplayNotFound ReplayOutcome = "not-found" // there is no such message
)

// ReplayResult answers for one parked message.
type ReplayResult struct {
	ID      string          `json:"id"`
	Outcome ReplayOutcome   `json:"outcome"`
	Reason  port.ParkReason `json:"reason,omitempty"` // that it was parked for
	Detail  string          `json:"detail,omitempty"`
}

// InvariantResult is the verdict on one of A to E.
type InvariantResult struct {
	Name     string    `json:"name"` // A, B, C, D, E
	Title    string    `json:"title"`
	Verdict  string    `json:"verdict"` // holds, broken, unknown
	Checked  int64     `json:"checked"`
	Broken   int64     `json:"broken"`
	Findings []Finding `json:"findings"` // at most 20
}

// Verification is the verdict on all of them.
type Verification struct {
	At         time.Time         `json:"at"`
	Products   int64             `json:"products"`
	Orders     int64             `json:"orders"`
	Confirmed  int64             `json:"confirmedOrders"`
	Units      int64             `json:"confirmedUnits"`
	Drained    bool              `json:"drained"` // nothing was in flight
	Holds      bool              `json:"holds"`   // all five hold
	Invariants []InvariantResult `json:"invariants"`
}

// Answer is what a client was told about one key, for the check of D.
type Answer string

// The answers in a client's journal, to a purchase and to a cancel.
const (
	AnswerAccepted Answer = "accepted" // 202, or 200 for a repeat that is confirmed; a cancel: 200, cancelled
	AnswerRefused  Answer = "refused"  // a definite refusal; a cancel: also 200, rejected
	AnswerUnknown  Answer = "unknown"  // 503, a timeout, a torn connection
)

// JournalEntry is one line of a client's journal: the last definite answer to a purchase wins over unknown
// ones. Of the answers to cancels, accepted wins over unknown, and that over refused.
type JournalEntry struct {
	Product  string `json:"productId"`
	User     string `json:"userId"`
	Token    string `json:"token"`
	Quantity int64  `json:"quantity"` // of a purchase
	Cancel   bool   `json:"cancel,omitempty"`
	Answer   Answer `json:"answer"`
}

// ReconcileMode says whether a reconciliation repairs.
type ReconcileMode string

// The modes.
const (
	ReconcileDryRun ReconcileMode = "dry-run"
	ReconcileApply  ReconcileMode = "apply"
)

// ReconcilePolicy says what to do with an old open flow that has no row.
type ReconcilePolicy string

// The policies.
const (
	PolicySendAgain  ReconcilePolicy = "send-again"
	PolicyReportOnly ReconcilePolicy = "report-only"
	PolicyRollBack   ReconcilePolicy = "roll-back"
)

// ReconcileRequest asks for a reconciliation.
type ReconcileRequest struct {
	Mode    ReconcileMode
	PlanID  string // apply what that dry run listed, or CodePlanOutdated
	Product string // empty: all
	Policy  ReconcilePolicy
	Actor   string
	Reason  string // why, in the actor's words; may be empty
}

// Anomaly kinds of a ReconcileReport.
const (
	AnomalyOpenWithoutRow = "open-flow-without-order" // finished by policy
	AnomalyOpenWithRow    = "open-flow-with-order"    // finished by the row's fate
	AnomalyFlowMissing    = "order-without-flow"      // the gate is told
	AnomalyFlowDisagrees  = "flow-disagrees"          // the gate is told, or drift
	AnomalyUntold         = "order-untold"            // the gate is told
	AnomalyDrift          = "stock-drift"             // rebuilt by policy
)

// Anomaly is one difference that a reconciliation found.
type Anomaly struct {
	Kind     string `json:"kind"`
	Product  string `json:"productId"`
	User     string `json:"userId,omitempty"`
	Token    string `json:"token,omitempty"`
	Units    int64  `json:"units"`
	Evidence string `json:"evidence"`
	Action   string `json:"action"` // sent-again, settled, told, rolled-back, rebuilt, none
	Done     bool   `json:"done"`
}

// ReconcileReport is what a reconciliation found and did.
type ReconcileReport struct {
	ID         string           `json:"id"`
	PlanID     string           `json:"planId"` // its own id for a dry run; the plan applied, or empty, for an apply
	Mode       ReconcileMode    `json:"mode"`
	Policy     ReconcilePolicy  `json:"policy"`
	Actor      string           `json:"actor"`
	Reason     string           `json:"reason,omitempty"`
	StartedAt  time.Time        `json:"startedAt"`
	FinishedAt time.Time        `json:"finishedAt"`
	Products   int64            `json:"products"`
	Flows      int64            `json:"flowsChecked"`
	Orders     int64            `json:"ordersChecked"`
	Found      map[string]int64 `json:"found"` // by kind
	Repaired   int64            `json:"repaired"`
	Capped     bool             `json:"capped"` // the cap on repairs or on listed anomalies was reached
	Anomalies  []Anomaly        `json:"anomalies"`
}
