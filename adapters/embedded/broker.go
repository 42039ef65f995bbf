package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

// BrokerConfig are the broker's limits. Start from DefaultBrokerConfig.
type BrokerConfig struct {
	CheckTimeout    time.Duration // a half that has no verdict for so long is checked
	CheckInterval   time.Duration // and again after so long
	ListenerTimeout time.Duration // for one local transaction or check-back
	HandleTimeout   time.Duration // for one call of the handler
	RetryMin        time.Duration // pause before a group is handed over again
	RetryMax        time.Duration // the pause doubles up to this
	SendersMax      int           // sends under way at one time
	GroupsMax       int           // groups at the handler at one time: a group that is refused must not hold up the rest
	GatherMax       int           // messages of one group
	MessagesMax     int           // messages and halves held; a send beyond it is refused
	JournalBytesMax int64         // the journal is written anew when it has grown beyond this
}

// DefaultBrokerConfig suits one process.
func DefaultBrokerConfig() BrokerConfig {
	return BrokerConfig{
		CheckTimeout: 2 * time.Second, CheckInterval: time.Second,
		ListenerTimeout: time.Second, HandleTimeout: 30 * time.Second,
		RetryMin: 50 * time.Millisecond, RetryMax: 2 * time.Second,
		SendersMax: 16, GroupsMax: 2, GatherMax: 32, MessagesMax: 10_000, JournalBytesMax: 16 << 20,
	}
}

// queueName is the one queue there is.
const queueName = "embedded/journal/0"

// message is a half or a committed message; the broker's lock guards it.
type message struct {
	number    int64
	body      []byte
	barrier   bool
	trace     string    // of its send; not kept in the journal
	mark      int64     // of its half in the journal
	times     int       // handed over before
	born      time.Time // monotonic: when this process first held it
	checkedAt time.Time // monotonic: zero before the first check-back
	listening bool      // a local transaction or check-back is under way
}

func newMessage(number int64, body []byte) *message {
	batch, err := wire.Decode(body)
	return &message{number: number, body: body, born: time.Now(), barrier: err == nil && batch.Kind == domain.BatchBarrier}
}

// Broker is a transactional message broker inside the process: halves, local transactions,
// check-backs, redelivery, and a journal in its folder. It is the port.Sender, port.Drainer and
// port.BacklogReader of the embedded profile and drives its listener and handler.
type Broker struct {
	cfg      BrokerConfig
	listener port.TransactionListener
	handler  port.DeliveryHandler
	log      *slog.Logger
	journal  *journal

	slots   chan struct{}      // one for each send under way
	ctx     context.Context    // of the listener and the handler; ends when Stop runs out of patience
	abandon context.CancelFunc // ends ctx
	work    sync.WaitGroup     // check-backs and deliveries
	sends   sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	next     int64              // the next number
	halves   map[int64]*message // without a verdict
	ready    []*message         // committed, in order of commit, not at the handler
	pending  map[int64]*message // committed and not finished: ready, at the handler, or about to be ready
	handling int                // groups at the handler
	started  bool
	stopping bool
	quit     chan struct{} // closed when stopping
	stopped  bool
	stopErr  error
}

var (
	_ port.Sender        = (*Broker)(nil)
	_ port.Drainer       = (*Broker)(nil)
	_ port.BacklogReader = (*Broker)(nil)
)

// NewBroker opens the journal in dir, which must exist and be the caller's alone (LockFolder).
// What the journal holds is delivered and checked once the broker has started.
func NewBroker(dir string, cfg BrokerConfig, listener port.TransactionListener, handler port.DeliveryHandler, log *slog.Logger) (*Broker, error) {
	b := &Broker{
		cfg: cfg, listener: listener, handler: handler, log: log,
		slots: make(chan struct{}, cfg.SendersMax), next: 1,
		halves: make(map[int64]*message), pending: make(map[int64]*message), quit: make(chan struct{}),
	}
	b.changed = sync.NewCond(&b.mu)
	b.ctx, b.abandon = context.WithCancel(context.Background())
	torn, err := readJournal(dir, b.replay)
	if err != nil {
		return nil, domain.NewError(domain.CodeUnavailable, "the broker's journal cannot be read", err)
	}
	if torn > 0 {
		log.Warn("the end of the broker's journal was torn", "event", "journal_torn", "bytes", torn)
	}
	for _, m := range b.pending {
		b.ready = append(b.ready, m)
	}
	slices.SortFunc(b.ready, func(x, y *message) int { return int(x.number - y.number) })
	if b.journal, err = openJournal(dir, cfg.JournalBytesMax, b.image); err != nil {
		return nil, domain.NewError(domain.CodeUnavailable, "the broker's journal cannot be written", err)
	}
	return b, nil
}

// replay takes one record of the journal.
func (b *Broker) replay(r record) {
	b.next = max(b.next, r.number+1)
	held := newMessage(r.number, r.body)
	switch r.kind {
	case recordHalf:
		b.halves[r.number] = held
	case recordMessage:
		b.pending[r.number] = held
	case recordCommit:
		if half, ok := b.halves[r.number]; ok {
			delete(b.halves, r.number)
			b.pending[r.number] = half
		}
	case recordRollback:
		delete(b.halves, r.number)
	case recordFinished:
		delete(b.pending, r.number)
	case recordNext:
		b.next = max(b.next, r.number)
	default:
		b.log.Error("the broker's journal holds a record of an unknown kind", "event", "journal_record_unknown", "kind", r.kind)
	}
}

// image is everything that is alive.
func (b *Broker) image(cut func()) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	cut()
	image := record{kind: recordNext, number: b.next}.appendTo(nil)
	for _, m := range b.pending {
		image = record{kind: recordMessage, number: m.number, body: m.body}.appendTo(image)
	}
	for _, m := range b.halves {
		image = record{kind: recordHalf, number: m.number, body: m.body}.appendTo(image)
	}
	return image
}

// Name is "embedded-broker".
func (b *Broker) Name() string { return "embedded-broker" }

// Start begins to deliver and to check.
func (b *Broker) Start(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.started || b.stopping {
		return domain.NewError(domain.CodeInternal, "the embedded broker starts once", nil)
	}
	b.started = true
	b.work.Add(1 + b.cfg.GroupsMax)
	go b.checkLoop()
	for range b.cfg.GroupsMax {
		go b.deliverLoop()
	}
	return nil
}

// Stop refuses new sends, waits for those under way and for the handler until ctx ends, and
// closes the journal. What is not finished is delivered again after the next start.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	if b.stopping {
		defer b.mu.Unlock()
		for !b.stopped {
			b.changed.Wait()
		}
		return b.stopErr
	}
	b.stopping = true
	close(b.quit)
	b.changed.Broadcast()
	b.mu.Unlock()

	quiet := make(chan struct{})
	go func() {
		b.sends.Wait()
		b.work.Wait()
		close(quiet)
	}()
	var late error
	select {
	case <-quiet:
	case <-ctx.Done():
		late = fmt.Errorf("the embedded broker's handler did not end: %w", ctx.Err())
	}
	b.abandon()
	err := errors.Join(late, b.journal.close())

	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped, b.stopErr = true, err
	b.changed.Broadcast()
	return err
}

// BatchBytesMax is port.Sender's.
func (b *Broker) BatchBytesMax() int { return wire.ItemsMax }

// BytesOf is port.Sender's.
func (b *Broker) BytesOf(item domain.Deduction) int { return wire.BytesOf(item) }

type sent struct {
	result port.SendResult
	err    error
}

// Send is port.Sender's.
func (b *Broker) Send(ctx context.Context, batch domain.Batch) (port.SendResult, error) {
	body, err := wire.Encode(batch)
	if err != nil {
		return port.SendUnknown, err
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return port.SendUnknown, domain.NewError(domain.CodeBusy, "no send became free", ctx.Err())
	}
	half, err := b.take(body, wire.TraceOf(ctx))
	if err != nil {
		<-b.slots
		return port.SendUnknown, err
	}
	outcome := make(chan sent, 1)
	go func() {
		defer b.sends.Done()
		defer func() { <-b.slots }()
		outcome <- b.transact(half, batch)
	}()
	select {
	case o := <-outcome:
		return o.result, o.err
	case <-ctx.Done():
		return port.SendUnknown, domain.NewError(domain.CodeOutcomeUnknown, "the send goes on", ctx.Err())
	}
}

// take stores a half and counts the send that is to finish it.
func (b *Broker) take(body []byte, traced string) (*message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopping {
		return nil, domain.NewError(domain.CodeUnavailable, "the embedded broker is stopping", nil)
	}
	if len(b.halves)+len(b.pending) >= b.cfg.MessagesMax {
		return nil, domain.NewError(domain.CodeBusy, "the embedded broker is full", nil)
	}
	half := newMessage(b.next, body)
	half.listening, half.trace = true, traced
	b.next++
	b.halves[half.number] = half
	half.mark = b.journal.append(record{kind: recordHalf, number: half.number, body: body})
	b.sends.Add(1)
	return half, nil
}

// transact runs the local transaction of a stored half.
func (b *Broker) transact(half *message, batch domain.Batch) sent {
	verdict := b.ask("confirm", b.listener.Confirm, batch, half.trace)
	committed, err := b.decide(half, verdict)
	switch {
	case err != nil:
		return sent{port.SendUnknown, domain.NewError(domain.CodeOutcomeUnknown, "the journal failed", err)}
	case committed:
		return sent{port.SendCommitted, nil}
	}
	return sent{port.SendUnknown, domain.NewError(domain.CodeOutcomeUnknown, "the local transaction said "+verdict.String(), nil)}
}

// ask gives the listener its time and takes a panic for unknown.
func (b *Broker) ask(question string, listen func(context.Context, domain.Batch) domain.Verdict, batch domain.Batch, traced string) (verdict domain.Verdict) {
	if batch.Kind == domain.BatchWarmup {
		return domain.VerdictRollback
	}
	ctx, cancel := context.WithTimeout(wire.WithTrace(b.ctx, traced), b.cfg.ListenerTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			b.log.Error("the transaction listener panicked", "event", "listener_panic", "question", question, "batch", batch.ID, "panic", fmt.Sprint(cause))
			verdict = domain.VerdictUnknown
		}
	}()
	return listen(ctx, batch)
}

// decide ends a half, or leaves it for its check-back. It returns once a commit is on disk, or the
// half that was left.
func (b *Broker) decide(half *message, verdict domain.Verdict) (committed bool, err error) {
	b.mu.Lock()
	half.listening = false
	b.changed.Broadcast()
	var mark int64
	switch verdict {
	case domain.VerdictCommit:
		delete(b.halves, half.number)
		b.pending[half.number] = half
		mark = b.journal.append(record{kind: recordCommit, number: half.number})
	case domain.VerdictRollback:
		delete(b.halves, half.number)
		b.journal.append(record{kind: recordRollback, number: half.number})
	default: // stays a half
	}
	b.mu.Unlock()
	switch verdict {
	case domain.VerdictCommit:
		return true, b.release(mark, half)
	case domain.VerdictRollback:
		return false, nil
	default:
		return false, b.journal.sync(half.mark)
	}
}

// release lets committed messages out to the consumer once they are on disk.
func (b *Broker) release(mark int64, messages ...*message) error {
	if err := b.journal.sync(mark); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = append(b.ready, messages...)
	b.changed.Broadcast()
	return nil
}

// Publish stores a message of anyone's, committed from birth, times times over: what a
// foreign producer, a duplicate or a replay would do. The body may be anything.
func (b *Broker) Publish(body []byte, times int) error {
	b.mu.Lock()
	if b.stopping {
		b.mu.Unlock()
		return domain.NewError(domain.CodeUnavailable, "the embedded broker is stopping", nil)
	}
	if len(body) > recordBytesMax || len(b.halves)+len(b.pending)+times > b.cfg.MessagesMax {
		b.mu.Unlock()
		return domain.NewError(domain.CodeBusy, "the embedded broker is full", nil)
	}
	var mark int64
	body = slices.Clone(body)
	messages := make([]*message, times)
	for i := range messages {
		m := newMessage(b.next, body)
		b.next++
		b.pending[m.number] = m
		mark = b.journal.append(record{kind: recordMessage, number: m.number, body: m.body})
		messages[i] = m
	}
	b.mu.Unlock()
	return b.release(mark, messages...)
}

// Backlog is port.BacklogReader's; it is always known.
func (b *Broker) Backlog(context.Context) port.Backlog {
	b.mu.Lock()
	defer b.mu.Unlock()
	return port.Backlog{Known: true, Messages: int64(len(b.pending))}
}

// Check says whether the broker runs and its journal takes records. CodeUnavailable: it has to be
// stopped and started again, once the disk is well.
func (b *Broker) Check(context.Context) error {
	if err := b.journal.failure(); err != nil {
		return domain.NewError(domain.CodeUnavailable, "the broker's journal has failed", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.started || b.stopping {
		return domain.NewError(domain.CodeUnavailable, "the embedded broker is not running", nil)
	}
	return nil
}

// CheckWindow is port.Drainer's.
func (b *Broker) CheckWindow() time.Duration { return b.cfg.CheckTimeout + 2*b.cfg.CheckInterval }
