package gormmysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"seckill/application/port"
	"seckill/domain"
)

// What is bounded, and by how much.
const (
	triesMax   = 25               // transactions for one call
	triesTime  = 30 * time.Second // after which no further one begins
	pauseFirst = 2 * time.Millisecond
	pauseMax   = 200 * time.Millisecond
	pageMax    = 10_000 // rows that one page may have; a higher limit is cut to it
	keysMax    = 200    // keys or products in one condition: SQLite allows expressions 1,000 deep
	idsMax     = 1_000  // ids in one IN
)

var (
	_ port.Ledger      = (*Store)(nil)
	_ port.Changes     = (*Store)(nil)
	_ port.Outbox      = (*Store)(nil)
	_ port.Catalog     = (*Store)(nil)
	_ port.Epochs      = (*Store)(nil)
	_ port.Parking     = (*Store)(nil)
	_ port.AuditLog    = (*Store)(nil)
	_ port.ReportStore = (*Store)(nil)
	_ port.Book        = (*Store)(nil)
	_ port.BarrierLog  = (*Store)(nil)
)

// The dialects.
const (
	DialectMySQL  = "mysql"
	DialectSQLite = "sqlite"
)

// Config names the database.
type Config struct {
	Dialect string // DialectMySQL or DialectSQLite
	DSN     string // MySQL: user:password@tcp(host:port)/schema
	Path    string // SQLite: the file
	PoolMax int    // MySQL: most connections; 0 means 16

	DialTimeout  time.Duration // 0 means 5 s
	ReadTimeout  time.Duration // for one answer of the server; 0 means 30 s
	WriteTimeout time.Duration // 0 means 30 s
	LockWait     time.Duration // MySQL: whole seconds to wait for a row's lock; 0 means 5 s
	IdleMax      time.Duration // MySQL: whole seconds after which the server ends a session that says nothing; 0 means 60 s
}

func (c Config) withDefaults() Config {
	if c.PoolMax <= 0 {
		c.PoolMax = 16
	}
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{{&c.DialTimeout, 5 * time.Second}, {&c.ReadTimeout, 30 * time.Second},
		{&c.WriteTimeout, 30 * time.Second}, {&c.LockWait, 5 * time.Second},
		{&c.IdleMax, time.Minute}} {
		if *d.value <= 0 {
			*d.value = d.usual
		}
	}
	return c
}

// Store is the ledger with everything that lies beside it. It is safe for concurrent use.
type Store struct {
	dialect dialect
	log     *slog.Logger
	pools   []*sql.DB
	writer  *gorm.DB
	reader  *gorm.DB // the same as writer where readers and writers share connections

	conflicts, again atomic.Int64
}

// Stats are counts since the start.
type Stats struct {
	Conflicts int64 // guarded updates that found another version, and were decided again under the lock
	Again     int64 // transactions that were tried once more
}

// Stats are the counts.
func (s *Store) Stats() Stats { return Stats{Conflicts: s.conflicts.Load(), Again: s.again.Load()} }

// Pools are the connections by what they are for, so that their use can be watched.
func (s *Store) Pools() map[string]*sql.DB {
	if len(s.pools) == 1 {
		return map[string]*sql.DB{"shared": s.pools[0]}
	}
	return map[string]*sql.DB{"writer": s.pools[0], "reader": s.pools[1]}
}

// Open is Connect, and checks that the database answers. CodeUnavailable where it does not.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Store, error) {
	s, err := Connect(cfg, log)
	if err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Connect makes a store, whose connections are made when they are needed; it changes no schema. The error has
// CodeInvalidRequest for settings that cannot be.
func Connect(cfg Config, log *slog.Logger) (*Store, error) {
	d, err := dialectOf(cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	s := &Store{dialect: d, log: log}
	if s.writer, err = s.connect(d.openWriter); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.reader = s.writer
	if d.openReader != nil {
		if s.reader, err = s.connect(d.openReader); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Store) connect(open func() (*sql.DB, error)) (*gorm.DB, error) {
	pool, err := open()
	if err != nil {
		return nil, translate(err)
	}
	s.pools = append(s.pools, pool)
	db, err := gorm.Open(s.dialect.dialector(pool), &gorm.Config{
		SkipDefaultTransaction: true,
		TranslateError:         true,
		DisableAutomaticPing:   true,
		// Errors are returned and logged where they are handled; doubles are our normal path.
		Logger: logger.Discard,
	})
	if err != nil {
		return nil, translate(fmt.Errorf("open the database: %w", err))
	}
	return db, nil
}

// Close ends all connections. A second Close does nothing.
func (s *Store) Close() error {
	var errs []error
	for _, pool := range s.pools {
		errs = append(errs, pool.Close())
	}
	return errors.Join(errs...)
}

// Ping asks the database for an answer. CodeUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	for _, pool := range s.pools {
		if err := pool.PingContext(ctx); err != nil {
			return domain.NewError(domain.CodeUnavailable, "the database does not answer", err)
		}
	}
	return nil
}

// read is a handle for single statements, each of which sees everything that was committed before it.
func (s *Store) read(ctx context.Context) *gorm.DB { return s.reader.WithContext(ctx) }

func pageOf(limit int) int { return max(1, min(limit, pageMax)) }
