//go:build stack

package redislua

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill/application/port"
	"seckill/domain"
	"seckill/test/contract"
	"seckill/test/harness"
)

var ofEveryNode = []port.ReadingName{port.ReadReachable, port.ReadRedisVersion, port.ReadRole, port.ReadEviction, port.ReadMaxMemory,
	port.ReadAppendOnly, port.ReadAppendFsync, port.ReadLastWrite, port.ReadReplicas, port.ReadIdentity, port.ReadClusterMode,
	port.ReadClock, port.ReadRoom}

func TestInspectorContract(t *testing.T) {
	t.Parallel()
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartGate, Here: func(tb testing.TB) port.Inspector {
		return inspectorOf(tb, contract.ShiftedClock{}, harness.RedisAddr(tb))
	}, Away: awayInspector, Known: ofEveryNode, Secrets: []string{"hidden-word"}})
}

func TestInspectorContractOnACluster(t *testing.T) {
	t.Parallel()
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartGate, Here: func(tb testing.TB) port.Inspector {
		return inspectorOf(tb, contract.ShiftedClock{}, harness.ClusterAddrs(tb)...)
	}, Known: append([]port.ReadingName{port.ReadClusterState}, ofEveryNode...)})
}

func inspectorOf(tb testing.TB, clock port.Clock, addrs ...string) *Inspector {
	tb.Helper()
	return NewInspector(realClient(tb, addrs...), ClientConfig{Addrs: addrs}, clock)
}

// reading is the one of that name; the first where there are several.
func reading(t *testing.T, found []port.Reading, name port.ReadingName) port.Reading {
	t.Helper()
	for _, r := range found {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no %s in %+v", name, found)
	return port.Reading{}
}

func TestInspectionSeesAClockThatIsAnHourOff(t *testing.T) {
	t.Parallel()
	found := inspectorOf(t, contract.ShiftedClock{Ahead: time.Hour}, harness.RedisAddr(t)).Inspect(t.Context())
	if off := reading(t, found, port.ReadClock); off.Number > -3_590_000 || off.Number < -3_610_000 {
		t.Errorf("an hour behind ours: %+v", off)
	}
}

func TestInspectionSeesEveryMasterOfAClusterAndOneAddressTooFew(t *testing.T) {
	t.Parallel()
	addrs := harness.ClusterAddrs(t)
	nodes := map[string]bool{}
	for _, r := range inspectorOf(t, contract.ShiftedClock{}, addrs...).Inspect(t.Context()) {
		if r.Name == port.ReadClusterState && r.Text == "ok" {
			nodes[r.Node] = true
		}
	}
	if len(nodes) != len(addrs) {
		t.Errorf("nodes %v, want %v", nodes, addrs)
	}
	one := inspectorOf(t, contract.ShiftedClock{}, addrs[0]).Inspect(t.Context())
	if r := reading(t, one, port.ReadClusterMode); r.Text != "one address of a cluster" {
		t.Errorf("%+v", r)
	}
}

// Settings that are changed on the running server are seen as they are, a replica's as well.
func TestInspectionSeesWhatTheServersRunWith(t *testing.T) {
	t.Parallel()
	server, replica := ownRedis(t), ownRedis(t)
	client := realClient(t, server.Addr)
	inspector := NewInspector(client, ClientConfig{Addrs: []string{server.Addr}}, contract.ShiftedClock{})
	if err := inspector.RefuseEviction(t.Context()); err != nil {
		t.Fatalf("of a server that evicts nothing: %v", err)
	}
	for setting, value := range map[string]string{"maxmemory-policy": "allkeys-lru", "maxmemory": "200mb", "appendfsync": "no",
		"min-replicas-to-write": "1", "repl-diskless-sync-delay": "0"} {
		if err := client.ConfigSet(t.Context(), setting, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	host, number, _ := strings.Cut(server.Addr, ":")
	second := realClient(t, replica.Addr)
	if err := second.ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru").Err(); err != nil {
		t.Fatal(err)
	}
	if err := second.SlaveOf(t.Context(), host, number).Err(); err != nil {
		t.Fatal(err)
	}
	within := time.Now().Add(2 * time.Minute)
	for !strings.Contains(client.Info(t.Context(), "replication").Val(), "state=online") {
		if time.Now().After(within) {
			t.Fatal("the replica does not attach")
		}
		time.Sleep(20 * time.Millisecond) // a poll
	}
	found := inspector.Inspect(t.Context())
	for name, want := range map[port.ReadingName]port.Reading{
		port.ReadEviction:      {Text: "allkeys-lru"},
		port.ReadMaxMemory:     {Number: 200 << 20},
		port.ReadAppendFsync:   {Text: "no"},
		port.ReadReplicas:      {Number: 1},
		port.ReadMinReplicas:   {Number: 1},
		port.ReadReplicaEvicts: {Text: "volatile-lru"},
	} {
		if got := reading(t, found, name); !got.Known || got.Text != want.Text || got.Number != want.Number {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if room := reading(t, found, port.ReadRoom); room.Number <= 0 || room.Number > 200<<20 {
		t.Errorf("room %+v", room)
	}
	if as := reading(t, inspectorOf(t, contract.ShiftedClock{}, replica.Addr).Inspect(t.Context()), port.ReadRole); as.Text != "slave" {
		t.Errorf("a replica's role: %+v", as)
	}
	err := inspector.RefuseEviction(t.Context())
	if domain.CodeOf(err) != domain.CodeInvalidRequest || !strings.Contains(fmt.Sprint(err), "maxmemory-policy noeviction") {
		t.Errorf("an evicting server: %v", err)
	}
}

// A user who may do no more than the gate needs: what is refused is unknown.
func TestInspectionSurvivesAUserWhoMayNotLook(t *testing.T) {
	t.Parallel()
	server := ownRedis(t)
	admin := realClient(t, server.Addr)
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">hidden-word", "~*", "+@all", "-config", "-time").Err(); err != nil {
		t.Fatal(err)
	}
	cfg := ClientConfig{Addrs: []string{server.Addr}, Username: "shop", Password: "hidden-word"}
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartGate, Here: func(tb testing.TB) port.Inspector {
		client := NewClient(cfg)
		tb.Cleanup(func() { _ = client.Close() })
		return NewInspector(client, cfg, contract.ShiftedClock{})
	}, Known: []port.ReadingName{port.ReadEviction, port.ReadIdentity}, Unknown: []port.ReadingName{port.ReadAppendFsync, port.ReadClock},
		Secrets: []string{"hidden-word"}})
}
