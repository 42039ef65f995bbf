package gormmysql_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"seckill/adapters/gormmysql"
	"seckill/application/port"
	"seckill/test/contract"
)

var ofEveryDatabase = []port.ReadingName{port.ReadReachable, port.ReadClock, port.ReadDatabaseVersion, port.ReadMigrations}

func TestInspectorContractOnSQLite(t *testing.T) {
	t.Parallel()
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartLedger, Here: func(tb testing.TB) port.Inspector {
		path := filepath.Join(tb.TempDir(), "ledger.db")
		return gormmysql.NewInspector(openSQLite(tb, path), gormmysql.Config{Dialect: gormmysql.DialectSQLite, Path: path}, contract.ShiftedClock{})
	}, Known: append([]port.ReadingName{port.ReadJournalMode, port.ReadSynchronous}, ofEveryDatabase...)})
}

// connected is a store that nobody has spoken to yet.
func connected(tb testing.TB, cfg gormmysql.Config) *gormmysql.Store {
	tb.Helper()
	store, err := gormmysql.Connect(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func numberOf(t *testing.T, found []port.Reading, name port.ReadingName) int64 {
	t.Helper()
	for _, r := range found {
		if r.Name == name && r.Known {
			return r.Number
		}
	}
	t.Fatalf("no %s in %+v", name, found)
	return 0
}

func TestInspectionCountsMigrationsThatWaitAndMakesNothing(t *testing.T) {
	t.Parallel()
	cfg := gormmysql.Config{Dialect: gormmysql.DialectSQLite, Path: filepath.Join(t.TempDir(), "ledger.db")}
	store := connected(t, cfg)
	inspector := gormmysql.NewInspector(store, cfg, contract.ShiftedClock{})
	waiting := numberOf(t, inspector.Inspect(t.Context()), port.ReadMigrations)
	if waiting < 2 || waiting != numberOf(t, inspector.Inspect(t.Context()), port.ReadMigrations) {
		t.Errorf("%d steps wait", waiting)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := numberOf(t, inspector.Inspect(t.Context()), port.ReadMigrations); n != 0 {
		t.Errorf("%d steps wait after all", n)
	}
	if err := store.MigrateDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := numberOf(t, inspector.Inspect(t.Context()), port.ReadMigrations); n != 1 {
		t.Errorf("%d steps wait after one was taken back", n)
	}
}

func TestInspectionSeesAClockThatIsAnHourOff(t *testing.T) {
	t.Parallel()
	cfg := gormmysql.Config{Dialect: gormmysql.DialectSQLite, Path: filepath.Join(t.TempDir(), "ledger.db")}
	found := gormmysql.NewInspector(connected(t, cfg), cfg, contract.ShiftedClock{Ahead: -time.Hour}).Inspect(t.Context())
	if off := numberOf(t, found, port.ReadClock); off < 3_590_000 || off > 3_610_000 {
		t.Errorf("an hour ahead of ours: %d ms", off)
	}
}
