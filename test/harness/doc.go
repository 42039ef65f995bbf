// Package harness starts the real servers that tests need and hands out
// databases, topics and ids of a test's own on them.
//
// Two ways to use it:
//
//   - the command test/harness/stack starts the whole set once, puts the
//     addresses into SECKILLTEST_… variables and runs `go test` under them.
//     Tests then ask RedisAddr, ClusterAddrs, MySQLDatabase, Topic and Binary;
//     a missing variable fails the test and says how to run it;
//   - a test that kills, pauses or restarts a server calls Start for a set of
//     its own, so that no other test suffers.
//
// A Disk is a file system of a test's own, from which the power can be cut. A set of servers that is
// started with the disk's folder keeps all its data there:
//
//	disk := harness.NewDisk(t) // skips where there is no root or no loop device
//	stack, err := harness.Start(t.Context(), harness.Parts{RocketMQ: true}, disk.Dir)
//	t.Cleanup(func() { _ = stack.Close() }) // before the disk's own clean-up
//	…
//	err = disk.Cut(stack.NameServer, stack.Broker) // every server that lies on it
//	err = stack.NameServer.Start(ctx)              // each on what was flushed
//	err = stack.Broker.Start(ctx)
//
// Decisions:
//
//   - Everything listens on 127.0.0.1 on ports below the range from which the
//     kernel serves outgoing connections, so that a client cannot take a port
//     between our look and the server's bind.
//   - Every server is a child of its own process group, is ended by its pid, and
//     on Linux dies with us even when we are killed (parent-death signal).
//   - The broker is asked by a few lines of its remoting protocol (remoting.go)
//     and not through the client library: the library ignores the answer to
//     "create topic", and it has data races that would make `go test -race`
//     useless for every package that imports this one.
//   - A power cut is a file system in a file (ext4, loop mount) that is shut down without a flush, with
//     its servers stopped first: otherwise a handful of answers that were on their way blur the verdict.
//     It costs about a second.
//   - Replicas and sentinels promote within a few seconds, so that a test of a failover need not wait.
//   - A part that is missing is an error which names it and the command that
//     installs it. Nothing is skipped, but for power cuts where no file system may be mounted.
package harness
