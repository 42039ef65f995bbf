package gormmysql

import (
	"slices"
	"testing"
)

// Of a grant nothing is kept but the rights' names: MariaDB shows the password's hash in it.
func TestRightsInAGrant(t *testing.T) {
	t.Parallel()
	for grant, want := range map[string][]string{
		"GRANT ALL PRIVILEGES ON *.* TO `u`@`h` IDENTIFIED BY PASSWORD '*03FC' WITH GRANT OPTION": {"ALL PRIVILEGES"},
		"GRANT USAGE ON *.* TO `u`@`h`":                            nil,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON `s`.* TO `u`@`h`": nil,
		"GRANT SELECT, CREATE, DROP, ALTER ON `s`.* TO `u`@`h`":    {"CREATE", "DROP", "ALTER"},
		"GRANT CREATE TEMPORARY TABLES ON `s`.* TO `u`@`h`":        nil,
		"GRANT `role` TO `u`@`h`":                                  nil,
		"GRANT SELECT ON `odd ON CREATE`.* TO `u`@`h`":             nil,
	} {
		if got := rightsIn(grant); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", grant, got, want)
		}
	}
}

func TestADatabaseIsNamedWithoutItsUser(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{"u:hidden-word@tcp(127.0.0.1:3306)/shop?x=y": "127.0.0.1:3306/shop", "u:hidden-word@unix(/run/s)/shop": "/run/s/shop", "::": ""} {
		if got := nodeOf(Config{Dialect: DialectMySQL, DSN: dsn}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
