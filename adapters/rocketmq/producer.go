package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

// Producer sends batches, answers check-backs, and proves drains. It is a port.Sender and a port.Drainer.
type Producer struct {
	cfg       Config
	listener  port.TransactionListener
	barriers  port.BarrierLog
	ids       port.IDs
	log       *slog.Logger
	directory *directory
	own       *Assigned

	transactions mq.TransactionProducer
	plain        mq.Producer // sends barriers, in a group of its own
	slots        chan struct{}
	local        sync.Map // *primitive.Message → domain.Batch, of sends under way

	mu       sync.Mutex
	running  bool
	stopping bool
	sends    sync.WaitGroup
}

var (
	_ port.Sender  = (*Producer)(nil)
	_ port.Drainer = (*Producer)(nil)
)

// NewProducer makes a producer, which sends to the queues of own what it sends again; it connects when it is started.
func NewProducer(cfg Config, own *Assigned, listener port.TransactionListener, barriers port.BarrierLog, ids port.IDs, log *slog.Logger) *Producer {
	return &Producer{cfg: cfg, own: own, listener: listener, barriers: barriers, ids: ids, log: log,
		directory: newDirectory(cfg), slots: make(chan struct{}, cfg.SendersMax)}
}

// Name is "rocketmq-producer".
func (p *Producer) Name() string { return "rocketmq-producer" }

// Start connects and makes the broker know this producer. CodeUnavailable names what is missing;
// then nothing of it runs on.
func (p *Producer) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running || p.stopping {
		return domain.NewError(domain.CodeInternal, "a producer starts once", nil)
	}
	BridgeLogs(p.log)
	if err := p.directory.connect(ctx); err != nil {
		return errors.Join(err, p.directory.close())
	}
	if err := p.open(ctx); err != nil {
		return errors.Join(domain.NewError(domain.CodeUnavailable,
			"the producer cannot start at name server "+strings.Join(p.cfg.NameServers, ","), err), p.shutdown())
	}
	p.running = true
	return nil
}

func (p *Producer) open(ctx context.Context) (err error) {
	p.transactions, err = mq.NewTransactionProducer(listener{p}, p.options("transactions", p.cfg.ProducerGroup, pinned{producer.NewRoundRobinQueueSelector()})...)
	if err != nil {
		return err
	}
	if err := p.transactions.Start(); err != nil {
		return err
	}
	p.plain, err = mq.NewProducer(p.options("barriers", p.cfg.ProducerGroup+"_barrier", producer.NewManualQueueSelector())...)
	if err != nil {
		return err
	}
	if err := p.plain.Start(); err != nil {
		return err
	}
	return p.warmUp(ctx)
}

func (p *Producer) options(role, group string, selector producer.QueueSelector) []producer.Option {
	return []producer.Option{
		producer.WithGroupName(group),
		producer.WithInstanceName(instanceName(role)),
		producer.WithNsResolver(newResolver(p.cfg.NameServers, p.cfg.DirectoryTimeout)),
		producer.WithCredentials(credentials(p.cfg)),
		producer.WithRetry(0),
		producer.WithSendMsgTimeout(p.cfg.SendTimeout),
		producer.WithRemotingTimeout(dialTimeout, readTimeout, writeTimeout),
		producer.WithCompressMsgBodyOverHowmuch(wire.BodyMax + 1),
		producer.WithQueueSelector(selector),
	}
}

// warmUp sends a half that is rolled back, within the second after which the first heartbeat goes out to
// the brokers that have been sent to.
func (p *Producer) warmUp(ctx context.Context) error {
	for try := 1; ; try++ {
		stored, _, err := p.transact(domain.Batch{ID: p.ids.Unique(), Kind: domain.BatchWarmup}, nil, "")
		if stored {
			return nil
		}
		if try >= p.cfg.ConnectTriesMax || !pause(ctx.Done(), p.cfg.ConnectPause) {
			return fmt.Errorf("the warm-up message was not stored: %w", err)
		}
	}
}

// Stop refuses new sends, waits for those under way until ctx ends, and disconnects.
func (p *Producer) Stop(ctx context.Context) error {
	p.mu.Lock()
	if p.stopping || !p.running {
		p.stopping = true
		p.mu.Unlock()
		return nil
	}
	p.stopping = true
	p.mu.Unlock()
	quiet := make(chan struct{})
	go func() {
		p.sends.Wait()
		close(quiet)
	}()
	var late error
	select {
	case <-quiet:
	case <-ctx.Done():
		late = fmt.Errorf("sends were under way: %w", ctx.Err())
	}
	return errors.Join(late, p.shutdown())
}

func (p *Producer) shutdown() error {
	errs := []error{p.directory.close()}
	if p.plain != nil {
		errs = append(errs, p.plain.Shutdown())
	}
	if p.transactions != nil {
		errs = append(errs, p.transactions.Shutdown())
	}
	return errors.Join(errs...)
}

// Check says whether the name servers answer and know the topic. CodeUnavailable.
func (p *Producer) Check(ctx context.Context) error { return p.directory.check(ctx) }

// BatchBytesMax is port.Sender's.
func (p *Producer) BatchBytesMax() int { return wire.ItemsMax }

// BytesOf is port.Sender's.
func (p *Producer) BytesOf(item domain.Deduction) int { return wire.BytesOf(item) }

type sent struct {
	result port.SendResult
	err    error
}

// Send is port.Sender's.
func (p *Producer) Send(ctx context.Context, batch domain.Batch) (port.SendResult, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return port.SendUnknown, domain.NewError(domain.CodeBusy, "no send became free", ctx.Err())
	}
	if err := p.begin(); err != nil {
		<-p.slots
		return port.SendUnknown, err
	}
	var queue *primitive.MessageQueue
	if batch.Again {
		queue = p.own.next()
	}
	outcome, traced := make(chan sent, 1), wire.TraceOf(ctx)
	go func() {
		defer p.sends.Done()
		defer func() { <-p.slots }()
		_, result, err := p.transact(batch, queue, traced)
		outcome <- sent{result, err}
	}()
	select {
	case o := <-outcome:
		return o.result, o.err
	case <-ctx.Done():
		return port.SendUnknown, domain.NewError(domain.CodeOutcomeUnknown, "the send goes on", ctx.Err())
	}
}

// begin counts a send, which must end with sends.Done.
func (p *Producer) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running || p.stopping {
		return domain.NewError(domain.CodeUnavailable, "the producer is not running", nil)
	}
	p.sends.Add(1)
	return nil
}

// transact sends one half, to queue if it is not nil, with the trace context that it is part of, and says whether it was
// stored and what became of it.
func (p *Producer) transact(batch domain.Batch, queue *primitive.MessageQueue, traced string) (stored bool, result port.SendResult, err error) {
	message, err := p.message(batch)
	if err != nil {
		return false, port.SendUnknown, err
	}
	message.Queue = queue
	if traced != "" {
		message.WithProperty(wire.TraceProperty, traced)
	}
	p.local.Store(message, batch)
	defer p.local.Delete(message)
	// The client dereferences nil when a broker answers with an id that it cannot read.
	defer func() {
		if cause := recover(); cause != nil {
			stored, result, err = false, port.SendUnknown, domain.NewError(domain.CodeOutcomeUnknown, "the client panicked", fmt.Errorf("%v", cause))
		}
	}()
	answer, err := p.transactions.SendMessageInTransaction(context.Background(), message)
	if err != nil {
		return false, port.SendUnknown, domain.NewError(domain.CodeOutcomeUnknown, "the half message got no answer", err)
	}
	if answer.Status != primitive.SendOK {
		return false, port.SendUnknown, domain.NewError(domain.CodeOutcomeUnknown, fmt.Sprintf("the half message was stored with status %d", answer.Status), nil)
	}
	if answer.State != primitive.CommitMessageState {
		return true, port.SendUnknown, domain.NewError(domain.CodeOutcomeUnknown, fmt.Sprintf("the local transaction ended in state %d", answer.State), nil)
	}
	return true, port.SendCommitted, nil
}

// message is fresh for every send: the client leaves its marks on it.
func (p *Producer) message(batch domain.Batch) (*primitive.Message, error) {
	body, err := wire.Encode(batch)
	if err != nil {
		return nil, err
	}
	return primitive.NewMessage(p.cfg.Topic, body).WithTag(p.cfg.Tag).WithKeys([]string{batch.ID}), nil
}

// pinned sends a message to the queue that it names, and all others in turn.
type pinned struct{ producer.QueueSelector }

func (s pinned) Select(message *primitive.Message, queues []*primitive.MessageQueue, lastBroker string) *primitive.MessageQueue {
	if message.Queue != nil {
		return message.Queue
	}
	return s.QueueSelector.Select(message, queues, lastBroker)
}

// listener is the client's view of the transaction listener.
type listener struct{ p *Producer }

// ExecuteLocalTransaction is the local transaction of a half that this producer has just stored.
func (l listener) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	batch, ok := l.p.local.Load(message)
	if !ok {
		return primitive.UnkonwnState
	}
	return l.p.ask("confirm", l.p.listener.Confirm, batch.(domain.Batch), message.GetProperty(wire.TraceProperty))
}

// CheckLocalTransaction is a check-back, about any instance's half.
func (l listener) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	batch, err := wire.Decode(message.Body)
	if err != nil {
		l.p.log.Warn("a half message cannot be read and goes to the consumer", "event", "half_malformed", "message_id", message.MsgId, "error", err)
		return primitive.CommitMessageState
	}
	return l.p.ask("resolve", l.p.listener.Resolve, batch, message.GetProperty(wire.TraceProperty))
}

// ask gives the listener its time and takes a panic for unknown.
func (p *Producer) ask(question string, listen func(context.Context, domain.Batch) domain.Verdict, batch domain.Batch, traced string) (state primitive.LocalTransactionState) {
	if batch.Kind == domain.BatchWarmup {
		return primitive.RollbackMessageState
	}
	ctx, cancel := context.WithTimeout(wire.WithTrace(context.Background(), traced), p.cfg.ListenerTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			p.log.Error("the transaction listener panicked", "event", "listener_panic", "question", question, "batch", batch.ID, "panic", fmt.Sprint(cause))
			state = primitive.UnkonwnState
		}
	}()
	switch listen(ctx, batch) {
	case domain.VerdictCommit:
		return primitive.CommitMessageState
	case domain.VerdictRollback:
		return primitive.RollbackMessageState
	default:
		return primitive.UnkonwnState
	}
}

// CheckWindow is port.Drainer's.
func (p *Producer) CheckWindow() time.Duration {
	return p.cfg.CheckTimeout + 2*p.cfg.CheckInterval + p.cfg.CheckSlack
}
