//go:build stack

package gormmysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"seckill/application/port"
)

// A page begins where the one before it ended: a walk that reads its way there again takes the square of its rows.
func TestPagesBeginWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	s := mysqlStore(t)
	const groups, size = 100, 200
	sell(t, s, "p", groups*size)
	for g := range groups {
		items := make([]port.ApplyItem, size)
		for i := range items {
			items[i] = single(t, "p", fmt.Sprintf("u%d-%d", g, i), 1, 1)
		}
		apply(t, s, port.Applied, items...)
	}
	if err := s.writer.Exec("ANALYZE TABLE orders").Error; err != nil { // what a plan hangs on is not left to chance
		t.Fatal(err)
	}
	plans := plansOf(t, s)
	var cursor port.RowCursor
	for range 2 { // the first page begins at the beginning
		var err error
		if _, cursor, err = s.Rows(t.Context(), "p", cursor, size); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Untold(t.Context(), 0, cursor.ID, size); err != nil {
		t.Fatal(err)
	}
	for index, n := range map[string]int{"orders_version": 2, "orders_untold": 1} {
		if len(plans[index]) != n {
			t.Fatalf("plans %v", plans)
		}
		if last := plans[index][n-1]; last != "range" {
			t.Errorf("%s is read by %q, not from where the page begins", index, last)
		}
	}
}

// plansOf notes by which index, and how, the store's queries read orders from now on.
func plansOf(t *testing.T, s *Store) map[string][]string {
	t.Helper()
	plans := map[string][]string{}
	explain := func(tx *gorm.DB) {
		if !strings.HasPrefix(strings.ReplaceAll(tx.Statement.SQL.String(), "`", ""), "SELECT * FROM orders") {
			return
		}
		pool, err := s.reader.DB()
		if err != nil {
			t.Error(err)
			return
		}
		var id, rows int64
		var kind, table, how string
		var possible, key, length, ref, extra sql.NullString
		row := pool.QueryRowContext(context.Background(), "EXPLAIN "+tx.Statement.SQL.String(), tx.Statement.Vars...)
		if err := row.Scan(&id, &kind, &table, &how, &possible, &key, &length, &ref, &rows, &extra); err != nil {
			t.Error(err)
		}
		plans[key.String] = append(plans[key.String], how)
	}
	if err := s.reader.Callback().Query().After("gorm:query").Register("test:explain", explain); err != nil {
		t.Fatal(err)
	}
	return plans
}
