package gormmysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/adapters/gormmysql"
	"seckill/application/port"
	"seckill/domain"
)

const benchGroup = 200

// BenchmarkApplySQLite measures groups of 200 purchases; rows/s is what to look at.
func BenchmarkApplySQLite(b *testing.B) {
	benchmarkApply(b, func(b *testing.B) *gormmysql.Store { return openSQLite(b, filepath.Join(b.TempDir(), "l.db")) })
}

func benchmarkApply(b *testing.B, open func(*testing.B) *gormmysql.Store) {
	for _, products := range []int{1, benchGroup} {
		b.Run(fmt.Sprintf("products=%d", products), func(b *testing.B) {
			store := open(b)
			names := benchProducts(b, store, products)
			n := 0
			for b.Loop() {
				items := make([]port.ApplyItem, benchGroup)
				for i := range items {
					n++
					key, err := domain.NewKey(names[i%products], fmt.Sprintf("user-%010d", n), "token-0123456789")
					if err != nil {
						b.Fatal(err)
					}
					items[i] = port.ApplyItem{Deduction: domain.Deduction{Key: key, Quantity: 1, Epoch: 1, Sequence: int64(n), Attempt: "a-123456"}}
				}
				if _, err := store.Apply(b.Context(), items); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*benchGroup)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func benchProducts(b *testing.B, store *gormmysql.Store, n int) []string {
	b.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("product-%03d", i)
		sale, err := domain.NewSale(names[i], domain.UnitsMax, time.Time{}, time.Time{}, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := store.Create(b.Context(), sale, port.Audit{Actor: "bench", Action: "bench"}); err != nil {
			b.Fatal(err)
		}
		if _, _, err := store.TakeAttempt(b.Context(), names[i], "bench", 0, time.Minute); err != nil {
			b.Fatal(err)
		}
		if _, err := store.Locked(b.Context(), names[i], 1, port.LockedStock.Reopen); err != nil {
			b.Fatal(err)
		}
	}
	return names
}

// benchmarkRaw runs the same statements by database/sql alone, as a yardstick for GORM and the code around it.
func benchmarkRaw(b *testing.B, open func(*testing.B) (*gormmysql.Store, *sql.DB)) {
	for _, products := range []int{1, benchGroup} {
		b.Run(fmt.Sprintf("products=%d", products), func(b *testing.B) {
			store, db := open(b)
			names := benchProducts(b, store, products)
			n := 0
			for b.Loop() {
				if err := rawGroup(b.Context(), db, names, &n); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*benchGroup)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func rawGroup(ctx context.Context, db *sql.DB, names []string, n *int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	versions, err := rawVersions(ctx, tx, names)
	if err != nil {
		return err
	}
	id := func() []byte { u := uuid.Must(uuid.NewV7()); return bytes.Clone(u[:]) }
	const now = "2026-01-02 03:04:05.678"
	group := id()
	var orders, flows []any
	for i := range benchGroup {
		*n++
		order := id()
		name := names[i*len(names)/benchGroup]
		orders = append(orders, order, name, fmt.Sprintf("user-%010d", *n), "token-0123456789", 1, 1, true, 1, *n,
			versions[name]+1, "a-123456", group, false, now, now)
		flows = append(flows, name, 1, "SECKILL", "deduct", order, 1, *n, now)
	}
	values := func(columns int) string {
		row := "(?" + strings.Repeat(",?", columns-1) + ")"
		return row + strings.Repeat(","+row, benchGroup-1)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id,product_id,uid,token,quantity,status,from_birth,epoch,sequence,stock_version,attempt,group_id,gate_told,created_at,updated_at) VALUES "+
		values(15), orders...); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO stock_flow (product_id,quantity,op_type,action,order_id,epoch,sequence,create_time) VALUES "+
		values(8), flows...); err != nil {
		return err
	}
	if err := rawTake(ctx, tx, names, versions); err != nil {
		return err
	}
	return tx.Commit()
}

func rawVersions(ctx context.Context, tx *sql.Tx, names []string) (map[string]int64, error) {
	in := make([]any, len(names))
	for i, n := range names {
		in[i] = n
	}
	rows, err := tx.QueryContext(ctx, "SELECT product_id, version FROM product_stock WHERE product_id IN (?"+strings.Repeat(",?", len(in)-1)+")", in...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	versions := map[string]int64{}
	for rows.Next() {
		var name string
		var v int64
		if err := rows.Scan(&name, &v); err != nil {
			return nil, err
		}
		versions[name] = v
	}
	return versions, rows.Err()
}

func rawTake(ctx context.Context, tx *sql.Tx, names []string, versions map[string]int64) error {
	units := int64(benchGroup / len(names))
	var amounts, guards []any
	for _, name := range names {
		amounts = append(amounts, name, units)
		guards = append(guards, name, versions[name], units)
	}
	query := "UPDATE product_stock SET stock = stock - CASE product_id" + strings.Repeat(" WHEN ? THEN ?", len(names)) +
		" END, version = version + 1 WHERE " + strings.TrimSuffix(strings.Repeat("(product_id = ? AND version = ? AND stock >= ?) OR ", len(names)), " OR ")
	done, err := tx.ExecContext(ctx, query, append(amounts, guards...)...)
	if err != nil {
		return err
	}
	if changed, err := done.RowsAffected(); err != nil || changed != int64(len(names)) {
		return fmt.Errorf("%d rows changed: %w", changed, err)
	}
	return nil
}
