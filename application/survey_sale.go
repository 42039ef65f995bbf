package application

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// SurveyConfig bounds a survey.
type SurveyConfig struct {
	Pause       time.Duration // between rounds
	RoundMax    time.Duration // a round's time
	BooksPause  time.Duration // at least, between two products whose orders are summed
	BooksAgain  time.Duration // after which a product is summed again that has not changed
	BooksMax    time.Duration // for the sum of one product
	FreshFor    time.Duration // how long a survey may be shown
	ProductsMax int           // products shown by name; the others are added up
	KnownMax    int           // products whose counts are remembered for their drift
}

// DefaultSurveyConfig costs one look each five seconds, whoever asks for it.
func DefaultSurveyConfig() SurveyConfig {
	return SurveyConfig{Pause: 5 * time.Second, RoundMax: 10 * time.Second, BooksPause: 30 * time.Second, BooksAgain: time.Hour,
		BooksMax: 10 * time.Second, FreshFor: 40 * time.Second, ProductsMax: 100, KnownMax: 10_000}
}

// booksShare is what part of the time may be spent on summing orders: one in so many.
const booksShare = 20

// SurveyedProduct is one product, or many added up; nil marks what could not be read, or means nothing now.
type SurveyedProduct struct {
	Product   string
	Total     int64
	Stock     int64  // the ledger's
	Remaining *int64 // the gate's
	OpenFlows *int64
	Suspended bool
	Drift     *int64 // between two looks with nothing on its way; of many, the sum without signs
	Oversold  *int64 // confirmed or promised beyond what was put on sale
}

// Survey is what one round has read; nil marks what could not be read.
type Survey struct {
	At          time.Time
	Products    []SurveyedProduct
	Others      *SurveyedProduct // those without a name here; nil: there are none
	Count       *int64           // all products
	OpenFlows   *int64
	OldestOpen  *time.Duration // zero: none is open. Where some gates could not be read, at least this
	LagMessages *int64
	Untold      *int64
	Parked      *int64
	BooksRead   bool // the last sum of a product's orders
}

// SurveySale reads what costs a reading, once for all who show it.
type SurveySale struct {
	*beat
	eyes    StockEyes
	book    port.Book
	parking port.Parking
	backlog port.BacklogReader
	clock   port.Clock
	cfg     SurveyConfig

	latest atomic.Pointer[Survey]

	// Of the one goroutine.
	counts  map[string]domain.Counts // of products with nothing on its way, as the last round saw them
	books   map[string]bookLook
	summed  time.Time // when orders may be summed again
	bookBad bool
}

type bookLook struct {
	at                time.Time // zero: never
	version, oversold int64
	seen              bool // by the round under way
}

var _ Runner = (*SurveySale)(nil)

// NewSurveySale wires the use case.
func NewSurveySale(eyes StockEyes, book port.Book, parking port.Parking, backlog port.BacklogReader, clock port.Clock,
	cfg SurveyConfig, log *slog.Logger) *SurveySale {
	s := &SurveySale{eyes: eyes, book: book, parking: parking, backlog: backlog, clock: clock, cfg: cfg,
		counts: make(map[string]domain.Counts), books: make(map[string]bookLook)}
	s.beat = newBeat(cfg.Pause, cfg.RoundMax+cfg.BooksMax, log, s.round)
	return s
}

// Name names the runner.
func (s *SurveySale) Name() string { return "survey" }

// Latest is the newest survey, if it is not too old to be shown; a zero one has read nothing.
func (s *SurveySale) Latest() Survey {
	v := s.latest.Load()
	if v == nil || time.Since(v.At) > s.cfg.FreshFor {
		return Survey{}
	}
	return *v
}

func (s *SurveySale) round(ctx context.Context) {
	defer s.sum(ctx)
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RoundMax)
	defer cancel()
	v := &Survey{At: time.Now(), BooksRead: !s.bookBad}
	moving, untold, err := s.untold(ctx)
	if err == nil {
		v.Untold = &untold
	}
	if backlog := s.backlog.Backlog(ctx); backlog.Known {
		v.LagMessages = &backlog.Messages
	}
	if parked, err := s.parking.CountParked(ctx); err == nil {
		v.Parked = &parked
	}
	s.products(ctx, v, func(product string) bool { return err != nil || moving == nil || moving[product] })
	s.latest.Store(v)
}

// untold counts the rows that the gate has to be told, and says whose they are; moving is nil where not all were read.
func (s *SurveySale) untold(ctx context.Context) (moving map[string]bool, count int64, err error) {
	moving = make(map[string]bool)
	for after := ""; ; {
		orders, err := s.eyes.Outbox.Untold(ctx, 0, after, lookPage)
		if err != nil {
			return nil, 0, err
		}
		for _, o := range orders {
			moving[o.Key().Product()] = true
		}
		count += int64(len(orders))
		if len(orders) < lookPage {
			return moving, count, nil
		}
		if count >= untoldMax {
			return nil, count, nil
		}
		after = orders[len(orders)-1].ID()
	}
}

// products goes through the catalog. Where that fails, nothing is said of products.
func (s *SurveySale) products(ctx context.Context, v *Survey, moving func(string) bool) {
	sum := surveySum{gatesRead: true}
	counts := make(map[string]domain.Counts)
	for after := ""; ; {
		stocks, err := s.eyes.Catalog.List(ctx, after, lookPage)
		if err != nil {
			return
		}
		views := make([]port.GateView, len(stocks))
		var viewsErr error
		if len(stocks) > 0 {
			if views, viewsErr = s.eyes.Admin.View(ctx, productsOf(stocks)); viewsErr != nil {
				views, sum.gatesRead = make([]port.GateView, len(stocks)), false
			}
		}
		for i, stock := range stocks {
			p := s.productOf(stock, views[i], viewsErr != nil || views[i].Err != nil, moving(stock.Product()), counts)
			sum.take(views[i])
			over := !stock.Terms().ClosesAt.IsZero() && !s.clock.Now().Before(stock.Terms().ClosesAt)
			if !over && len(sum.named) < s.cfg.ProductsMax {
				sum.named = append(sum.named, p)
			} else {
				sum.addOther(p)
			}
		}
		if len(stocks) < lookPage {
			break
		}
		after = stocks[len(stocks)-1].Product()
	}
	s.counts = counts
	for product, b := range s.books { // of products that are gone
		if !b.seen {
			delete(s.books, product)
		}
	}
	sum.fill(v, s.clock.Now())
}

// productOf judges one product; counts takes what the next round compares.
func (s *SurveySale) productOf(stock domain.Stock, view port.GateView, unread, moving bool, counts map[string]domain.Counts) SurveyedProduct {
	p := SurveyedProduct{Product: stock.Product(), Total: stock.Total(), Stock: stock.Remaining(), Suspended: stock.State() != domain.SaleOpen}
	oversold := max(0, -stock.Remaining())
	if b, known := s.books[stock.Product()]; known {
		oversold = max(oversold, b.oversold)
		b.seen = true
		s.books[stock.Product()] = b
	}
	if !unread && view.Loaded {
		p.Remaining, p.OpenFlows = &view.Remaining, &view.OpenFlows
		oversold = max(oversold, -view.Remaining)
	}
	p.Oversold = &oversold
	look := stockLook{stock: stock, view: view}
	if unread || moving || view.OpenFlows > 0 || !look.sound() || len(counts) >= s.cfg.KnownMax {
		return p
	}
	now := domain.Counts{Product: stock.Product(), GateRemaining: view.Remaining, LedgerStock: stock.Remaining(),
		Version: stock.Version(), Epoch: view.Epoch, Sequence: view.Sequence}
	if drift, settled := domain.SettledDrift(s.counts[stock.Product()], now); settled {
		p.Drift = &drift
	}
	counts[stock.Product()] = now
	return p
}

// surveySum adds up what a round sees.
type surveySum struct {
	named       []SurveyedProduct
	others      *SurveyedProduct
	count, open int64
	oldest      time.Time
	gatesRead   bool
}

func (s *surveySum) take(view port.GateView) {
	s.count++
	s.gatesRead = s.gatesRead && view.Err == nil
	s.open += view.OpenFlows
	if !view.OldestOpenAt.IsZero() && (s.oldest.IsZero() || view.OldestOpenAt.Before(s.oldest)) {
		s.oldest = view.OldestOpenAt
	}
}

func (s *surveySum) addOther(p SurveyedProduct) {
	if s.others == nil {
		zero := int64(0)
		s.others = &SurveyedProduct{Remaining: &zero, OpenFlows: &zero, Oversold: &zero}
	}
	o := s.others
	o.Total, o.Stock, o.Suspended = o.Total+p.Total, o.Stock+p.Stock, o.Suspended || p.Suspended
	o.Remaining, o.OpenFlows, o.Oversold = bothOf(o.Remaining, p.Remaining), bothOf(o.OpenFlows, p.OpenFlows), bothOf(o.Oversold, p.Oversold)
	if p.Drift != nil {
		size := max(*p.Drift, -*p.Drift)
		if o.Drift != nil {
			size += *o.Drift
		}
		o.Drift = &size
	}
}

// bothOf is a sum, unless one of the two is not known.
func bothOf(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

func (s *surveySum) fill(v *Survey, now time.Time) {
	v.Products, v.Others, v.Count = s.named, s.others, &s.count
	if s.gatesRead {
		v.OpenFlows = &s.open
	}
	if s.gatesRead || !s.oldest.IsZero() {
		age := time.Duration(0)
		if !s.oldest.IsZero() {
			age = max(0, now.Sub(s.oldest))
		}
		v.OldestOpen = &age
	}
}

// sum reads the books of one product: what its confirmed orders hold against what was put on sale. That goes through
// all of its orders, so it may take a twentieth of the time.
func (s *SurveySale) sum(ctx context.Context) {
	v := s.latest.Load()
	if v == nil || time.Now().Before(s.summed) {
		return
	}
	begun := time.Now()
	product, version, found := s.toSum(ctx, v)
	if !found {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.BooksMax)
	defer cancel()
	totals, err := s.book.Totals(ctx, product)
	s.summed = time.Now().Add(max(s.cfg.BooksPause, booksShare*time.Since(begun)))
	if s.bookBad = err != nil; err != nil {
		return
	}
	onSale := totals.OpenedWith + totals.AddedUnits - totals.WithdrawnUnits
	s.books[product] = bookLook{at: begun, version: version, oversold: max(0, totals.ConfirmedUnits-onSale), seen: true}
}

// toSum is the named product whose sum is the oldest: of those that have changed since, or else of those whose sum is
// older than BooksAgain, since an order that nobody but an intruder wrote moves no version.
func (s *SurveySale) toSum(ctx context.Context, v *Survey) (product string, version int64, found bool) {
	if len(v.Products) == 0 {
		return "", 0, false
	}
	names := make([]string, len(v.Products))
	for i, p := range v.Products {
		names[i] = p.Product
	}
	stocks, err := s.eyes.Catalog.Stocks(ctx, names)
	if err != nil {
		return "", 0, false
	}
	moved := slices.DeleteFunc(slices.Clone(stocks), func(stock domain.Stock) bool {
		return stock.IsZero() || s.books[stock.Product()].version == stock.Version() && !s.books[stock.Product()].at.IsZero()
	})
	if len(moved) == 0 {
		moved = slices.DeleteFunc(stocks, func(stock domain.Stock) bool {
			return stock.IsZero() || time.Since(s.books[stock.Product()].at) < s.cfg.BooksAgain
		})
	}
	if len(moved) == 0 {
		return "", 0, false
	}
	oldest := slices.MinFunc(moved, func(a, b domain.Stock) int {
		return s.books[a.Product()].at.Compare(s.books[b.Product()].at)
	})
	return oldest.Product(), oldest.Version(), true
}
