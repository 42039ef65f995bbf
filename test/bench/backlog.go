package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/adapters/redislua"
	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

const (
	fillBatch    = 500 // commands of one call of the gate
	fillMessage  = 150 // flows of one message, about what the lane sends under load
	fillProgress = 20_000
)

// backlog fills the service's gate with deductions of a product, and its topic with their messages, as an instance does
// that has just died: everything is accepted and nothing is a row.
type backlog struct {
	gate      *redislua.Gate
	publisher *publisher // nil: the gate alone
	serial    int
}

func (r *round) newBacklog(messages bool) (*backlog, func(), error) {
	if r.service == nil {
		return nil, nil, errNeeds
	}
	client := redislua.NewClient(redislua.ClientConfig{Addrs: []string{r.servers.redis}})
	gate, err := redislua.New(client, redislua.Config{})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	b := &backlog{gate: gate}
	if messages {
		if b.publisher, err = r.servers.newPublisher(r.service.own); err != nil {
			return nil, nil, errors.Join(err, client.Close())
		}
	}
	return b, func() {
		if b.publisher != nil {
			b.publisher.close()
		}
		_ = client.Close()
	}, nil
}

// fill deducts so many purchases of one unit, and sends them.
func (b *backlog) fill(ctx context.Context, product string, count int) error {
	for left := count; left > 0 && ctx.Err() == nil; {
		n := min(left, fillProgress)
		flows, err := b.deduct(ctx, product, n)
		if err != nil {
			return err
		}
		if err := b.send(ctx, flows); err != nil {
			return err
		}
		left -= n
	}
	return ctx.Err()
}

// deduct takes units at the gate by users and tokens of 16 characters.
func (b *backlog) deduct(ctx context.Context, product string, count int) ([]domain.Flow, error) {
	flows := make([]domain.Flow, 0, count)
	for len(flows) < count {
		items := make([]port.DeductItem, min(fillBatch, count-len(flows)))
		for i := range items {
			b.serial++
			command, err := domain.NewDeductCommand(product, fmt.Sprintf("user-%011d", b.serial), fmt.Sprintf("token%011d", b.serial), 1)
			if err != nil {
				return nil, err
			}
			items[i] = port.DeductItem{Command: command, Attempt: fmt.Sprintf("a%015d", b.serial)}
		}
		for _, reply := range b.gate.Deduct(ctx, time.Now(), items) {
			if reply.Outcome != port.DeductAccepted {
				return nil, fmt.Errorf("the gate answered %d to a purchase of the backlog: %w", reply.Outcome, reply.Err)
			}
			flows = append(flows, reply.Flow)
		}
	}
	return flows, nil
}

func (b *backlog) send(ctx context.Context, flows []domain.Flow) error {
	if b.publisher == nil {
		return nil
	}
	var bodies [][]byte
	for len(flows) > 0 {
		n := min(fillMessage, len(flows))
		body, err := bodyOf(flows[:n])
		if err != nil {
			return err
		}
		bodies, flows = append(bodies, body), flows[n:]
	}
	return b.publisher.sendAll(ctx, publishHands, bodies)
}

// bodyOf is the message of some flows, as the service itself writes it.
func bodyOf(flows []domain.Flow) ([]byte, error) {
	batch := domain.Batch{ID: ownName("batch"), Kind: domain.BatchDeduct}
	for _, f := range flows {
		batch.Items = append(batch.Items, domain.Deduction{Key: f.Key(), Quantity: f.Quantity(), Epoch: f.Epoch(),
			Sequence: f.Sequence(), Attempt: f.Attempt(), At: f.At()})
	}
	return wire.Encode(batch)
}
