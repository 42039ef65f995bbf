package gormmysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/glebarez/sqlite"
	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"seckill/domain"
	"seckill/migrations"
)

// dialect is all that differs between the databases.
type dialect struct {
	lite         bool // SQLite
	dialector    func(pool *sql.DB) gorm.Dialector
	openWriter   func() (*sql.DB, error)
	openReader   func() (*sql.DB, error) // nil: readers use the writer's pool
	openMigrator func() (*sql.DB, error)

	migrations func() (fs.FS, error)
	goose      goose.Dialect
	locker     func() (goose.ProviderOption, error) // nil: nobody else can migrate

	// insertMax is how many rows one INSERT may have.
	insertMax int

	// along is a table to be read along an index. MySQL and MariaDB prefer the equality on an index's first column to
	// the place from which a page goes on, and so read every page's predecessors again.
	along func(table, index string) string

	// after is the database's time that much later, or earlier if d is negative.
	after func(d time.Duration) clause.Expr
}

func (d dialect) now() clause.Expr { return d.after(0) }

func dialectOf(cfg Config) (dialect, error) {
	switch cfg.Dialect {
	case DialectMySQL:
		return mysqlDialect(cfg)
	case DialectSQLite:
		return sqliteDialect(cfg)
	}
	return dialect{}, domain.NewError(domain.CodeInvalidRequest, "the dialect is neither mysql nor sqlite", nil)
}

func mysqlDialect(cfg Config) (dialect, error) {
	service, err := mysqlConfig(cfg)
	if err != nil {
		return dialect{}, err
	}
	open := func(config *mysqldriver.Config, connections int, idle time.Duration) func() (*sql.DB, error) {
		return func() (*sql.DB, error) {
			connector, err := mysqldriver.NewConnector(config)
			if err != nil {
				return nil, fmt.Errorf("settings of the database: %w", err)
			}
			pool := sql.OpenDB(readCommitted{connector})
			pool.SetMaxOpenConns(connections)
			pool.SetMaxIdleConns(connections)
			pool.SetConnMaxIdleTime(idle)
			pool.SetConnMaxLifetime(30 * time.Minute) // so that a moved server is found again
			return pool, nil
		}
	}
	migrator := service.Clone()
	migrator.ReadTimeout = 10 * time.Minute // a change of a large table takes its time
	delete(migrator.Params, waitTimeout)
	return dialect{
		dialector: func(pool *sql.DB) gorm.Dialector {
			return mysql.New(mysql.Config{Conn: pool, SkipInitializeWithVersion: true})
		},
		openWriter:   open(service, cfg.PoolMax, cfg.IdleMax/2),
		openMigrator: open(migrator, 4, 5*time.Minute),
		migrations:   func() (fs.FS, error) { return fs.Sub(migrations.FS, "mysql") },
		goose:        goose.DialectMySQL,
		locker: func() (goose.ProviderOption, error) {
			l, err := lock.NewMySQLTableLocker(lock.WithTableLockTimeout(time.Second, 300))
			if err != nil {
				return nil, err
			}
			return goose.WithLocker(l), nil
		},
		insertMax: 1_000, // 200 KB of the 16 MB that a packet may have
		along:     func(table, index string) string { return table + " FORCE INDEX (" + index + ")" },
		after: func(d time.Duration) clause.Expr {
			return gorm.Expr("(UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND)", d.Microseconds())
		},
	}, nil
}

// mysqlConfig takes the operator's DSN and sets what promises hang on.
func mysqlConfig(cfg Config) (*mysqldriver.Config, error) {
	c, err := mysqldriver.ParseDSN(cfg.DSN)
	if err != nil {
		return nil, domain.NewError(domain.CodeInvalidRequest, "the DSN of the database cannot be read", nil)
	}
	c.ParseTime, c.Loc = true, time.UTC
	c.MultiStatements = false
	c.ClientFoundRows = false // affected rows are changed rows
	c.InterpolateParams = true
	c.Timeout, c.ReadTimeout, c.WriteTimeout = cfg.DialTimeout, cfg.ReadTimeout, cfg.WriteTimeout
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["time_zone"] = "'+00:00'"
	c.Params["sql_mode"] = "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION'"
	c.Params["innodb_lock_wait_timeout"] = strconv.Itoa(max(1, int(cfg.LockWait.Seconds())))
	// A process that is frozen or cut off in the middle of a transaction keeps its locks, that of a stock row among
	// them, until the server ends its session: by itself that takes hours.
	c.Params[waitTimeout] = strconv.Itoa(max(1, int(cfg.IdleMax.Seconds())))
	return c, nil
}

const waitTimeout = "wait_timeout"

// readCommitted sets the isolation of every new connection. The variable has one name in MySQL and another
// in MariaDB before 11.1, so it cannot stand in a DSN for both; the statement is the same.
type readCommitted struct{ driver.Connector }

func (c readCommitted) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.(driver.ExecerContext).ExecContext(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", nil)
	if err != nil {
		_ = conn.Close() // the first error is the one to tell
		return nil, err
	}
	return conn, nil
}

func sqliteDialect(cfg Config) (dialect, error) {
	if cfg.Path == "" {
		return dialect{}, domain.NewError(domain.CodeInvalidRequest, "the database's file has no name", nil)
	}
	open := func(connections int, settings url.Values) func() (*sql.DB, error) {
		return func() (*sql.DB, error) {
			return openSQLite(cfg.Path, connections, settings)
		}
	}
	pragmas := []string{"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)"}
	writer := open(1, url.Values{"_txlock": {"immediate"}, "_pragma": pragmas})
	return dialect{
		lite:      true,
		dialector: func(pool *sql.DB) gorm.Dialector { return sqlite.Dialector{Conn: pool} },
		// One connection writes: what would wait for a lock waits for the connection instead.
		openWriter:   writer,
		openReader:   open(4, url.Values{"_pragma": append(pragmas[1:3:3], "query_only(1)")}),
		openMigrator: writer,
		migrations:   func() (fs.FS, error) { return fs.Sub(migrations.FS, "sqlite") },
		goose:        goose.DialectSQLite3,
		insertMax:    50, // the driver looks every value up among all of a statement's
		along:        func(table, index string) string { return table + " INDEXED BY " + index },
		after: func(d time.Duration) clause.Expr {
			return gorm.Expr("strftime('%Y-%m-%d %H:%M:%f', 'now', ?)", fmt.Sprintf("%+.3f seconds", d.Seconds()))
		},
	}, nil
}

// openSQLite makes the file readable for its owner alone; SQLite gives the files beside it the same mode.
func openSQLite(path string, connections int, settings url.Values) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("name of the database's file: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the database's file: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("the database's file: %w", err)
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}
	pool, err := sql.Open(sqlite.DriverName, name.String())
	if err != nil {
		return nil, fmt.Errorf("open the database's file: %w", err)
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return pool, nil
}
