//go:build stack

package gormmysql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"seckill/application/port"
	"seckill/domain"
	"seckill/test/harness"
)

func mysqlStore(t *testing.T) *Store {
	t.Helper()
	return opened(t, Config{Dialect: DialectMySQL, DSN: harness.MySQLDatabase(t), LockWait: time.Second})
}

func TestMySQLLostCommitMeetsItsOwnRows(t *testing.T) {
	t.Parallel()
	lostCommit(t, mysqlStore(t))
}

func TestReopeningBetweenReadAndUpdateMakesTheGuardMiss(t *testing.T) {
	t.Parallel()
	s := mysqlStore(t)
	sell(t, s, "p", 10)
	suspend(t, s, "p")
	before(t, s, "UPDATE product_stock SET stock", func(*gorm.DB) { reopenAt(t, s, "p", 2) })
	// Read while suspended, so to be applied at once; but by the time of the update buyers of epoch 2 are let in.
	result, err := s.Apply(t.Context(), []port.ApplyItem{single(t, "p", "u", 1, 1)})
	if err != nil || result.Replies[0].Outcome != port.Straggler {
		t.Fatalf("reply %+v, %v", result.Replies, err)
	}
	sold(t, s, "p", 0)
}

func TestAMovedVersionIsStampedOnTheRows(t *testing.T) {
	t.Parallel()
	s := mysqlStore(t)
	for _, p := range []string{"a", "b", "c"} {
		sell(t, s, p, 10)
	}
	before(t, s, "UPDATE product_stock SET stock", func(*gorm.DB) {
		apply(t, s, port.Applied, single(t, "b", "other", 3, 1))
	})
	replies := apply(t, s, port.Applied, single(t, "a", "u", 1, 1), single(t, "b", "u", 1, 1), single(t, "c", "u", 1, 1))
	stocks, err := s.Stocks(t.Context(), []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	for i, stock := range stocks {
		if replies[i].Order.StockVersion() != stock.Version() {
			t.Errorf("%s: row at version %d, stock at %d", stock.Product(), replies[i].Order.StockVersion(), stock.Version())
		}
	}
	sold(t, s, "a", 1)
	sold(t, s, "b", 4)
	sold(t, s, "c", 1)
}

func TestStockThatGoesBetweenReadAndUpdateRejectsTheRest(t *testing.T) {
	t.Parallel()
	s := mysqlStore(t)
	sell(t, s, "p", 3)
	before(t, s, "UPDATE product_stock SET stock", func(*gorm.DB) {
		apply(t, s, port.Applied, single(t, "p", "other", 3, 1))
	})
	reply := apply(t, s, port.Applied, single(t, "p", "u", 1, 1))[0]
	if reply.Order.Status() != domain.OrderRejected {
		t.Fatalf("status %v", reply.Order.Status())
	}
	sold(t, s, "p", 3)
}

func TestALockWaitTimeoutLeavesNothingHalfWritten(t *testing.T) {
	t.Parallel()
	s := mysqlStore(t)
	sell(t, s, "p", 10)
	holder := s.writer.Begin()
	if _, err := lockStock(holder, "p"); err != nil {
		t.Fatal(err)
	}
	item := single(t, "p", "u", 1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond) // two waits of a second time out
	defer cancel()
	if _, err := s.Apply(ctx, []port.ApplyItem{item}); !errors.Is(err, domain.ErrUnavailable) {
		t.Fatalf("apply while the row is locked: %v", err)
	}
	if found, err := s.Fates(t.Context(), []domain.Key{item.Deduction.Key}); err != nil || !found[0].IsZero() {
		t.Fatalf("half written: %+v, %v", found, err)
	}
	if err := holder.Rollback().Error; err != nil {
		t.Fatal(err)
	}
	apply(t, s, port.Applied, item)
	sold(t, s, "p", 1)
}

// An instance that is frozen, or whose machine is gone, says nothing and closes nothing.
func TestTheLocksOfASilentInstanceAreFreed(t *testing.T) {
	t.Parallel()
	dsn := harness.MySQLDatabase(t)
	silent := opened(t, Config{Dialect: DialectMySQL, DSN: dsn, IdleMax: time.Second})
	sell(t, silent, "p", 10)
	holder := silent.writer.Begin()
	if _, err := lockStock(holder, "p"); err != nil {
		t.Fatal(err)
	}
	other := opened(t, Config{Dialect: DialectMySQL, DSN: dsn})
	apply(t, other, port.Applied, single(t, "p", "u", 1, 1))
	sold(t, other, "p", 1)
	if err := holder.Commit().Error; err == nil {
		t.Error("its transaction went on")
	}
}

func TestAConnectionKilledBetweenTwoStatementsIsAnotherTry(t *testing.T) {
	t.Parallel()
	s := mysqlStore(t)
	sell(t, s, "p", 10)
	before(t, s, "UPDATE product_stock SET stock", func(tx *gorm.DB) {
		var id int64
		if err := tx.Raw("SELECT CONNECTION_ID()").Row().Scan(&id); err != nil {
			t.Error(err)
		}
		if err := s.read(t.Context()).Exec("KILL ?", id).Error; err != nil {
			t.Error(err)
		}
	})
	apply(t, s, port.Applied, single(t, "p", "u", 1, 1))
	sold(t, s, "p", 1)
}

func TestSettingsThatCarryPromises(t *testing.T) {
	t.Parallel()
	s := mysqlStore(t)
	settings := map[string]string{}
	for _, name := range []string{"transaction_isolation", "tx_isolation", "sql_mode", "time_zone"} {
		var key, value string
		err := s.read(t.Context()).Raw("SHOW VARIABLES WHERE Variable_name = ?", name).Row().Scan(&key, &value)
		if err != nil && !errors.Is(err, sql.ErrNoRows) { // one of the two names of the isolation
			t.Fatal(err)
		}
		settings[key] = value
	}
	if settings["transaction_isolation"] != "READ-COMMITTED" && settings["tx_isolation"] != "READ-COMMITTED" {
		t.Errorf("isolation: %v", settings)
	}
	if !strings.Contains(settings["sql_mode"], "STRICT_ALL_TABLES") || settings["time_zone"] != "+00:00" {
		t.Errorf("settings: %v", settings)
	}
}

func TestMySQLColumnsKeepIDsApart(t *testing.T) {
	t.Parallel()
	columnsKeepApart(t, mysqlStore(t))
}

func TestSixStartersMigrateOnce(t *testing.T) {
	t.Parallel()
	dsn := harness.MySQLDatabase(t)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			s, err := Open(t.Context(), Config{Dialect: DialectMySQL, DSN: dsn}, slogDiscard)
			if err == nil {
				err = errors.Join(s.Migrate(t.Context()), s.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestMySQLMigratesUpDownUp(t *testing.T) {
	t.Parallel()
	upDownUp(t, mysqlStore(t))
}

// The files say the same (migrations has a test); so must the databases.
func TestBothDatabasesHaveTheSameColumns(t *testing.T) {
	t.Parallel()
	mysql, sqlite := mysqlStore(t), sqliteStore(t)
	for _, table := range []string{"product_stock", "orders", "stock_flow", "stock_changes", "parked_messages",
		"reconcile_reports", "audit_log", "barriers"} {
		a, b := columnsOf(t, mysql, table), columnsOf(t, sqlite, table)
		if len(a) == 0 || !slices.Equal(a, b) {
			t.Errorf("%s: %v and %v", table, a, b)
		}
	}
}

func columnsOf(t *testing.T, s *Store, table string) []string {
	t.Helper()
	rows, err := s.read(t.Context()).Raw("SELECT * FROM " + table + " LIMIT 0").Rows()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil || rows.Err() != nil {
		t.Fatal(err, rows.Err())
	}
	return names
}
