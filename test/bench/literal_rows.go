package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// literalSale is what a literal service or consumer works on.
type literalSale struct {
	own, dsn, product string
	ledger            *literalLedger
	drop              func() error
}

func (b *bench) openLiteral(ctx context.Context) (*literalSale, error) {
	if b.servers == nil {
		return nil, errNeeds
	}
	s := &literalSale{own: ownName("literal")}
	_, products := b.names(1)
	s.product = products[0]
	var err error
	if s.dsn, s.drop, err = makeDatabase(ctx, b.servers.mysql, s.own); err != nil {
		return nil, err
	}
	if s.ledger, err = openLiteralLedger(s.dsn, literalWorkers); err != nil {
		return nil, errors.Join(err, s.drop())
	}
	if err = errors.Join(s.ledger.prepare(ctx, s.product, plenty), b.servers.makeTopic(ctx, s.own)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *literalSale) close() error { return errors.Join(s.ledger.db.Close(), s.drop()) }

// literalRows are the rows per second that the literal service writes under figure 1's load.
func (r *round) literalRows(ctx context.Context) (perSecond float64, err error) {
	if r.literalSeen != nil {
		return *r.literalSeen, nil
	}
	sale, err := r.openLiteral(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sale.close()) }()
	client := redis.NewClient(&redis.Options{Addr: r.servers.redis})
	defer client.Close()
	if err := client.Set(ctx, (&literal{own: sale.own}).stockKey(sale.product), plenty, 0).Err(); err != nil {
		return 0, err
	}
	p, err := startSelf(ctx, r.s, "literal", []string{literalOwn + "=" + sale.own, literalDSN + "=" + sale.dsn})
	if err != nil {
		return 0, err
	}
	stopped := false
	defer func() {
		if !stopped {
			err = errors.Join(err, p.stop())
		}
	}()
	r.meter["literal"] = p.pid()
	defer delete(r.meter, "literal")
	cpu, began := r.meter.read(), time.Now()
	l, err := r.let(ctx, r.crowd(p.buyers, []string{sale.product}))
	if err != nil {
		return 0, err
	}
	sold, err := sale.ledger.sold(ctx, sale.product)
	if err != nil {
		return 0, err
	}
	perSecond = over(float64(sold), time.Since(began).Seconds())
	values := detail(l, r.meter.since(cpu))
	values["rowsPerSecond"] = perSecond
	r.note("literal", values)
	stopped = true
	if err := p.stop(); err != nil { // what it has not applied by now it would take minutes for
		return 0, err
	}
	if _, err := sale.ledger.rows(ctx, sale.product); err != nil {
		return 0, err
	}
	if sold == 0 {
		return 0, errors.New("the literal service wrote no row")
	}
	r.literalSeen = &perSecond
	return perSecond, forget(ctx, client, sale.own+":*")
}

// literalConsumer is the rows per second of so many literal workers on a backlog that outlasts the window.
func (r *round) literalConsumer(ctx context.Context, workers int) (perSecond float64, err error) {
	sale, err := r.openLiteral(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sale.close()) }()
	bodies := make([][]byte, int(literalFastest*r.s.window.Seconds())+1)
	for i := range bodies {
		if bodies[i], err = json.Marshal(literalMessage{sale.product, fmt.Sprintf("user-%011d", i), fmt.Sprintf("token%011d", i), 1}); err != nil {
			return 0, err
		}
	}
	publisher, err := r.servers.newPublisher(sale.own)
	if err != nil {
		return 0, err
	}
	err = publisher.sendAll(ctx, publishHands, bodies)
	publisher.close()
	if err != nil {
		return 0, err
	}
	stop, err := r.servers.consume(sale.own, workers, sale.ledger.apply)
	if err != nil {
		return 0, err
	}
	perSecond, err = r.watchRows(ctx, int64(len(bodies)), func(ctx context.Context) (int64, error) { return sale.ledger.sold(ctx, sale.product) })
	stop()
	if err != nil {
		return 0, err
	}
	r.note(fmt.Sprintf("literal consumer, %d workers", workers), map[string]float64{"rowsPerSecond": perSecond})
	_, err = sale.ledger.rows(ctx, sale.product)
	return perSecond, err
}

const (
	literalFastest = 2000 // rows per second that no literal consumer reaches
	publishHands   = 16
)

// watchRows follows a count from its first row until the window is over or all are there, and gives the rate.
func (r *round) watchRows(ctx context.Context, all int64, count func(context.Context) (int64, error)) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin+r.s.window)
	defer cancel()
	var first, last time.Time
	var at, rows int64
	for {
		n, err := count(ctx)
		if err != nil {
			return 0, err
		}
		now := time.Now()
		if first.IsZero() && n > 0 {
			first, at = now, n
		}
		if n > rows {
			rows, last = n, now
		}
		if !first.IsZero() && (n >= all || now.Sub(first) >= r.s.window) {
			return over(float64(rows-at), last.Sub(first).Seconds()), nil
		}
		if !sleepUntil(ctx, now.Add(drainLook)) {
			return 0, ctx.Err()
		}
	}
}

// forget removes the keys of a run that are like a pattern.
func forget(ctx context.Context, client *redis.Client, pattern string) error {
	for cursor := uint64(0); ; {
		keys, next, err := client.Scan(ctx, cursor, pattern, 1000).Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := client.Unlink(ctx, keys...).Err(); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
