package gormmysql

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/domain"
)

var (
	slogDiscard = slog.New(slog.DiscardHandler)
	testTime    = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
)

// columnsKeepApart writes ids that some collations take for the same, past every check of the program's.
func columnsKeepApart(t *testing.T, s *Store) {
	ids := []string{"Abc", "abc", "Ábc", "abc ", "abc  ", "😀", "😎", "\u00e9", "e\u0301"}
	rows := make([]orderRow, len(ids))
	for i, id := range ids {
		rows[i] = orderRow{ID: newID(), Product: id, User: id, Token: id, Quantity: 1, Status: domain.OrderConfirmed, Group: newID()}
		rows[i].Created.at, rows[i].Updated.at = testTime, testTime
	}
	if err := s.writer.WithContext(t.Context()).Create(&rows).Error; err != nil {
		t.Fatalf("taken for the same: %v", err)
	}
	for _, id := range ids {
		for _, column := range []string{"product_id", "uid", "token"} {
			var n int64
			if err := s.read(t.Context()).Table("orders").Where(column+" = ?", id).Count(&n).Error; err != nil || n != 1 {
				t.Errorf("%s = %q: %d rows, %v", column, id, n, err)
			}
		}
	}
	long := rows[0]
	long.ID, long.Token = newID(), strings.Repeat("t", 300)
	if err := s.writer.WithContext(t.Context()).Create(&long).Error; classify(err) != faultData {
		t.Errorf("a token of 300 characters: %v", err)
	}
}

func TestSQLiteColumnsKeepIDsApart(t *testing.T) {
	t.Parallel()
	columnsKeepApart(t, sqliteStore(t))
}

func upDownUp(t *testing.T, s *Store) {
	t.Helper()
	waiting := func() (n int) {
		steps, err := s.Status(t.Context())
		if err != nil || len(steps) == 0 {
			t.Fatalf("status: %v, %v", steps, err)
		}
		for _, step := range steps {
			if step.AppliedAt.IsZero() {
				n++
			}
		}
		return n
	}
	if n := waiting(); n != 0 {
		t.Fatalf("%d steps wait", n)
	}
	steps, _ := s.Status(t.Context())
	for range steps {
		if err := s.MigrateDown(t.Context()); err != nil {
			t.Fatalf("down: %v", err)
		}
	}
	if n := waiting(); n != len(steps) {
		t.Fatalf("%d of %d steps wait", n, len(steps))
	}
	if err := s.MigrateDown(t.Context()); err != nil {
		t.Fatalf("down with nothing left: %v", err)
	}
	for range 2 {
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatalf("up: %v", err)
		}
	}
	sell(t, s, "p", 1)
}

func TestSQLiteMigratesUpDownUp(t *testing.T) {
	t.Parallel()
	upDownUp(t, sqliteStore(t))
}

func TestSQLiteFilesAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "l.db")
	s := opened(t, Config{Dialect: DialectSQLite, Path: path})
	sell(t, s, "p", 1)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, {Dialect: "oracle"}, {Dialect: DialectSQLite}, {Dialect: DialectMySQL, DSN: "://"}} {
		if _, err := Open(t.Context(), cfg, slogDiscard); domain.CodeOf(err) != domain.CodeInvalidRequest {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := Open(t.Context(), Config{Dialect: DialectMySQL, DSN: "u:p@tcp(127.0.0.1:1)/d"}, slogDiscard); domain.CodeOf(err) != domain.CodeUnavailable {
		t.Errorf("a server that is away: %v", err)
	}
}
