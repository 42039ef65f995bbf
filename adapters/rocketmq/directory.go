package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	mqerrors "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/domain"
)

// directory asks the name servers. The library takes no usable context, so that each question
// runs beside its caller; one at a time, so that an outage does not gather them.
//
// Its admin client is kept: the library never closes an admin client's connection to the name
// server, which lives until the server finds it idle. It is dropped after a failure, so that names are resolved anew.
type directory struct {
	cfg    Config
	slot   chan struct{} // held by the question under way, which alone may touch client
	client admin.Admin
}

func newDirectory(cfg Config) *directory { return &directory{cfg: cfg, slot: make(chan struct{}, 1)} }

// ask puts a question. It may go on after ctx has ended, but no other is put before it has ended.
func (d *directory) ask(ctx context.Context, question func(admin.Admin) error) error {
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
		answer <- d.answer(question)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *directory) answer(question func(admin.Admin) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the rocketmq client panicked: %v", cause)
		}
		if err != nil && !errors.Is(err, mqerrors.ErrTopicNotExist) {
			err = errors.Join(err, d.drop())
		}
	}()
	if d.client == nil {
		// Not assigned at once: on an error the library gives a nil pointer, which is no nil interface.
		client, err := admin.NewAdmin(
			admin.WithResolver(newResolver(d.cfg.NameServers, d.cfg.DirectoryTimeout)),
			admin.WithCredentials(credentials(d.cfg)))
		if err != nil {
			return err
		}
		d.client = client
	}
	return question(d.client)
}

func (d *directory) drop() error {
	if d.client == nil {
		return nil
	}
	client := d.client
	d.client = nil
	return client.Close()
}

// close lets the client go, unless a question still hangs.
func (d *directory) close() error {
	select {
	case d.slot <- struct{}{}:
		defer func() { <-d.slot }()
		return d.drop()
	default:
		return nil
	}
}

func credentials(cfg Config) primitive.Credentials {
	return primitive.Credentials{AccessKey: cfg.AccessKey, SecretKey: cfg.SecretKey}
}

// Check says whether the name servers answer and know the topic. CodeUnavailable, with both named.
func Check(ctx context.Context, cfg Config) error {
	d := newDirectory(cfg)
	return errors.Join(d.check(ctx), d.close())
}

func (d *directory) check(ctx context.Context) error {
	err := d.ask(ctx, func(client admin.Admin) error {
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

// queuesNow are the topic's queues as the name servers know them now. An admin client keeps its
// first answer for ever, so this one is made for the question.
func queuesNow(ctx context.Context, cfg Config) ([]*primitive.MessageQueue, error) {
	d := newDirectory(cfg)
	var queues []*primitive.MessageQueue
	err := d.ask(ctx, func(client admin.Admin) error {
		found, err := client.FetchPublishMessageQueues(context.Background(), cfg.Topic)
		if err == nil && len(found) == 0 {
			err = errors.New("the topic has no queue")
		}
		queues = found
		return err
	})
	if err = errors.Join(err, d.close()); err != nil {
		return nil, domain.NewError(domain.CodeUnavailable, "the queues of topic "+cfg.Topic+" cannot be read", err)
	}
	return queues, nil
}

// EnsureTopic makes the topic on the broker at brokerAddr, with so many queues, and returns once
// the name servers know it. A topic that is there keeps its messages. CodeUnavailable.
func EnsureTopic(ctx context.Context, cfg Config, brokerAddr string, queues int) error {
	d := newDirectory(cfg)
	err := d.ask(ctx, func(client admin.Admin) error {
		return client.CreateTopic(context.Background(), admin.WithTopicCreate(cfg.Topic), admin.WithBrokerAddrCreate(brokerAddr),
			admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues))
	})
	if err != nil {
		err = errors.Join(err, d.close())
		return domain.NewError(domain.CodeUnavailable, fmt.Sprintf("topic %s cannot be made at broker %s", cfg.Topic, brokerAddr), err)
	}
	// The library takes a refusal for a success, so only the name servers prove it.
	return errors.Join(d.connect(ctx), d.close())
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
