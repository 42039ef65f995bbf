package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
)

// The broker's times.
const (
	checkTimeout  = 3 * time.Second
	checkInterval = 3 * time.Second
	checkMax      = 15
	groupMax      = 6 // messages of one group
	queueName     = "seckill_topic/broker/0"
)

// half is a message without a verdict. The broker keeps no outcome once it has one.
type half struct {
	number  int64
	body    []byte
	born    time.Time
	asked   time.Time
	checks  int
	asking  bool
	decided bool
	lost    bool
	undone  bool // rolled back
}

// message is a committed one.
type message struct {
	number int64
	body   []byte
	due    time.Time // not handed over before
	times  int
	taken  bool
	done   bool
	late   bool // committed again, or after a rollback
}

// broker is RocketMQ as far as it can hurt: it keeps no outcome of a half, so a late commit is delivered,
// also after a rollback and beside the commit of a check-back; what it delivers comes in any order, and
// again when nobody has said that it is finished.
type broker struct {
	w        *world
	next     int64
	halves   []*half
	messages []*message
}

func (b *broker) store(body []byte) *half {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.next++
	h := &half{number: b.next, body: body, born: time.Now()}
	b.halves = append(b.halves, h)
	return h
}

// end takes a verdict, from a sender or a check-back, whenever it comes.
func (b *broker) end(h *half, verdict domain.Verdict) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if h.lost {
		return
	}
	switch verdict {
	case domain.VerdictCommit:
		b.next++
		b.messages = append(b.messages, &message{number: b.next, body: h.body, due: time.Now(), late: h.decided})
		if h.decided {
			b.w.seen.lateCommit(h)
		}
		b.w.truth.committed(h.body)
		h.decided = true
	case domain.VerdictRollback:
		h.decided, h.undone = true, true
	default:
	}
}

// publish stores a message of anyone's.
func (b *broker) publish(body []byte) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.next++
	b.messages = append(b.messages, &message{number: b.next, body: body, due: time.Now()})
}

// check asks somebody about each half that has waited for long enough.
func (b *broker) check() {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	for _, h := range b.halves {
		wait := checkTimeout - time.Since(h.born)
		if h.checks > 0 {
			wait = checkInterval - time.Since(h.asked)
		}
		if h.decided || h.lost || h.asking || wait > 0 {
			continue
		}
		if h.checks++; h.checks > checkMax {
			b.lose(h)
			continue
		}
		h.asked = time.Now()
		inst := b.w.anyInstance()
		if inst == nil || time.Now().Before(b.w.down[toBroker]) || b.w.faulty && b.w.chance(0.05) {
			continue // nobody was asked, and the round is used up
		}
		h.asking = true
		go b.ask(inst, h)
	}
	b.halves = slices.DeleteFunc(b.halves, func(h *half) bool { return (h.decided || h.lost) && time.Since(h.born) > time.Minute })
	b.messages = slices.DeleteFunc(b.messages, func(m *message) bool { return m.done })
}

func (b *broker) ask(inst *instance, h *half) {
	verdict := domain.VerdictUnknown
	if batch, err := wire.Decode(h.body); err == nil {
		verdict = inst.listener.Resolve(forHalf(h.number), batch)
	}
	if verdict == domain.VerdictCommit {
		b.w.seen.hit("check-back that committed")
	}
	b.w.note("  check-back of %d says %s", h.number, verdict)
	if !inst.isDead() && verdict != domain.VerdictUnknown {
		go b.w.oneWay(inst, "check-back", h, verdict)
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	h.asking = false
}

// lose forgets a half for good.
func (b *broker) lose(h *half) {
	h.lost = true
	b.w.truth.halfLost(h.body)
}

// oneWay sends a verdict that nobody acknowledges.
func (w *world) oneWay(inst *instance, who string, h *half, verdict domain.Verdict) {
	end := func() { w.broker.end(h, verdict) }
	c := &call{inst: inst, to: toBroker, who: who, what: oneWayCall, args: fmt.Sprint(h.number, verdict), effect: true, late: end}
	_ = w.pass(context.Background(), c, end)
}

// hand gives messages to the consumers of instances that have room, and says whether it did.
func (b *broker) hand() (handed bool) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	for _, inst := range b.w.instances {
		for slot, busy := range inst.consuming {
			if busy || inst.dead || !inst.up {
				continue
			}
			group := b.gather()
			if len(group) == 0 {
				return handed
			}
			inst.consuming[slot], handed = true, true
			numbers := make([]int64, len(group))
			for i, m := range group {
				numbers[i] = m.number
			}
			b.w.trace.add("%s takes %d", inst, numbers)
			go b.deliver(inst, slot, group)
		}
	}
	return handed
}

// gather takes some of what waits, in an order of its own.
func (b *broker) gather() []*message {
	var ready []*message
	for _, m := range b.messages {
		if !m.taken && !m.done && !time.Now().Before(m.due) {
			ready = append(ready, m)
		}
	}
	if len(ready) == 0 {
		return nil
	}
	if b.w.faulty {
		b.w.dice.Shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
	}
	group := ready[:min(len(ready), 1+b.w.dice.IntN(groupMax))]
	for _, m := range group {
		m.taken = true
	}
	return group
}

// deliver hands a group over until it is finished or its consumer is dead.
func (b *broker) deliver(inst *instance, slot int, group []*message) {
	finished := false
	for pause := 50 * time.Millisecond; !finished && !inst.isDead(); pause = min(2*pause, 2*time.Second) {
		deliveries := make([]port.Delivery, len(group))
		for i, m := range group {
			deliveries[i] = deliveryOf(m)
			m.times++
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err := inst.handlers[slot].Handle(ctx, deliveries)
		cancel()
		if finished = err == nil && !inst.isDead(); !finished {
			time.Sleep(pause)
		}
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	inst.consuming[slot] = false
	for _, m := range group {
		m.taken, m.done = false, finished
		if !finished {
			m.due = time.Now().Add(2 * time.Second)
		}
	}
	b.w.handedBack = append(b.w.handedBack, group...)
	b.w.poke()
}

// again lets finished messages come once more, as after a lost acknowledgement.
func (b *broker) again() {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	back := b.w.handedBack
	b.w.handedBack = nil
	for _, m := range back {
		if m.done && b.w.faulty && b.w.chance(0.04) {
			for range 1 + b.w.dice.IntN(2) {
				b.next++
				b.messages = append(b.messages, &message{number: b.next, body: m.body, due: time.Now().Add(b.w.span(0, b.w.lateMax))})
			}
		}
	}
}

func deliveryOf(m *message) port.Delivery {
	d := port.Delivery{Body: m.body, Origin: port.Origin{MessageID: fmt.Sprintf("%016x", m.number), Queue: queueName, Offset: m.number, Times: m.times}}
	batch, err := wire.Decode(m.body)
	if err != nil {
		d.Malformed = err.Error()
		return d
	}
	d.Batch = batch
	return d
}

// client is an instance's way to the broker, for one use case.
type client struct {
	w    *world
	inst *instance
	who  string
}

// BatchBytesMax implements port.Sender.
func (c client) BatchBytesMax() int { return wire.ItemsMax }

// BytesOf implements port.Sender. The lane asks before it hands each purchase over to its senders: that
// each passes the scheduler makes the size of a batch the scheduler's doing and not Go's.
func (c client) BytesOf(item domain.Deduction) int {
	if c.who == "lane" {
		_ = c.w.pass(context.Background(), &call{inst: c.inst, to: toBroker, who: c.who, what: "bytes", args: item.Key.String(), sure: true}, func() {})
	}
	return wire.BytesOf(item)
}

type sent struct {
	result port.SendResult
	err    error
}

// Send implements port.Sender, as the client of RocketMQ does it: the sending goes on when ctx has ended.
func (c client) Send(ctx context.Context, batch domain.Batch) (port.SendResult, error) {
	body, err := wire.Encode(batch)
	if err != nil {
		return port.SendUnknown, err
	}
	if c.who == "relay" {
		c.w.seen.hit("relay sent")
	}
	outcome := make(chan sent, 1)
	go func() {
		result, err := c.transact(batch, body)
		outcome <- sent{result, err}
	}()
	select {
	case o := <-outcome:
		return o.result, o.err
	case <-ctx.Done():
		return port.SendUnknown, ctx.Err()
	}
}

func (c client) transact(batch domain.Batch, body []byte) (port.SendResult, error) {
	h, err := c.storeHalf(body, 2)
	if err != nil {
		return port.SendUnknown, err
	}
	if c.w.flushFails(h) { // the client rolls back by itself and asks nobody
		c.w.oneWay(c.inst, c.who, h, domain.VerdictRollback)
		return port.SendUnknown, nil
	}
	verdict := c.inst.listener.Confirm(forHalf(h.number), batch)
	c.w.note("  local transaction of %d says %s", h.number, verdict)
	if c.inst.isDead() {
		return port.SendUnknown, errDead
	}
	if verdict == domain.VerdictUnknown {
		return port.SendUnknown, nil
	}
	go c.w.oneWay(c.inst, c.who, h, verdict)
	if verdict != domain.VerdictCommit {
		return port.SendUnknown, nil
	}
	return port.SendCommitted, nil
}

// storeHalf sends a half, and again when no answer comes: there may be two of them then.
func (c client) storeHalf(body []byte, tries int) (h *half, err error) {
	for range tries {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err = c.w.pass(ctx, &call{inst: c.inst, to: toBroker, who: c.who, what: "half", args: string(body), effect: true,
			late: func() { c.w.broker.store(body) }}, func() { h = c.w.broker.store(body) })
		cancel()
		if err == nil || c.inst.isDead() {
			return h, err
		}
	}
	return nil, err
}

// Drain implements port.Drainer: every half that waits is asked about, and then everything that is
// committed is finished. What is on its way to the broker is not waited for.
func (c client) Drain(ctx context.Context) error {
	b := c.w.broker
	if err := c.w.pass(ctx, &call{inst: c.inst, to: toBroker, who: c.who, what: "drain", effect: true}, func() {}); err != nil {
		return err
	}
	c.w.mu.Lock()
	checks := map[*half]int{}
	for _, h := range b.halves {
		if !h.decided && !h.lost {
			checks[h] = h.checks
		}
	}
	c.w.mu.Unlock()
	err := c.poll(ctx, func() bool {
		for h, before := range checks {
			if !h.decided && !h.lost && (h.checks == before || h.asking) {
				return false
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // another instance may be about to answer a check
	c.w.mu.Lock()
	looked := time.Now()
	open := slices.DeleteFunc(slices.Clone(b.messages), func(m *message) bool { return m.done })
	c.w.mu.Unlock()
	err = c.poll(ctx, func() bool { return !slices.ContainsFunc(open, func(m *message) bool { return !m.done }) })
	if err == nil {
		c.w.truth.drained(looked)
		c.w.note("  %s has drained", c.inst)
	}
	return err
}

func (c client) poll(ctx context.Context, done func() bool) error {
	for {
		c.w.mu.Lock()
		ok := done()
		c.w.mu.Unlock()
		if ok {
			return nil
		}
		if c.inst.isDead() {
			return errDead
		}
		select {
		case <-time.After(100*time.Millisecond + time.Duration(c.inst.number)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CheckWindow implements port.Drainer.
func (c client) CheckWindow() time.Duration { return checkTimeout + 2*checkInterval + 30*time.Second }

// Backlog implements port.BacklogReader.
func (c client) Backlog(context.Context) port.Backlog {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	n := int64(0)
	for _, m := range c.w.broker.messages {
		if !m.done {
			n++
		}
	}
	return port.Backlog{Known: true, Messages: n}
}
