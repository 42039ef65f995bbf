//go:build stack

package fault

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/harness"
	"seckill/test/shop"
)

const (
	l5 = "Redis dies, forgets or moves while two instances sell"

	// What A to E may take to come back after Redis has lost something: the shop's check window
	// (check_timeout 2 s, twice check_interval 1 s, and 30 s) and another 30 s.
	afterLoss = (2 + 2 + 30 + 30) * time.Second
)

// lossyRedis is a shop of two instances on a Redis of the test's own.
type lossyRedis struct {
	t       *testing.T
	layer   *campaign.Layer
	servers *harness.Stack
	doors   []*shop.Shop
	product string // of the sale under way
}

func newLossyRedis(t *testing.T, parts harness.Parts, dir string) *lossyRedis {
	t.Helper()
	layer := campaign.Open(t, "L5", l5)
	servers := own(t, parts, dir)
	var addrs []string
	master := ""
	switch {
	case parts.Sentinels > 0:
		addrs, master = servers.SentinelAddrs(), harness.SentinelMaster
	case parts.Cluster:
		addrs = servers.ClusterAddrs()
	default:
		addrs = []string{servers.Redis.Addr}
	}
	s := shop.New(t, shop.Stack, "SECKILL_REDIS__ADDRS="+strings.Join(addrs, ","), "SECKILL_REDIS__MASTER="+master)
	other := s.Another()
	s.Start()
	other.Start()
	return &lossyRedis{t: t, layer: layer, servers: servers, doors: []*shop.Shop{s, other}}
}

// own starts servers of the test's own.
func own(t *testing.T, parts harness.Parts, dir string) *harness.Stack {
	t.Helper()
	servers, err := harness.Start(t.Context(), parts, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	return servers
}

// sell has one sale and breaks Redis in the middle. No purchase that was told accepted may end rejected: the broker
// keeps its messages.
func (l *lossyRedis) sell(kind string, breaks func()) {
	l.t.Helper()
	requests := campaign.Size(l.t, 600, 2000)
	l.product = onSale(l.t, l.doors[0], int64(requests)*9/10, 0)
	drive.Sell(l.t, drive.Sale{Doors: l.doors, Product: l.product, Requests: requests, Figures: l.layer, Within: afterLoss, Fault: func() {
		l.layer.Fault(kind)
		breaks()
	}})
}

func (l *lossyRedis) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// at is a client of one server.
func (l *lossyRedis) at(addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	l.t.Cleanup(func() { _ = c.Close() })
	return c
}

// eventually polls with the patience of a failover.
func (l *lossyRedis) eventually(what string, check func(ctx context.Context) error) {
	l.t.Helper()
	shop.Eventually(l.t, time.Minute, what, func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		err := check(ctx)
		return err == nil, fmt.Sprint(err)
	})
}

func TestL5RedisIsKilled(t *testing.T) {
	t.Parallel()
	l := newLossyRedis(t, harness.Parts{Redis: true}, t.TempDir())
	for range campaign.Size(t, 1, 30) {
		l.sell("redis: kill -9", func() {
			l.must(l.servers.Redis.Kill())
			l.must(l.servers.Redis.Start(context.Background()))
		})
	}
}

func TestL5PowerCut(t *testing.T) {
	t.Parallel()
	disk := harness.NewDisk(t)
	l := newLossyRedis(t, harness.Parts{Redis: true}, disk.Dir)
	client := l.at(l.servers.Redis.Addr)
	for fsync, cuts := range map[string]int{"everysec": campaign.Size(t, 1, 30), "always": campaign.Size(t, 1, 10)} {
		for range cuts {
			l.must(client.ConfigSet(context.Background(), "appendfsync", fsync).Err())
			l.sell("redis: power cut, appendfsync "+fsync, func() {
				l.must(disk.Cut(l.servers.Redis))
				l.must(l.servers.Redis.Start(context.Background()))
			})
		}
	}
}

// A frozen server answers late, and what it was sent is carried out later: nothing is lost, so nothing is rebuilt.
func TestL5RedisIsFrozen(t *testing.T) {
	t.Parallel()
	l := newLossyRedis(t, harness.Parts{Redis: true}, t.TempDir())
	for range campaign.Size(t, 1, 10) {
		before := len(l.doors[0].Reopenings()) + len(l.doors[1].Reopenings())
		l.sell("redis: SIGSTOP 5 s", func() {
			l.must(l.servers.Redis.Stop())
			time.Sleep(5 * time.Second) // the fault itself
			l.must(l.servers.Redis.Cont())
		})
		if after := len(l.doors[0].Reopenings()) + len(l.doors[1].Reopenings()); after != before {
			t.Errorf("%d needless rebuilds", after-before)
		}
	}
}

// F21 and F27: everything, and single keys.
func TestL5KeysAreGone(t *testing.T) {
	t.Parallel()
	l := newLossyRedis(t, harness.Parts{Redis: true}, t.TempDir())
	client, ctx := l.at(l.servers.Redis.Addr), context.Background()
	key := func(part string) string { return "seckill:{" + l.product + "}:" + part }
	for range campaign.Size(t, 1, 10) {
		l.sell("redis: FLUSHALL", func() { l.must(client.FlushAll(ctx).Err()) })
		l.sell("redis: DEL of the stock record", func() { l.must(client.Del(ctx, key("stock")).Err()) })
		l.sell("redis: DEL of the open set", func() { l.must(client.Del(ctx, key("open")).Err()) })
		l.sell("redis: DEL of one open flow", func() {
			shop.Eventually(t, 10*time.Second, "an open flow", func() (bool, string) {
				first := client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: key("open"), Start: 0, Stop: 0, Rev: true}).Val()
				if len(first) == 0 {
					return false, "none"
				}
				user, _, _ := strings.Cut(first[0], "|")
				return client.Del(ctx, "seckill:{"+l.product+"}@"+user).Val() == 1, user
			})
		})
		l.sell("redis: eviction under allkeys-lru", func() { l.evict(client) })
	}
}

// evict has the server evict about a quarter of its keys.
func (l *lossyRedis) evict(client *redis.Client) {
	ctx := context.Background()
	before := client.DBSize(ctx).Val()
	info := client.InfoMap(ctx, "memory").Item("Memory", "used_memory")
	var used int64
	if _, err := fmt.Sscan(info, &used); err != nil {
		l.t.Fatal(err)
	}
	empty := l.empty(client)
	l.must(client.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err())
	l.must(client.ConfigSet(ctx, "maxmemory", fmt.Sprint(empty+(used-empty)*3/4)).Err())
	time.Sleep(time.Second) // it evicts at each write
	l.must(client.ConfigSet(ctx, "maxmemory", "0").Err())
	l.must(client.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
	l.layer.Seen("keys evicted", max(0, before-client.DBSize(ctx).Val()))
}

// empty is what the server takes without data.
func (l *lossyRedis) empty(client *redis.Client) (n int64) {
	if _, err := fmt.Sscan(client.InfoMap(context.Background(), "memory").Item("Memory", "used_memory_startup"), &n); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// sentinels is a shop on a master, a replica and a sentinel.
func sentinels(t *testing.T) *lossyRedis {
	t.Helper()
	return newLossyRedis(t, harness.Parts{Redis: true, Replicas: 1, Sentinels: 1}, t.TempDir())
}

// roles are the two servers as they stand.
func (l *lossyRedis) roles() (master, replica *harness.Server) {
	l.t.Helper()
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: l.servers.Sentinels[0].Addr})
	defer func() { _ = sentinel.Close() }()
	addr, err := sentinel.GetMasterAddrByName(context.Background(), harness.SentinelMaster).Result()
	l.must(err)
	both := append([]*harness.Server{l.servers.Redis}, l.servers.Replicas...)
	if both[0].Addr == strings.Join(addr, ":") {
		return both[0], both[1]
	}
	return both[1], both[0]
}

// promoted waits until the server is the master that sentinels name, and the other one follows it.
func (l *lossyRedis) promoted(server, other *harness.Server) {
	l.t.Helper()
	l.eventually("the replica is promoted", func(ctx context.Context) error {
		master, _ := l.roles()
		if master != server {
			return fmt.Errorf("the master is %s", master.Addr)
		}
		return l.at(server.Addr).Set(ctx, "writable", "yes", 0).Err()
	})
	if other.Pid() == 0 {
		l.must(other.Start(context.Background()))
	}
}

// inSync waits for the next round: a replica that is behind is not promoted in an orderly way.
func (l *lossyRedis) inSync() {
	l.t.Helper()
	l.eventually("the replica is in sync", func(ctx context.Context) error {
		_, replica := l.roles()
		return harness.InSync(ctx, replica.Addr)
	})
}

func TestL5SentinelsPromote(t *testing.T) {
	t.Parallel()
	l := sentinels(t)
	for range campaign.Size(t, 1, 10) {
		l.sell("sentinel: the master is killed", func() {
			master, replica := l.roles()
			l.must(master.Kill())
			l.promoted(replica, master)
		})
		l.inSync()
	}
}

// A replica whose link was cut before is promoted: all that was accepted since is gone.
func TestL5AStaleReplicaIsPromoted(t *testing.T) {
	t.Parallel()
	l := sentinels(t)
	for range campaign.Size(t, 1, 20) {
		l.sell("sentinel: a stale replica is promoted", func() {
			master, replica := l.roles()
			l.must(l.at(replica.Addr).Do(context.Background(), "replicaof", "127.0.0.1", "1").Err()) // follows nobody
			time.Sleep(time.Second)                                                                  // and falls behind
			l.must(master.Kill())
			l.promoted(replica, master)
		})
		l.inSync()
	}
}

// A failover that loses nothing costs a rebuild all the same, there and back; scripts are forgotten with it.
func TestL5APlannedFailoverThereAndBack(t *testing.T) {
	t.Parallel()
	l := sentinels(t)
	failover := func() {
		l.inSync()
		master, replica := l.roles()
		l.eventually("the sentinel takes the order", func(ctx context.Context) error {
			return l.at(l.servers.Sentinels[0].Addr).Do(ctx, "sentinel", "failover", harness.SentinelMaster).Err()
		})
		l.promoted(replica, master)
		l.must(l.at(replica.Addr).ScriptFlush(context.Background()).Err())
	}
	for range campaign.Size(t, 1, 10) {
		l.sell("sentinel: planned failover and SCRIPT FLUSH, there and back", func() {
			failover()
			l.doors[0].For(t).WaitOpen(l.product)
			failover()
		})
	}
}

func TestL5AClustersMasterIsKilled(t *testing.T) {
	t.Parallel()
	l := newLossyRedis(t, harness.Parts{Cluster: true, ClusterReplicas: true}, t.TempDir())
	for range campaign.Size(t, 1, 10) {
		l.sell("cluster: a master is killed", func() {
			server := l.serverOf(l.owner())
			l.must(server.Kill())
			l.eventually("a replica is promoted", func(context.Context) error {
				if owner := l.owner(); owner == "" || owner == server.Addr {
					return fmt.Errorf("the slot is still that of %s", owner)
				}
				return nil
			})
			l.must(server.Start(context.Background()))
		})
		l.eventually("the new replica is in sync", func(ctx context.Context) error { return l.allInSync(ctx) })
	}
}

// owner is the address of the node that has the product's slot, as any node that answers says; empty while none has.
func (l *lossyRedis) owner() string {
	l.t.Helper()
	slot := int64(l.slot())
	for _, server := range l.servers.Cluster {
		if server.Pid() == 0 {
			continue
		}
		shards, err := l.at(server.Addr).ClusterShards(context.Background()).Result()
		if err != nil {
			continue
		}
		if addr := masterOf(shards, slot); addr != "" {
			return addr
		}
	}
	return ""
}

// masterOf is the address of the slot's master; empty while it has none that is online.
func masterOf(shards []redis.ClusterShard, slot int64) string {
	for _, shard := range shards {
		for _, r := range shard.Slots {
			if slot < r.Start || slot > r.End {
				continue
			}
			for _, n := range shard.Nodes {
				if n.Role == "master" && n.Health == "online" {
					return net.JoinHostPort(n.IP, strconv.FormatInt(n.Port, 10))
				}
			}
		}
	}
	return ""
}

func (l *lossyRedis) slot() int {
	l.t.Helper()
	for _, server := range l.servers.Cluster {
		if server.Pid() != 0 {
			slot, err := l.at(server.Addr).ClusterKeySlot(context.Background(), "{"+l.product+"}").Result()
			l.must(err)
			return int(slot)
		}
	}
	l.t.Fatal("no node runs")
	return 0
}

func (l *lossyRedis) serverOf(addr string) *harness.Server {
	l.t.Helper()
	for _, server := range l.servers.Cluster {
		if server.Addr == addr {
			return server
		}
	}
	l.t.Fatalf("no node at %s", addr)
	return nil
}

func (l *lossyRedis) allInSync(ctx context.Context) error {
	for _, server := range l.servers.Cluster {
		if role := l.at(server.Addr).InfoMap(ctx, "replication").Item("Replication", "role"); role == "master" {
			continue
		}
		if err := harness.InSync(ctx, server.Addr); err != nil {
			return err
		}
	}
	return nil
}
