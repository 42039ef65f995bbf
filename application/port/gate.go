package port

//go:generate go tool mockgen -source=gate.go -destination=portmock/gate.go -package=portmock

import (
	"context"
	"time"

	"seckill/domain"
)

// DeductItem is one command with the id of the call that carries it.
type DeductItem struct {
	Command domain.DeductCommand
	Attempt string // 1 to 64 characters of the alphabet of ids; the same in every retry of one call
}

// DeductOutcome is what the gate said to one command. The zero value is DeductUnknown, the safe one.
type DeductOutcome uint8

// The outcomes, in the order in which the script decides them. All but DeductAccepted and
// DeductUnknown left the gate as it was.
const (
	DeductUnknown   DeductOutcome = iota // the script may have run or not: never refuse
	DeductAway                           // the gate was not reached: nothing ran
	DeductRewound                        // the gate has forgotten something: it may answer nothing
	DeductNotLoaded                      // no record of the product
	DeductRepeat                         // the token is known; Flow is what it stands for
	DeductConflict                       // the token is known with another quantity
	DeductRefused                        // the token is refused for good
	DeductNotReady                       // shut or rebuilding
	DeductClosed                         // outside the window, or paused
	DeductLimit                          // over the buyer's limit
	DeductNotEnough                      // fewer units left than asked
	DeductAccepted                       // units taken, flow written (also: written by an earlier try of this attempt)
)

// DeductReply answers one command. Flow is set for Accepted, Repeat and Conflict.
// Remaining is what the gate had left after the whole call, for every outcome in which the
// script read a record.
type DeductReply struct {
	Outcome   DeductOutcome
	Flow      domain.Flow
	Remaining int64
	Err       error // for Unknown and Away
}

// CheckReply is what the gate knows of one key. Readable is false when the gate has no record
// of the product, is rewound or is being built: then absence proves nothing.
type CheckReply struct {
	Flow     domain.Flow // zero: absent
	Readable bool
	Epoch    int64 // of the gate's record
}

// AdoptItem asks for the units of a message whose epoch is older than the product's, or
// which claims nothing about the gate.
type AdoptItem struct {
	Key       domain.Key
	Quantity  int64
	Attempt   string
	Otherwise AdoptOtherwise
}

// AdoptOtherwise is what becomes of a key that has no flow and gets no units.
type AdoptOtherwise uint8

// The ways. A tombstone is written in the same step, so that nobody buys under the key between the gate's
// "no" and the rejected row that follows it.
const (
	AdoptOrLeave  AdoptOtherwise = iota // nothing is written
	AdoptOrRefuse                       // a tombstone where there is no room
	RefuseAlone                         // a tombstone, room or not: no units are taken
)

// AdoptOutcome is what the gate said to one adoption. The zero value is AdoptUnknown.
type AdoptOutcome uint8

// The outcomes.
const (
	AdoptUnknown  AdoptOutcome = iota // ask again
	AdoptWait                         // shut, not loaded or rewound: ask again later
	AdoptHeld                         // the flow has its units, now or before
	AdoptNoRoom                       // too few units left: the row must be rejected
	AdoptRefused                      // tombstone or released, also by this call: the row must be rejected
	AdoptConflict                     // the key holds another quantity, whose own message decides the row
)

// AdoptReply answers one adoption. Epoch is the epoch of the gate that holds the units.
type AdoptReply struct {
	Outcome AdoptOutcome
	Epoch   int64
}

// TellOutcome is the gate's acknowledgement of one fate. The zero value is TellUnknown.
type TellOutcome uint8

// The outcomes.
const (
	TellUnknown TellOutcome = iota // tell again
	TellNotNow                     // not loaded, rewound or being built: tell again after the rebuild
	TellDone                       // acknowledged; telling it again changes nothing
	TellSuspect                    // acknowledged, and the gate has been proved wrong: suspend the product
)

// Gate decides whether a buyer may take a unit now, and alone decides that.
type Gate interface {
	// Deduct decides each command in order, atomically per product, and never twice for one
	// attempt: a repeated call with the same attempts gives the same accepted flows. now is
	// the time that sale windows are judged by. Commands of different products are
	// independent. It never fails as a whole: a product whose call failed has its items
	// Unknown or Away.
	Deduct(ctx context.Context, now time.Time, items []DeductItem) []DeductReply

	// Check reads flows; it changes nothing. An error (CodeUnavailable) means that nothing was read.
	Check(ctx context.Context, keys []domain.Key) ([]CheckReply, error)

	// Adopt takes the units of stragglers, atomically per product, without asking for window,
	// pause or limit, and never twice for one key. An adopted flow is deducted and open.
	Adopt(ctx context.Context, now time.Time, items []AdoptItem) []AdoptReply

	// Tell moves each flow as domain.Fate.Move and Disproves say, atomically per product, once only under
	// any repetition and order, and remembers the highest stock version told.
	Tell(ctx context.Context, fates []domain.Fate) []TellOutcome
}

// OpenFlows is the gate's outbox: flows without a known row.
type OpenFlows interface {
	// Page gives at most limit open flows of a product with a sequence above after, in order
	// of sequence, read from the open set alone; fewer than limit are the last ones. A missing
	// record gives none. CodeUnavailable.
	Page(ctx context.Context, product string, after int64, limit int) ([]domain.Flow, error)

	// Claim says whether holder may relay the product's flows for the next ttl; a holder may
	// renew. Only a courtesy between instances: nothing may depend on it. CodeUnavailable.
	Claim(ctx context.Context, product, holder string, ttl time.Duration) (bool, error)
}

// AllFlows reads every flow of a product, also those that are not open.
type AllFlows interface {
	// Walk calls visit with pages of at most 1,000 flows until it has seen every one that was there all the time, at
	// least once. It goes through all that the server holds: for an operator's repair, not for a
	// schedule. visit's error ends it and is returned; else CodeUnavailable.
	Walk(ctx context.Context, product string, visit func([]domain.Flow) error) error
}

// GateView is one product's record, as read.
type GateView struct {
	Product      string
	Loaded       bool // a record exists
	SameServer   bool // its server identity is that of the server that was asked
	Rewound      bool // by identity, or by what this process has seen of it
	Shut         bool
	Remaining    int64
	Epoch        int64 // 0: a record that no rebuild has finished yet
	Sequence     int64
	BaseVersion  int64  // stock version that it was built from
	VersionTold  int64  // highest stock version told
	Building     int64  // epoch of the rebuild that has prepared it, 0 when none is under way
	Server       string // identity that the record names
	Revision     int64  // of its terms
	OpenFlows    int64
	OldestOpenAt time.Time // zero where none is open, or where it could not be read
	Err          error     // why this one could not be read: then nothing else is set but Product
}

// GatePlan is the last step of a rebuild.
type GatePlan struct {
	Product   string
	Epoch     int64 // this attempt's
	Remaining int64 // stock less open flows without a row
	Version   int64 // stock version read under the row's lock: the gate's base
	Terms     domain.Terms
	Sequence  int64  // as read by View after the last write
	Server    string // as read by View; empty for a record that names none yet
}

// GateAdmin builds a gate that Redis has forgotten. Every step is refused (false, nil) when
// the record is not what the attempt made of it: flushed, overtaken by a higher epoch, or on
// another server. The caller then starts again. Errors are CodeUnavailable.
type GateAdmin interface {
	// View reads records; it changes nothing. What could not be read of one product is its own view's Err; the
	// error says that none of several, or the one, could be read.
	View(ctx context.Context, products []string) ([]GateView, error)

	// Shut stops deductions of records that exist; where there is none it does nothing. One that fails
	// keeps none of the others from it.
	Shut(ctx context.Context, products []string) error

	// Prepare begins the attempt named by epoch: it makes the record if there is none, shuts it,
	// marks it as being built by epoch, and takes over this server's identity. Refused if the
	// record's epoch, or the epoch that is building it, is higher than epoch, or its epoch is epoch.
	Prepare(ctx context.Context, product string, epoch int64) (bool, error)

	// WriteBack writes orders as flows in the state of their row, whatever the flow was, and
	// takes them out of the open set; remaining is not touched. At most 1,000 orders a call.
	WriteBack(ctx context.Context, product string, epoch int64, orders []domain.Order) (bool, error)

	// Rebuild writes remaining, base version, terms and epoch, still shut, if identity, sequence
	// and the building mark are as the plan says.
	Rebuild(ctx context.Context, plan GatePlan) (bool, error)

	// Open lets buyers in if the record was rebuilt by epoch and is on this server. Repeats are harmless.
	Open(ctx context.Context, product string, epoch int64) (bool, error)

	// SetTerms takes the terms if their revision is newer than the record's.
	SetTerms(ctx context.Context, product string, terms domain.Terms) (bool, error)
}
