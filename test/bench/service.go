package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-sql-driver/mysql"

	"seckill/test/harness"
)

// servers are where the real ones are.
type servers struct{ redis, mysql, names, broker string }

func serversHere() (*servers, error) {
	s := &servers{}
	for name, at := range map[string]*string{harness.EnvRedis: &s.redis, harness.EnvMySQL: &s.mysql, harness.EnvNames: &s.names, harness.EnvBroker: &s.broker} {
		if *at = os.Getenv(name); *at == "" {
			return nil, fmt.Errorf("%s is not set: --binary needs the real servers (make bench starts them)", name)
		}
	}
	return s, nil
}

// watch lets the meter read the servers that run on this machine.
func (s *servers) watch(m meter) {
	addrs := map[string]string{"redis": s.redis, "names": s.names, "broker": s.broker}
	if cfg, err := mysql.ParseDSN(s.mysql); err == nil {
		addrs["mariadb"] = cfg.Addr
	}
	for name, addr := range addrs {
		pid, err := listenerPID(addr)
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: no CPU of %s: %v\n", name, err)
			continue
		}
		m[name] = pid
	}
}

// service is one under test, on a database, topic and groups of its own.
type service struct {
	*process
	own string // its topic's and database's name
	dsn string
	env []string
}

// startService starts the service; log names its log. more are settings that differ from the defaults.
func (b *bench) startService(ctx context.Context, log string, more ...string) (*service, error) {
	s, drop, err := b.prepareService(ctx, more...)
	if err != nil {
		return nil, err
	}
	if err := b.run(ctx, s, log); err != nil {
		return nil, errors.Join(err, drop())
	}
	s.after = drop
	return s, nil
}

// prepareService makes what a service needs, its schema and topic too.
func (b *bench) prepareService(ctx context.Context, more ...string) (*service, func() error, error) {
	if b.servers == nil {
		return nil, nil, errNeeds
	}
	s := &service{own: ownName("bench")}
	var drop func() error
	var err error
	if s.dsn, drop, err = makeDatabase(ctx, b.servers.mysql, s.own); err != nil {
		return nil, nil, err
	}
	s.env = append(append(os.Environ(), doorSettings...),
		"SECKILL_PROFILE=stack",
		"SECKILL_REDIS__ADDRS="+b.servers.redis,
		"SECKILL_ROCKETMQ__NAME_SERVERS="+b.servers.names,
		"SECKILL_ROCKETMQ__BROKER="+b.servers.broker,
		"SECKILL_ROCKETMQ__TOPIC="+s.own,
		"SECKILL_ROCKETMQ__PRODUCER_GROUP="+s.own+"_producer",
		"SECKILL_ROCKETMQ__CONSUMER_GROUP="+s.own+"_consumer",
		"SECKILL_DATABASE__DSN="+s.dsn,
		keyVariable+"="+b.s.key)
	s.env = append(s.env, more...)
	migrate := exec.CommandContext(ctx, b.s.binary, "migrate", "up")
	migrate.Env = s.env
	if out, err := migrate.CombinedOutput(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("migrate up: %w\n%s", err, out), drop())
	}
	return s, drop, nil
}

// doorSettings let several services run at once, and say only what is wrong.
var doorSettings = []string{"SECKILL_HTTP__ADDR=127.0.0.1:0", "SECKILL_ADMIN__ADDR=127.0.0.1:0", "SECKILL_LOG__LEVEL=warn", "SECKILL_LOG__FORMAT=json"}

// run starts the process of a prepared service.
func (b *bench) run(ctx context.Context, s *service, log string) error {
	cmd := exec.Command(b.s.binary, "serve")
	cmd.Env = s.env
	p, err := start(ctx, cmd, filepath.Join(b.s.out, log+".log"))
	if err == nil {
		s.process = p
	}
	return err
}

// ownName is a name that no other run uses.
func ownName(prefix string) string {
	var raw [4]byte
	_, _ = rand.Read(raw[:])
	return prefix + "_" + hex.EncodeToString(raw[:])
}

// makeDatabase makes an empty database and gives its DSN and how to remove it.
func makeDatabase(ctx context.Context, dsn, name string) (own string, drop func() error, err error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", harness.EnvMySQL, err)
	}
	run := func(ctx context.Context, statement string) error {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.ExecContext(ctx, statement)
		return err
	}
	if err := run(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		return "", nil, fmt.Errorf("make the database: %w", err)
	}
	cfg.DBName = name
	return cfg.FormatDSN(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		return run(ctx, "DROP DATABASE "+name)
	}, nil
}
