package application

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"seckill/application/port"
	"seckill/domain"
)

// RelayConfig bounds the relay. Ages are measured on this process's monotonic clock.
type RelayConfig struct {
	Pause       time.Duration // between rounds
	RoundMax    time.Duration // a round's time
	OpenAge     time.Duration // from when on an open flow is sent again; also the first pause before the next time
	AgainMax    time.Duration // longest pause before a flow is sent once more
	UntoldAge   time.Duration // from when on an untold fate is told again
	ClaimFor    time.Duration
	SendTimeout time.Duration
	ProductsMax int   // products looked at in one round; the next round goes on after them
	FlowsMax    int   // old flows dealt with in one round
	PageMax     int   // rows in one query
	PagesMax    int   // pages of untold rows in one round
	SendMax     int   // flows in one message
	BacklogMax  int64 // messages that wait for the consumer beyond which nothing is sent again
	BacklogLow  int64 // up to here a backlog may grow without holding the relay off
	TriesMax    int   // flows whose tries are remembered
	MarksMax    int   // products whose sequences are remembered
	Chance      Chance
}

// DefaultRelayConfig finishes a lost message within a few seconds.
func DefaultRelayConfig() RelayConfig {
	return RelayConfig{
		Pause: time.Second, RoundMax: 15 * time.Second, OpenAge: 5 * time.Second, AgainMax: 20 * time.Second,
		UntoldAge: 2 * time.Second, ClaimFor: 5 * time.Second, SendTimeout: 3 * time.Second,
		ProductsMax: 1000, FlowsMax: 4000, PageMax: 500, PagesMax: 4, SendMax: 200,
		BacklogMax: 5000, BacklogLow: 500, TriesMax: 65536, MarksMax: 16384,
	}
}

// RelayOpenFlows is the safety line behind every send and every tell: it finishes open flows that
// nobody finished, and tells fates that the gate has not acknowledged. It only goes forward, and
// is correct without its claims.
type RelayOpenFlows struct {
	*beat
	flows    port.OpenFlows
	admin    port.GateAdmin
	ledger   port.Ledger
	outbox   port.Outbox
	sender   port.Sender
	catalog  port.Catalog
	backlog  port.BacklogReader
	intake   *Intake
	suspects Suspects
	teller   teller
	ids      port.IDs
	cfg      RelayConfig
	log      *slog.Logger

	holder   string // this instance's name in claims
	product  string // the last product that a round looked at
	untold   string // the last row that a round told
	waiting  int64  // backlog of the last look
	open     int64  // flows that are open at the products up to counted
	counted  string
	marks    *simplelru.LRU[string, *marks]
	tries    *lru.Cache[domain.Key, tries] // others may look into it
	quietLog sparse
	again    atomic.Int64
}

// RelayStats are counts since the start.
type RelayStats struct {
	SentAgain int64 // flows whose message was sent again and committed
}

// Stats are the counts.
func (r *RelayOpenFlows) Stats() RelayStats { return RelayStats{SentAgain: r.again.Load()} }

// marks are the sequences that a product's gate had, and when they were seen: a flow with a
// sequence up to one of them is at least as old as that mark, without a memory of each flow.
type marks struct {
	epoch int64
	seen  []mark // oldest first; at most one is older than the age asked for
	after int64  // sequence up to which the open set was looked through
}

type mark struct {
	at       time.Time
	sequence int64
}

// tries is how often a flow was sent again, and when it may be once more.
type tries struct {
	count int
	next  time.Time
}

var _ Runner = (*RelayOpenFlows)(nil)

// NewRelayOpenFlows wires the use case.
func NewRelayOpenFlows(flows port.OpenFlows, gate port.Gate, admin port.GateAdmin, ledger port.Ledger, outbox port.Outbox,
	sender port.Sender, catalog port.Catalog, backlog port.BacklogReader, intake *Intake, suspects Suspects, ids port.IDs,
	cfg RelayConfig, log *slog.Logger) *RelayOpenFlows {
	r := &RelayOpenFlows{flows: flows, admin: admin, ledger: ledger, outbox: outbox, sender: sender, catalog: catalog,
		backlog: backlog, intake: intake, suspects: suspects, teller: teller{gate, outbox, suspects}, ids: ids, cfg: cfg, log: log,
		holder: ids.Unique()}
	r.marks, _ = simplelru.NewLRU[string, *marks](max(cfg.MarksMax, 1), nil) // fails for a size below one alone
	r.tries, _ = lru.New[domain.Key, tries](max(cfg.TriesMax, 1))
	r.beat = newBeat(cfg.Pause, cfg.RoundMax, log, r.round)
	return r
}

// Name names the runner.
func (r *RelayOpenFlows) Name() string { return "relay" }

// round tells what is untold, and finishes flows that have been open too long.
func (r *RelayOpenFlows) round(ctx context.Context) {
	if err := r.tellAgain(ctx); err != nil {
		r.warn(ctx, "untold fates", err)
	}
	old, err := r.oldFlows(ctx)
	if err != nil {
		r.warn(ctx, "open flows, not read", err)
	}
	held := len(old) > 0 && r.heldOff(ctx)
	for len(old) > 0 {
		n := min(len(old), r.cfg.PageMax)
		if err := r.finish(ctx, old[:n], held); err != nil {
			r.warn(ctx, "open flows", err)
			return
		}
		old = old[n:]
	}
}

func (r *RelayOpenFlows) warn(ctx context.Context, what string, err error) {
	if r.quietLog.pass() {
		r.log.WarnContext(ctx, "the relay waits", "event", "relay_waits", "what", what, "error", err)
	}
}

// tellAgain goes on where the last round stopped, so that rows whose gate takes nothing now do not
// stand before the others.
func (r *RelayOpenFlows) tellAgain(ctx context.Context) error {
	for range r.cfg.PagesMax {
		orders, err := r.outbox.Untold(ctx, r.cfg.UntoldAge, r.untold, r.cfg.PageMax)
		if err != nil {
			return err
		}
		full := len(orders) == r.cfg.PageMax
		r.untold = ""
		if full {
			r.untold = orders[len(orders)-1].ID()
		}
		if err := r.teller.tell(ctx, orders); err != nil || !full {
			return err
		}
	}
	return nil
}

// oldFlows gathers flows of any product that have been open too long; an error ends the gathering
// early, and what was gathered counts.
func (r *RelayOpenFlows) oldFlows(ctx context.Context) (old []domain.Flow, err error) {
	if r.product == "" {
		r.open, r.counted = 0, ""
	}
	products, err := r.onSale(ctx)
	if err != nil {
		return nil, err
	}
	var views []port.GateView
	if len(products) > 0 {
		if views, err = r.admin.View(ctx, products); err != nil {
			return nil, err
		}
	}
	r.addUp(views)
	for i, v := range views {
		if v.Err != nil {
			r.warn(ctx, "a product that could not be read", v.Err)
			continue
		}
		if !v.Loaded || v.Rewound {
			r.suspects.Suspect(v.Product, "the gate has forgotten a product on sale")
			continue
		}
		m := r.marksOf(v.Product)
		upTo := m.note(v, time.Now(), r.cfg.OpenAge)
		if v.OpenFlows == 0 || upTo == 0 {
			continue
		}
		flows, err := r.page(ctx, v.Product, m, upTo, r.cfg.FlowsMax-len(old))
		if ctx.Err() != nil {
			return old, err
		}
		if err != nil { // one shard that is away holds up no other's flows
			r.warn(ctx, "the open flows of a product", err)
			continue
		}
		if old = append(old, flows...); len(old) >= r.cfg.FlowsMax {
			if i < len(views)-1 {
				r.product = v.Product // the next round goes on here
			}
			return old, nil
		}
	}
	return old, nil
}

// addUp counts the open flows of every product, and tells the intake once it has come to the last one.
func (r *RelayOpenFlows) addUp(views []port.GateView) {
	for _, v := range views {
		if v.Product > r.counted {
			r.open += v.OpenFlows
			r.counted = v.Product
		}
	}
	if r.product == "" {
		r.intake.NoteOpen(r.open)
	}
}

// onSale gives the next products that are open.
func (r *RelayOpenFlows) onSale(ctx context.Context) ([]string, error) {
	stocks, err := r.catalog.List(ctx, r.product, r.cfg.ProductsMax)
	if err != nil {
		return nil, err
	}
	r.product = ""
	if len(stocks) == r.cfg.ProductsMax {
		r.product = stocks[len(stocks)-1].Product()
	}
	var open []string
	for _, s := range stocks {
		if s.State() == domain.SaleOpen {
			open = append(open, s.Product())
		}
	}
	return open, nil
}

func (r *RelayOpenFlows) marksOf(product string) *marks {
	m, ok := r.marks.Get(product)
	if !ok {
		m = &marks{}
		r.marks.Add(product, m)
	}
	return m
}

// note adds what was seen now, and gives the highest sequence that was seen at least age ago; 0 where
// nothing is that old. A gate that was rebuilt or fell back starts anew.
func (m *marks) note(v port.GateView, now time.Time, age time.Duration) int64 {
	if n := len(m.seen); v.Epoch != m.epoch || n > 0 && v.Sequence < m.seen[n-1].sequence {
		*m = marks{epoch: v.Epoch}
	}
	m.seen = append(m.seen, mark{now, v.Sequence})
	for len(m.seen) > 1 && now.Sub(m.seen[1].at) >= age {
		m.seen = m.seen[1:]
	}
	if now.Sub(m.seen[0].at) < age {
		return 0
	}
	return m.seen[0].sequence
}

// page gives the product's next open flows with a sequence up to upTo, if this instance may relay
// them. Pages walk through the open set, so that flows which stay open do not stand before others.
func (r *RelayOpenFlows) page(ctx context.Context, product string, m *marks, upTo int64, limit int) ([]domain.Flow, error) {
	flows, err := r.flows.Page(ctx, product, m.after, limit)
	if err != nil {
		return nil, err
	}
	n := 0
	for n < len(flows) && flows[n].Sequence() <= upTo {
		n++
	}
	if m.after = 0; n == limit {
		m.after = flows[n-1].Sequence()
	}
	if n == 0 {
		return nil, nil
	}
	mine, err := r.flows.Claim(ctx, product, r.holder, r.cfg.ClaimFor)
	if err != nil || !mine {
		return nil, err
	}
	return flows[:n], nil
}

// finish tells the fates of flows that have a row, and sends the others again unless sending is held off.
func (r *RelayOpenFlows) finish(ctx context.Context, old []domain.Flow, held bool) error {
	keys := make([]domain.Key, len(old))
	for i, f := range old {
		keys[i] = f.Key()
	}
	rows, err := r.ledger.Fates(ctx, keys)
	if err != nil {
		return err
	}
	var decided []domain.Order
	var due []domain.Deduction
	now := time.Now()
	for i, f := range old {
		if !rows[i].IsZero() {
			decided = append(decided, rows[i])
			r.tries.Remove(f.Key())
		} else if t, ok := r.tries.Peek(f.Key()); !ok || !now.Before(t.next) {
			due = append(due, domain.DeductionOf(f))
		}
	}
	if err := r.teller.tell(ctx, decided); err != nil {
		return err
	}
	if held {
		return nil
	}
	return r.sendAgain(ctx, due)
}

// heldOff says whether the consumer has enough to do: what it will finish need not be sent again.
// An unknown backlog holds nothing off.
func (r *RelayOpenFlows) heldOff(ctx context.Context) bool {
	b := r.backlog.Backlog(ctx)
	before := r.waiting
	r.waiting = b.Messages
	return b.Known && (b.Messages > r.cfg.BacklogMax || b.Messages > r.cfg.BacklogLow && b.Messages > before)
}

// sendAgain stops at the first message whose outcome is unknown, since the broker is then likely
// away; the flows of that message wait their turn, and the next round begins with others. A message
// holds flows of one kind.
func (r *RelayOpenFlows) sendAgain(ctx context.Context, due []domain.Deduction) error {
	slices.SortStableFunc(due, func(a, b domain.Deduction) int { return cmp.Compare(a.Kind(), b.Kind()) })
	for len(due) > 0 {
		n, bytes := 1, r.sender.BytesOf(due[0])
		for n < len(due) && n < r.cfg.SendMax && due[n].Kind() == due[0].Kind() {
			if bytes += r.sender.BytesOf(due[n]); bytes > r.sender.BatchBytesMax() {
				break
			}
			n++
		}
		for _, item := range due[:n] {
			r.count(item.Key)
		}
		if err := r.send(ctx, due[:n:n]); err != nil {
			return err
		}
		due = due[n:]
	}
	return nil
}

func (r *RelayOpenFlows) send(ctx context.Context, items []domain.Deduction) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.SendTimeout)
	defer cancel()
	result, err := r.sender.Send(ctx, domain.Batch{ID: r.ids.Unique(), Kind: items[0].Kind(), Again: true, Items: items})
	r.intake.NoteSend(result)
	if result != port.SendCommitted {
		return domain.NewError(domain.CodeOutcomeUnknown, "flows that were sent again", err)
	}
	r.again.Add(int64(len(items)))
	r.log.InfoContext(ctx, "open flows were sent again", "event", "sent_again", "flows", len(items))
	return nil
}

// SentAgain is how often this instance has sent an open flow again, and when it may do so once more, by its
// monotonic clock; zero for one that it has not.
func (r *RelayOpenFlows) SentAgain(key domain.Key) (times int, next time.Time) {
	t, _ := r.tries.Peek(key)
	return t.count, t.next
}

// count notes one more try. The pause doubles up to its limit, and is shortened by chance so that
// instances and flows do not march in step.
func (r *RelayOpenFlows) count(key domain.Key) {
	t, _ := r.tries.Peek(key)
	pause := r.cfg.AgainMax
	if t.count < 16 {
		pause = min(pause, r.cfg.OpenAge<<t.count)
	}
	r.tries.Add(key, tries{t.count + 1, time.Now().Add(r.cfg.Chance.shorten(pause))})
}
