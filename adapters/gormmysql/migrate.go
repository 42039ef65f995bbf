package gormmysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
)

// MigrationStatus is one step of the schema; AppliedAt is zero while it waits.
type MigrationStatus struct {
	Version   int64
	Name      string
	AppliedAt time.Time
}

// Migrate brings the schema up to date. Any number of instances may call it at once.
func (s *Store) Migrate(ctx context.Context) error {
	return s.migrate(ctx, func(p *goose.Provider) error {
		_, err := p.Up(ctx)
		return err
	})
}

// MigrateDown takes the newest step back; with no step left it does nothing.
func (s *Store) MigrateDown(ctx context.Context) error {
	return s.migrate(ctx, func(p *goose.Provider) error {
		_, err := p.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil
		}
		return err
	})
}

// Status lists every step in order.
func (s *Store) Status(ctx context.Context) ([]MigrationStatus, error) {
	var steps []MigrationStatus
	err := s.migrate(ctx, func(p *goose.Provider) error {
		found, err := p.Status(ctx)
		for _, m := range found {
			step := MigrationStatus{Version: m.Source.Version, Name: m.Source.Path}
			if m.State == goose.StateApplied {
				step.AppliedAt = m.AppliedAt.UTC()
			}
			steps = append(steps, step)
		}
		return err
	})
	return steps, err
}

// migrate uses connections of its own: a change of a large table outlasts the service's timeouts, and the
// lock's heartbeat needs a second connection.
func (s *Store) migrate(_ context.Context, do func(*goose.Provider) error) (err error) {
	pool, err := s.dialect.openMigrator()
	if err != nil {
		return translate(err)
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	folder, err := s.dialect.migrations()
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true), goose.WithSlog(s.log)}
	if s.dialect.locker != nil {
		option, err := s.dialect.locker()
		if err != nil {
			return fmt.Errorf("migrations' lock: %w", err)
		}
		options = append(options, option)
	}
	provider, err := goose.NewProvider(s.dialect.goose, pool, folder, options...)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if err := do(provider); err != nil {
		return translate(fmt.Errorf("migrate: %w", err))
	}
	return nil
}
