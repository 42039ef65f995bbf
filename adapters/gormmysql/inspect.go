package gormmysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"seckill/application/port"
)

const inspectTimeout = 5 * time.Second

// Inspector reads the database's settings on the service's own connections.
type Inspector struct {
	store *Store
	node  string
	clock port.Clock
}

var _ port.Inspector = (*Inspector)(nil)

// NewInspector inspects the store's database, which need not be reachable yet (see Connect).
func NewInspector(store *Store, cfg Config, clock port.Clock) *Inspector {
	return &Inspector{store: store, node: nodeOf(cfg), clock: clock}
}

// nodeOf names the database without its user and password.
func nodeOf(cfg Config) string {
	if cfg.Dialect == DialectSQLite {
		return filepath.Base(cfg.Path)
	}
	c, err := mysqldriver.ParseDSN(cfg.DSN)
	if err != nil {
		return ""
	}
	if host, number, err := net.SplitHostPort(c.Addr); err == nil {
		return net.JoinHostPort(host, number) + "/" + c.DBName
	}
	return c.Addr + "/" + c.DBName
}

// Address gives the host:port of a DSN, without the rest; none for one that cannot be read, or a socket.
func Address(dsn string) []string {
	c, err := mysqldriver.ParseDSN(dsn)
	if err != nil || c.Net != "tcp" || c.TLSConfig != "" {
		return nil
	}
	return []string{c.Addr}
}

// Inspect implements port.Inspector.
func (i *Inspector) Inspect(ctx context.Context) []port.Reading {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	r := &port.Readings{Part: port.PartLedger, Node: i.node}
	pool := i.store.pools[0] // the writer's
	if err := pool.PingContext(ctx); err != nil {
		r.Unknown(port.ReadReachable, err.Error())
		return r.Found
	}
	r.Text(port.ReadReachable, "yes")
	i.clockOf(ctx, r)
	i.migrations(ctx, pool, r)
	if i.store.dialect.lite {
		sqliteSettings(ctx, pool, r)
		return r.Found
	}
	variables, err := mysqlVariables(ctx, pool)
	if err != nil {
		for _, line := range mysqlLines {
			r.Unknown(line.name, err.Error())
		}
	} else {
		mysqlSettings(variables, r)
	}
	mysqlRights(ctx, pool, r)
	return r.Found
}

func (i *Inspector) clockOf(ctx context.Context, r *port.Readings) {
	before := i.clock.Now()
	theirs, err := i.store.now(i.store.writer.WithContext(ctx))
	after := i.clock.Now()
	if err != nil {
		r.Unknown(port.ReadClock, err.Error())
		return
	}
	middle := before.Add(after.Sub(before) / 2)
	r.Number(port.ReadClock, theirs.at.Sub(middle).Milliseconds())
}

// migrations compares the steps that the database has with this program's. It reads the table
// alone: asking the tool would make it where it is not there.
func (i *Inspector) migrations(ctx context.Context, pool *sql.DB, r *port.Readings) {
	wanted, err := i.store.steps()
	if err != nil {
		r.Unknown(port.ReadMigrations, err.Error())
		return
	}
	rows, err := pool.QueryContext(ctx, "SELECT version_id FROM goose_db_version")
	if noSuchTable(err) {
		r.Number(port.ReadMigrations, int64(len(wanted)))
		return
	}
	if err != nil {
		r.Unknown(port.ReadMigrations, err.Error())
		return
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var step int64
		if err := rows.Scan(&step); err != nil {
			r.Unknown(port.ReadMigrations, err.Error())
			return
		}
		wanted = slices.DeleteFunc(wanted, func(w int64) bool { return w == step })
	}
	if err := rows.Err(); err != nil {
		r.Unknown(port.ReadMigrations, err.Error())
		return
	}
	r.Number(port.ReadMigrations, int64(len(wanted)))
}

// steps are the numbers of this program's migrations.
func (s *Store) steps() ([]int64, error) {
	folder, err := s.dialect.migrations()
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(folder, "*.sql")
	if err != nil {
		return nil, err
	}
	var steps []int64
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		step, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number", name)
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func noSuchTable(err error) bool {
	var m *mysqldriver.MySQLError
	return errors.As(err, &m) && m.Number == 1146 || err != nil && strings.Contains(err.Error(), "no such table")
}

// mysqlLine is a variable; MySQL and MariaDB, old and new, have several names for some.
type mysqlLine struct {
	name      port.ReadingName
	variables []string
	number    bool
	optional  bool // not every server has it
}

var mysqlLines = []mysqlLine{
	{port.ReadDatabaseVersion, []string{"version"}, false, false},
	{port.ReadLogFlush, []string{"innodb_flush_log_at_trx_commit"}, true, false},
	{port.ReadDoublewrite, []string{"innodb_doublewrite"}, false, false},
	{port.ReadIsolation, []string{"transaction_isolation", "tx_isolation"}, false, false},
	{port.ReadSQLMode, []string{"sql_mode"}, false, false},
	{port.ReadSnapshot, []string{"innodb_snapshot_isolation"}, false, true},
	{port.ReadLockWait, []string{"innodb_lock_wait_timeout"}, true, false},
	{port.ReadTimeZone, []string{"time_zone"}, false, false},
	{port.ReadConnections, []string{"max_connections"}, true, false},
	{port.ReadWriters, []string{"wsrep_on"}, false, true},
}

// mysqlVariables are the session's, where there are such, and else the server's.
func mysqlVariables(ctx context.Context, pool *sql.DB) (map[string]string, error) {
	rows, err := pool.QueryContext(ctx, "SHOW SESSION VARIABLES")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	variables := map[string]string{}
	for rows.Next() {
		var name string
		var value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		variables[strings.ToLower(name)] = value.String
	}
	return variables, rows.Err()
}

func mysqlSettings(variables map[string]string, r *port.Readings) {
	for _, line := range mysqlLines {
		value, said := "", false
		for _, name := range line.variables {
			if value, said = variables[name]; said {
				break
			}
		}
		number, err := strconv.ParseInt(value, 10, 64)
		switch {
		case !said && line.optional:
		case !said:
			r.Unknown(line.name, "the server has no such variable")
		case line.number && err != nil:
			r.Unknown(line.name, "the server gives no number")
		case line.number:
			r.Number(line.name, number)
		default:
			r.Text(line.name, value)
		}
	}
	readOnly, said := variables["read_only"]
	if super := variables["super_read_only"]; super == "ON" || variables["innodb_read_only"] == "ON" {
		readOnly = "ON"
	}
	if said {
		r.Text(port.ReadReadOnly, readOnly)
	} else {
		r.Unknown(port.ReadReadOnly, "the server has no such variable")
	}
	if variables["log_bin"] == "ON" {
		if n, err := strconv.ParseInt(variables["sync_binlog"], 10, 64); err == nil {
			r.Number(port.ReadBinlogSync, n)
		}
	}
}

var schemaRights = []string{"ALL PRIVILEGES", "CREATE", "ALTER", "DROP", "INDEX"}

// mysqlRights gives the rights' names and nothing else of the grants, in which some servers show the password's hash.
func mysqlRights(ctx context.Context, pool *sql.DB, r *port.Readings) {
	rows, err := pool.QueryContext(ctx, "SHOW GRANTS")
	if err != nil {
		r.Unknown(port.ReadRights, "SHOW GRANTS is refused")
		return
	}
	defer func() { _ = rows.Close() }()
	var held []string
	for rows.Next() {
		var grant string
		if err := rows.Scan(&grant); err != nil {
			r.Unknown(port.ReadRights, "SHOW GRANTS cannot be read")
			return
		}
		held = append(held, rightsIn(grant)...)
	}
	if rows.Err() != nil {
		r.Unknown(port.ReadRights, "SHOW GRANTS cannot be read")
		return
	}
	slices.Sort(held)
	if held = slices.Compact(held); len(held) == 0 {
		held = []string{"none"}
	}
	r.Text(port.ReadRights, strings.Join(held, ", "))
}

func rightsIn(grant string) (held []string) {
	list, _, ok := strings.Cut(strings.TrimPrefix(grant, "GRANT "), " ON ")
	if !ok {
		return nil
	}
	for right := range strings.SplitSeq(list, ",") {
		if right = strings.TrimSpace(right); slices.Contains(schemaRights, right) {
			held = append(held, right)
		}
	}
	return held
}

func sqliteSettings(ctx context.Context, pool *sql.DB, r *port.Readings) {
	var version, mode string
	var synchronous int64
	for _, line := range []struct {
		name  port.ReadingName
		query string
		into  any
	}{{port.ReadDatabaseVersion, "SELECT sqlite_version()", &version}, {port.ReadJournalMode, "PRAGMA journal_mode", &mode},
		{port.ReadSynchronous, "PRAGMA synchronous", &synchronous}} {
		err := pool.QueryRowContext(ctx, line.query).Scan(line.into)
		switch {
		case err != nil:
			r.Unknown(line.name, err.Error())
		case line.name == port.ReadSynchronous:
			r.Number(line.name, synchronous)
		case line.name == port.ReadJournalMode:
			r.Text(line.name, mode)
		default:
			r.Text(line.name, version+" SQLite")
		}
	}
}
