//go:build stack

package gormmysql_test

import (
	"database/sql"
	"errors"
	"testing"

	"seckill/adapters/gormmysql"
	"seckill/test/contract"
	"seckill/test/harness"
)

func openMySQL(t testing.TB, change func(*gormmysql.Config)) (*gormmysql.Store, string) {
	t.Helper()
	cfg := gormmysql.Config{Dialect: gormmysql.DialectMySQL, DSN: harness.MySQLDatabase(t)}
	if change != nil {
		change(&cfg)
	}
	return openStore(t, cfg), cfg.DSN
}

func TestMySQLContract(t *testing.T) {
	t.Parallel()
	contract.RunLedger(t, contract.LedgerSuite{Open: func(t *testing.T) contract.LedgerStore {
		store, _ := openMySQL(t, nil)
		return store
	}})
}

// MariaDB's snapshot isolation answers 1020 where others answer a row count; on by default since 11.6.2.
func TestMySQLContractUnderSnapshotIsolation(t *testing.T) {
	t.Parallel()
	_, dsn := openMySQL(t, nil)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var name, value string
	if err := db.QueryRowContext(t.Context(), "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'").Scan(&name, &value); errors.Is(err, sql.ErrNoRows) {
		t.Log("this server has no snapshot isolation: nothing to try")
		return
	} else if err != nil {
		t.Fatal(err)
	}
	contract.RunLedger(t, contract.LedgerSuite{Open: func(t *testing.T) contract.LedgerStore {
		store, _ := openMySQL(t, func(cfg *gormmysql.Config) { cfg.DSN += "?innodb_snapshot_isolation=ON" })
		return store
	}})
}

func BenchmarkApplyMySQL(b *testing.B) {
	benchmarkApply(b, func(b *testing.B) *gormmysql.Store {
		store, _ := openMySQL(b, nil)
		return store
	})
}

func BenchmarkRawMySQL(b *testing.B) {
	benchmarkRaw(b, func(b *testing.B) (*gormmysql.Store, *sql.DB) {
		store, dsn := openMySQL(b, nil)
		db, err := sql.Open("mysql", dsn+"?interpolateParams=true&parseTime=true")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = db.Close() })
		return store, db
	})
}
