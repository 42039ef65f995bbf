package harness

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const clusterMasters = 3

func (s *Stack) startRedis(ctx context.Context) error {
	server, err := s.redisServer("redis", nil)
	if err != nil {
		return err
	}
	s.Redis = server
	return server.Start(ctx)
}

// startCluster starts three masters without replicas: enough to prove that the
// scripts keep to one slot.
func (s *Stack) startCluster(ctx context.Context) error {
	create := []string{"--cluster", "create"}
	for i := range clusterMasters {
		server, err := s.redisServer("redis-cluster-"+strconv.Itoa(i), []int{10_000},
			"--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		if err != nil {
			return err
		}
		s.Cluster = append(s.Cluster, server)
		if err := server.Start(ctx); err != nil {
			return err
		}
		create = append(create, server.Addr)
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
