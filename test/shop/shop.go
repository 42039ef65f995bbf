package shop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/adapters/echohttp"
	"seckill/test/harness"
)

// The profiles.
const (
	Embedded = "embedded"
	Stack    = "stack"
)

const (
	key         = "a key of a test's shop, 32 bytes or more"
	startWithin = 60 * time.Second
	stopWithin  = 60 * time.Second
)

// Shop is a service that can be started, stopped and killed.
type Shop struct {
	Profile   string
	Buyers    string // address of the buyers' door while it runs
	Operators string

	Redis       string // stack: host:port
	DSN         string
	NameServers string
	Topic       string
	Group       string // prefix of both groups

	t       testing.TB
	env     []string
	folder  string
	tokens  *echohttp.Tokens
	process *process
	here    here
}

// New prepares a shop and starts nothing. settings are SECKILL_… variables that win over its own.
func New(t testing.TB, profile string, settings ...string) *Shop {
	t.Helper()
	s := &Shop{t: t, Profile: profile, folder: t.TempDir()}
	tokens, err := echohttp.NewTokens([]byte(key), "seckill", "seckill")
	if err != nil {
		t.Fatal(err)
	}
	s.tokens = tokens
	s.env = []string{"SECKILL_PROFILE=" + profile, "SECKILL_AUTH__KEY=" + key,
		"SECKILL_HTTP__ADDR=127.0.0.1:0", "SECKILL_ADMIN__ADDR=127.0.0.1:0", "SECKILL_LOG__FORMAT=json",
		"SECKILL_DATA=" + filepath.Join(s.folder, "data")}
	if profile == Stack {
		s.Redis, s.DSN, s.Group = harness.RedisAddr(t), harness.MySQLDatabase(t), harness.UniqueID(t)
		s.NameServers, s.Topic = harness.Topic(t)
		s.env = append(s.env, "SECKILL_REDIS__ADDRS="+s.Redis, "SECKILL_DATABASE__DSN="+s.DSN,
			"SECKILL_ROCKETMQ__NAME_SERVERS="+s.NameServers, "SECKILL_ROCKETMQ__TOPIC="+s.Topic,
			"SECKILL_ROCKETMQ__PRODUCER_GROUP="+s.Group+"_producer", "SECKILL_ROCKETMQ__CONSUMER_GROUP="+s.Group+"_consumer",
			// As the harness sets them on the broker.
			"SECKILL_ROCKETMQ__CHECK_TIMEOUT=2s", "SECKILL_ROCKETMQ__CHECK_INTERVAL=1s")
	}
	s.env = append(s.env, settings...)
	t.Cleanup(func() {
		if s.process != nil {
			s.Kill()
		}
	})
	if profile == Stack {
		if out, err := s.Run("migrate", "up"); err != nil {
			t.Fatalf("migrate up: %v\n%s", err, out)
		}
	}
	return s
}

// Set changes settings, SECKILL_… variables, from the next start on.
func (s *Shop) Set(settings ...string) { s.env = append(s.env, settings...) }

// For is the same shop with the failures told to another test, for the subtests of the one that
// prepared it. Only the shop that was prepared may be started and ended.
func (s *Shop) For(t testing.TB) *Shop {
	own := *s
	own.t = t
	return &own
}

// Start runs the service and waits until it has said where its doors are.
func (s *Shop) Start() {
	s.t.Helper()
	if err := s.TryStart(); err != nil {
		s.t.Fatal(err)
	}
}

// TryStart is Start for a service that may fail; the error holds what it wrote.
func (s *Shop) TryStart() error {
	p, err := launch(s.command(context.Background(), "serve"))
	if err != nil {
		return err
	}
	if s.Buyers, s.Operators, err = p.addresses(startWithin); err != nil {
		p.kill()
		return err
	}
	s.process = p
	return nil
}

// Kill ends the service by SIGKILL.
func (s *Shop) Kill() {
	s.process.kill()
	s.process = nil
}

// Signal sends a signal to the service.
func (s *Shop) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.process.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Pid is the running service's process id.
func (s *Shop) Pid() int { return s.process.cmd.Process.Pid }

// Stop asks the service to end by SIGTERM and waits; anything but exit code 0 fails the test.
func (s *Shop) Stop() {
	s.t.Helper()
	s.Signal(syscall.SIGTERM)
	s.WaitEnd()
}

// WaitEnd waits for a service that was signalled; anything but exit code 0 fails the test.
func (s *Shop) WaitEnd() {
	s.t.Helper()
	p := s.process
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		p.kill()
		s.t.Fatalf("the service did not end within %v:\n%s", stopWithin, p.text())
	}
	s.process = nil
	if p.err != nil {
		s.t.Fatalf("the service ended with %v:\n%s", p.err, p.text())
	}
	if text := p.text(); strings.Contains(text, "panic:") || strings.Contains(text, "DATA RACE") {
		s.t.Fatalf("the service panicked:\n%s", text)
	}
}

// Log is what the running service has written to stderr, its newest 256 KiB.
func (s *Shop) Log() string { return s.process.text() }

// Run runs another command of the binary with the shop's settings and gives what it printed.
func (s *Shop) Run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := s.command(ctx, args...)
	var errText strings.Builder
	cmd.Stderr = &errText
	out, err := cmd.Output()
	if err != nil {
		return string(out) + errText.String(), err
	}
	return string(out), nil
}

// ExitCode is a command's exit code; -1 for one that did not exit.
func ExitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

func (s *Shop) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, harness.Binary(s.t), args...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Dir = s.folder
	return cmd
}

// process is a service under way.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // after ended

	mu    sync.Mutex
	lines []byte
	doors chan [2]string
}

const textMax = 256 << 10

func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{}), doors: make(chan [2]string, 1)}
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		p.read(bufio.NewScanner(pipe))
		p.err = cmd.Wait()
	}()
	return p, nil
}

func (p *process) read(lines *bufio.Scanner) {
	lines.Buffer(nil, 4<<20)
	var buyers string
	for lines.Scan() {
		line := lines.Text()
		p.mu.Lock()
		p.lines = append(append(p.lines, line...), '\n')
		if over := len(p.lines) - textMax; over > 0 {
			p.lines = append(p.lines[:0], p.lines[over:]...)
		}
		p.mu.Unlock()
		if url, ok := strings.CutPrefix(line, "buyers "); ok {
			buyers = url
		}
		if url, ok := strings.CutPrefix(line, "operators "); ok {
			p.doors <- [2]string{buyers, url}
		}
	}
}

func (p *process) addresses(within time.Duration) (buyers, operators string, err error) {
	select {
	case doors := <-p.doors:
		return doors[0], doors[1], nil
	case <-p.ended:
		return "", "", fmt.Errorf("the service ended at its start: %w\n%s", p.err, p.text())
	case <-time.After(within):
		return "", "", fmt.Errorf("the service said nothing within %v:\n%s", within, p.text())
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.lines)
}
