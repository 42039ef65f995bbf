package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"seckill/application/port"
	"seckill/domain"
)

// parkedDetailMax is what the reason of a parked message may take in the database.
const parkedDetailMax = 500

// Encode writes a batch as a message; the wire form is the adapters'.
type Encode func(domain.Batch) ([]byte, error)

// Decode reads what Encode wrote.
type Decode func([]byte) (domain.Batch, error)

// SettleConfig bounds a settlement.
type SettleConfig struct {
	GroupMax int // deductions in one transaction
}

// DefaultSettleConfig suits a database on the same machine or in the same room.
func DefaultSettleConfig() SettleConfig { return SettleConfig{GroupMax: 1000} }

// SettleStats are counts since the start.
type SettleStats struct {
	Groups int64 // transactions that wrote rows
	Rows   int64 // orders written
	Parked int64
}

// SettleDeductions applies what the broker delivers: rows first, then the gate is told.
type SettleDeductions struct {
	ledger   port.Ledger
	gate     port.Gate
	parking  port.Parking
	barriers port.BarrierLog
	suspects Suspects
	teller   teller
	ids      port.IDs
	clock    port.Clock
	encode   Encode
	cfg      SettleConfig
	log      *slog.Logger

	groups, rows, parked atomic.Int64
}

var _ port.DeliveryHandler = (*SettleDeductions)(nil)

// NewSettleDeductions wires the use case.
func NewSettleDeductions(ledger port.Ledger, gate port.Gate, outbox port.Outbox, parking port.Parking,
	barriers port.BarrierLog, suspects Suspects, ids port.IDs, clock port.Clock, encode Encode,
	cfg SettleConfig, log *slog.Logger) *SettleDeductions {
	return &SettleDeductions{ledger: ledger, gate: gate, parking: parking, barriers: barriers, suspects: suspects,
		teller: teller{gate, outbox, suspects}, ids: ids, clock: clock, encode: encode, cfg: cfg, log: log}
}

// Stats are the counts.
func (s *SettleDeductions) Stats() SettleStats {
	return SettleStats{Groups: s.groups.Load(), Rows: s.rows.Load(), Parked: s.parked.Load()}
}

// Handle finishes deliveries: each deduction is applied, met or parked, or the error says that the
// same deliveries must come again. What could be finished is finished all the same.
func (s *SettleDeductions) Handle(ctx context.Context, deliveries []port.Delivery) error {
	g := s.settle(ctx, deliveries)
	if err := s.park(ctx, g.parked); err != nil {
		return errors.Join(g.err, err)
	}
	if g.err == nil && g.waiting > 0 {
		return domain.NewError(domain.CodeRebuilding,
			fmt.Sprintf("%d deductions of an older epoch wait for the gate", g.waiting), nil)
	}
	return g.err
}

// Replay tries parked deliveries again, and says of each why it is not finished; empty where it is.
// One that would be parked again, or that waits, is left where it is. Whatever their form,
// they claim nothing about the gate any more, so each asks it for its units first: the product may
// have been sold out, rebuilt or made anew since they were parked.
func (s *SettleDeductions) Replay(ctx context.Context, deliveries []port.Delivery) (left []string) {
	deliveries = slices.Clone(deliveries)
	for i := range deliveries {
		deliveries[i].Batch.Plain = true
	}
	g := s.settle(ctx, deliveries)
	left = make([]string, len(deliveries))
	for i, why := range g.unfinished {
		left[i] = why
	}
	return left
}

// piece is one deduction with the place of the delivery that brought it.
type piece struct {
	port.ApplyItem
	from int
}

// settlement is one call of settle: what was decided, and what is left.
type settlement struct {
	deliveries []port.Delivery
	orders     []domain.Order // rows whose fate the gate is told
	stragglers []piece        // have to be adopted first
	parked     []port.Parked
	unfinished map[int]string // deliveries of which something is parked or waits, and why
	waiting    int            // stragglers that must come again
	err        error          // the first fault; nothing is tried after it
}

func (g *settlement) wait(p piece) {
	g.unfinished[p.from] = "waits: the gate is not open, or another message decides its key"
	g.waiting++
}

func (g *settlement) fail(pieces []piece, err error) {
	for _, p := range pieces {
		g.unfinished[p.from] = "not now: " + string(domain.CodeOf(err))
	}
	if g.err == nil {
		g.err = err
	}
}

// settle tells the story: sort, apply, adopt what is of an older epoch, tell the gate.
func (s *SettleDeductions) settle(ctx context.Context, deliveries []port.Delivery) *settlement {
	g := &settlement{deliveries: deliveries, unfinished: make(map[int]string)}
	pieces := s.sort(ctx, g)
	for len(pieces) > 0 {
		n := min(len(pieces), s.cfg.GroupMax)
		s.apply(ctx, g, pieces[:n])
		pieces = pieces[n:]
	}
	s.adopt(ctx, g)
	if err := s.teller.tell(ctx, g.orders); err != nil {
		s.log.WarnContext(ctx, "told orders could not be marked; the relay tells them again", "event", "mark_told_failed", "error", err)
	}
	return g
}

// sort takes the deductions out of the deliveries and deals with everything else.
func (s *SettleDeductions) sort(ctx context.Context, g *settlement) []piece {
	most := 0
	for _, d := range g.deliveries {
		most += len(d.Batch.Items)
	}
	pieces := make([]piece, 0, most)
	g.orders = make([]domain.Order, 0, most)
	for i, d := range g.deliveries {
		switch {
		case d.Malformed != "":
			s.set(g, i, port.ParkMalformed, d.Malformed, "", d.Body)
		case d.Batch.Kind == domain.BatchDeduct || d.Batch.Kind == domain.BatchWithdraw:
			for _, item := range d.Batch.Items {
				pieces = append(pieces, piece{port.ApplyItem{Deduction: item, Plain: d.Batch.Plain}, i})
			}
		case d.Batch.Kind == domain.BatchBarrier:
			if err := s.barriers.MarkBarrier(ctx, d.Batch.ID, d.Origin.Queue); err != nil {
				g.unfinished[i], g.err = "not now: "+string(domain.CodeOf(err)), err
			}
		case d.Batch.Kind == domain.BatchWarmup: // made the broker know us, and has done so
		default:
			s.set(g, i, port.ParkUnknownKind, "kind "+d.Batch.Kind.String(), "", d.Body)
		}
	}
	return pieces
}

// apply writes pieces in one transaction. A group that the database will never take is halved until
// the piece that poisons it stands alone, and that is parked.
func (s *SettleDeductions) apply(ctx context.Context, g *settlement, pieces []piece) {
	if g.err != nil { // the database is away: every further call would wait for it again
		g.fail(pieces, g.err)
		return
	}
	result, err := s.ledger.Apply(ctx, itemsOf(pieces))
	switch {
	case err == nil:
		s.note(g, pieces, result)
	case !errors.Is(err, domain.ErrInvalidRequest):
		g.fail(pieces, err)
	case len(pieces) == 1:
		s.setPiece(g, pieces[0], port.ParkPoison, err.Error())
	default:
		half := len(pieces) / 2
		s.apply(ctx, g, pieces[:half])
		s.apply(ctx, g, pieces[half:])
	}
}

func itemsOf(pieces []piece) []port.ApplyItem {
	items := make([]port.ApplyItem, len(pieces))
	for i, p := range pieces {
		items[i] = p.ApplyItem
	}
	return items
}

// note sorts what the ledger said of each piece.
func (s *SettleDeductions) note(g *settlement, pieces []piece, result port.ApplyResult) {
	rows := int64(0)
	for i, reply := range result.Replies {
		switch reply.Outcome {
		case port.Applied:
			rows++
			g.orders = append(g.orders, reply.Order)
		case port.Met:
			g.orders = append(g.orders, reply.Order)
		case port.Straggler:
			if pieces[i].AdoptedEpoch > 0 { // the product has been rebuilt since it was adopted
				g.wait(pieces[i])
				continue
			}
			g.stragglers = append(g.stragglers, pieces[i])
		case port.Deferred:
			s.setPiece(g, pieces[i], port.ParkNotOpen, "the product is not open")
		case port.UnknownProduct:
			s.setPiece(g, pieces[i], port.ParkUnknownProduct, "no such product")
		default:
			g.fail(pieces[i:i+1], domain.NewError(domain.CodeInternal, "the ledger gave no outcome", nil))
		}
	}
	for _, product := range result.Suspects {
		s.suspects.Suspect(product, "the stock guard refused an order: the gate had too much")
	}
	if rows > 0 {
		s.groups.Add(1)
		s.rows.Add(rows)
	}
}

// adopt asks the gate for the units of stragglers, so that none takes the unit of a buyer of the
// new epoch. One that waits comes again: should the database suspend the product meanwhile, the ledger
// defers it and it is parked, so that a shut gate does not hold up the drain. One in the plain form
// is parked at once. What is parked is replayed by itself.
func (s *SettleDeductions) adopt(ctx context.Context, g *settlement) {
	if len(g.stragglers) == 0 {
		return
	}
	if g.err != nil {
		g.fail(g.stragglers, g.err)
		return
	}
	asks := make([]port.AdoptItem, len(g.stragglers))
	for i, p := range g.stragglers {
		asks[i] = port.AdoptItem{Key: p.Deduction.Key, Quantity: p.Deduction.Quantity, Attempt: p.Deduction.Attempt,
			Otherwise: port.AdoptOrRefuse}
	}
	var held, homeless []piece
	for i, reply := range s.gate.Adopt(ctx, s.clock.Now(), asks) {
		p := g.stragglers[i]
		switch {
		case reply.Outcome == port.AdoptHeld:
			p.AdoptedEpoch = reply.Epoch
			held = append(held, p)
		case reply.Outcome == port.AdoptNoRoom || reply.Outcome == port.AdoptRefused:
			homeless = append(homeless, p)
		case reply.Outcome == port.AdoptConflict: // waiting would hold up every drain, and its row may never come
			s.setPiece(g, p, port.ParkConflict, "the token stands for a purchase of another quantity")
		case reply.Outcome == port.AdoptWait && p.Plain:
			s.setPiece(g, p, port.ParkNotOpen, "the gate is not open")
		default:
			g.wait(p)
		}
	}
	if len(held) > 0 {
		s.apply(ctx, g, held)
	}
	s.reject(ctx, g, homeless)
}

// reject decides the fate of pieces that found no room; the row that stands is told.
func (s *SettleDeductions) reject(ctx context.Context, g *settlement, pieces []piece) {
	if len(pieces) == 0 || g.err != nil {
		g.fail(pieces, g.err)
		return
	}
	claims := make([]port.FateClaim, len(pieces))
	for i, p := range pieces {
		claims[i] = rejection(p.Deduction)
	}
	rows, err := s.ledger.Decide(ctx, claims)
	if err != nil {
		g.fail(pieces, fmt.Errorf("reject %d stragglers: %w", len(pieces), err))
		return
	}
	g.orders = append(g.orders, rows...)
}

// setPiece parks one deduction. Its copy can be replayed: the message itself if it holds nothing
// else, or a message of this one.
func (s *SettleDeductions) setPiece(g *settlement, p piece, reason port.ParkReason, detail string) {
	d := g.deliveries[p.from]
	body := d.Body
	if len(d.Batch.Items) > 1 {
		one := d.Batch
		one.Items = []domain.Deduction{p.Deduction}
		if alone, err := s.encode(one); err == nil { // else the whole message: what was applied is met
			body = alone
		}
	}
	s.set(g, p.from, reason, detail, p.Deduction.Key.Product(), body)
}

func (s *SettleDeductions) set(g *settlement, from int, reason port.ParkReason, detail, product string, body []byte) {
	g.unfinished[from] = clip(string(reason)+": "+detail, parkedDetailMax)
	g.parked = append(g.parked, port.Parked{ID: s.ids.Unique(), Reason: reason, Detail: clip(detail, parkedDetailMax),
		Product: product, Body: body[:min(len(body), port.ParkedBodyMax)], Origin: g.deliveries[from].Origin, ParkedAt: s.clock.Now()})
}

// clip cuts to at most limit bytes and leaves no torn character.
func clip(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

func (s *SettleDeductions) park(ctx context.Context, parked []port.Parked) error {
	if len(parked) == 0 {
		return nil
	}
	if err := s.parking.Park(ctx, parked); err != nil {
		return fmt.Errorf("park %d messages: %w", len(parked), err)
	}
	s.parked.Add(int64(len(parked)))
	for _, p := range parked {
		s.log.WarnContext(ctx, "a message is parked", "event", "parked", "reason", p.Reason, "detail", p.Detail,
			"product", p.Product, "message", p.Origin.MessageID)
	}
	return nil
}
