package embedded

import (
	"context"
	"fmt"
	"time"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

// deliverLoop hands groups to the handler, each until it is finished.
func (b *Broker) deliverLoop() {
	defer b.work.Done()
	for {
		group := b.gather()
		if group == nil {
			return
		}
		b.finish(group, b.handle(group))
	}
}

// gather takes what waits, up to GatherMax; a barrier comes alone, after everything
// before it. It gives nil when the broker stops.
func (b *Broker) gather() []*message {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if b.stopping {
			return nil
		}
		if group := b.group(); len(group) > 0 {
			b.ready = b.ready[len(group):]
			b.handling++
			return group
		}
		b.changed.Wait()
	}
}

// group is the next group, or empty if there is none yet.
func (b *Broker) group() []*message {
	for i, m := range b.ready {
		if i == b.cfg.GatherMax {
			return b.ready[:i]
		}
		switch {
		case !m.barrier:
		case i > 0:
			return b.ready[:i]
		case b.handling > 0:
			return nil
		default:
			return b.ready[:1]
		}
	}
	return b.ready
}

// handle gives a group to the handler until it is finished; false when the broker stops first.
func (b *Broker) handle(group []*message) bool {
	pause := b.cfg.RetryMin
	for {
		err := b.callHandler(group)
		if err == nil {
			return true
		}
		b.log.Warn("a group is not finished and is handed over again", "event", "delivery_retry", "messages", len(group), "error", err)
		if !b.sleep(pause) {
			return false
		}
		pause = min(2*pause, b.cfg.RetryMax)
	}
}

func (b *Broker) callHandler(group []*message) (err error) {
	ctx, cancel := context.WithTimeout(b.ctx, b.cfg.HandleTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the handler panicked: %v", cause)
		}
	}()
	deliveries := make([]port.Delivery, len(group))
	for i, m := range group {
		deliveries[i] = deliveryOf(m)
		m.times++
	}
	return b.handler.Handle(ctx, deliveries)
}

func deliveryOf(m *message) port.Delivery {
	d := port.Delivery{Body: m.body, Origin: port.Origin{
		MessageID: fmt.Sprintf("%016x", m.number), Queue: queueName, Offset: m.number, Times: m.times, Trace: m.trace,
	}}
	batch, err := wire.Decode(m.body)
	if err != nil {
		d.Malformed = err.Error()
		return d
	}
	d.Batch = batch
	return d
}

// finish notes what became of a group. The record is not synced: losing it costs a redelivery.
func (b *Broker) finish(group []*message, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handling--
	b.changed.Broadcast()
	if !done {
		return
	}
	records := make([]record, len(group))
	for i, m := range group {
		delete(b.pending, m.number)
		records[i] = record{kind: recordFinished, number: m.number}
	}
	b.journal.append(records...)
}

// sleep waits, unless the broker stops.
func (b *Broker) sleep(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.quit:
		return false
	}
}

// checkLoop checks halves that have waited for long enough, one after another.
func (b *Broker) checkLoop() {
	defer b.work.Done()
	for b.sleep(min(b.cfg.CheckTimeout, b.cfg.CheckInterval) / 2) {
		for _, half := range b.overdue() {
			if b.isStopping() {
				return
			}
			b.check(half)
		}
	}
}

func (b *Broker) isStopping() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopping
}

// overdue are the halves whose check-back is due.
func (b *Broker) overdue() []*message {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []*message
	for _, half := range b.halves {
		wait := b.cfg.CheckTimeout - time.Since(half.born)
		if !half.checkedAt.IsZero() {
			wait = b.cfg.CheckInterval - time.Since(half.checkedAt)
		}
		if wait <= 0 && !half.listening {
			due = append(due, half)
		}
	}
	return due
}

// check asks the listener what became of a half, unless it is being asked or has been decided.
func (b *Broker) check(half *message) {
	b.mu.Lock()
	if _, waits := b.halves[half.number]; !waits || half.listening {
		b.mu.Unlock()
		return
	}
	half.listening = true
	b.mu.Unlock()

	// What cannot be read cannot be asked about: it goes to the consumer, who parks it.
	verdict := domain.VerdictCommit
	if batch, err := wire.Decode(half.body); err == nil {
		verdict = b.ask("resolve", b.listener.Resolve, batch, half.trace)
	}
	if _, err := b.decide(half, verdict); err != nil {
		b.log.Error("a check-back could not be stored", "event", "check_back_failed", "error", err)
	}
}

// Drain is port.Drainer's. It needs no barrier: every half of the one journal is known, and so
// is every message that is not finished.
func (b *Broker) Drain(ctx context.Context) error {
	defer context.AfterFunc(ctx, b.wake)()
	b.mu.Lock()
	halves := make([]*message, 0, len(b.halves))
	for _, half := range b.halves {
		halves = append(halves, half)
	}
	b.mu.Unlock()
	for _, half := range halves {
		if err := b.waitFor(ctx, func() bool { return !half.listening }); err != nil {
			return err
		}
		b.check(half)
		if err := b.waitFor(ctx, func() bool { return !half.listening }); err != nil {
			return err
		}
	}
	b.mu.Lock()
	open := make(map[int64]struct{}, len(b.pending))
	for number := range b.pending {
		open[number] = struct{}{}
	}
	b.mu.Unlock()
	return b.waitFor(ctx, func() bool {
		for number := range open {
			if _, waits := b.pending[number]; !waits {
				delete(open, number)
			}
		}
		return len(open) == 0
	})
}

func (b *Broker) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed.Broadcast()
}

// waitFor waits until done, which is called under the lock. Someone must wake it when ctx ends.
func (b *Broker) waitFor(ctx context.Context, done func() bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !done() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("drain the embedded broker: %w", err)
		}
		if b.stopping {
			return domain.NewError(domain.CodeUnavailable, "the embedded broker is stopping", nil)
		}
		b.changed.Wait()
	}
	return nil
}
