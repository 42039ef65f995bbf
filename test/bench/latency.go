package main

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	probeRate     = 20  // raw halves a second beside a load
	probeHands    = 4   // that send them
	idlePurchases = 200 // one after the other
)

// playLatency is figure 7.
func playLatency(ctx context.Context, r *round) (err error) {
	seen, err := r.sales(ctx)
	if err != nil {
		return err
	}
	if r.servers == nil {
		return errNeeds
	}
	raw, err := r.newRawPath(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.close(context.WithoutCancel(ctx))) }()
	_, products := r.names(1)
	if err := r.open(ctx, r.s.admin, products, plenty); err != nil {
		return err
	}
	half, err := r.atHalfRate(ctx, products, seen, raw)
	if err != nil {
		return err
	}
	idle, err := r.idle(ctx, products, raw)
	if err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	return r.verify(ctx, r.s.admin, products, half+idle)
}

// atHalfRate measures figure 7a: first the size of the messages at that rate, then the latencies while raw halves of
// that size are sent beside the load, few enough not to weigh.
func (r *round) atHalfRate(ctx context.Context, products []string, seen salesSeen, raw *rawPath) (accepted int64, err error) {
	before, err := r.pipeline(ctx, r.s.admin)
	if err != nil {
		return 0, err
	}
	c := r.steadyCrowd(products, seen)
	c.window /= 2
	began := time.Now()
	sizing, err := r.let(ctx, c)
	if err != nil {
		return 0, err
	}
	after, err := r.pipeline(ctx, r.s.admin)
	if err != nil {
		return 0, err
	}
	took := soldBetween(sizing, before, after, time.Since(began))
	flows, err := raw.gate.deduct(ctx, min(max(int(took.sentBatch), 1), fillMessage))
	if err != nil {
		return 0, err
	}
	body, err := bodyOf(flows)
	if err != nil {
		return 0, err
	}
	l, times, err := r.letBeside(ctx, r.steadyCrowd(products, seen), func(context.Context) error { return raw.commit(body) })
	if err != nil {
		return 0, err
	}
	one := float64(times.ValueAtQuantile(50)) / 1000
	values := detail(l, nil)
	values["meanSentBatch"], values["messagesPerSecond"] = took.sentBatch, took.sentRate
	r.note("sales at half the rate", values)
	r.note("raw half and commit beside them", map[string]float64{"bytes": float64(len(body)), "p50Millis": one,
		"p99Millis": float64(times.ValueAtQuantile(99)) / 1000})
	r.result.record("7a", over(l.p99(), one))
	return sizing.accepted + l.accepted, nil
}

// letBeside lets a crowd buy and does something else at a steady low rate meanwhile.
func (r *round) letBeside(ctx context.Context, c crowd, do func(context.Context) error) (loaded, *hdrhistogram.Histogram, error) {
	var times *hdrhistogram.Histogram
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		times, failed = steadily(ctx, probeRate, probeHands, c.window, do)
	}()
	l, err := r.let(ctx, c)
	<-done
	return l, times, errors.Join(err, failed)
}

// idle measures figure 7b: one purchase, then the raw steps, in turn.
func (r *round) idle(ctx context.Context, products []string, raw *rawPath) (accepted int64, err error) {
	c := r.crowd(r.s.target, products)
	c.connections, c.window, c.count = 1, 0, idlePurchases
	l, err := r.let(ctx, c)
	if err != nil {
		return 0, err
	}
	times := newLatency()
	for range idlePurchases {
		began := time.Now()
		if err := raw.purchase(ctx); err != nil {
			return 0, err
		}
		_ = times.RecordValue(max(time.Since(began).Microseconds(), 1))
	}
	one := float64(times.ValueAtQuantile(50)) / 1000
	r.note("idle purchase", map[string]float64{"p50Millis": l.p50(), "p99Millis": l.p99(), "rawP50Millis": one})
	r.result.record("7b", over(l.p50(), one))
	return l.accepted, nil
}

// rawPath is what a purchase is made of, done raw, on a topic that nobody consumes.
type rawPath struct {
	gate         *rawGate
	transactions *transactions
}

var errNotCommitted = errors.New("a raw half was not committed")

func (r *round) newRawPath(ctx context.Context) (*rawPath, error) {
	gate, err := r.newRawGate(ctx)
	if err != nil {
		return nil, err
	}
	p := &rawPath{gate: gate}
	topic := ownName("raw")
	if err := r.servers.makeTopic(ctx, topic); err != nil {
		return nil, errors.Join(err, gate.close(ctx))
	}
	if _, err := gate.deduct(ctx, 1); err != nil { // the call that the raw client copies
		return nil, errors.Join(err, gate.close(ctx))
	}
	if p.transactions, err = r.servers.newTransactions(topic, p.look); err != nil {
		return nil, errors.Join(err, gate.close(ctx))
	}
	return p, nil
}

func (p *rawPath) close(ctx context.Context) error {
	p.transactions.close()
	return p.gate.close(ctx)
}

// look is one look at a flow.
func (p *rawPath) look([]byte) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := p.gate.client.Exists(ctx, p.gate.prefix+":{"+p.gate.product+"}:stock").Result()
	return true, err
}

func (p *rawPath) commit(body []byte) error {
	committed, err := p.transactions.send(body)
	if err == nil && !committed {
		err = errNotCommitted
	}
	return err
}

// purchase is one script, one half, one look, one commit.
func (p *rawPath) purchase(ctx context.Context) error {
	if err := p.gate.script(ctx, 1); err != nil {
		return err
	}
	return p.commit(idleBody)
}

// idleBody is as long as the message of one purchase.
var idleBody = make([]byte, 220)
