package application

import (
	"fmt"

	"seckill/application/port"
)

var gateRules = map[port.ReadingName]rule{
	port.ReadReachable: reachableRule("Redis nothing is sold: buyers are told to come again",
		"start it, check redis.addrs, redis.username and redis.password, and the way there"),
	port.ReadRedisVersion: {want: always("7 or later"), matters: true,
		why:    "the scripts read the server's identity by INFO, which earlier servers do not let a script do",
		change: "upgrade to Redis 7 or Valkey", judge: func(r port.Reading, _ facts) string { return graded(r.Number < 7, false) }},
	port.ReadRole: {want: always("master"), matters: true,
		why:    "a replica takes no deduction, and what it answers may be old",
		change: "point redis.addrs at the master, at the sentinels (with redis.master), or at the nodes of the cluster", judge: wants("master")},
	port.ReadClusterMode: {want: always("as redis.addrs says: one address a single server, several a cluster"), matters: true,
		why:    "with one address of a cluster only the products in that node's slots can be sold",
		change: "list several nodes of the cluster in redis.addrs", judge: wants("as set")},
	port.ReadClusterState: {want: always("ok"), matters: true,
		why:    "while the cluster has slots that nobody serves, their products are closed",
		change: "redis-cli --cluster check HOST:PORT, then --cluster fix", judge: wants("ok")},
	port.ReadEviction: {want: always("noeviction"), matters: true,
		why:    "an evicted key is a flow that is forgotten, or a product that vanishes in the middle of its sale",
		change: "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf", judge: wants("noeviction")},
	port.ReadMaxMemory: {want: always("a limit below the machine's memory"), unit: "bytes",
		why:    "without a limit the kernel ends the server when memory runs out; with one, new purchases are refused and the rest goes on",
		change: "redis-cli CONFIG SET maxmemory BYTES, and the same in redis.conf", judge: atLeast(0, 1)},
	port.ReadRoom: {want: func(f facts) string {
		if !f.unitsKnown {
			return fmt.Sprintf("%d bytes for each unit that may still be sold", f.cfg.FlowBytes)
		}
		return fmt.Sprintf("%d MiB: %d bytes for each of the %d units that may still be sold", f.memoryNeeded()>>20, f.cfg.FlowBytes, f.unitsLeft)
	}, matters: true, unit: "bytes",
		why:    "each purchase keeps a flow in memory until its product is gone; when memory is full the sale stops",
		change: "raise maxmemory, add memory or masters, or remove finished products", judge: judgeRoom},
	port.ReadAppendOnly: {want: always("yes"), matters: true,
		why:    "without it a restart forgets every flow; nothing is sold twice, but each product closes until it is rebuilt from the database",
		change: "redis-cli CONFIG SET appendonly yes, and the same in redis.conf", judge: wants("yes")},
	port.ReadAppendFsync: {want: always("everysec or always"),
		why:    "with no the kernel decides when flows reach the disk, and a power cut takes more than a second of them",
		change: "redis-cli CONFIG SET appendfsync everysec, and the same in redis.conf", judge: prefers("everysec", "always")},
	port.ReadLastWrite: {want: always("ok"), matters: true,
		why:    "while the append-only file cannot be written the server refuses writes: nothing is sold",
		change: "make room on the server's disk and read its log", judge: wants("ok")},
	port.ReadReplicas: {want: always("one or more, in step"), unit: "replicas",
		why:    "a server without a replica is away for as long as its machine is; attach it before the sale, since the first one costs one rebuild",
		change: "attach a replica (REPLICAOF) and let Sentinel or the cluster promote it", judge: atLeast(0, 1)},
	port.ReadReplicaLag: {want: always("under 16 MiB behind"), unit: "bytes",
		why:    "what a promoted replica has not received is forgotten, and every product is closed and rebuilt",
		change: "look at the network between the two, and at client-output-buffer-limit", judge: atMost(16<<20, 1<<62)},
	port.ReadMinReplicas: {want: always("1 or more where there are replicas"), unit: "replicas",
		why:    "a master that was cut off from its replicas goes on accepting purchases that the promoted one never sees",
		change: "redis-cli CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10, on every node and in redis.conf", judge: atLeast(0, 1)},
	port.ReadReplicaEvicts: {want: always("noeviction, as on the master"),
		why:    "it becomes the master's when it is promoted, and then evicts flows",
		change: "redis-cli -h REPLICA CONFIG SET maxmemory-policy noeviction, and the same in redis.conf", judge: wants("noeviction")},
	port.ReadReplicaPersist: {want: always("yes, as on the master"),
		why:    "it becomes the master's when it is promoted",
		change: "redis-cli -h REPLICA CONFIG SET appendonly yes, and the same in redis.conf", judge: prefers("yes")},
	port.ReadIdentity: {want: always("a script can read master_replid"), matters: true,
		why:    "by it a script notices that the server has forgotten something; without it no script answers, and nothing is sold",
		change: "allow scripts and INFO to the service's user (ACL: +@scripting +info), on a server that gives INFO replication", judge: wants("yes")},
	port.ReadClock: clockRule("the gate is given the service's time, so a sale opens by the service's clock whatever Redis' says; a difference " +
		"says that one of the two is wrong, and if it is the service's, sales open and close at the wrong time"),
}

func (f facts) memoryNeeded() int64 { return f.cfg.FlowBytes * f.unitsLeft }

func judgeRoom(r port.Reading, f facts) string {
	if !f.unitsKnown {
		return VerdictUnknown
	}
	return graded(r.Number < f.memoryNeeded(), r.Number < 2*f.memoryNeeded())
}
