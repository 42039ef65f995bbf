package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// playConsumer is figure 5.
func playConsumer(ctx context.Context, r *round) error {
	rows, group, err := r.consumerAlone(ctx)
	if err != nil {
		return err
	}
	eight, err := r.literalConsumer(ctx, literalWorkers)
	if err != nil {
		return err
	}
	r.result.record("5a", rows/eight)
	one, err := r.literalConsumer(ctx, 1)
	if err != nil {
		return err
	}
	r.result.record("5b", rows/one)
	raw, err := r.rawSQL(ctx, group)
	if err == nil {
		r.result.record("5c", rows/raw)
	}
	return err
}

// consumerAlone fills a backlog while the service is frozen, lets it go, and gives the rows per second until the last one,
// and the mean rows of a transaction.
func (r *round) consumerAlone(ctx context.Context) (perSecond float64, group int, err error) {
	_, products := r.names(1)
	product := products[0]
	b, closeAll, err := r.newBacklog(true)
	if err != nil {
		return 0, 0, err
	}
	defer closeAll()
	if err := r.open(ctx, r.s.admin, products, plenty); err != nil {
		return 0, 0, err
	}
	before, err := r.pipeline(ctx, r.s.admin)
	if err != nil {
		return 0, 0, err
	}
	if err := r.frozen(func() error { return b.fill(ctx, product, r.s.backlog) }); err != nil {
		return 0, 0, err
	}
	began, cpu := time.Now(), r.meter.read()
	if err := r.waitRows(ctx, product, int64(r.s.backlog)); err != nil {
		return 0, 0, err
	}
	perSecond = float64(r.s.backlog) / time.Since(began).Seconds()
	after, err := r.pipeline(ctx, r.s.admin)
	if err != nil {
		return 0, 0, err
	}
	mean := ratio(after.AppliedRows-before.AppliedRows, after.AppliedGroups-before.AppliedGroups)
	values := map[string]float64{"rowsPerSecond": perSecond, "meanAppliedGroup": mean}
	for name, seconds := range r.meter.since(cpu) {
		values["cpuSecondsPer100k "+name] = seconds / float64(r.s.backlog) * 100_000
	}
	r.note("consumer alone", values)
	if err := r.drain(ctx); err != nil {
		return 0, 0, err
	}
	return perSecond, max(int(mean), 1), r.verify(ctx, r.s.admin, products, int64(r.s.backlog))
}

// frozen does something while the service stands still.
func (r *round) frozen(do func() error) error {
	if err := syscall.Kill(r.service.pid(), syscall.SIGSTOP); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, syscall.Kill(r.service.pid(), syscall.SIGCONT))
}

// waitRows looks at the stock row alone, until so many units are sold: it costs the service nothing.
func (r *round) waitRows(ctx context.Context, product string, units int64) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	db, err := openReadCommitted(r.service.dsn, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		var sold int64
		err := db.QueryRowContext(ctx, "SELECT total - stock FROM product_stock WHERE product_id = ?", product).Scan(&sold)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("wait for %d rows: %w", units, err)
		}
		if sold >= units {
			return nil
		}
		if !sleepUntil(ctx, time.Now().Add(drainLook)) {
			return fmt.Errorf("%d of %d are rows: %w", sold, units, ctx.Err())
		}
	}
}
