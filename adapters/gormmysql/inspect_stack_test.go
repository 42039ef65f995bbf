//go:build stack

package gormmysql_test

import (
	"database/sql"
	"strings"
	"testing"

	"seckill/adapters/gormmysql"
	"seckill/application/port"
	"seckill/test/contract"
	"seckill/test/harness"
)

func TestInspectorContractOnMySQL(t *testing.T) {
	t.Parallel()
	contract.RunInspector(t, contract.InspectorFixture{
		Part: port.PartLedger,
		Here: func(tb testing.TB) port.Inspector {
			store, dsn := openMySQL(tb, nil)
			return gormmysql.NewInspector(store, gormmysql.Config{Dialect: gormmysql.DialectMySQL, DSN: dsn}, contract.ShiftedClock{})
		},
		Away: func(tb testing.TB) port.Inspector {
			cfg := gormmysql.Config{Dialect: gormmysql.DialectMySQL, DSN: "u:hidden-word@tcp(127.0.0.1:1)/x"}
			return gormmysql.NewInspector(connected(tb, cfg), cfg, contract.ShiftedClock{})
		},
		Known: append([]port.ReadingName{port.ReadLogFlush, port.ReadDoublewrite, port.ReadIsolation, port.ReadSQLMode, port.ReadReadOnly,
			port.ReadLockWait, port.ReadTimeZone, port.ReadConnections, port.ReadRights}, ofEveryDatabase...),
		Secrets: []string{"hidden-word", "seckilltest:", "PASSWORD"},
	})
}

// What the server says by default counts for nothing: the service's own connections are read.
func TestInspectionReadsTheServicesOwnConnections(t *testing.T) {
	t.Parallel()
	store, dsn := openMySQL(t, nil)
	found := gormmysql.NewInspector(store, gormmysql.Config{Dialect: gormmysql.DialectMySQL, DSN: dsn}, contract.ShiftedClock{}).Inspect(t.Context())
	for name, want := range map[port.ReadingName]string{port.ReadIsolation: "READ-COMMITTED", port.ReadTimeZone: "+00:00", port.ReadSQLMode: "STRICT_ALL_TABLES"} {
		if got := textOf(found, name); !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A user without a right to change the schema, as production has one.
func TestInspectionSeesTheUsersRights(t *testing.T) {
	t.Parallel()
	_, dsn := openMySQL(t, nil)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	user := harness.UniqueID(t)
	at, schema, _ := strings.Cut(dsn[strings.Index(dsn, "tcp("):], "/")
	schema, _, _ = strings.Cut(schema, "?")
	for _, statement := range []string{"CREATE USER '" + user + "'@'127.0.0.1' IDENTIFIED BY 'hidden-word'",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON " + schema + ".* TO '" + user + "'@'127.0.0.1'"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = db.Exec("DROP USER '" + user + "'@'127.0.0.1'") })
	cfg := gormmysql.Config{Dialect: gormmysql.DialectMySQL, DSN: user + ":hidden-word@" + at + "/" + schema}
	found := gormmysql.NewInspector(connected(t, cfg), cfg, contract.ShiftedClock{}).Inspect(t.Context())
	if got := textOf(found, port.ReadRights); got != "none" {
		t.Errorf("rights %q of %+v", got, found)
	}
}

func textOf(found []port.Reading, name port.ReadingName) string {
	for _, r := range found {
		if r.Name == name && r.Known {
			return r.Text
		}
	}
	return ""
}
