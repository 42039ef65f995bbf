// Package gormmysql is the ledger: orders, stock flows and stock, and what lies beside them, in
// MySQL or MariaDB, and in SQLite for the embedded profile. The code is the same for both;
// dialect.go holds all that differs.
//
// # Decisions
//
// A group of deductions is one transaction of few statements: products read, rows that are there
// already read, order rows inserted, flow rows inserted, one guarded update over the stock
// rows, commit. Versions are read before the inserts, so that rows carry their stock version
// from the start; the update's guard proves that nothing has moved since (a reopening raises
// the version, too). When the guard misses, the stock rows are locked, read again in product
// order, judged again (another state or epoch may mean another treatment: then the whole try
// is rolled back), the rows are stamped with the new version, and the update cannot miss a
// second time. So a hot product with many writers costs each of them a few more round trips
// instead of a race without an end.
//
// Whoever inserts an order row decides. Rows are inserted by a plain INSERT, at the first try without a look at
// what is there, since nearly every group is new; a unique key that is there nevertheless ends the try, and
// the whole transaction begins again, looks, and meets it. So my rows are exactly those of this try, which group_id
// records, and units are taken for nothing else; a repeat after an unknown commit meets the rows of the
// first. Tried and left: ON DUPLICATE KEY UPDATE id = id with the rows read back. In InnoDB it keeps exclusive gap
// locks under READ COMMITTED, too, so consumers that shared some keys deadlocked until they gave up; and it
// locks the rows of every redelivery. INSERT IGNORE hides truncation.
//
// Locks are taken in one order: my new orders by their unique key, then stock by product, then orders that
// were there before, by id. So a cancel locks the stock row before it flips the order: whoever flips one holds
// its stock row, which makes fifty cancels of one order take turns, and a rebuild that marks orders told
// under its lock never waits for a cancel that waits for it. Nobody who holds a stock row waits for a row
// of another group.
//
// Stock changes have a table of their own, since whatever sums orders sums what was sold; the key says which table a
// row is in, and rows of both are read, walked and marked as one. A withdrawal is applied in the same group and
// update as purchases, and takes its units off the total, too. product_stock keeps what the sale began with,
// so that the books prove: on sale = began with + added - withdrawn. Who changed the stock and why is in
// audit_log, in the addition's own transaction.
//
// open_epoch is the epoch under which a product is or was last open; attempts raise epoch alone. While the product
// is suspended the two tell what the last gate sold, which is applied, from what it was built without, which is not.
//
// After an error nothing goes on inside a transaction: MySQL rolls back only the statement
// on a lock wait timeout. Deadlock, lock wait, snapshot conflict and a lost connection
// begin a new transaction, a bounded number of times with jitter; then the error is
// CodeUnavailable. What the database will never take is CodeInvalidRequest, so that the
// caller can split the group; a broken schema or a missing right is not, since splitting would park everything.
//
// The statements of a group, hundreds of values each, are spelled out and only carried out by GORM: its look at every
// value took two thirds of what this process does for a group. A test holds them against the model.
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
