//go:build stack

package gormmysql_test

import (
	"database/sql"
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
