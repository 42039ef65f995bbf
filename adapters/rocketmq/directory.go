package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/domain"
)

// directory asks the name servers. The library takes no usable context, so that each question
// runs beside its caller; one at a time, so that an outage does not gather them.
type directory struct {
	cfg  Config
	slot chan struct{}
}

func newDirectory(cfg Config) *directory { return &directory{cfg: cfg, slot: make(chan struct{}, 1)} }

// ask calls question with an admin client that lives no longer than it: the client caches routes for ever.
func (d *directory) ask(ctx context.Context, question func(adminClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.DirectoryTimeout)
	defer cancel()
	select {
	case d.slot <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	answer := make(chan error, 1)
	go func() {
		defer func() { <-d.slot }()
		defer func() {
			if cause := recover(); cause != nil {
				answer <- fmt.Errorf("the rocketmq client panicked: %v", cause)
			}
		}()
		answer <- d.answer(question)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type adminClient = admin.Admin

func (d *directory) answer(question func(adminClient) error) (err error) {
	client, err := admin.NewAdmin(
		admin.WithResolver(newResolver(d.cfg.NameServers, d.cfg.DirectoryTimeout)),
		admin.WithCredentials(credentials(d.cfg)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return question(client)
}

func credentials(cfg Config) primitive.Credentials {
	return primitive.Credentials{AccessKey: cfg.AccessKey, SecretKey: cfg.SecretKey}
}

// Check says whether the name servers answer and know the topic. CodeUnavailable, with both named.
func Check(ctx context.Context, cfg Config) error { return newDirectory(cfg).check(ctx) }

func (d *directory) check(ctx context.Context) error {
	err := d.ask(ctx, func(client adminClient) error {
		clusters, err := client.FetchClusterList(d.cfg.Topic)
		if err == nil && len(clusters) == 0 {
			err = errors.New("the topic has no broker")
		}
		return err
	})
	if err != nil {
		return domain.NewError(domain.CodeUnavailable,
			fmt.Sprintf("topic %s at name server %s", d.cfg.Topic, strings.Join(d.cfg.NameServers, ",")), err)
	}
	return nil
}

// connect checks until the topic is there, a bounded number of times.
func (d *directory) connect(ctx context.Context) error {
	for try := 1; ; try++ {
		err := d.check(ctx)
		if err == nil || try >= d.cfg.ConnectTriesMax {
			return err
		}
		if !pause(ctx.Done(), d.cfg.ConnectPause) {
			return err
		}
	}
}

// queues are the topic's queues as the name servers know them now.
func (d *directory) queues(ctx context.Context) ([]*primitive.MessageQueue, error) {
	var queues []*primitive.MessageQueue
	err := d.ask(ctx, func(client adminClient) error {
		found, err := client.FetchPublishMessageQueues(context.Background(), d.cfg.Topic)
		if err == nil && len(found) == 0 {
			err = errors.New("the topic has no queue")
		}
		queues = found
		return err
	})
	if err != nil {
		return nil, domain.NewError(domain.CodeUnavailable, "the queues of topic "+d.cfg.Topic+" cannot be read", err)
	}
	return queues, nil
}

// EnsureTopic makes the topic on the broker at brokerAddr, with so many queues, and returns once
// the name servers know it. A topic that is there keeps its messages. CodeUnavailable.
func EnsureTopic(ctx context.Context, cfg Config, brokerAddr string, queues int) error {
	d := newDirectory(cfg)
	err := d.ask(ctx, func(client adminClient) error {
		return client.CreateTopic(context.Background(), admin.WithTopicCreate(cfg.Topic), admin.WithBrokerAddrCreate(brokerAddr),
			admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues))
	})
	if err != nil {
		return domain.NewError(domain.CodeUnavailable, fmt.Sprintf("topic %s cannot be made at broker %s", cfg.Topic, brokerAddr), err)
	}
	// The library takes a refusal for a success, so only the name servers prove it.
	return d.connect(ctx)
}

// pause waits, unless done is closed first.
func pause(done <-chan struct{}, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}

// queueName is a queue's name in origins and at barriers.
func queueName(q *primitive.MessageQueue) string {
	return fmt.Sprintf("%s/%s/%d", q.Topic, q.BrokerName, q.QueueId)
}
