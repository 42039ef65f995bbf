//go:build stack

package redislua

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/application/port"
	"seckill/domain"
	"seckill/test/contract"
	"seckill/test/harness"
	"seckill/test/scale"
)

// realClient is a client of the shared server or cluster.
func realClient(tb testing.TB, addrs ...string) redis.UniversalClient {
	tb.Helper()
	client := NewClient(ClientConfig{Addrs: addrs})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// ownPrefix keeps a test's keys apart from those of others on a shared server.
func ownPrefix() string { return "test-" + rand.Text() }

// ownRedis is a server that the test may break.
func ownRedis(t *testing.T) *harness.Server {
	t.Helper()
	stack, err := harness.Start(t.Context(), harness.Parts{Redis: true}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(); err != nil {
			t.Error(err)
		}
	})
	return stack.Redis
}

func TestStackContractOnRedis(t *testing.T) {
	t.Parallel()
	contract.RunGate(t, fixtureOn(realClient(t, harness.RedisAddr(t)), Config{Prefix: ownPrefix()}))
}

func TestStackContractOnCluster(t *testing.T) {
	t.Parallel()
	contract.RunGate(t, fixtureOn(realClient(t, harness.ClusterAddrs(t)...), Config{Prefix: ownPrefix()}))
}

func TestStackScriptsAnswerAlikeEverywhere(t *testing.T) {
	t.Parallel()
	contract.RunGateDifferential(t, 7, scale.Count(t, 20_000, 1_000_000), map[string]contract.GateFixture{
		"go model":     modelFixture(),
		"miniredis":    fixtureOn(miniClient(t), Config{Identity: "here"}),
		"redis-server": fixtureOn(realClient(t, harness.RedisAddr(t)), Config{Prefix: ownPrefix(), Identity: "here"}),
	})
}

// Two hundred products spread over all slots of the cluster, in one batch and one by one.
func TestStackClusterServesProductsOfAllSlots(t *testing.T) {
	t.Parallel()
	client := realClient(t, harness.ClusterAddrs(t)...)
	gate := newGate(t, client, Config{Prefix: ownPrefix()})
	const products = 200
	var items []port.DeductItem
	var names []string
	nodes := map[string]bool{}
	for i := range products {
		p := fmt.Sprintf("p%d", i)
		sell(t, gate, p, 5)
		names = append(names, p)
		node, err := client.(*redis.ClusterClient).MasterForKey(t.Context(), gate.keys.stock(p))
		if err != nil {
			t.Fatal(err)
		}
		nodes[node.Options().Addr] = true
		for _, user := range []string{"u1", "u2", "u3"} {
			items = append(items, item(t, p, user, "t", 2, "a"))
		}
	}
	if len(nodes) != 3 {
		t.Fatalf("products are on %d masters", len(nodes))
	}
	for i, r := range gate.Deduct(t.Context(), saleTime, items) {
		want := port.DeductAccepted
		if i%3 == 2 {
			want = port.DeductNotEnough
		}
		if r.Outcome != want || r.Remaining != 1 {
			t.Fatalf("item %d: %+v", i, r)
		}
	}
	views, err := gate.View(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	var fates []domain.Fate
	for i, v := range views {
		if v.Remaining != 1 || v.OpenFlows != 2 || !v.SameServer || v.Product != names[i] {
			t.Fatalf("view %+v", v)
		}
		fates = append(fates, domain.Fate{Key: items[3*i].Command.Key(), Quantity: 2, Status: domain.OrderConfirmed, StockVersion: 2, At: saleTime})
	}
	for i, o := range gate.Tell(t.Context(), fates) {
		if o != port.TellDone {
			t.Fatalf("fate %d: outcome %d", i, o)
		}
	}
	if err := gate.Shut(t.Context(), names); err != nil {
		t.Fatal(err)
	}
}

func TestStackLostScriptsAreNotSeenByCallers(t *testing.T) {
	t.Parallel()
	flushedScripts(t, realClient(t, ownRedis(t).Addr), Config{})
}

func TestStackLostScriptsOfAClusterAreNotSeenByCallers(t *testing.T) {
	t.Parallel()
	flushedScripts(t, realClient(t, harness.ClusterAddrs(t)...), Config{Prefix: ownPrefix()})
}

func TestStackALostReplyDeductsOnceAndIsAccepted(t *testing.T) {
	t.Parallel()
	lostReplies(t, harness.RedisAddr(t), Config{Prefix: ownPrefix()})
}

func TestStackScriptsRefuseWhatIsNoQuantity(t *testing.T) {
	t.Parallel()
	refusedQuantities(t, realClient(t, harness.RedisAddr(t)), Config{Prefix: ownPrefix()})
}

func TestStackBigNumbersStayWhole(t *testing.T) {
	t.Parallel()
	bigNumbers(t, realClient(t, harness.RedisAddr(t)), Config{Prefix: ownPrefix()})
}

// A process that starts after the loss knows it from the server's identity alone.
func TestStackARestartIsARewindForEveryone(t *testing.T) {
	t.Parallel()
	server := ownRedis(t)
	client := realClient(t, server.Addr)
	gate := newGate(t, client, Config{})
	sell(t, gate, "p", 10)
	if r := deduct(t, gate, "p", "alice", "a"); r.Outcome != port.DeductAccepted {
		t.Fatalf("%+v", r)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := deduct(t, gate, "p", "bob", "a"); r.Outcome != port.DeductAway && r.Outcome != port.DeductUnknown {
		t.Fatalf("while it is down: %+v", r)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*Gate{"seller": gate, "newcomer": newGate(t, client, Config{})} {
		if r := deduct(t, g, "p", "alice", "a"); r.Outcome != port.DeductRewound {
			t.Errorf("%s: %+v", name, r)
		}
		if v := viewOf(t, g, "p"); !v.Loaded || v.SameServer || !v.Rewound {
			t.Errorf("%s: %+v", name, v)
		}
	}
	sell(t, gate, "p", 9)
	if r := deduct(t, gate, "p", "bob", "b"); r.Outcome != port.DeductAccepted {
		t.Fatalf("after the rebuild: %+v", r)
	}
}

func TestStackAPromotedReplicaIsARewindAndAReplicaIsAway(t *testing.T) {
	t.Parallel()
	master, replica := ownRedis(t), ownRedis(t)
	t.Cleanup(func() { // an orderly end would wait for the lagging replica
		_ = replica.Kill()
		_ = master.Kill()
	})
	old, promoted := realClient(t, master.Addr), realClient(t, replica.Addr)
	host, number, err := net.SplitHostPort(master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := promoted.SlaveOf(t.Context(), host, number).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica is synced", func(ctx context.Context) bool {
		return strings.Contains(promoted.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	gate := newGate(t, old, Config{})
	sell(t, gate, "p", 10) // opened with the replica attached
	deduct(t, gate, "p", "alice", "a")
	watcher := newGate(t, promoted, Config{})
	eventually(t, "the record is copied", func(context.Context) bool { return viewOf(t, watcher, "p").OpenFlows == 1 })
	if r := deduct(t, watcher, "p", "bob", "a"); r.Outcome != port.DeductAway || !redis.IsReadOnlyError(r.Err) {
		t.Fatalf("a replica: %+v", r)
	}
	if err := promoted.SlaveOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if r := deduct(t, watcher, "p", "bob", "a"); r.Outcome != port.DeductRewound {
		t.Fatalf("a promoted replica: %+v", r)
	}
}

func TestStackAFullServerIsAwayAndChangesNothing(t *testing.T) {
	t.Parallel()
	client := realClient(t, ownRedis(t).Addr)
	gate := newGate(t, client, Config{})
	sell(t, gate, "p", 10)
	before := viewOf(t, gate, "p")
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if r := deduct(t, gate, "p", "alice", "a"); r.Outcome != port.DeductAway || !redis.HasErrorPrefix(r.Err, "OOM") {
		t.Fatalf("%+v", r)
	}
	if err := client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if after := viewOf(t, gate, "p"); after != before {
		t.Fatalf("%+v became %+v", before, after)
	}
}

func TestStackAFlushIsNotLoaded(t *testing.T) {
	t.Parallel()
	client := realClient(t, ownRedis(t).Addr)
	gate := newGate(t, client, Config{})
	sell(t, gate, "p", 10)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if r := deduct(t, gate, "p", "alice", "a"); r.Outcome != port.DeductNotLoaded {
		t.Fatalf("%+v", r)
	}
}

// A user with the few commands that the gate needs, and keys of its prefix only.
func TestStackAFewCommandsAreEnough(t *testing.T) {
	t.Parallel()
	server := ownRedis(t)
	admin := realClient(t, server.Addr)
	err := admin.Do(t.Context(), "ACL", "SETUSER", "gate", "on", ">secret", "~seckill:*", "-@all", "+evalsha", "+eval",
		"+hmget", "+hget", "+hgetall", "+scan", "+hset", "+hvals", "+hexists", "+zadd", "+zrem", "+zcard", "+zrange", "+zrangebyscore",
		"+del", "+get", "+set", "+info", "+ping", "+hello", "+auth").Err()
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(ClientConfig{Addrs: []string{server.Addr}, Username: "gate", Password: "secret"})
	defer client.Close()
	gate := newGate(t, client, Config{})
	sell(t, gate, "p", 10)
	if r := deduct(t, gate, "p", "alice", "a"); r.Outcome != port.DeductAccepted {
		t.Fatalf("%+v", r)
	}
	if ok, err := gate.Claim(t.Context(), "p", "me", time.Second); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if flows, err := gate.Page(t.Context(), "p", 0, 10); len(flows) != 1 || err != nil {
		t.Fatal(flows, err)
	}
	walked := 0
	if err := gate.Walk(t.Context(), "p", func(flows []domain.Flow) error { walked += len(flows); return nil }); walked != 1 || err != nil {
		t.Fatal(walked, err)
	}
	foreign := newGate(t, client, Config{Prefix: "other"})
	if r := deduct(t, foreign, "p", "alice", "a"); r.Outcome != port.DeductAway {
		t.Fatalf("foreign keys: %+v", r)
	}
}

func eventually(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			t.Fatal(errors.New(what + ": waited in vain"))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// BenchmarkStackDeduct measures the real server.
func BenchmarkStackDeduct(b *testing.B) {
	benchDeduct(b, realClient(b, harness.RedisAddr(b)), Config{Prefix: ownPrefix()})
}

func TestStackWalkSeesEveryFlow(t *testing.T) {
	t.Parallel()
	for name, addrs := range map[string][]string{"one server": {harness.RedisAddr(t)}, "cluster": harness.ClusterAddrs(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walkSeesEveryFlow(t, realClient(t, addrs...), Config{Prefix: ownPrefix()})
		})
	}
}
