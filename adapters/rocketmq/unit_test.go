package rocketmq

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

type answers struct {
	confirm, resolve func(context.Context, domain.Batch) domain.Verdict
}

func (a answers) Confirm(ctx context.Context, b domain.Batch) domain.Verdict {
	return a.confirm(ctx, b)
}
func (a answers) Resolve(ctx context.Context, b domain.Batch) domain.Verdict {
	return a.resolve(ctx, b)
}

type handle func(context.Context, []port.Delivery) error

func (h handle) Handle(ctx context.Context, d []port.Delivery) error { return h(ctx, d) }

func body(t testing.TB, kind domain.BatchKind, id string) []byte {
	t.Helper()
	batch := domain.Batch{ID: id, Kind: kind}
	if kind == domain.BatchDeduct {
		key, err := domain.NewKey("p", "u", "t")
		if err != nil {
			t.Fatal(err)
		}
		batch.Items = []domain.Deduction{{Key: key, Quantity: 1, Attempt: "a"}}
	}
	encoded, err := wire.Encode(batch)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestCheckBacksAreAnsweredWhateverTheListenerDoes(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.ListenerTimeout = 10 * time.Millisecond
	says := func(v domain.Verdict) func(context.Context, domain.Batch) domain.Verdict {
		return func(context.Context, domain.Batch) domain.Verdict { return v }
	}
	for name, c := range map[string]struct {
		body    []byte
		resolve func(context.Context, domain.Batch) domain.Verdict
		want    primitive.LocalTransactionState
	}{
		"commit":   {body(t, domain.BatchDeduct, "b"), says(domain.VerdictCommit), primitive.CommitMessageState},
		"rollback": {body(t, domain.BatchDeduct, "b"), says(domain.VerdictRollback), primitive.RollbackMessageState},
		"unknown":  {body(t, domain.BatchDeduct, "b"), says(domain.VerdictUnknown), primitive.UnkonwnState},
		"panic":    {body(t, domain.BatchDeduct, "b"), func(context.Context, domain.Batch) domain.Verdict { panic("x") }, primitive.UnkonwnState},
		"slow": {body(t, domain.BatchDeduct, "b"), func(ctx context.Context, _ domain.Batch) domain.Verdict {
			<-ctx.Done()
			return domain.VerdictUnknown
		}, primitive.UnkonwnState},
		"warm-up":   {body(t, domain.BatchWarmup, "b"), says(domain.VerdictCommit), primitive.RollbackMessageState},
		"malformed": {[]byte("null"), says(domain.VerdictRollback), primitive.CommitMessageState},
		"empty":     {nil, says(domain.VerdictRollback), primitive.CommitMessageState},
	} {
		p := NewProducer(cfg, NewAssigned(), answers{resolve: c.resolve}, nil, nil, discard())
		message := &primitive.MessageExt{Message: primitive.Message{Body: c.body}}
		if got := (listener{p}).CheckLocalTransaction(message); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// fakeClient stores halves as it is told to.
type fakeClient struct {
	mq.TransactionProducer
	send func(*primitive.Message) (*primitive.TransactionSendResult, error)
}

func (f fakeClient) SendMessageInTransaction(_ context.Context, m *primitive.Message) (*primitive.TransactionSendResult, error) {
	return f.send(m)
}
func (f fakeClient) Shutdown() error { return nil }

func running(t *testing.T, l port.TransactionListener, send func(*primitive.Message) (*primitive.TransactionSendResult, error)) *Producer {
	cfg := DefaultConfig()
	cfg.SendersMax = 1
	p := NewProducer(cfg, NewAssigned(), l, nil, nil, discard())
	p.transactions, p.running = fakeClient{send: send}, true
	t.Cleanup(func() {
		if err := p.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func deductBatch(t *testing.T) domain.Batch {
	t.Helper()
	batch, err := wire.Decode(body(t, domain.BatchDeduct, "b"))
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// Field case F06: no error does not mean committed.
func TestOnlyStatusOKAndStateCommitAreCommitted(t *testing.T) {
	t.Parallel()
	states := []primitive.LocalTransactionState{primitive.CommitMessageState, primitive.RollbackMessageState, primitive.UnkonwnState, 0}
	statuses := []primitive.SendStatus{primitive.SendOK, primitive.SendFlushDiskTimeout, primitive.SendFlushSlaveTimeout, primitive.SendSlaveNotAvailable, primitive.SendUnknownError}
	for _, status := range statuses {
		for _, state := range states {
			p := running(t, answers{}, func(*primitive.Message) (*primitive.TransactionSendResult, error) {
				return &primitive.TransactionSendResult{SendResult: &primitive.SendResult{Status: status}, State: state}, nil
			})
			want := port.SendUnknown
			if status == primitive.SendOK && state == primitive.CommitMessageState {
				want = port.SendCommitted
			}
			if got, err := p.Send(t.Context(), deductBatch(t)); got != want || (err == nil) != (want == port.SendCommitted) {
				t.Errorf("status %v, state %v: got %v, %v", status, state, got, err)
			}
		}
	}
}

func TestASendSurvivesAPanicOfTheClientAndItsErrors(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(*primitive.Message) (*primitive.TransactionSendResult, error){
		"panic": func(*primitive.Message) (*primitive.TransactionSendResult, error) { panic("nil") },
		"error": func(*primitive.Message) (*primitive.TransactionSendResult, error) { return nil, errors.New("CODE: 2") },
	} {
		p := running(t, answers{}, send)
		if got, err := p.Send(t.Context(), deductBatch(t)); got != port.SendUnknown || !errors.Is(err, domain.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestSendsAreBoundedAndTheCallerLeavesWithItsContext(t *testing.T) {
	t.Parallel()
	inside, goOn := make(chan struct{}), make(chan struct{})
	var sends atomic.Int32
	p := running(t, answers{}, func(*primitive.Message) (*primitive.TransactionSendResult, error) {
		sends.Add(1)
		inside <- struct{}{}
		<-goOn
		return nil, errors.New("late")
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-inside; cancel() }()
	if got, err := p.Send(ctx, deductBatch(t)); got != port.SendUnknown || !errors.Is(err, domain.ErrOutcomeUnknown) {
		t.Fatal(got, err)
	}
	if got, err := p.Send(ctx, deductBatch(t)); got != port.SendUnknown || !errors.Is(err, domain.ErrBusy) {
		t.Fatal(got, err)
	}
	if sends.Load() != 1 {
		t.Fatalf("%d sends at once", sends.Load())
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if err := p.Stop(ended); err == nil {
		t.Error("stopped without the send that is under way")
	}
	close(goOn)
}

func ext(queue *primitive.MessageQueue, offset int64, body []byte) *primitive.MessageExt {
	return &primitive.MessageExt{Message: primitive.Message{Topic: queue.Topic, Body: body, Queue: queue}, QueueOffset: offset}
}

// startedConsumer is a consumer whose client is the test: it pulls and calls back by hand.
func startedConsumer(t *testing.T, h port.DeliveryHandler) *Consumer {
	cfg := DefaultConfig()
	cfg.Topic, cfg.RetryMin, cfg.RetryMax = "topic", time.Millisecond, 2*time.Millisecond
	c := NewConsumer(cfg, NewAssigned(), h, discard())
	for range cfg.GroupsMax {
		c.gather.Go(c.gatherLoop)
	}
	c.running = true
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestABarrierWaitsForEverythingPulledBeforeItInWhateverOrderCallbacksRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		finished := map[int64]bool{}
		const barrierAt, last = 61, 99
		c := startedConsumer(t, handle(func(_ context.Context, deliveries []port.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			for _, d := range deliveries {
				if d.Batch.Kind != domain.BatchBarrier {
					finished[d.Origin.Offset] = true
					continue
				}
				if len(deliveries) != 1 {
					t.Error("a barrier in company")
				}
				for offset := int64(10); offset < barrierAt; offset++ {
					if !finished[offset] {
						t.Errorf("seed %d: the barrier came before offset %d", seed, offset)
					}
				}
				finished[d.Origin.Offset] = true
			}
			return nil
		}))
		queue := &primitive.MessageQueue{Topic: "topic", BrokerName: "b", QueueId: 1}
		var pulls [][]*primitive.MessageExt
		for offset := int64(10); offset <= last; {
			var pull []*primitive.MessageExt
			for range 1 + random.IntN(12) {
				kind := domain.BatchDeduct
				if offset == barrierAt {
					kind = domain.BatchBarrier
				}
				if offset <= last {
					pull = append(pull, ext(queue, offset, body(t, kind, "b")))
				}
				offset++
			}
			if len(pull) > 0 {
				c.tracker.pull(queue, pull)
				pulls = append(pulls, pull)
			}
		}
		random.Shuffle(len(pulls), func(i, j int) { pulls[i], pulls[j] = pulls[j], pulls[i] })
		var calls sync.WaitGroup
		for _, pull := range pulls {
			calls.Go(func() {
				if result, err := c.callback(context.Background(), pull...); result != consumer.ConsumeSuccess || err != nil {
					t.Errorf("got %v, %v", result, err)
				}
			})
		}
		calls.Wait()
		if !finished[barrierAt] || len(finished) != last-10+1 {
			t.Fatalf("seed %d: %d finished", seed, len(finished))
		}
		c.tracker.own.note([]*primitive.MessageQueue{{Topic: "topic", BrokerName: "b", QueueId: 1}})
		c.reach.ask = func(context.Context, []string) error { return nil }
		if got := c.Backlog(context.Background()); got != (port.Backlog{Known: true}) {
			t.Errorf("backlog %+v", got)
		}
	}
}

// What nobody can pull looks, in the books alone, like a queue with nothing in it.
func TestTheBacklogIsUnknownWhileABrokerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewConsumer(Config{}, NewAssigned(), nil, discard())
		asked, away := 0, false
		c.reach.ask = func(_ context.Context, brokers []string) error {
			if asked++; away || len(brokers) != 1 || brokers[0] != "b" {
				return errors.New("away")
			}
			return nil
		}
		if got := c.Backlog(t.Context()); got.Known || asked != 0 {
			t.Errorf("without a queue: %+v, asked %d times", got, asked)
		}
		c.tracker.own.note([]*primitive.MessageQueue{{Topic: "topic", BrokerName: "b"}, {Topic: "topic", BrokerName: "b", QueueId: 1}})
		time.Sleep(time.Second) // of a clock that is not zero
		for _, want := range []bool{true, true} {
			if got := c.Backlog(t.Context()); got.Known != want || asked != 1 {
				t.Errorf("%+v, asked %d times", got, asked)
			}
		}
		away = true
		time.Sleep(reachAge + 1)
		if got := c.Backlog(t.Context()); got != (port.Backlog{}) || asked != 2 {
			t.Errorf("%+v, asked %d times", got, asked)
		}
	})
}

func TestAQueueHandedOverStartsNewBooks(t *testing.T) {
	t.Parallel()
	tr := newTracker("topic", NewAssigned())
	first, second := &primitive.MessageQueue{Topic: "topic", BrokerName: "b"}, &primitive.MessageQueue{Topic: "topic", BrokerName: "b"}
	tr.pull(first, []*primitive.MessageExt{ext(first, 5, nil), ext(first, 6, nil)})
	tr.pull(second, []*primitive.MessageExt{ext(second, 8, nil), ext(second, 9, nil)})
	tr.finish(second, []*primitive.MessageExt{ext(second, 8, nil)})
	ended, end := context.WithCancel(context.Background())
	end()
	if !tr.waitBefore(context.Background(), second, 9) {
		t.Error("the old assignment holds up the new one")
	}
	if tr.waitBefore(ended, first, 6) {
		t.Error("the old assignment passes although it has an open offset")
	}
	tr.books[first].pulled = time.Now().Add(-2 * staleAfter)
	third := &primitive.MessageQueue{Topic: "topic", BrokerName: "b"}
	tr.pull(third, []*primitive.MessageExt{ext(third, 9, nil)})
	if _, kept := tr.books[first]; kept || tr.waitBefore(context.Background(), first, 5) {
		t.Error("old books are kept for ever")
	}
}

func TestACallbackNeverAsksForARetryOfWhatTheHandlerRefuses(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	c := startedConsumer(t, handle(func(context.Context, []port.Delivery) error {
		switch tries.Add(1) {
		case 1:
			return errors.New("away")
		case 2:
			panic("handler")
		}
		return nil
	}))
	queue := &primitive.MessageQueue{Topic: "topic", BrokerName: "b"}
	if result, err := c.callback(context.Background(), ext(queue, 1, []byte("null"))); result != consumer.ConsumeSuccess || err != nil {
		t.Fatal(result, err)
	}
	if tries.Load() != 3 {
		t.Fatalf("%d tries", tries.Load())
	}
}

func TestStopHoldsRefusedCallbacksUntilTheClientIsDown(t *testing.T) {
	t.Parallel()
	tried := make(chan struct{}, 100)
	c := startedConsumer(t, handle(func(context.Context, []port.Delivery) error {
		tried <- struct{}{}
		return errors.New("away")
	}))
	queue := &primitive.MessageQueue{Topic: "topic", BrokerName: "b"}
	result := make(chan consumer.ConsumeResult, 2)
	go func() {
		r, _ := c.callback(context.Background(), ext(queue, 1, []byte("null")))
		select {
		case <-c.released:
		default:
			t.Error("a callback returned before the client was down")
		}
		result <- r
	}()
	<-tried
	if err := c.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r := <-result; r != consumer.ConsumeRetryLater {
		t.Fatal(r)
	}
	if r, _ := c.callback(context.Background(), ext(queue, 2, []byte("null"))); r != consumer.ConsumeRetryLater {
		t.Fatal(r)
	}
}

func TestWhatWaitsGoesOutTogether(t *testing.T) {
	t.Parallel()
	var groups [][]port.Delivery
	var mu sync.Mutex
	inside, goOn := make(chan struct{}, 100), make(chan struct{})
	c := startedConsumer(t, handle(func(_ context.Context, d []port.Delivery) error {
		mu.Lock()
		groups = append(groups, d)
		mu.Unlock()
		inside <- struct{}{}
		<-goOn
		return nil
	}))
	queue := &primitive.MessageQueue{Topic: "topic", BrokerName: "b"}
	var calls sync.WaitGroup
	call := func(offset int64) {
		calls.Go(func() { _, _ = c.callback(context.Background(), ext(queue, offset, []byte("null"))) })
	}
	for i := range c.cfg.GroupsMax {
		call(int64(i))
		<-inside
	}
	for i := range 20 {
		call(int64(100 + i))
	}
	close(goOn)
	calls.Wait()
	sizes := 0
	for _, g := range groups {
		sizes += len(g)
	}
	if sizes != c.cfg.GroupsMax+20 {
		t.Fatalf("%d deliveries in %d groups", sizes, len(groups))
	}
}

func TestNamesAreResolvedAndTheLastGoodAnswerStays(t *testing.T) {
	t.Parallel()
	r := newResolver([]string{"127.0.0.1:1", "localhost:2", "no port", "name.invalid:3"}, 2*time.Second)
	first := r.Resolve()
	if !slices.Contains(first, "127.0.0.1:1") || !slices.Contains(first, "127.0.0.1:2") || slices.Contains(first, "no port") {
		t.Fatalf("got %v", first)
	}
	first[0] = "spoilt"
	r.last["name.invalid:3"] = []string{"10.0.0.1:3"}
	if again := r.Resolve(); again[0] != "127.0.0.1:1" || !slices.Contains(again, "10.0.0.1:3") {
		t.Fatalf("got %v", again)
	}
}

func TestTheClientsLogHoldsNoBodiesAndEndsNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := bridge{slog.New(slog.NewTextHandler(&out, nil))}
	b.Error("executeLocalTransaction but state unexpected", map[string]any{"message": "secret-token"})
	b.Info("start", map[string]any{"x": 1})
	if out.Len() != 0 {
		t.Fatalf("noise: %s", out.String())
	}
	fatal := b.Fatal // by a name of its own: the linter knows that a Fatal does not return, and this one must
	fatal("broken", map[string]any{"messages": "secret-token", "broker": strings.Repeat("b", 1000)})
	if s := out.String(); strings.Contains(s, "secret-token") || len(s) > 600 || !strings.Contains(s, "broken") {
		t.Fatalf("got %s", s)
	}
}
