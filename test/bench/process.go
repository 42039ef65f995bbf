package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/adapters/echohttp"
)

const (
	startWithin = time.Minute
	stopWithin  = 40 * time.Second
)

// process is a server that this command started.
type process struct {
	cmd               *exec.Cmd
	buyers, operators string        // its doors
	copied            chan struct{} // closed when its stderr has ended
	after             func() error  // what is to be removed when it is gone
}

var doorLine = regexp.MustCompile(`(?i)\b(buyers|operators)\s+(https?://[^\s"/]+)`)

// start runs a server and waits until it has said on its stderr where its doors are. The
// rest of its stderr goes to a file.
func start(ctx context.Context, cmd *exec.Cmd, log string, doors int) (*process, error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p := &process{cmd: cmd, copied: make(chan struct{})}
	found := make(chan [2]string, doors)
	go func() {
		defer close(p.copied)
		defer f.Close()
		lines := bufio.NewReader(io.TeeReader(stderr, f))
		for n := 0; n < doors; {
			line, err := lines.ReadString('\n')
			if m := doorLine.FindStringSubmatch(line); m != nil {
				found <- [2]string{strings.ToLower(m[1]), m[2]}
				n++
			}
			if err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, lines)
	}()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for range doors {
		select {
		case door := <-found:
			if door[0] == "buyers" {
				p.buyers = door[1]
			} else {
				p.operators = door[1]
			}
		case <-p.copied:
			return nil, errors.Join(fmt.Errorf("%s ended at its start, see %s", cmd.Path, log), p.stop())
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s has not said where its doors are, see %s", cmd.Path, log), p.stop())
		}
	}
	return p, nil
}

// stop ends the server in order, or by force when that takes too long.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(stopWithin, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	<-p.copied
	_ = p.cmd.Wait() // how it ended is in its log
	if p.after != nil {
		return p.after()
	}
	return nil
}

// startService starts the service under test on a database, topic and groups of its own.
func startService(ctx context.Context, s *settings) (*process, error) {
	env, drop, err := serviceEnvironment(ctx, *s)
	if err != nil {
		return nil, err
	}
	migrate := exec.CommandContext(ctx, s.binary, "migrate", "up")
	migrate.Env = env
	if out, err := migrate.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate up: %w\n%s", err, out), drop())
	}
	cmd := exec.Command(s.binary, "serve")
	cmd.Env = env
	p, err := start(ctx, cmd, filepath.Join(s.out, "service.log"), 2)
	if err != nil {
		return nil, errors.Join(err, drop())
	}
	p.after = drop
	s.target, s.admin = p.buyers, p.operators
	return p, nil
}

func serviceEnvironment(ctx context.Context, s settings) (env []string, drop func() error, err error) {
	servers := map[string]string{}
	for _, name := range []string{"REDIS_ADDR", "MYSQL_DSN", "ROCKETMQ_NAMESRV", "ROCKETMQ_BROKER"} {
		if servers[name] = os.Getenv("SECKILLTEST_" + name); servers[name] == "" {
			return nil, nil, fmt.Errorf("SECKILLTEST_%s is not set: --binary needs the real servers (make bench starts them)", name)
		}
	}
	var raw [4]byte
	_, _ = rand.Read(raw[:])
	own := "bench_" + hex.EncodeToString(raw[:])
	dsn, drop, err := makeDatabase(ctx, servers["MYSQL_DSN"], own)
	if err != nil {
		return nil, nil, err
	}
	env = append(os.Environ(),
		"SECKILL_PROFILE=stack",
		"SECKILL_HTTP__ADDR=127.0.0.1:0",
		"SECKILL_ADMIN__ADDR=127.0.0.1:0",
		"SECKILL_LOG__LEVEL=warn",
		"SECKILL_REDIS__ADDRS="+servers["REDIS_ADDR"],
		"SECKILL_ROCKETMQ__NAME_SERVERS="+servers["ROCKETMQ_NAMESRV"],
		"SECKILL_ROCKETMQ__BROKER="+servers["ROCKETMQ_BROKER"],
		"SECKILL_ROCKETMQ__TOPIC="+own,
		"SECKILL_ROCKETMQ__PRODUCER_GROUP="+own+"_producer",
		"SECKILL_ROCKETMQ__CONSUMER_GROUP="+own+"_consumer",
		"SECKILL_DATABASE__DSN="+dsn,
		keyVariable+"="+s.key)
	return env, drop, nil
}

// makeDatabase makes an empty database and gives its DSN and how to remove it.
func makeDatabase(ctx context.Context, dsn, name string) (own string, drop func() error, err error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", nil, fmt.Errorf("SECKILLTEST_MYSQL_DSN: %w", err)
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
	if err := run(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, fmt.Errorf("make the database: %w", err)
	}
	cfg.DBName = name
	return cfg.FormatDSN(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		return run(ctx, "DROP DATABASE "+name)
	}, nil
}

// startBare starts this very binary as a bare server.
func startBare(ctx context.Context, s settings) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "bare")
	cmd.Env = append(os.Environ(), keyVariable+"="+s.key)
	return start(ctx, cmd, filepath.Join(s.out, "bare.log"), 1)
}

// serveBare is the yardstick: the buyers' door with nothing behind it.
func serveBare(ctx context.Context) error {
	tokens, err := echohttp.NewTokens([]byte(os.Getenv(keyVariable)), "seckill", "seckill")
	if err != nil {
		return err
	}
	cfg := echohttp.DefaultConfig()
	cfg.Tokens = tokens
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: echohttp.Bare(cfg), ReadHeaderTimeout: cfg.HeaderTimeout,
		ReadTimeout: cfg.ReadTimeout, WriteTimeout: cfg.WriteTimeout, IdleTimeout: cfg.IdleTimeout}
	fmt.Fprintf(os.Stderr, "buyers http://%s\n", listener.Addr())
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
