package redislua

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/application/port"
	"seckill/domain"
)

// What an inspection is bounded by.
const (
	inspectTimeout = 3 * time.Second // for one node's answers
	replicasMax    = 16              // replicas that are asked, of one master
)

// Inspector reads the settings of the gate's servers: the one, those behind the sentinels, or
// every node of the cluster.
type Inspector struct {
	client redis.UniversalClient
	cfg    ClientConfig
	clock  port.Clock
}

var _ port.Inspector = (*Inspector)(nil)

// NewInspector inspects what client is connected to; cfg is what it was made from.
func NewInspector(client redis.UniversalClient, cfg ClientConfig, clock port.Clock) *Inspector {
	return &Inspector{client: client, cfg: cfg, clock: clock}
}

// Inspect implements port.Inspector.
func (i *Inspector) Inspect(ctx context.Context) []port.Reading {
	var mu sync.Mutex
	var all []port.Reading
	room, roomKnown := int64(0), true
	note := func(ctx context.Context, client *redis.Client) {
		found, free, known := i.master(ctx, client)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found...)
		room, roomKnown = room+free, roomKnown && known
	}
	cluster, isCluster := i.client.(*redis.ClusterClient)
	single, isSingle := i.client.(*redis.Client)
	switch {
	case isCluster:
		masters := 0
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
			mu.Lock()
			masters++
			mu.Unlock()
			note(ctx, client)
			return nil
		})
		if err != nil || masters == 0 {
			return []port.Reading{away(strings.Join(i.cfg.Addrs, ","), err)}
		}
	case isSingle:
		note(ctx, single)
	default:
		return []port.Reading{away(strings.Join(i.cfg.Addrs, ","), fmt.Errorf("a client of another kind: %T", i.client))}
	}
	slices.SortStableFunc(all, func(a, b port.Reading) int { return strings.Compare(a.Node, b.Node) })
	if slices.ContainsFunc(all, func(r port.Reading) bool { return r.Name == port.ReadReachable && r.Known }) {
		r := port.Reading{Part: port.PartGate, Name: port.ReadRoom, Known: roomKnown, Number: room}
		if !roomKnown {
			r.Detail = "the memory of a node could not be read"
		}
		all = append(all, r)
	}
	return all
}

func away(node string, err error) port.Reading {
	detail := "no node answers"
	if err != nil {
		detail = err.Error()
	}
	return port.Reading{Part: port.PartGate, Node: node, Name: port.ReadReachable, Detail: detail}
}

// master reads one master and its replicas, and gives the bytes that it has free.
func (i *Inspector) master(ctx context.Context, client *redis.Client) (found []port.Reading, free int64, known bool) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	node := i.nodeOf(client)
	info, err := readInfo(ctx, client)
	if err != nil {
		return []port.Reading{away(node, err)}, 0, false
	}
	n := readingsOf(node, info)
	n.Text(port.ReadReachable, "yes")
	n.version()
	n.field(port.ReadRole, "role")
	n.field(port.ReadEviction, "maxmemory_policy")
	if info["maxmemory"] == "0" {
		n.Add(port.Reading{Name: port.ReadMaxMemory, Known: true, Text: "no limit"})
	} else {
		n.count(port.ReadMaxMemory, "maxmemory")
	}
	n.persistence(ctx, client)
	i.mode(ctx, client, &n)
	n.identity(ctx, client)
	n.clock(ctx, client, i.clock)
	if info["role"] == "master" {
		i.replicas(ctx, &n)
	}
	free, known = n.free()
	return n.Found, free, known
}

// nodeOf is the server's address; behind sentinels it is known by the master's name.
func (i *Inspector) nodeOf(client *redis.Client) string {
	if i.cfg.Master != "" {
		return i.cfg.Master
	}
	return client.Options().Addr
}

// mode compares what the server is with how it is addressed.
func (i *Inspector) mode(ctx context.Context, client *redis.Client, n *nodeReadings) {
	_, asCluster := i.client.(*redis.ClusterClient)
	isCluster, said := n.info["cluster_enabled"]
	switch {
	case !said:
		n.Unknown(port.ReadClusterMode, "the server does not say whether it is of a cluster")
	case (isCluster == "1") == asCluster:
		n.Text(port.ReadClusterMode, "as set")
	case asCluster:
		n.Text(port.ReadClusterMode, "several addresses of single servers")
	default:
		n.Text(port.ReadClusterMode, "one address of a cluster")
	}
	if isCluster != "1" {
		return
	}
	text, err := client.ClusterInfo(ctx).Result()
	if state := infoFields(text)["cluster_state"]; err == nil && state != "" {
		n.Text(port.ReadClusterState, state)
		return
	}
	n.Unknown(port.ReadClusterState, "CLUSTER INFO does not answer: "+reason(err))
}

// replicas reads the attached replicas as the master sees them, and their settings from themselves.
func (i *Inspector) replicas(ctx context.Context, n *nodeReadings) {
	var inStep, lag int64
	var attached []string
	offset, err := strconv.ParseInt(n.info["master_repl_offset"], 10, 64)
	for key, value := range n.info {
		number, isReplica := strings.CutPrefix(key, "slave")
		if _, bad := strconv.Atoi(number); !isReplica || bad != nil {
			continue
		}
		fields := replicaFields(value)
		attached = append(attached, net.JoinHostPort(fields["ip"], fields["port"]))
		if fields["state"] == "online" {
			inStep++
		}
		if at, bad := strconv.ParseInt(fields["offset"], 10, 64); bad == nil && err == nil {
			lag = max(lag, offset-at)
		}
	}
	n.Number(port.ReadReplicas, inStep)
	if len(attached) == 0 {
		return
	}
	n.Number(port.ReadReplicaLag, lag)
	// The field is there only where min-replicas-to-write is set.
	_, set := n.info["min_slaves_good_slaves"]
	n.Number(port.ReadMinReplicas, map[bool]int64{true: 1}[set])
	slices.Sort(attached)
	for _, addr := range attached[:min(len(attached), replicasMax)] {
		n.Found = append(n.Found, i.replica(ctx, addr)...)
	}
}

// replica asks a replica itself: what it is set to counts when it is promoted.
func (i *Inspector) replica(ctx context.Context, addr string) []port.Reading {
	options := Options(ClientConfig{Addrs: []string{addr}, Username: i.cfg.Username, Password: i.cfg.Password, TLS: i.cfg.TLS}).Simple()
	options.PoolSize = 1
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	n := readingsOf(addr, nil)
	info, err := readInfo(ctx, client)
	if err != nil {
		n.Unknown(port.ReadReplicaEvicts, err.Error())
		n.Unknown(port.ReadReplicaPersist, err.Error())
		return n.Found
	}
	n.info = info
	n.field(port.ReadReplicaEvicts, "maxmemory_policy")
	n.Text(port.ReadReplicaPersist, yesNo(info["aof_enabled"]))
	return n.Found
}

// nodeReadings gathers what one node says.
type nodeReadings struct {
	port.Readings
	info map[string]string
}

func readingsOf(node string, info map[string]string) nodeReadings {
	return nodeReadings{Readings: port.Readings{Part: port.PartGate, Node: node}, info: info}
}

// field is a line of INFO.
func (n *nodeReadings) field(name port.ReadingName, key string) {
	if value, said := n.info[key]; said {
		n.Text(name, value)
		return
	}
	n.Unknown(name, "INFO has no "+key)
}

func (n *nodeReadings) count(name port.ReadingName, key string) {
	number, err := strconv.ParseInt(n.info[key], 10, 64)
	if err != nil {
		n.Unknown(name, "INFO has no number "+key)
		return
	}
	n.Number(name, number)
}

func (n *nodeReadings) version() {
	version := n.info["redis_version"]
	kind := "Redis"
	if v := n.info["valkey_version"]; v != "" {
		kind, version = "Valkey", v
	}
	major, _, _ := strings.Cut(version, ".")
	number, err := strconv.ParseInt(major, 10, 64)
	if err != nil {
		n.Unknown(port.ReadRedisVersion, "INFO has no version")
		return
	}
	n.Add(port.Reading{Name: port.ReadRedisVersion, Known: true, Number: number, Text: kind + " " + version})
}

func (n *nodeReadings) persistence(ctx context.Context, client *redis.Client) {
	if enabled, said := n.info["aof_enabled"]; said {
		n.Text(port.ReadAppendOnly, yesNo(enabled))
	} else {
		n.Unknown(port.ReadAppendOnly, "INFO has no aof_enabled")
	}
	n.field(port.ReadLastWrite, "aof_last_write_status")
	settings, err := client.ConfigGet(ctx, "appendfsync").Result()
	if value := settings["appendfsync"]; err == nil && value != "" {
		n.Text(port.ReadAppendFsync, value)
		return
	}
	n.Unknown(port.ReadAppendFsync, "CONFIG GET does not answer: "+reason(err))
}

// identity asks as the gate's scripts do.
func (n *nodeReadings) identity(ctx context.Context, client *redis.Client) {
	const script = `local info = redis.pcall('INFO', 'replication')
return type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''`
	id, err := client.Eval(ctx, script, nil).Text()
	switch {
	case err != nil:
		n.Unknown(port.ReadIdentity, "a script does not run: "+reason(err))
	case id == "" || id != n.info["master_replid"]:
		n.Text(port.ReadIdentity, "no: a script is not told master_replid")
	default:
		n.Text(port.ReadIdentity, "yes")
	}
}

// clock compares with the middle of the question's time.
func (n *nodeReadings) clock(ctx context.Context, client *redis.Client, ours port.Clock) {
	before := ours.Now()
	theirs, err := client.Time(ctx).Result()
	if err != nil {
		n.Unknown(port.ReadClock, "TIME does not answer: "+reason(err))
		return
	}
	after := ours.Now()
	n.Number(port.ReadClock, theirs.Sub(before.Add(after.Sub(before)/2)).Milliseconds())
}

// free is what the limit, or the machine, leaves.
func (n *nodeReadings) free() (int64, bool) {
	limit, err := strconv.ParseInt(n.info["maxmemory"], 10, 64)
	if err != nil {
		return 0, false
	}
	if limit == 0 {
		if limit, err = strconv.ParseInt(n.info["total_system_memory"], 10, 64); err != nil || limit == 0 {
			return 0, false
		}
	}
	used, err := strconv.ParseInt(n.info["used_memory"], 10, 64)
	return max(0, limit-used), err == nil
}

func readInfo(ctx context.Context, client *redis.Client) (map[string]string, error) {
	text, err := client.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	return infoFields(text), nil
}

func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields
}

// replicaFields reads ip=…,port=…,state=…,offset=…,lag=….
func replicaFields(text string) map[string]string {
	fields := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if key, value, ok := strings.Cut(part, "="); ok {
			fields[key] = value
		}
	}
	return fields
}

func yesNo(flag string) string {
	if flag == "1" {
		return "yes"
	}
	return "no"
}

func reason(err error) string {
	if err == nil {
		return "an empty answer"
	}
	return err.Error()
}

// RefuseEviction is an error of CodeInvalidRequest where a master may evict: flows would vanish.
// A policy that cannot be read is none; what cannot be reached is found by others.
func (i *Inspector) RefuseEviction(ctx context.Context) error {
	for _, r := range i.Inspect(ctx) {
		if r.Name == port.ReadEviction && r.Known && r.Text != "noeviction" {
			return evicting(r)
		}
	}
	return nil
}

func evicting(r port.Reading) error {
	return domain.NewError(domain.CodeInvalidRequest, fmt.Sprintf("redis %s evicts keys (maxmemory-policy %s), so that flows and products could vanish "+
		"in the middle of a sale; redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf, then start again", r.Node, r.Text), nil)
}
