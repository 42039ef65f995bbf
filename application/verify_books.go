package application

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// The verdicts on an invariant.
const (
	VerdictHolds   = "holds"
	VerdictBroken  = "broken"
	VerdictUnknown = "unknown" // a part could not be read, or is still moving
)

// findingsMax is the most counter-examples of one invariant.
const findingsMax = 20

// VerifyConfig bounds a verification.
type VerifyConfig struct {
	LiveMax time.Duration // what is on its way for longer breaks E
	Poll    time.Duration // between two looks of WaitDrained
}

// DefaultVerifyConfig takes E at its word: a minute.
func DefaultVerifyConfig() VerifyConfig {
	return VerifyConfig{LiveMax: time.Minute, Poll: 200 * time.Millisecond}
}

// VerifyBooks is the one function that checks the invariants A to E.
type VerifyBooks struct {
	book  port.Book
	eyes  StockEyes
	clock port.Clock
	cfg   VerifyConfig
}

// NewVerifyBooks wires the use case.
func NewVerifyBooks(book port.Book, eyes StockEyes, clock port.Clock, cfg VerifyConfig) *VerifyBooks {
	return &VerifyBooks{book: book, eyes: eyes, clock: clock, cfg: cfg}
}

// Verify checks one product, or all where product is empty, and, for D, what the clients in the
// journal were told. What cannot be read, or does not stand still, makes a verdict unknown and
// is no error. CodeProductNotFound for a product that was named, CodeInvalidRequest for a
// journal with ids that cannot be, or ctx's error.
func (b *VerifyBooks) Verify(ctx context.Context, product string, journal []JournalEntry) (Verification, error) {
	answers, err := answersOf(journal, product)
	if err != nil {
		return Verification{}, err
	}
	c := newChecking(b.clock.Now())
	err = b.forEach(ctx, product, func(p string) error { return b.checkProduct(ctx, c, p) })
	switch {
	case ctx.Err() != nil:
		return Verification{}, ctx.Err()
	case errors.Is(err, domain.ErrProductNotFound):
		return Verification{}, err
	case err != nil:
		c.unsure(Finding{Detail: "the products could not be read"}, &c.a, &c.b, &c.c, &c.e)
	}
	b.checkUntold(ctx, c, product)
	b.checkAnswers(ctx, c, answers)
	if ctx.Err() != nil {
		return Verification{}, ctx.Err()
	}
	return c.verdict(), nil
}

// forEach calls do with the product named, or with every one.
func (b *VerifyBooks) forEach(ctx context.Context, product string, do func(string) error) error {
	if product != "" {
		return do(product)
	}
	for after := ""; ; {
		stocks, err := b.eyes.Catalog.List(ctx, after, lookPage)
		if err != nil {
			return err
		}
		for _, s := range stocks {
			if err := do(s.Product()); err != nil {
				return err
			}
		}
		if len(stocks) < lookPage {
			return nil
		}
		after = stocks[len(stocks)-1].Product()
	}
}

// checkProduct checks A, B, C and E of one product. The look comes first: what it finds at rest is in
// the totals, so that a verdict on a drained product never judges rows of the time before.
func (b *VerifyBooks) checkProduct(ctx context.Context, c *checking, product string) error {
	c.v.Products++
	look, lookErr := b.eyes.look(ctx, product, math.MaxInt64)
	totals, err := b.book.Totals(ctx, product)
	if errors.Is(err, domain.ErrProductNotFound) {
		return err
	}
	if err != nil {
		c.unsure(Finding{Product: product, Detail: "the ledger could not be read"}, &c.a, &c.b, &c.c, &c.e)
		return ctx.Err()
	}
	c.checkTotals(product, totals)
	if lookErr != nil {
		c.unsure(Finding{Product: product, Detail: "the gate or the ledger could not be read"}, &c.a, &c.b, &c.e)
		return ctx.Err()
	}
	if look.view.Loaded && look.view.Remaining < 0 {
		c.broke(&c.a, Finding{Product: product, Detail: fmt.Sprintf("the gate has %d left", look.view.Remaining)})
	}
	b.checkLive(c, look, totals.UntoldOrders+totals.UntoldChanges)
	return b.checkBothSides(ctx, c, look)
}

// checkTotals checks what the ledger says by itself.
func (c *checking) checkTotals(product string, t port.BookTotals) {
	c.v.Orders += t.ConfirmedOrders + t.CancelledOrders + t.RejectedOrders
	c.v.Confirmed += t.ConfirmedOrders
	c.v.Units += t.ConfirmedUnits
	c.rejected += t.RejectedOrders
	c.a.Checked++
	c.b.Checked++
	c.c.Checked += t.ConfirmedOrders
	find := func(at *tally, broken bool, format string, args ...any) {
		if broken {
			c.broke(at, Finding{Product: product, Detail: fmt.Sprintf(format, args...)})
		}
	}
	onSale := t.OpenedWith + t.AddedUnits - t.WithdrawnUnits
	find(&c.b, t.Stock.Total() != onSale, "%d units are on sale, but it began with %d, %d were added and %d withdrawn",
		t.Stock.Total(), t.OpenedWith, t.AddedUnits, t.WithdrawnUnits)
	find(&c.a, t.ConfirmedUnits > t.Stock.Total(), "%d units confirmed of %d put on sale", t.ConfirmedUnits, t.Stock.Total())
	find(&c.b, t.Stock.Sold() != t.ConfirmedUnits, "put on sale less stock is %d, confirmed orders have %d units", t.Stock.Sold(), t.ConfirmedUnits)
	find(&c.b, t.Stock.Sold() != t.FlowUnits, "put on sale less stock is %d, stock flows have %d units", t.Stock.Sold(), t.FlowUnits)
	find(&c.c, t.OrphanOrders != 0, "%d orders took units, or gave them back, and have no stock flow of it", t.OrphanOrders)
	find(&c.c, t.OrphanFlows != 0, "%d stock flows have no order", t.OrphanFlows)
	find(&c.c, t.DoubleFlows != 0, "%d orders have more than one stock flow", t.DoubleFlows)
	find(&c.c, t.FlowRows != t.ConfirmedOrders+2*t.ReversedOrders, "%d confirmed orders, %d that were cancelled later, and %d stock flows",
		t.ConfirmedOrders, t.ReversedOrders, t.FlowRows)
}

// checkLive asks whether anything is on its way, and whether it has been for too long.
func (b *VerifyBooks) checkLive(c *checking, l stockLook, untold int64) {
	product := l.stock.Product()
	c.e.Checked++
	switch state := l.stock.State(); {
	case state == domain.SaleDamaged:
		c.moving(true, Finding{Product: product, Detail: "waits for an operator: " + l.stock.Reason()})
	case state != domain.SaleOpen:
		c.moving(false, Finding{Product: product, Detail: "is suspended: " + l.stock.Reason()})
	case !l.sound() || l.view.Shut:
		c.moving(false, Finding{Product: product, Detail: "the gate is not open"})
	}
	if n := l.view.OpenFlows; n > 0 {
		age := c.v.At.Sub(l.view.OldestOpenAt)
		stuck := !l.view.OldestOpenAt.IsZero() && age > b.cfg.LiveMax
		c.moving(stuck, Finding{Product: product, Detail: fmt.Sprintf("%d open flows, the oldest for %.0f s", n, max(0, age.Seconds()))})
	}
	if untold > 0 {
		c.moving(false, Finding{Product: product, Detail: fmt.Sprintf("%d orders and stock changes that the gate has yet to be told", untold)})
	}
}

// checkBothSides holds the gate against the ledger. A difference counts once two looks agree on it.
func (b *VerifyBooks) checkBothSides(ctx context.Context, c *checking, l stockLook) error {
	product := l.stock.Product()
	if !l.sound() {
		c.unsure(Finding{Product: product, Detail: "the gate is not on sale, so its numbers mean nothing yet"}, &c.b)
		return nil
	}
	if l.whole && l.counts.Drift() == 0 {
		return nil
	}
	drift, last, settled, err := b.eyes.drift(ctx, product, math.MaxInt64)
	switch {
	case err != nil:
		c.unsure(Finding{Product: product, Detail: "the gate or the ledger could not be read"}, &c.b)
		return ctx.Err()
	case !settled:
		c.unsure(Finding{Product: product, Detail: "does not stand still"}, &c.b)
	case drift != 0:
		c.broke(&c.b, Finding{Product: product, Detail: fmt.Sprintf(
			"the gate has %d units too many: %d left, stock %d, %d open, %d yet to be told", drift,
			last.counts.GateRemaining, last.counts.LedgerStock, last.counts.OpenUnits, last.counts.UntoldUnits)})
	}
	return nil
}

// checkUntold looks for rows that the gate should have been told long ago.
func (b *VerifyBooks) checkUntold(ctx context.Context, c *checking, product string) {
	orders, err := b.eyes.Outbox.Untold(ctx, b.cfg.LiveMax, "", lookPage)
	if err != nil {
		c.unsure(Finding{Detail: "the untold orders could not be read"}, &c.e)
		return
	}
	for _, o := range orders {
		if product == "" || o.Key().Product() == product {
			c.moving(true, findingOf(o.Key(), fmt.Sprintf("%s, and the gate was not told for more than %s", o.Status(), b.cfg.LiveMax)))
		}
	}
}

// told is what the client of one key was told in the end; an answer is empty where it did not ask.
type told struct {
	key      domain.Key
	quantity int64
	answer   Answer // to the purchase
	cancel   Answer
}

// take adds an entry to what was told.
func (t *told) take(e JournalEntry) {
	weight := map[Answer]int{AnswerRefused: 1, AnswerUnknown: 2, AnswerAccepted: 3}
	switch {
	case e.Cancel:
		if weight[e.Answer] > weight[t.cancel] {
			t.cancel = e.Answer
		}
	case t.answer == "" || e.Answer != AnswerUnknown:
		t.answer, t.quantity = e.Answer, e.Quantity
	}
}

// wrong says what is untrue of the answers, given the order that stands; empty: nothing is.
func (t *told) wrong(o domain.Order) string {
	switch {
	case t.cancel == AnswerAccepted && o.Status() != domain.OrderCancelled:
		return "cancelled, but the order is " + o.Status().String()
	case t.answer == AnswerAccepted && o.Status() == domain.OrderRejected:
		return "accepted, but the order is rejected"
	case t.answer == AnswerAccepted && o.Status() == domain.OrderCancelled && t.cancel != AnswerAccepted && t.cancel != AnswerUnknown:
		return "accepted, but the order is cancelled, and its buyer did not ask for that"
	case t.answer == AnswerAccepted && o.Quantity() != t.quantity:
		return fmt.Sprintf("accepted with %d units, but the order has %d", t.quantity, o.Quantity())
	case t.answer == AnswerRefused && o.Status() == domain.OrderConfirmed:
		return "refused, but the order is confirmed"
	}
	return ""
}

// promised reports whether there has to be an order.
func (t *told) promised() bool { return t.answer == AnswerAccepted || t.cancel == AnswerAccepted }

// answersOf reduces a journal to what was told of each key, in the journal's order.
func answersOf(journal []JournalEntry, product string) ([]told, error) {
	if journal == nil {
		return nil, nil
	}
	answers := make([]told, 0, len(journal))
	at := make(map[domain.Key]int, len(journal))
	for _, e := range journal {
		if product != "" && e.Product != product {
			continue
		}
		key, err := domain.NewKey(e.Product, e.User, e.Token)
		if err != nil {
			return nil, err
		}
		switch e.Answer {
		case AnswerAccepted, AnswerRefused, AnswerUnknown:
		default:
			return nil, &domain.Error{Code: domain.CodeInvalidRequest, Field: "answer", Detail: "answer is not one of accepted, refused, unknown"}
		}
		i, seen := at[key]
		if !seen {
			i = len(answers)
			at[key] = i
			answers = append(answers, told{key: key})
		}
		answers[i].take(e)
	}
	return answers, nil
}

// checkAnswers checks D: by the journal, or, without one, only names what an accepted buyer might miss.
func (b *VerifyBooks) checkAnswers(ctx context.Context, c *checking, answers []told) {
	if answers == nil {
		if c.rejected > 0 {
			c.d.note(Finding{Detail: fmt.Sprintf("%d orders are rejected; only a journal tells whether their buyers were told accepted", c.rejected)})
		}
		return
	}
	for len(answers) > 0 {
		page := answers[:min(len(answers), lookPage)]
		answers = answers[len(page):]
		c.d.Checked += int64(len(page))
		if err := b.checkPage(ctx, c, page); err != nil {
			c.unsure(Finding{Detail: "the orders of the journal could not be read"}, &c.d)
			return
		}
	}
}

func (b *VerifyBooks) checkPage(ctx context.Context, c *checking, page []told) error {
	keys := make([]domain.Key, len(page))
	for i, t := range page {
		keys[i] = t.key
	}
	orders, err := b.eyes.Ledger.Fates(ctx, keys)
	if err != nil {
		return err
	}
	var rowless []told
	for i, t := range page {
		if orders[i].IsZero() {
			if t.promised() || t.answer != AnswerRefused {
				rowless = append(rowless, t)
			}
		} else if wrong := t.wrong(orders[i]); wrong != "" {
			c.broke(&c.d, findingOf(t.key, wrong))
		}
	}
	return b.checkRowless(ctx, c, rowless)
}

// checkRowless tells orders that are on their way from those that will never come. The gate is asked
// before the ledger is read again, so that an order which is settled in between is met there.
func (b *VerifyBooks) checkRowless(ctx context.Context, c *checking, rowless []told) error {
	if len(rowless) == 0 {
		return nil
	}
	keys := make([]domain.Key, len(rowless))
	for i, t := range rowless {
		keys[i] = t.key
	}
	replies, err := b.eyes.Gate.Check(ctx, keys)
	if err != nil {
		return err
	}
	orders, err := b.eyes.Ledger.Fates(ctx, keys)
	if err != nil {
		return err
	}
	for i, t := range rowless {
		switch {
		case !orders[i].IsZero():
			if wrong := t.wrong(orders[i]); wrong != "" {
				c.broke(&c.d, findingOf(t.key, wrong))
			}
		case t.cancel == AnswerAccepted: // its row came before the answer
			c.broke(&c.d, findingOf(t.key, "cancelled, but there is no order"))
		case replies[i].Flow.State().Open():
			c.unsure(findingOf(t.key, "an open flow: the order is on its way"), &c.d)
		case t.promised():
			c.broke(&c.d, findingOf(t.key, "accepted, but there is no order"))
		}
	}
	return nil
}

// WaitDrained returns once nothing of the product (empty: of any) is on its way and its gate is
// open. Its error, when ctx ends first, says what it still waited for.
func (b *VerifyBooks) WaitDrained(ctx context.Context, product string) error {
	for {
		waitsFor, err := b.undrained(ctx, product)
		if err == nil && waitsFor == "" {
			return nil
		}
		if errors.Is(err, domain.ErrProductNotFound) {
			return err
		}
		select {
		case <-time.After(b.cfg.Poll):
		case <-ctx.Done():
			return fmt.Errorf("not drained: %s: %w", waitsFor, errors.Join(ctx.Err(), err))
		}
	}
}

// undrained names the first thing that is on its way; empty: there is none.
func (b *VerifyBooks) undrained(ctx context.Context, product string) (waitsFor string, err error) {
	err = b.forEach(ctx, product, func(p string) error {
		if waitsFor != "" {
			return nil
		}
		l, err := b.eyes.look(ctx, p, 0)
		if err != nil {
			return err
		}
		switch {
		case l.stock.State() != domain.SaleOpen:
			waitsFor = p + " is " + l.stock.State().String()
		case !l.sound() || l.view.Shut:
			waitsFor = p + ": the gate is not open"
		case l.view.OpenFlows > 0:
			waitsFor = fmt.Sprintf("%s has %d open flows", p, l.view.OpenFlows)
		}
		return nil
	})
	if err != nil || waitsFor != "" {
		return waitsFor, err
	}
	for after := ""; ; {
		orders, err := b.eyes.Outbox.Untold(ctx, 0, after, lookPage)
		if err != nil {
			return "", err
		}
		for _, o := range orders {
			if product == "" || o.Key().Product() == product {
				return "the gate has yet to be told of " + o.Key().Product(), nil
			}
		}
		if len(orders) < lookPage {
			return "", nil
		}
		after = orders[len(orders)-1].ID()
	}
}

// checking is a verification on its way.
type checking struct {
	v             Verification
	a, b, c, d, e tally
	rejected      int64
}

// tally is one invariant's result on its way; unsure counts what could not be decided.
type tally struct {
	InvariantResult
	unsure int64
}

func newChecking(now time.Time) *checking {
	c := &checking{v: Verification{At: now, Drained: true}}
	for i, t := range c.tallies() {
		t.Name = string(rune('A' + i))
		t.Title = [...]string{"no oversell", "no leak", "once", "truthful", "live"}[i]
		t.Findings = []Finding{}
	}
	return c
}

func (c *checking) tallies() [5]*tally { return [5]*tally{&c.a, &c.b, &c.c, &c.d, &c.e} }

func (t *tally) note(f Finding) {
	if len(t.Findings) < findingsMax {
		t.Findings = append(t.Findings, f)
	}
}

func (c *checking) broke(t *tally, f Finding) {
	t.Broken++
	t.note(f)
}

func (c *checking) unsure(f Finding, tallies ...*tally) {
	for _, t := range tallies {
		t.unsure++
		t.note(f)
	}
	c.v.Drained = c.v.Drained && !slices.Contains(tallies, &c.e)
}

// moving notes something on its way: stuck breaks E, anything else only leaves it open.
func (c *checking) moving(stuck bool, f Finding) {
	c.v.Drained = false
	if stuck {
		c.broke(&c.e, f)
	} else {
		c.unsure(f, &c.e)
	}
}

func (c *checking) verdict() Verification {
	c.v.Holds = true
	for _, t := range c.tallies() {
		switch {
		case t.Broken > 0:
			t.Verdict = VerdictBroken
		case t.unsure > 0:
			t.Verdict = VerdictUnknown
		default:
			t.Verdict = VerdictHolds
		}
		c.v.Holds = c.v.Holds && t.Verdict == VerdictHolds
		c.v.Invariants = append(c.v.Invariants, t.InvariantResult)
	}
	return c.v
}

func findingOf(key domain.Key, detail string) Finding {
	return Finding{Product: key.Product(), User: key.User(), Token: key.Token(), Detail: detail}
}
