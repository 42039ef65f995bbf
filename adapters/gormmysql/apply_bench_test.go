package gormmysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"seckill/application/port"
	"seckill/domain"
)

// BenchmarkApplyStatements is what one group of 200 takes in this process, on a server that answers at once: the
// statements, their arguments and the answers. What the driver writes to the wire is not in it.
func BenchmarkApplyStatements(b *testing.B) {
	s := instantStore(b)
	items := make([]port.ApplyItem, 200)
	for i := range items {
		key, err := domain.NewKey("product-00000001", fmt.Sprintf("user-%011d", i), fmt.Sprintf("token-%010d", i))
		if err != nil {
			b.Fatal(err)
		}
		items[i] = port.ApplyItem{Deduction: domain.Deduction{Key: key, Quantity: 1, Epoch: 1, Sequence: int64(i), Attempt: "a2b3c4d5-1x9"}}
	}
	b.Run("apply", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			result, err := s.Apply(b.Context(), items)
			if err != nil || result.Replies[0].Outcome != port.Applied {
				b.Fatal(result, err)
			}
		}
	})
	b.Run("told", func(b *testing.B) {
		result, err := s.Apply(b.Context(), items)
		if err != nil {
			b.Fatal(err)
		}
		orders := make([]domain.Order, len(items))
		for i, r := range result.Replies {
			orders[i] = r.Order
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := s.MarkTold(b.Context(), orders); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func instantStore(b *testing.B) *Store {
	b.Helper()
	d, err := mysqlDialect(Config{Dialect: DialectMySQL, DSN: "nobody@tcp(127.0.0.1:1)/none"})
	if err != nil {
		b.Fatal(err)
	}
	s := &Store{dialect: d, log: slog.New(slog.DiscardHandler)}
	s.writer, err = s.connect(func() (*sql.DB, error) { return sql.OpenDB(instantServer{}), nil })
	if err != nil {
		b.Fatal(err)
	}
	s.reader = s.writer
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// instantServer has one product, no order, and changes one row whatever it is told.
type instantServer struct{}

func (instantServer) Connect(context.Context) (driver.Conn, error) { return instantServer{}, nil }
func (instantServer) Driver() driver.Driver                        { return nil }
func (instantServer) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (instantServer) Close() error                                 { return nil }
func (instantServer) Begin() (driver.Tx, error)                    { return instantServer{}, nil }
func (instantServer) Commit() error                                { return nil }
func (instantServer) Rollback() error                              { return nil }

// CheckNamedValue asks a value for what it is stored as, as MySQL's driver does.
func (instantServer) CheckNamedValue(v *driver.NamedValue) (err error) {
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	return err
}

func (instantServer) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (instantServer) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	return &instantRows{left: strings.Count(query, "now_at")}, nil
}

type instantRows struct{ left int }

func (*instantRows) Columns() []string {
	return []string{"product_id", "stock", "version", "total", "epoch", "open_epoch", "state", "now_at"}
}
func (*instantRows) Close() error { return nil }

func (r *instantRows) Next(row []driver.Value) error {
	if r.left == 0 {
		return io.EOF
	}
	r.left--
	copy(row, []driver.Value{[]byte("product-00000001"), int64(1 << 30), int64(7), int64(1 << 30), int64(1), int64(1),
		int64(domain.SaleOpen), []byte("2026-01-02 03:04:05.678")})
	return nil
}
