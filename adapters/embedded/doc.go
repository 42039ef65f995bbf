// Package embedded stands in for the servers of the embedded profile: a transactional broker in
// the process, with its journal on disk, a miniredis on loopback, and the lock of the data folder.
// The gate and the ledger are not written twice: the same adapters run against miniredis and SQLite.
//
// # The broker's decisions
//
// It keeps the semantics of the real one: a half is stored, the local transaction is asked, its
// verdict commits, rolls back or leaves the half for the check-back; what is committed is
// delivered until the handler has finished it, perhaps more than once; GroupsMax groups are at the
// handler at one time, so that one which is refused does not hold up the rest.
//
// The journal is one file of records with a checksum each. Appending never waits; one goroutine
// writes what has gathered, so that senders share a sync. A commit is synced, with its half, before
// Send says committed and before the consumer sees it; a half whose verdict is unknown, before Send
// says unknown. Rollbacks and finished marks are not waited for: losing them costs a check-back or a
// redelivery. A half whose Send has not answered may be lost, and nobody has been promised anything. A torn tail is what nobody was told of; it is dropped
// with a warning. The file is written anew from what is alive, beside the old one and
// renamed over it, at every start and when it has grown; so it is bounded by what is held, and that by
// MessagesMax. A journal that failed once takes nothing more: every send is unknown from then on.
//
// Drain needs no barrier message and no check window, since all halves and messages are here: it
// checks each half at once and waits for what is committed.
//
// Times are monotonic. After a restart halves are as old as the process, so Drain, which the
// cold road calls, is what checks them at once.
package embedded
