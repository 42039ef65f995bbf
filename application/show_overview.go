package application

import (
	"context"
	"sync"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// Bounds of an Overview.
const (
	overviewMax     = 100              // products, in order of id
	overviewOpenMax = 1_000            // open flows of a product that are gone through; with more it is in motion
	overviewReadMax = time.Second      // for each part's answer; one that hangs must not cost the others theirs
	overviewApart   = 10 * time.Second // between two looks that say how things go; with more, nobody watched
)

// Overview is what an operator watches: pipeline, answers and products at one moment. Nil marks what could not be read.
type Overview struct {
	At       time.Time             `json:"at"`
	Pipeline PipelineView          `json:"pipeline"`
	Answers  []AnswerCount         `json:"answers"`     // to purchases since the start; of this instance
	Times    *AnswerTimes          `json:"answerTimes"` // of the purchases answered since the look before; nil: of none, or no such look
	Latest   []AcceptedPurchase    `json:"latest"`      // newest first, of this instance; of many at once only some
	Parts    map[string]PartStatus `json:"parts"`
	Products []ProductLine         `json:"products"`
	Listed   bool                  `json:"productsRead"` // the ledger's list could be read; otherwise it is that of an earlier look
	More     bool                  `json:"moreProducts"` // there are more than are listed
}

// AnswerCount is how many purchases were answered in one way.
type AnswerCount struct {
	Answer  string `json:"answer"`
	Refuses bool   `json:"refuses"` // it says that the buyer has nothing
	Count   int64  `json:"count"`
}

// Accepted are the purchases that were accepted.
func (o Overview) Accepted() int64 {
	return o.count(func(a AnswerCount) bool { return a.Answer == ToldAccepted.String() })
}

// Refused are the purchases that were refused, for whatever reason.
func (o Overview) Refused() int64 { return o.count(func(a AnswerCount) bool { return a.Refuses }) }

func (o Overview) count(of func(AnswerCount) bool) (sum int64) {
	for _, a := range o.Answers {
		if of(a) {
			sum += a.Count
		}
	}
	return sum
}

func (a DeductAnswer) refuses() bool { return a != ToldUnknown && a != ToldAccepted && a != ToldRepeat }

// ProductLine is a product in an Overview. Units, where nothing else is said.
type ProductLine struct {
	Product     string     `json:"productId"`
	State       string     `json:"state"` // open, suspended, damaged, unknown
	Paused      bool       `json:"paused"`
	Reason      string     `json:"reason,omitempty"`
	Epoch       *int64     `json:"epoch"`
	Sequence    *int64     `json:"sequence"`
	Total       *int64     `json:"total"`     // on sale
	Sold        *int64     `json:"sold"`      // accepted: confirmed, and on the way to it
	Confirmed   *int64     `json:"confirmed"` // given away by the ledger
	Gate        *int64     `json:"gate"`      // what the gate has left
	Ledger      *int64     `json:"ledger"`    // what the ledger has left
	InFlight    *int64     `json:"inFlight"`  // of open flows without an order
	OldestOpen  *float64   `json:"oldestOpenSeconds"`
	Drift       *int64     `json:"drift"`       // that the gate has too much; nil while anything moves
	Balance     string     `json:"balance"`     // holds, broken, unknown
	BalanceNote string     `json:"balanceNote"` // why, in a few words
	SuspendedAt *time.Time `json:"suspendedAt,omitempty"`
}

// ShowOverview looks at everything at once. It remembers its last look: what two looks in a row agree on is at rest, and
// so a look costs a few calls, whatever the number of products.
type ShowOverview struct {
	eyes     StockEyes
	pipeline func(context.Context) PipelineView
	lane     func() LaneStats
	latest   func() []AcceptedPurchase
	parts    func(context.Context) (map[string]PartStatus, bool)
	clock    port.Clock

	mu    sync.Mutex
	known []string             // as they were listed last
	looks map[string]stockLook // the last ones
	at    time.Time            // of the last look
	times TimeCounts           // as they were then
}

// NewShowOverview wires the use case; pipeline, lane, latest and parts are those of the other use cases.
func NewShowOverview(eyes StockEyes, pipeline func(context.Context) PipelineView, lane func() LaneStats,
	latest func() []AcceptedPurchase, parts func(context.Context) (map[string]PartStatus, bool), clock port.Clock) *ShowOverview {
	return &ShowOverview{eyes: eyes, pipeline: pipeline, lane: lane, latest: latest, parts: parts, clock: clock}
}

// Show never fails: what could not be read is nil, and one part that is away or hangs blanks no other. Callers at one
// time take turns.
func (s *ShowOverview) Show(ctx context.Context) Overview {
	s.mu.Lock()
	defer s.mu.Unlock()
	view := Overview{At: s.clock.Now(), Answers: []AnswerCount{}, Latest: s.latest(), Products: []ProductLine{}}
	s.addAnswers(&view)
	var reading sync.WaitGroup
	reading.Go(func() { view.Parts, _ = s.parts(ctx) })
	reading.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, overviewReadMax)
		defer cancel()
		view.Pipeline = s.pipeline(ctx)
	})
	s.addProducts(ctx, &view)
	reading.Wait()
	return view
}

func (s *ShowOverview) addAnswers(view *Overview) {
	lane := s.lane()
	for told, n := range lane.Answered {
		answer := DeductAnswer(told)
		view.Answers = append(view.Answers, AnswerCount{answer.String(), answer.refuses(), n})
	}
	if view.At.Sub(s.at) <= overviewApart {
		view.Times = lane.Times.Since(s.times)
	}
	s.at, s.times = view.At, lane.Times
}

// bothSides is what was read for all products at once, in the order of ShowOverview.known.
type bothSides struct {
	stocks    []domain.Stock // nil: the ledger could not be read
	gates     []port.GateView
	untold    []domain.Order
	untoldErr error
}

func (s *ShowOverview) addProducts(ctx context.Context, view *Overview) {
	sides := s.readBoth(ctx, view)
	ctx, cancel := context.WithTimeout(ctx, overviewReadMax)
	defer cancel()
	looks := make(map[string]stockLook, len(s.known))
	for i, product := range s.known {
		line := ProductLine{Product: product, State: StockUnknown, Balance: VerdictUnknown, BalanceNote: "unread"}
		gateRead := sides.gates[i].Err == nil
		if gateRead {
			line.addGate(sides.gates[i], view.At)
		}
		if view.Listed {
			line.addLedger(sides.stocks[i])
		}
		if view.Listed && gateRead && sides.untoldErr == nil {
			if look, err := s.look(ctx, sides.stocks[i], sides.gates[i], sides.untold); err == nil {
				looks[product] = look
				line.judge(look, s.looks[product])
			}
		}
		view.Products = append(view.Products, line)
	}
	s.looks = looks
}

// readBoth asks each side in a time of its own.
func (s *ShowOverview) readBoth(ctx context.Context, view *Overview) (sides bothSides) {
	read := func(of func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, overviewReadMax)
		defer cancel()
		return of(ctx)
	}
	err := read(func(ctx context.Context) (err error) {
		sides.stocks, err = s.eyes.Catalog.List(ctx, "", overviewMax+1)
		return err
	})
	if view.Listed = err == nil; view.Listed {
		view.More = len(sides.stocks) > overviewMax
		sides.stocks = sides.stocks[:min(len(sides.stocks), overviewMax)]
		s.known = productsOf(sides.stocks)
	}
	err = read(func(ctx context.Context) (err error) {
		sides.gates, err = s.eyes.Admin.View(ctx, s.known)
		return err
	})
	if err != nil {
		sides.gates = make([]port.GateView, len(s.known))
		for i := range sides.gates {
			sides.gates[i].Err = err
		}
	}
	if view.Listed {
		sides.untoldErr = read(func(ctx context.Context) (err error) {
			sides.untold, err = s.eyes.Outbox.Untold(ctx, 0, "", lookPage)
			return err
		})
	}
	return sides
}

// look is StockEyes.look on what was read for all products at once.
func (s *ShowOverview) look(ctx context.Context, stock domain.Stock, gate port.GateView, untold []domain.Order) (stockLook, error) {
	l := stockLook{stock: stock, view: gate, whole: gate.OpenFlows <= overviewOpenMax && len(untold) < lookPage,
		counts: countsOf(stock, gate)}
	if !l.whole || !l.sound() {
		return l, nil
	}
	if err := s.eyes.countOpen(ctx, &l); err != nil {
		return l, err
	}
	return l, s.eyes.countFates(ctx, &l, untold)
}

func (p *ProductLine) addGate(view port.GateView, now time.Time) {
	if !view.Loaded {
		return // missing is never zero
	}
	p.Sequence, p.Gate = &view.Sequence, &view.Remaining
	if !view.OldestOpenAt.IsZero() {
		seconds := max(0, now.Sub(view.OldestOpenAt).Seconds())
		p.OldestOpen = &seconds
	}
}

func (p *ProductLine) addLedger(stock domain.Stock) {
	total, confirmed, left, epoch := stock.Total(), stock.Sold(), stock.Remaining(), stock.Epoch()
	p.State, p.Paused, p.Reason = stock.State().String(), stock.Terms().Paused, stock.Reason()
	p.Total, p.Confirmed, p.Ledger, p.Epoch = &total, &confirmed, &left, &epoch
	if at := stock.SuspendedAt(); !at.IsZero() {
		p.SuspendedAt = &at
	}
}

// judge says whether both sides agree. Only two looks that agree with each other prove it, or the contrary.
func (p *ProductLine) judge(now, before stockLook) {
	switch {
	case !now.sound():
		p.BalanceNote = "not open"
		return
	case !now.whole:
		p.BalanceNote = "too much in motion to count"
		return
	}
	inFlight := now.counts.OpenUnits
	sold := *p.Confirmed + inFlight
	p.InFlight, p.Sold = &inFlight, &sold
	drift, settled := domain.SettledDrift(before.counts, now.counts)
	switch {
	case !settled:
		p.BalanceNote = "in motion"
		return
	case drift != 0:
		p.Balance, p.BalanceNote = VerdictBroken, "differ at rest"
	case now.counts.UntoldUnits != 0:
		p.BalanceNote = "units yet to be told"
	default:
		p.Balance, p.BalanceNote = VerdictHolds, "agree at rest"
	}
	p.Drift = &drift
}
