package port

//go:generate go tool mockgen -source=inspector.go -destination=portmock/inspector.go -package=portmock

import "context"

// The parts that inspectors look at.
const (
	PartGate    = "gate"
	PartBroker  = "broker"
	PartLedger  = "ledger"
	PartService = "service"
)

// ReadingName says what was read. It is stable: operators and alerts hang on it.
type ReadingName string

// ReadReachable is read of every server: Text is "yes"; a node that does not answer is a reading that is not known.
const ReadReachable ReadingName = "reachable"

// ReadClock is read of every server that tells the time: Number is how many milliseconds it is ahead of ours.
const ReadClock ReadingName = "clock"

// What is read of the gate's servers.
const (
	ReadRedisVersion   ReadingName = "version"               // Text; Number is the major version
	ReadRole           ReadingName = "role"                  // Text: master, slave
	ReadEviction       ReadingName = "maxmemory-policy"      // Text
	ReadMaxMemory      ReadingName = "maxmemory"             // Number: bytes, 0 for no limit
	ReadRoom           ReadingName = "room"                  // Number: bytes free, of all masters together
	ReadAppendOnly     ReadingName = "appendonly"            // Text: yes, no
	ReadAppendFsync    ReadingName = "appendfsync"           // Text
	ReadLastWrite      ReadingName = "aof-last-write"        // Text: ok or the server's word for a failure
	ReadReplicas       ReadingName = "replicas"              // Number: attached and in step
	ReadReplicaLag     ReadingName = "replica-lag"           // Number: most bytes that an attached one is behind
	ReadMinReplicas    ReadingName = "min-replicas-to-write" // Number; only where replicas are attached
	ReadIdentity       ReadingName = "identity"              // Text: yes when a script can read master_replid
	ReadClusterState   ReadingName = "cluster_state"         // Text; only of a cluster
	ReadClusterMode    ReadingName = "cluster-mode"          // Text: as asked, or how it differs
	ReadReplicaEvicts  ReadingName = "replica-policy"        // Text: a replica's maxmemory-policy
	ReadReplicaPersist ReadingName = "replica-appendonly"    // Text
)

// What is read of the brokers.
const (
	ReadFlushDisk       ReadingName = "flushDiskType"            // Text
	ReadFlushTimeout    ReadingName = "syncFlushTimeout"         // Number: ms
	ReadCheckTimeout    ReadingName = "transactionTimeOut"       // Number: ms
	ReadCheckInterval   ReadingName = "transactionCheckInterval" // Number: ms
	ReadCheckBudget     ReadingName = "longest-outage"           // Number: ms, transactionCheckMax × interval
	ReadAutoTopic       ReadingName = "autoCreateTopicEnable"    // Text: true, false
	ReadFileReserved    ReadingName = "fileReservedTime"         // Number: hours
	ReadMessageMax      ReadingName = "maxMessageSize"           // Number: bytes
	ReadRejectsHalves   ReadingName = "rejectTransactionMessage" // Text: true, false
	ReadBrokerRole      ReadingName = "brokerRole"               // Text
	ReadDiskUsed        ReadingName = "disk-used"                // Number: percent
	ReadTopicQueues     ReadingName = "topic-queues"             // Number: write queues on all brokers, 0 for no topic
	ReadTopicReadQueues ReadingName = "topic-read-queues"        // Number: queues that are written and not read
	ReadTopicPerm       ReadingName = "topic-perm"               // Text: rw, or what of it there is
	ReadConsumers       ReadingName = "consumers"                // Number: instances of the group
	ReadConsumerIDs     ReadingName = "consumer-ids"             // Text: unique, or the id that two have
	ReadProducerIDs     ReadingName = "producer-ids"             // Text: unique, or the id that two have
	ReadSubscription    ReadingName = "subscription"             // Text: as ours, or what the group subscribes to
	ReadConsumeModel    ReadingName = "messageModel"             // Text
)

// What is read of the database. Of session variables it is what the service's own connections have.
const (
	ReadDatabaseVersion ReadingName = "version"                        // Text
	ReadLogFlush        ReadingName = "innodb_flush_log_at_trx_commit" // Number
	ReadBinlogSync      ReadingName = "sync_binlog"                    // Number; only where a binary log is written
	ReadDoublewrite     ReadingName = "innodb_doublewrite"             // Text
	ReadIsolation       ReadingName = "transaction_isolation"          // Text
	ReadSQLMode         ReadingName = "sql_mode"                       // Text
	ReadSnapshot        ReadingName = "innodb_snapshot_isolation"      // Text; MariaDB only
	ReadReadOnly        ReadingName = "read_only"                      // Text: ON, OFF
	ReadWriters         ReadingName = "wsrep_on"                       // Text; only where the server knows it
	ReadLockWait        ReadingName = "innodb_lock_wait_timeout"       // Number: seconds
	ReadTimeZone        ReadingName = "time_zone"                      // Text
	ReadConnections     ReadingName = "max_connections"                // Number
	ReadRights          ReadingName = "rights"                         // Text: the rights to change the schema, or none
	ReadMigrations      ReadingName = "migrations"                     // Number: steps that wait
	ReadJournalMode     ReadingName = "journal_mode"                   // Text; SQLite only
	ReadSynchronous     ReadingName = "synchronous"                    // Number; SQLite only
)

// What is read of the service itself.
const (
	ReadSigningKey  ReadingName = "auth.key"    // Text: fine, or what is wrong with it; never the key
	ReadTransport   ReadingName = "transport"   // Text: private, or what goes over a network in the clear
	ReadOpenFiles   ReadingName = "open-files"  // Number: the most that this process may have
	ReadFolderMode  ReadingName = "data-folder" // Text: private, or what others may do
	ReadFolderSpace ReadingName = "data-space"  // Number: bytes free
)

// Reading is one thing as an inspector found it.
type Reading struct {
	Part   string // one of the parts
	Node   string // what was asked: host:port, a file; empty for the part as a whole
	Name   ReadingName
	Known  bool   // false: it could not be read, and Detail says why
	Text   string // as found; beside a Number it may be empty
	Number int64
	Detail string
}

// Readings gathers what one node of a part says.
type Readings struct {
	Part, Node string
	Found      []Reading
}

// Add takes a reading as it is, but for its part and node.
func (r *Readings) Add(reading Reading) {
	reading.Part, reading.Node = r.Part, r.Node
	r.Found = append(r.Found, reading)
}

// Text takes a word that was found.
func (r *Readings) Text(name ReadingName, text string) {
	r.Add(Reading{Name: name, Known: true, Text: text})
}

// Number takes a number that was found.
func (r *Readings) Number(name ReadingName, number int64) {
	r.Add(Reading{Name: name, Known: true, Number: number})
}

// Unknown takes what could not be read, and why.
func (r *Readings) Unknown(name ReadingName, detail string) {
	r.Add(Reading{Name: name, Detail: detail})
}

// Inspector reads what a promise hangs on from live servers.
type Inspector interface {
	// Inspect reads all of it, and changes nothing. It never fails as a whole: what could not be read
	// is a reading that is not Known, never one that is missing or zero, except that of a node which is not
	// reachable nothing but that is said. Each question has a time, and all of it ends soon
	// after ctx does. No reading holds a secret.
	Inspect(ctx context.Context) []Reading
}
