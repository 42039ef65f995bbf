package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"seckill/adapters/rocketmq"
)

// topicQueues is as many as `migrate up` gives a topic.
const topicQueues = 8

// tag is the one that the service subscribes to by default.
const tag = "stock_deduct"

// makeTopic makes a topic with as many queues as the service's own.
func (s *servers) makeTopic(ctx context.Context, topic string) error {
	rocketmq.BridgeLogs(slog.New(slog.DiscardHandler))
	cfg := rocketmq.DefaultConfig()
	cfg.NameServers, cfg.Topic = []string{s.names}, topic
	return rocketmq.EnsureTopic(ctx, cfg, s.broker, topicQueues)
}

func (s *servers) producerOptions(group string) []producer.Option {
	return []producer.Option{producer.WithGroupName(group), producer.WithInstanceName(ownName(group)),
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{s.names})), producer.WithRetry(0)}
}

// publisher sends bodies as messages that are committed already.
type publisher struct {
	topic  string
	client mq.Producer
}

func (s *servers) newPublisher(topic string) (*publisher, error) {
	rocketmq.BridgeLogs(slog.New(slog.DiscardHandler))
	client, err := mq.NewProducer(s.producerOptions(topic + "_publisher")...)
	if err != nil {
		return nil, err
	}
	return &publisher{topic, client}, client.Start()
}

func (p *publisher) close() { _ = p.client.Shutdown() }

func (p *publisher) send(body []byte) error {
	// A context with an end would tear the connection that all share.
	answer, err := p.client.SendSync(context.Background(), primitive.NewMessage(p.topic, body).WithTag(tag))
	if err == nil && answer.Status != primitive.SendOK {
		err = fmt.Errorf("a message was stored with status %d", answer.Status)
	}
	return err
}

// sendAll sends with so many hands, since each waits for the broker's disk.
func (p *publisher) sendAll(ctx context.Context, hands int, bodies [][]byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan []byte)
	var wg sync.WaitGroup
	for range hands {
		wg.Go(func() {
			for body := range todo {
				if err := p.send(body); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for _, body := range bodies {
		select {
		case todo <- body:
		case <-ctx.Done():
		}
	}
	close(todo)
	wg.Wait()
	return context.Cause(ctx)
}

// transactions sends half messages whose local transaction is look: it says whether the flow is there.
type transactions struct {
	topic  string
	client mq.TransactionProducer
}

// looker answers the client and the broker from the same place.
type looker func(body []byte) (there bool, err error)

func (look looker) verdict(body []byte) primitive.LocalTransactionState {
	there, err := look(body)
	switch {
	case err != nil:
		return primitive.UnkonwnState
	case there:
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

// ExecuteLocalTransaction is the client's, after the half is stored.
func (look looker) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return look.verdict(m.Body)
}

// CheckLocalTransaction is the broker's, when the outcome got lost.
func (look looker) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	return look.verdict(m.Body)
}

func (s *servers) newTransactions(topic string, look looker) (*transactions, error) {
	rocketmq.BridgeLogs(slog.New(slog.DiscardHandler))
	client, err := mq.NewTransactionProducer(look, s.producerOptions(topic+"_transactions")...)
	if err != nil {
		return nil, err
	}
	return &transactions{topic, client}, client.Start()
}

func (t *transactions) close() { _ = t.client.Shutdown() }

// send stores a half, looks, and commits; it says whether it did.
func (t *transactions) send(body []byte) (committed bool, err error) {
	answer, err := t.client.SendMessageInTransaction(context.Background(), primitive.NewMessage(t.topic, body).WithTag(tag))
	if err != nil {
		return false, err
	}
	return answer.Status == primitive.SendOK && answer.State == primitive.CommitMessageState, nil
}

// consume hands every message of a topic to apply, one at a time to each of so many workers. What apply fails on comes again.
func (s *servers) consume(topic string, workers int, apply func(body []byte) error) (stop func(), err error) {
	rocketmq.BridgeLogs(slog.New(slog.DiscardHandler))
	client, err := mq.NewPushConsumer(consumer.WithGroupName(topic+"_consumer"), consumer.WithInstance(ownName(topic)),
		consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{s.names})), consumer.WithConsumerModel(consumer.Clustering),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumeGoroutineNums(workers),
		consumer.WithConsumeMessageBatchMaxSize(1), consumer.WithPullBatchSize(32))
	if err != nil {
		return nil, err
	}
	err = client.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tag},
		func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, m := range messages {
				if apply(m.Body) != nil {
					return consumer.ConsumeRetryLater, nil //nolint:nilerr // the client has its word for it, and takes an error for success
				}
			}
			return consumer.ConsumeSuccess, nil
		})
	if err != nil {
		return nil, err
	}
	return func() { _ = client.Shutdown() }, client.Start()
}
