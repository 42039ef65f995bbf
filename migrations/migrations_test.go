package migrations_test

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seckill/migrations"
)

var (
	table  = regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\)`)
	column = regexp.MustCompile(`(?m)^  ([a-z_]+) (\w+)`)
)

// steps gives, for each migration file of a dialect, the columns of each table.
func steps(t *testing.T, dialect string) map[string]map[string][]string {
	t.Helper()
	names, err := fs.Glob(migrations.FS, dialect+"/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("migrations of %s: %v, %v", dialect, names, err)
	}
	found := map[string]map[string][]string{}
	for _, name := range names {
		body, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		up, down, ok := strings.Cut(string(body), "-- +goose Down")
		if !ok || !strings.Contains(up, "-- +goose Up") {
			t.Errorf("%s has not both ways", name)
		}
		tables := map[string][]string{}
		for _, m := range table.FindAllStringSubmatch(up, -1) {
			for _, c := range column.FindAllStringSubmatch(m[2], -1) {
				tables[m[1]] = append(tables[m[1]], c[1])
			}
			if !strings.Contains(down, "DROP TABLE IF EXISTS "+m[1]+";") {
				t.Errorf("%s does not take %s back", name, m[1])
			}
		}
		found[path.Base(name)] = tables
	}
	return found
}

func TestBothDialectsHaveTheSameColumns(t *testing.T) {
	t.Parallel()
	mysql, sqlite := steps(t, "mysql"), steps(t, "sqlite")
	if a, b := slices.Sorted(maps.Keys(mysql)), slices.Sorted(maps.Keys(sqlite)); !slices.Equal(a, b) {
		t.Fatalf("steps differ: %v, %v", a, b)
	}
	for step, tables := range mysql {
		if len(tables) == 0 {
			t.Errorf("%s: no table found", step)
		}
		if !maps.EqualFunc(tables, sqlite[step], slices.Equal[[]string]) {
			t.Errorf("%s differs:\nmysql  %v\nsqlite %v", step, tables, sqlite[step])
		}
	}
}
