package application

import (
	"fmt"
	"strings"

	"seckill/application/port"
)

const (
	whyWentBack = "a stock row below the version that the gate was told means that the database was restored from an older copy: orders that " +
		"buyers were told of are missing, and what is left would be sold again. The service takes the product out of sale and rebuilds nothing by itself"

	changeWentBack = "bring the database forward (the newer server, or the backup and its binary log up to the end): the product then opens " +
		"by itself. If those orders are really gone, ask POST /admin/v1/products/{productId}/rebuild with lost=report which of them the gate " +
		"still knows, then let it write them again (lost=restore), or let the database's truth stand (lost=drop)"
)

// poolReserve is how many connections the server should have beside one instance's pool.
const poolReserve = 10

var ledgerRules = map[port.ReadingName]rule{
	port.ReadReachable: reachableRule("the database accepted purchases wait in the broker, and no product can be rebuilt",
		"start it, check database.dsn (host, user, password, schema) and the way there"),
	port.ReadDatabaseVersion: {want: always("MySQL 8 or later, MariaDB 10.11 or later, SQLite"),
		why: "others were not tried", change: "upgrade the server", judge: judgeDatabaseVersion},
	port.ReadLogFlush: {want: always("1"), matters: true, unit: " ",
		why:    "with another value a power cut loses the last second of orders that were committed, settled and told to buyers",
		change: "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and the same in the server's configuration", judge: exactly(1, VerdictWrong)},
	port.ReadBinlogSync: {want: always("1 where a binary log is written"), unit: " ",
		why:    "after a power cut the binary log, and every replica, may lack the last orders",
		change: "SET GLOBAL sync_binlog = 1, and the same in the server's configuration", judge: exactly(1, VerdictNote)},
	port.ReadDoublewrite: {want: always("on"), matters: true,
		why: "without it a power cut can leave torn pages, which no log repairs", change: "innodb_doublewrite=ON in the server's configuration",
		judge: func(r port.Reading, _ facts) string {
			return graded(strings.EqualFold(r.Text, "OFF") || r.Text == "0", false)
		}},
	port.ReadIsolation: {want: always("READ-COMMITTED on the service's connections"), matters: true,
		why:    "on an older snapshot a row that another instance has inserted is not seen, and a purchase gets the wrong fate",
		change: "nothing in the server: the service sets it on each connection; look for a proxy in between that changes or shares sessions", judge: wants("READ-COMMITTED")},
	port.ReadSQLMode: {want: always("strict on the service's connections"), matters: true,
		why:    "otherwise values that do not fit are cut instead of refused",
		change: "nothing in the server: the service sets it on each connection; look for a proxy in between that changes or shares sessions",
		judge:  func(r port.Reading, _ facts) string { return graded(!strings.Contains(r.Text, "STRICT_"), false) }},
	port.ReadSnapshot: {want: always("either"), why: "with it on a row that changed meanwhile is an error (1020), which the service tries again",
		change: "nothing to do", judge: func(port.Reading, facts) string { return VerdictRight }},
	port.ReadReadOnly: {want: always("OFF: this is the writer"), matters: true,
		why:    "a server that only reads takes no order, and a replica is behind, which looks as if the database had gone back",
		change: "point database.dsn at the writer", judge: wants("OFF", "0")},
	port.ReadWriters: {want: always("OFF, or one node that all instances use"),
		why:    "a Galera cluster with several writers certifies after the answer, and a reader may be behind",
		change: "send every instance to the same node, and set wsrep_sync_wait=1", judge: prefers("OFF", "0")},
	port.ReadLockWait: {want: always("1s to 20s on the service's connections"), matters: true, unit: "s",
		why:    "a wait for a row's lock that outlasts the service's own deadline ends as an outcome that nobody knows",
		change: "nothing in the server: the service sets it on each connection; look for a proxy in between that changes or shares sessions",
		judge:  func(r port.Reading, _ facts) string { return graded(r.Number < 1 || r.Number > 20, false) }},
	port.ReadTimeZone: {want: always("+00:00 on the service's connections"), matters: true,
		why:    "rows and leases are in UTC",
		change: "nothing in the server: the service sets it on each connection; look for a proxy in between that changes or shares sessions", judge: wants("+00:00", "UTC")},
	port.ReadConnections: {want: func(f facts) string {
		return fmt.Sprintf("%d or more for each instance: database.pool_max and a reserve", f.cfg.PoolMax+poolReserve)
	}, matters: true, unit: "connections",
		why:    "when the server has none left, orders wait",
		change: "SET GLOBAL max_connections = N for all instances together, and the same in the server's configuration; or lower database.pool_max",
		judge: func(r port.Reading, f facts) string {
			return graded(r.Number < int64(f.cfg.PoolMax), r.Number < int64(f.cfg.PoolMax+poolReserve))
		}},
	port.ReadRights: {want: always("none to change the schema"),
		why:    "the service needs to select, insert, update and delete; with more, whoever takes it over can drop the ledger",
		change: "let another user run `seckill migrate up`, and GRANT SELECT, INSERT, UPDATE, DELETE to this one", judge: prefers("none")},
	port.ReadMigrations: {want: always("none waits"), matters: true, unit: "steps that wait",
		why: "this program expects the newest schema", change: "seckill migrate up", judge: atMost(0, 0)},
	port.ReadJournalMode: {want: always("wal"), matters: true, why: "readers would wait for the writer, and the other way round",
		change: "nothing to set: the service asks for it; is the data folder on a network file system?", judge: wants("wal")},
	port.ReadSynchronous: {want: always("2 (FULL)"), matters: true, unit: " ", why: "with less a power cut loses committed orders",
		change: "nothing to set: the service asks for it", judge: exactly(2, VerdictWrong)},
	port.ReadClock: clockRule("rows are dated and leases measured by the database's clock alone, so nothing is lost by a difference; " +
		"but windows are judged by the service's, so one of the two shows buyers the wrong time"),
}

func exactly(n int64, otherwise string) func(port.Reading, facts) string {
	return func(r port.Reading, _ facts) string {
		if r.Number == n {
			return VerdictRight
		}
		return otherwise
	}
}

func judgeDatabaseVersion(r port.Reading, _ facts) string {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(r.Text, "5.5.5-"), "%d.%d", &major, &minor); err != nil {
		return VerdictNote
	}
	switch {
	case strings.Contains(r.Text, "SQLite"):
		return VerdictRight
	case strings.Contains(r.Text, "MariaDB"):
		return graded(false, major < 10 || major == 10 && minor < 11)
	}
	return graded(false, major < 8)
}
