// Package redislua is the gate on Redis: every decision is one Lua script.
//
// # Layout
//
// All keys of a product carry its hash tag, so one script has them in one slot; keys.go is
// the only place that spells them. A product has a stock record (hash), an open set (sorted
// by sequence, member user|token), a claim, and one hash per buyer that holds a flow per
// token. A flow is one short line, state|quantity|from|sequence|epoch|milliseconds|attempt. What
// remained afterwards is from less quantity and is not stored. A flow that was written from a row has
// an empty from: nobody saw what remained.
//
// # Bytes
//
// Redis keeps a hash in its compact form while no value is over 64 bytes. The service's own attempts, of about
// 14 characters, keep a flow near 50; one of 32 would double what a buyer takes. With ids of 16 characters
// and 200,000 buyers of one flow each, Redis 7.0.15 of Debian 12 takes 186 bytes for a settled flow: 48 for its key, 32 and 10
// for its entry and its share in the table of keys, 16 for the object, 80 for the hash. Its place in the open set takes
// another 144 while it is open: 48 for the member, about 52 for its node, 32 and 10 for its entry and share in a table.
//
// # Scripts
//
// record.lua stands in front of each script: it reads the record and the server's identity
// once a call and judges the record (missing, rewound, being built, shut, open). A record
// with a field missing or not a whole number counts as missing. Then the script decides
// everything, and only then writes; every call that changes anything raises the sequence.
// Nothing but plain string operations is used, since miniredis knows no cmsgpack or bit.
// Replies are one line: parsing one string costs less than a nested reply of many.
//
// A record that is being built answers "not ready" before it looks at tokens, is not readable
// for Check, and takes no tells: a tell that came between the page of rows that a rebuild
// read and the write-back of that page would be acknowledged and then overwritten.
//
// A stock change has its flow beside the buyers', under a user that no buyer can be. A withdrawal takes
// its units by Adopt; an addition's flow is written, settled, by the Tell that counts it, and that
// flow is what keeps it from being counted again.
//
// Whoever is refused for good by an adoption, or by the check-back of a message that claims nothing, has the
// tombstone from the same step: between the gate's "no" and the row that says rejected nobody can buy
// under the key. (Found by test/simulation, when the row came first.)
//
// An adoption whose key already holds another quantity is a conflict: the flow's own message decides
// the row, and rejecting the key would take the order from a buyer who was told "accepted".
//
// Only open flows have an index. Walk, which an operator's repair of a restored database needs, scans the
// server's keys in steps; nothing that runs by itself does.
//
// # Memory
//
// The process remembers, for the products it used last, the highest (epoch, sequence) that a
// sound record showed and its own newest flow of that epoch, and passes them to every script.
// It only moves forward under concurrent calls and starts anew with a higher epoch.
//
// # Retries
//
// The driver retries nothing; this package repeats an interrupted call once. Had the driver
// retried, a refused connection would no longer prove that nothing ran. Attempts make the
// repeat harmless. A refusal beside a try whose reply was lost is no refusal but unknown: that try may
// still be in the server's hands, and be accepted once units have come back. On a cluster the driver has
// to follow redirections and does retry, so
// there a refused connection counts as unknown. It looks for new masters once a second, since it does not
// look when an old one stops answering (with its own setting a failover took a minute to be found). NOSCRIPT shows inside a pipeline after a
// restart, failover or flush: just those calls run again with their text, which loads it.
//
// # Inspecting
//
// Settings are read from INFO where it has them, since CONFIG is refused by many access lists and managed
// servers. Replicas are asked themselves: theirs are the settings that count after a promotion.
package redislua
