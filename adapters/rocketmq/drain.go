package rocketmq

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/domain"
)

// placeCheck is where a barrier half is marked by its check-back.
const placeCheck = "check"

// pollPause is between two looks at the barrier log.
const pollPause = 100 * time.Millisecond

// Drain is port.Drainer's. First the halves: the brokers check in the order in which they stored, so that the
// check-back of a newer half shows that all older ones have been asked about. Then the messages.
func (p *Producer) Drain(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	defer p.sends.Done()
	queues, err := queuesNow(ctx, p.cfg)
	if err != nil {
		return err
	}
	if err := p.drainHalves(ctx, queues); err != nil {
		return fmt.Errorf("drain half messages: %w", err)
	}
	if err := p.drainQueues(ctx, queues); err != nil {
		return fmt.Errorf("drain queues: %w", err)
	}
	return nil
}

// drainHalves leaves a half unanswered on each broker and waits for the check-backs.
func (p *Producer) drainHalves(ctx context.Context, queues []*primitive.MessageQueue) error {
	var ids []string
	asked := make(map[string]bool)
	for _, queue := range queues {
		if asked[queue.BrokerName] {
			continue
		}
		asked[queue.BrokerName] = true
		id := p.ids.Unique()
		if err := p.sendBarrierHalf(ctx, id, queue); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if err := p.await(ctx, id, []string{placeCheck}); err != nil {
			return err
		}
	}
	// Checks of older halves were sent before; another instance may be about to answer one.
	if !pause(ctx.Done(), p.cfg.ListenerTimeout) {
		return ctx.Err()
	}
	return nil
}

func (p *Producer) sendBarrierHalf(ctx context.Context, id string, queue *primitive.MessageQueue) error {
	type stored struct {
		ok  bool
		err error
	}
	answer := make(chan stored, 1)
	p.sends.Add(1) // under Drain's own, so never from zero
	go func() {
		defer p.sends.Done()
		ok, _, err := p.transact(domain.Batch{ID: id, Kind: domain.BatchBarrier}, queue, "")
		answer <- stored{ok, err}
	}()
	select {
	case s := <-answer:
		if !s.ok {
			return domain.NewError(domain.CodeUnavailable, "the barrier half was not stored at broker "+queue.BrokerName, s.err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drainQueues sends one barrier through every queue and waits until each has passed.
func (p *Producer) drainQueues(ctx context.Context, queues []*primitive.MessageQueue) error {
	id := p.ids.Unique()
	places := make([]string, len(queues))
	for i, queue := range queues {
		places[i] = queueName(queue)
		if err := p.sendBarrier(ctx, id, queue); err != nil {
			return err
		}
	}
	return p.await(ctx, id, places)
}

func (p *Producer) sendBarrier(ctx context.Context, id string, queue *primitive.MessageQueue) error {
	message, err := p.message(domain.Batch{ID: id, Kind: domain.BatchBarrier})
	if err != nil {
		return err
	}
	message.Queue = queue
	answer := make(chan error, 1)
	p.sends.Add(1) // under Drain's own, so never from zero
	// Detached: a deadline of ours would break the connection that all sends share.
	go func() { //nolint:gosec // see above
		defer p.sends.Done()
		result, err := p.plain.SendSync(context.Background(), message)
		if err == nil && result.Status != primitive.SendOK {
			err = fmt.Errorf("stored with status %d", result.Status)
		}
		answer <- err
	}()
	select {
	case err := <-answer:
		if err != nil {
			return domain.NewError(domain.CodeUnavailable, "the barrier was not stored in queue "+queueName(queue), err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await looks at the barrier log until the barrier has been seen at all places.
func (p *Producer) await(ctx context.Context, id string, places []string) error {
	for {
		seen, err := p.barriers.BarrierPlaces(ctx, id)
		if err == nil && !slices.ContainsFunc(places, func(place string) bool { return !slices.Contains(seen, place) }) {
			return nil
		}
		if !pause(ctx.Done(), pollPause) {
			if err != nil {
				return fmt.Errorf("%w; the barrier log: %w", ctx.Err(), err)
			}
			return fmt.Errorf("barrier seen at %d of %d places: %w", len(seen), len(places), ctx.Err())
		}
	}
}
