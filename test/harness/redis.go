package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterMasters = 3

	// SentinelMaster is what sentinels call the server that they watch.
	SentinelMaster = "seckill"
)

func (s *Stack) startRedis(ctx context.Context) error {
	server, err := s.redisServer("redis", nil)
	if err != nil {
		return err
	}
	s.Redis = server
	if err := server.Start(ctx); err != nil {
		return err
	}
	if err := s.startReplicas(ctx, s.parts.Replicas); err != nil {
		return err
	}
	return s.startSentinels(ctx)
}

// startReplicas starts replicas of Redis and waits until each has all data.
func (s *Stack) startReplicas(ctx context.Context, wanted int) error {
	for i := range wanted {
		host, port, _ := net.SplitHostPort(s.Redis.Addr)
		replica, err := s.redisServer("redis-replica-"+strconv.Itoa(i), nil, "--replicaof", host+" "+port)
		if err != nil {
			return err
		}
		s.Replicas = append(s.Replicas, replica)
		if err := replica.Start(ctx); err != nil {
			return err
		}
		if err := within(ctx, func() error { return InSync(ctx, replica.Addr) }); err != nil {
			return err
		}
	}
	return nil
}

// startSentinels starts sentinels that promote a replica a second after the master has gone quiet,
// and waits until they know it and each other.
func (s *Stack) startSentinels(ctx context.Context) error {
	if s.parts.Sentinels == 0 {
		return nil
	}
	host, port, _ := net.SplitHostPort(s.Redis.Addr)
	for i := range s.parts.Sentinels {
		own, err := freePort()
		if err != nil {
			return err
		}
		name := "redis-sentinel-" + strconv.Itoa(i)
		dir, err := s.folder(name)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, "sentinel.conf")
		settings := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %[3]s %s %s %d\n"+
			"sentinel down-after-milliseconds %[3]s 1000\nsentinel failover-timeout %[3]s 5000\n",
			own, dir, SentinelMaster, host, port, s.parts.Sentinels/2+1)
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			return err
		}
		server := s.add(&Server{Name: name, Addr: loopback(own), logFile: filepath.Join(s.dir, name+".log"),
			command: func() *exec.Cmd { return exec.Command(find("redis-server"), file, "--sentinel") },
			ready:   redisReady(loopback(own))})
		s.Sentinels = append(s.Sentinels, server)
		if err := server.Start(ctx); err != nil {
			return err
		}
	}
	for _, sentinel := range s.Sentinels {
		if err := within(ctx, func() error { return s.sentinelKnows(ctx, sentinel.Addr) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) sentinelKnows(ctx context.Context, addr string) error {
	client := redis.NewSentinelClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	master, err := client.Master(ctx, SentinelMaster).Result()
	if err != nil {
		return err
	}
	for field, wanted := range map[string]int{"num-slaves": len(s.Replicas), "num-other-sentinels": len(s.Sentinels) - 1} {
		if master[field] != strconv.Itoa(wanted) {
			return fmt.Errorf("%s is %s, not %d", field, master[field], wanted)
		}
	}
	return nil
}

// InSync says whether the server at addr is a replica that has all of its master's data.
func InSync(ctx context.Context, addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	info, err := client.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, "master_link_status:up") || !strings.Contains(info, "master_sync_in_progress:0") {
		return fmt.Errorf("the replica at %s is not in sync", addr)
	}
	return nil
}

// within polls until check is content.
func within(parent context.Context, check func() error) error {
	ctx, cancel := context.WithTimeout(parent, readyWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-tick.C:
		}
	}
}

// startCluster starts three masters, without replicas unless they are asked for: enough to prove that
// the scripts keep to one slot. With replicas it is quick to promote one.
func (s *Stack) startCluster(ctx context.Context) error {
	create := []string{"--cluster", "create"}
	nodes, timeout := clusterMasters, "5000"
	if s.parts.ClusterReplicas {
		nodes, timeout = 2*clusterMasters, "1500"
	}
	for i := range nodes {
		server, err := s.redisServer("redis-cluster-"+strconv.Itoa(i), []int{10_000},
			"--cluster-enabled", "yes", "--cluster-node-timeout", timeout)
		if err != nil {
			return err
		}
		s.Cluster = append(s.Cluster, server)
		if err := server.Start(ctx); err != nil {
			return err
		}
		create = append(create, server.Addr)
	}
	if s.parts.ClusterReplicas {
		create = append(create, "--cluster-replicas", "1")
	}
	out, err := exec.CommandContext(ctx, find("redis-cli"), append(create, "--cluster-yes")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("redis-cli --cluster create: %w\n%s", err, out)
	}
	for _, server := range s.Cluster {
		server.ready = clusterReady(server.Addr)
		if err := server.waitReady(ctx); err != nil {
			return err
		}
	}
	if !s.parts.ClusterReplicas {
		return nil
	}
	for _, server := range s.Cluster[clusterMasters:] { // redis-cli makes masters of the first ones
		if err := within(ctx, func() error { return InSync(ctx, server.Addr) }); err != nil {
			return err
		}
	}
	return nil
}

// redisServer asks for a port; offsets are further ports that the server takes.
func (s *Stack) redisServer(name string, offsets []int, more ...string) (*Server, error) {
	port, err := freePort(offsets...)
	if err != nil {
		return nil, err
	}
	dir, err := s.folder(name)
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
		"--maxmemory-policy", "noeviction", "--daemonize", "no",
		"--repl-diskless-sync-delay", "0", // a replica that waits for others to sync with is none at a failover
	}, more...)
	addr := loopback(port)
	return s.add(&Server{
		Name:    name,
		Addr:    addr,
		logFile: filepath.Join(s.dir, name+".log"),
		command: func() *exec.Cmd { return exec.Command(find("redis-server"), args...) },
		ready:   redisReady(addr),
	}), nil
}

func redisReady(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		defer client.Close()
		return client.Ping(ctx).Err()
	}
}

func clusterReady(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
		defer client.Close()
		info, err := client.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") {
			return errors.New("cluster_state is not ok")
		}
		return nil
	}
}
