package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// The variables by which a test run hands the servers' addresses to tests.
const (
	EnvRedis   = "SECKILLTEST_REDIS_ADDR"       // host:port
	EnvCluster = "SECKILLTEST_REDIS_CLUSTER"    // host:port of three masters, by comma
	EnvMySQL   = "SECKILLTEST_MYSQL_DSN"        // of a user who may create databases; none selected
	EnvNames   = "SECKILLTEST_ROCKETMQ_NAMESRV" // host:port
	EnvBroker  = "SECKILLTEST_ROCKETMQ_BROKER"  // host:port
	EnvBinary  = "SECKILLTEST_BINARY"           // path of the built service
)

// Parts says which servers to start.
type Parts struct {
	Redis    bool // one server, append-only, no eviction
	Cluster  bool // a Redis Cluster of three masters
	MySQL    bool // MariaDB
	RocketMQ bool // a name server and a broker

	Replicas        int  // of Redis
	Sentinels       int  // that watch Redis and its replicas as SentinelMaster
	ClusterReplicas bool // the cluster has one for each master, and promotes it within a few seconds
	Disk            bool // what NewDisk needs; nothing is started

	Browser bool // Chromium; nothing is started
	Rules   bool // promtool, which checks Prometheus' rules; nothing is started

	// BrokerIP is where clients are told to find the broker, on its port: a proxy that a test runs between
	// them. Empty: the broker itself.
	BrokerIP string

	// Clocks has MariaDB see the time through libfaketime, for Server.MoveClock. The broker hangs at its
	// start under that library.
	Clocks bool
}

// All is every part that is shared by a test run.
var All = Parts{Redis: true, Cluster: true, MySQL: true, RocketMQ: true, Disk: true, Clocks: true, Browser: true, Rules: true}

// Stack is a set of running servers. The handles of parts that were not asked
// for are nil.
type Stack struct {
	Redis      *Server
	Replicas   []*Server
	Sentinels  []*Server
	Cluster    []*Server // masters first, then replicas
	MySQL      *Server
	NameServer *Server
	Broker     *Server

	parts   Parts
	dir     string // all data and logs; removed by Close
	mu      sync.Mutex
	servers []*Server // in the order of their start
}

// Start starts the parts side by side and returns when each one serves. It makes
// a data folder below dir (empty: the system's temporary folder). When a part is
// missing or does not start, what was started is ended and the error says which
// and what to do. The caller ends the set with Close.
func Start(ctx context.Context, parts Parts, dir string) (*Stack, error) {
	if err := missing(parts); err != nil {
		return nil, err
	}
	own, err := os.MkdirTemp(dir, "seckill-")
	if err != nil {
		return nil, err
	}
	s := &Stack{parts: parts, dir: own}
	if err := enterable(own); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	start := func(wanted bool, run func(context.Context) error) {
		if wanted {
			group.Go(func() error { return run(ctx) })
		}
	}
	start(parts.Redis, s.startRedis)
	start(parts.Cluster, s.startCluster)
	start(parts.MySQL, s.startMySQL)
	start(parts.RocketMQ, s.startRocketMQ)
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Env is the list of NAME=value by which tests find the servers.
func (s *Stack) Env() []string {
	var env []string
	if s.Redis != nil {
		env = append(env, EnvRedis+"="+s.Redis.Addr)
	}
	if len(s.Cluster) > 0 {
		env = append(env, EnvCluster+"="+strings.Join(s.ClusterAddrs(), ","))
	}
	if s.MySQL != nil {
		env = append(env, EnvMySQL+"="+s.MySQLDSN())
	}
	if s.Broker != nil {
		env = append(env, EnvNames+"="+s.NameServer.Addr, EnvBroker+"="+s.Broker.Addr)
	}
	return env
}

// SentinelAddrs lists host:port of the sentinels.
func (s *Stack) SentinelAddrs() []string { return addrsOf(s.Sentinels) }

// ClusterAddrs lists host:port of the cluster's nodes.
func (s *Stack) ClusterAddrs() []string { return addrsOf(s.Cluster) }

func addrsOf(servers []*Server) []string {
	var addrs []string
	for _, server := range servers {
		addrs = append(addrs, server.Addr)
	}
	return addrs
}

// MySQLDSN is the data source name of a user who may do everything, with no
// database selected.
func (s *Stack) MySQLDSN() string { return mysqlDSN(s.MySQL.Addr) }

// Close ends every server, the last one started first, and removes the data. A
// second Close does nothing.
func (s *Stack) Close() error {
	s.mu.Lock()
	servers := s.servers
	s.servers = nil
	s.mu.Unlock()
	var faults []error
	for i := len(servers) - 1; i >= 0; i-- {
		faults = append(faults, servers[i].Terminate())
	}
	return errors.Join(append(faults, os.RemoveAll(s.dir))...)
}

func (s *Stack) add(server *Server) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = append(s.servers, server)
	return server
}

func (s *Stack) folder(name string) (string, error) {
	dir := filepath.Join(s.dir, name)
	return dir, os.Mkdir(dir, 0o711)
}

// enterable lets other users pass through dir and its parents below the
// temporary folder: MariaDB runs as a user of its own, and the folders of
// os.MkdirTemp and testing are closed to others.
func enterable(dir string) error {
	top := filepath.Clean(os.TempDir())
	for at := dir; at == dir || strings.HasPrefix(at, top+string(filepath.Separator)); at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if err := os.Chmod(at, info.Mode().Perm()|0o111); err != nil {
			return fmt.Errorf("let the database's user pass: %w", err)
		}
	}
	return nil
}
