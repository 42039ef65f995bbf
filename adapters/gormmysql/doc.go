// Package gormmysql is the ledger: orders, stock flows and stock, and what lies beside them, in
// MySQL or MariaDB, and in SQLite for the embedded profile. The code is the same for both;
// dialect.go holds all that differs.
//
// # Decisions
//
// A group of deductions is one transaction of few statements: products read, order rows
// inserted, my rows read back, flow rows inserted, one guarded update over the stock rows,
// commit. Versions are read before the inserts, so that rows carry their stock version from
// the start; the update's guard proves that nothing has moved since (a reopening raises the
// version, too). When the guard misses, the stock rows are locked, read again in product
// order, judged again (another state or epoch may mean another treatment: then the whole try is
// rolled back), the rows are stamped with the new version, and the update cannot miss a second time. So a hot
// product with many writers costs each of them one more round trip instead of a race without
// an end. Locks are taken in one order: orders by their unique key, then stock by product.
//
// Whoever inserts an order row decides. Duplicates are left out by ON DUPLICATE KEY UPDATE id = id, not by INSERT
// IGNORE, which hides truncation. Units are taken for exactly the rows that carry this
// try's group id; a repeat after an unknown commit has another id and meets the rows of the first.
//
// After an error nothing goes on inside a transaction: MySQL rolls back only the statement
// on a lock wait timeout. Deadlock, lock wait, snapshot conflict and a lost connection
// begin a new transaction, a bounded number of times with jitter; then the error is
// CodeUnavailable. What the database will never take is CodeInvalidRequest, so that the
// caller can split the group; a broken schema or a missing right is not, since splitting would park everything.
//
// READ COMMITTED, strict mode and UTC are set on every connection, whatever the server's defaults
// are. Ages and leases are measured by the database's clock alone; row times are its own.
// Affected rows are changed rows (never CLIENT_FOUND_ROWS).
//
// SQLite has one connection for writes, so nothing may call the store inside a transaction; LockedStock carries
// the transaction for that reason. Readers have connections of their own and see the last commit.
//
// Locked does not try again by itself, since what runs in it has effects outside.
package gormmysql
