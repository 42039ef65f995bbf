package shop

import (
	"context"
	"log/slog"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"seckill/adapters/gormmysql"
	"seckill/adapters/redislua"
	"seckill/test/harness"
)

// Gate is the shop's gate: of another process, or of the one that StartHere started.
func (s *Shop) Gate() *redislua.Gate {
	s.t.Helper()
	if s.Profile == Embedded {
		return s.here.gate
	}
	client := redislua.NewClient(redislua.ClientConfig{Addrs: []string{s.Redis}})
	s.t.Cleanup(func() { _ = client.Close() })
	gate, err := redislua.New(client, redislua.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	return gate
}

// Store is the shop's ledger, of another process. Stack only.
func (s *Shop) Store() *gormmysql.Store {
	s.t.Helper()
	store, err := gormmysql.Open(context.Background(),
		gormmysql.Config{Dialect: gormmysql.DialectMySQL, DSN: s.DSN, PoolMax: 4}, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = store.Close() })
	return store
}

// Publish puts bodies on the shop's topic as another producer would, one message each, spread over its
// queues. On the embedded profile the service must have been started by StartHere.
func (s *Shop) Publish(bodies ...[]byte) {
	s.t.Helper()
	if s.Profile == Embedded {
		for _, body := range bodies {
			if err := s.here.broker.Publish(body, 1); err != nil {
				s.t.Fatal(err)
			}
		}
		return
	}
	rlog.SetLogLevel("error")
	name := harness.UniqueID(s.t) // two at once in one process must not share one
	p, err := producer.NewDefaultProducer(producer.WithGroupName(name), producer.WithInstanceName(name),
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{s.NameServers})))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = p.Shutdown() }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, body := range bodies {
		m := primitive.NewMessage(s.Topic, body).WithTag("stock_deduct")
		if r, err := p.SendSync(ctx, m); err != nil || r.Status != primitive.SendOK {
			s.t.Fatalf("publish: %v %v", r, err)
		}
	}
}

// LeaveHalf leaves a half message behind as an instance does that dies before its commit: stored, and
// nobody says what became of it. Stack only.
func (s *Shop) LeaveHalf(body []byte) {
	s.t.Helper()
	rlog.SetLogLevel("error")
	p, err := rocketmq.NewTransactionProducer(speechless{}, producer.WithGroupName(s.Group+"_producer"),
		producer.WithInstanceName(harness.UniqueID(s.t)),
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{s.NameServers})))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = p.Shutdown() }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m := primitive.NewMessage(s.Topic, body).WithTag("stock_deduct")
	if r, err := p.SendMessageInTransaction(ctx, m); err != nil || r.Status != primitive.SendOK {
		s.t.Fatalf("half message: %v %v", r, err)
	}
}

// speechless never says what became of a half.
type speechless struct{}

func (speechless) ExecuteLocalTransaction(*primitive.Message) primitive.LocalTransactionState {
	return primitive.UnkonwnState
}

func (speechless) CheckLocalTransaction(*primitive.MessageExt) primitive.LocalTransactionState {
	return primitive.UnkonwnState
}
