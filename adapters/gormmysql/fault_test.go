package gormmysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"seckill/application/port"
	"seckill/domain"
)

// opened is a migrated store that ends with the test.
func opened(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return s
}

func sqliteStore(t *testing.T) *Store {
	t.Helper()
	return opened(t, Config{Dialect: DialectSQLite, Path: filepath.Join(t.TempDir(), "l.db")})
}

// sell puts units on sale and opens the product at epoch 1.
func sell(t *testing.T, s *Store, product string, units int64) {
	t.Helper()
	sale, err := domain.NewSale(product, units, time.Time{}, time.Time{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Create(t.Context(), sale, port.Audit{Actor: "test", Action: "test"}); err != nil {
		t.Fatal(err)
	}
	reopenAt(t, s, product, 1)
}

func reopenAt(t *testing.T, s *Store, product string, epoch int64) {
	t.Helper()
	if _, taken, err := s.TakeAttempt(t.Context(), product, "test", epoch-1, time.Minute); err != nil || !taken {
		t.Fatalf("take attempt: %v, %v", taken, err)
	}
	if reopened, err := s.Locked(t.Context(), product, epoch, port.LockedStock.Reopen); err != nil || !reopened {
		t.Fatalf("reopen: %v, %v", reopened, err)
	}
}

func suspend(t *testing.T, s *Store, product string) {
	t.Helper()
	if err := s.Suspend(t.Context(), []string{product}, "test", false); err != nil {
		t.Fatal(err)
	}
}

func single(t *testing.T, product, user string, quantity, epoch int64) port.ApplyItem {
	t.Helper()
	key, err := domain.NewKey(product, user, "t")
	if err != nil {
		t.Fatal(err)
	}
	return port.ApplyItem{Deduction: domain.Deduction{Key: key, Quantity: quantity, Epoch: epoch, Sequence: 1, Attempt: "a"}}
}

// apply applies items that must come out with that outcome, and checks that the rows read as answered.
func apply(t *testing.T, s *Store, want port.ApplyOutcome, items ...port.ApplyItem) []port.ApplyReply {
	t.Helper()
	result, err := s.Apply(t.Context(), items)
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	for i, r := range result.Replies {
		if r.Outcome != want {
			t.Fatalf("outcome %v, want %v", r.Outcome, want)
		}
		found, err := s.Fates(t.Context(), []domain.Key{items[i].Deduction.Key})
		if err != nil || found[0] != r.Order {
			t.Fatalf("the row is %+v (%v), answered was %+v", found[0], err, r.Order)
		}
	}
	return result.Replies
}

// sold asserts the books of a product.
func sold(t *testing.T, s *Store, product string, units int64) {
	t.Helper()
	b, err := s.Totals(t.Context(), product)
	if err != nil {
		t.Fatal(err)
	}
	if b.Stock.Sold() != units || b.ConfirmedUnits != units || b.FlowUnits != units || b.OrphanOrders+b.OrphanFlows != 0 {
		t.Fatalf("books %+v, want %d units sold", b, units)
	}
}

// before runs do once, just before the first statement that begins so.
func before(t *testing.T, s *Store, statement string, do func(tx *gorm.DB)) {
	t.Helper()
	var done atomic.Bool
	hook := func(tx *gorm.DB) {
		if strings.HasPrefix(tx.Statement.SQL.String(), statement) && done.CompareAndSwap(false, true) {
			do(tx.Session(&gorm.Session{NewDB: true}))
		}
	}
	if err := s.writer.Callback().Raw().Before("gorm:raw").Register("test:before", hook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !done.Load() {
			t.Errorf("no statement began with %q", statement)
		}
	})
}

// losing is a database whose next commit happens and whose answer to it is lost.
type losing struct {
	driver.Connector
	next atomic.Bool
}

// everything is what the two drivers' connections can do.
type everything interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
}

type losingConn struct {
	everything
	from *losing
}

type losingTx struct {
	driver.Tx
	from *losing
}

func (l *losing) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return losingConn{conn.(everything), l}, nil
}

// CheckNamedValue converts as database/sql does where the driver has no wishes of its own.
func (c losingConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.everything.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c losingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.everything.BeginTx(ctx, opts)
	return losingTx{tx, c.from}, err
}

func (tx losingTx) Commit() error {
	err := tx.Tx.Commit()
	if err == nil && tx.from.next.CompareAndSwap(true, false) {
		return driver.ErrBadConn
	}
	return err
}

// lossy puts itself between a store and its database.
func lossy(t *testing.T, s *Store) *losing {
	t.Helper()
	pool, err := s.dialect.openWriter()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(0) // a connection that is lost is not given back
	l := &losing{Connector: poolConnector{pool}}
	wrapped := sql.OpenDB(l)
	wrapped.SetMaxOpenConns(1)
	db, err := gorm.Open(s.dialect.dialector(wrapped), s.writer.Config)
	if err != nil {
		t.Fatal(err)
	}
	s.pools, s.writer = append(s.pools, wrapped, pool), db
	return l
}

// poolConnector hands out the driver's connections of a pool.
type poolConnector struct{ pool *sql.DB }

func (p poolConnector) Driver() driver.Driver { return p.pool.Driver() }

func (p poolConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var raw driver.Conn
	err = conn.Raw(func(c any) error { raw = c.(driver.Conn); return nil })
	return raw, err
}

func lostCommit(t *testing.T, s *Store) {
	sell(t, s, "p", 10)
	network := lossy(t, s)
	network.next.Store(true)
	replies := apply(t, s, port.Met, single(t, "p", "u", 2, 1))
	if replies[0].Order.Status() != domain.OrderConfirmed {
		t.Fatalf("status %v", replies[0].Order.Status())
	}
	sold(t, s, "p", 2)
}

func TestSQLiteLostCommitMeetsItsOwnRows(t *testing.T) {
	t.Parallel()
	lostCommit(t, sqliteStore(t))
}
