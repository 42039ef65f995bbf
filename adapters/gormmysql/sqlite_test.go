package gormmysql_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"seckill/adapters/gormmysql"
	"seckill/test/contract"
)

func openSQLite(t testing.TB, path string) *gormmysql.Store {
	t.Helper()
	return openStore(t, gormmysql.Config{Dialect: gormmysql.DialectSQLite, Path: path})
}

func openStore(t testing.TB, cfg gormmysql.Config) *gormmysql.Store {
	t.Helper()
	store, err := gormmysql.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	return store
}

func TestSQLiteContract(t *testing.T) {
	t.Parallel()
	contract.RunLedger(t, contract.LedgerSuite{Open: func(t *testing.T) contract.LedgerStore {
		return openSQLite(t, filepath.Join(t.TempDir(), "led ger?#%.db"))
	}})
}
