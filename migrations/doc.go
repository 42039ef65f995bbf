// Package migrations holds the ledger's schema: one folder a dialect, the same numbers and
// the same tables and columns in both.
//
// # Decisions
//
// Ids are compared byte by byte: VARBINARY in MySQL, TEXT with SQLite's own binary
// collation, so that "Abc", "abc" and "abc " stay three ids. Row ids are the 16 bytes of a
// UUID of version 7. Counts are signed, since unsigned arithmetic turns a guard into an
// error; a CHECK keeps stock between zero and the total whatever the code does. Times are
// UTC with milliseconds: DATETIME(3) in MySQL, the same digits as TEXT in SQLite, whose
// STRICT tables know no time. SQLite has no lengths, so CHECKs repeat those of MySQL.
//
// MySQL commits each statement that changes the schema, so a migration that died halfway is
// run again: every statement of it can be repeated.
package migrations

import "embed"

// FS holds the folders mysql and sqlite.
//
//go:embed mysql/*.sql sqlite/*.sql
var FS embed.FS
