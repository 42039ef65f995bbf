package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"seckill/adapters/gormmysql"
	"seckill/application/port"
	"seckill/domain"
)

// rawSQL writes groups of purchases of one product into the service's own schema by database/sql alone, and gives the
// rows per second.
func (r *round) rawSQL(ctx context.Context, group int) (perSecond float64, err error) {
	if r.servers == nil {
		return 0, errNeeds
	}
	dsn, drop, err := makeDatabase(ctx, r.servers.mysql, ownName("raw"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	_, products := r.names(1)
	if err := prepareLedger(ctx, dsn, products[0]); err != nil {
		return 0, err
	}
	db, err := openReadCommitted(dsn, 1)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	w := rawWriter{db: db, product: products[0], group: group}
	began := time.Now()
	for time.Since(began) < r.s.window {
		if err := w.write(ctx); err != nil {
			return 0, err
		}
	}
	perSecond = float64(w.written) / time.Since(began).Seconds()
	r.note("raw SQL", map[string]float64{"rowsPerSecond": perSecond, "group": float64(group)})
	return perSecond, nil
}

// prepareLedger makes the service's schema with one product.
func prepareLedger(ctx context.Context, dsn, product string) (err error) {
	store, err := gormmysql.Open(ctx, gormmysql.Config{Dialect: gormmysql.DialectMySQL, DSN: dsn, PoolMax: 2}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	sale, err := domain.NewSale(product, domain.UnitsMax, time.Time{}, time.Time{}, 0)
	if err != nil {
		return err
	}
	_, _, err = store.Create(ctx, sale, port.Audit{Actor: "bench", Action: "bench"})
	return err
}

type rawWriter struct {
	db      *sql.DB
	product string
	group   int
	written int
}

// write is one transaction: orders, flows, version, guarded update, commit.
func (w *rawWriter) write(ctx context.Context) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	orders, flows := w.rows()
	for _, s := range []struct {
		into string
		rows [][]any
	}{
		{"orders (id,product_id,uid,token,quantity,status,from_birth,epoch,sequence,stock_version,attempt,group_id,gate_told,created_at,updated_at)", orders},
		{"stock_flow (product_id,quantity,op_type,action,order_id,epoch,sequence,create_time)", flows},
	} {
		statement, values := insertion(s.into, s.rows)
		if _, err := tx.ExecContext(ctx, statement, values...); err != nil {
			return err
		}
	}
	var version int64
	if err := tx.QueryRowContext(ctx, "SELECT version FROM product_stock WHERE product_id = ?", w.product).Scan(&version); err != nil {
		return err
	}
	done, err := tx.ExecContext(ctx, "UPDATE product_stock SET stock = stock - ?, version = version + 1 WHERE product_id = ? AND version = ? AND stock >= ?",
		w.group, w.product, version, w.group)
	if err != nil {
		return err
	}
	if changed, err := done.RowsAffected(); err != nil || changed != 1 {
		return errors.Join(err, errConflict)
	}
	w.written += w.group
	return tx.Commit()
}

// rows are those of one group, with the same columns and bytes as the service's.
func (w *rawWriter) rows() (orders, flows [][]any) {
	id := func() []byte { u := uuid.Must(uuid.NewV7()); return bytes.Clone(u[:]) }
	group, now := id(), time.Now().UTC().Truncate(time.Millisecond)
	for i := range w.group {
		n := w.written + i
		order := id()
		orders = append(orders, []any{order, w.product, fmt.Sprintf("user-%011d", n), fmt.Sprintf("token%011d", n), 1, 1, true, 1, n, 1,
			fmt.Sprintf("a%015d", n), group, false, now, now})
		flows = append(flows, []any{w.product, 1, "SECKILL", "deduct", order, 1, n, now})
	}
	return orders, flows
}

// insertion is one statement for many rows, with their values in order.
func insertion(into string, rows [][]any) (statement string, values []any) {
	row := "(?" + strings.Repeat(",?", len(rows[0])-1) + ")"
	for _, r := range rows {
		values = append(values, r...)
	}
	return "INSERT INTO " + into + " VALUES " + row + strings.Repeat(","+row, len(rows)-1), values
}
