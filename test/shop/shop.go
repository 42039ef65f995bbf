package shop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	Profile string

	Redis       string // stack: host:port
	DSN         string
	NameServers string
	Topic       string
	Group       string // prefix of both groups

	t      testing.TB
	env    []string
	folder string
	under  []string // what the command runs under
	tokens *echohttp.Tokens
	*state
}

// state is what changes when the service is started and ends; shared by the copies that For makes.
type state struct {
	mu                sync.Mutex
	process           *process
	buyers, operators string
	reopenings        []Reopening
	here              here
}

// Reopening is a product that was closed until its gate was rebuilt, as the service measured it.
type Reopening struct {
	Product string
	Epoch   int64
	Closed  time.Duration
}

// nowhere is the address of a service that does not run: its port may be another's already.
const nowhere = "http://127.0.0.1:1"

// Buyers is the address of the buyers' door; while the service does not run, one where nobody answers.
func (s *Shop) Buyers() string { return s.address(func() string { return s.buyers }) }

// Operators is the address of the operators' door, likewise.
func (s *Shop) Operators() string { return s.address(func() string { return s.operators }) }

func (s *state) address(of func() string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here.app != nil {
		return of()
	}
	if s.process == nil || s.process.hasEnded() {
		return nowhere
	}
	return of()
}

// Reopenings are those of all starts so far, without the first opening of a new product.
func (s *Shop) Reopenings() []Reopening {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reopenings)
}

func (s *state) running() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// forget says that the process p is gone.
func (s *state) forget(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == p {
		s.process = nil
	}
}

// New prepares a shop and starts nothing. settings are SECKILL_… variables that win over its own.
func New(t testing.TB, profile string, settings ...string) *Shop {
	t.Helper()
	s := &Shop{t: t, Profile: profile, folder: t.TempDir(), state: &state{}}
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
	t.Cleanup(s.Kill)
	if profile == Stack {
		if out, err := s.Run("migrate", "up"); err != nil {
			t.Fatalf("migrate up: %v\n%s", err, out)
		}
	}
	return s
}

// Set changes settings, SECKILL_… variables, from the next start on.
func (s *Shop) Set(settings ...string) { s.env = append(s.env, settings...) }

// Another prepares one more instance of the shop, on the same servers and with the same names, and starts
// nothing. settings are its own. Stack only.
func (s *Shop) Another(settings ...string) *Shop {
	s.t.Helper()
	more := *s
	more.env = append(slices.Clone(s.env), settings...)
	more.folder, more.state = s.t.TempDir(), &state{}
	s.t.Cleanup(more.Kill)
	return &more
}

// Under has the service run under another command, with its arguments, from the next start on.
func (s *Shop) Under(command ...string) { s.under = command }

// For is the same shop with the failures told to another test, for the subtests of the one that
// prepared it.
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
	p, err := launch(s.command(context.Background(), "serve"), s.noteLine)
	if err != nil {
		return err
	}
	buyers, operators, err := p.addresses(startWithin)
	if err != nil {
		p.kill()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process, s.buyers, s.operators = p, buyers, operators
	return nil
}

// noteLine keeps what a line of the service's log says of a reopening.
func (s *state) noteLine(line string) {
	if !strings.Contains(line, `"gate_rebuilt"`) {
		return
	}
	var event struct {
		Product string        `json:"product"`
		Epoch   int64         `json:"epoch"`
		Closed  time.Duration `json:"closed"`
	}
	if err := json.Unmarshal([]byte(line), &event); err != nil || event.Epoch <= 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reopenings = append(s.reopenings, Reopening(event))
}

// Kill ends the service by SIGKILL. One that does not run is fine.
func (s *Shop) Kill() {
	if p := s.running(); p != nil {
		p.kill()
		s.forget(p)
	}
}

// Dead reports whether the service does not run, in whatever way it ended.
func (s *Shop) Dead() bool {
	p := s.running()
	return p == nil || p.hasEnded()
}

// WaitDead waits until the service has ended in whatever way.
func (s *Shop) WaitDead(within time.Duration) {
	s.t.Helper()
	p := s.running()
	if p == nil {
		return
	}
	select {
	case <-p.ended:
		s.forget(p)
	case <-time.After(within):
		s.t.Fatalf("the service did not end within %v:\n%s", within, p.text())
	}
}

// Signal sends a signal to the service.
func (s *Shop) Signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.running().cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Pid is the running service's process id.
func (s *Shop) Pid() int { return s.running().cmd.Process.Pid }

// Stop asks the service to end by SIGTERM and waits; anything but exit code 0 fails the test.
func (s *Shop) Stop() {
	s.t.Helper()
	s.Signal(syscall.SIGTERM)
	s.WaitEnd()
}

// WaitEnd waits for a service that was signalled; anything but exit code 0 fails the test.
func (s *Shop) WaitEnd() {
	s.t.Helper()
	if p := s.waitEnd(); p.err != nil {
		s.t.Fatalf("the service ended with %v:\n%s", p.err, p.text())
	}
}

// WaitExit waits for a service that was signalled, and gives its exit code. A panic fails the test.
func (s *Shop) WaitExit() int {
	s.t.Helper()
	return ExitCode(s.waitEnd().err)
}

func (s *Shop) waitEnd() *process {
	s.t.Helper()
	p := s.running()
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		p.kill()
		s.t.Fatalf("the service did not end within %v:\n%s", stopWithin, p.text())
	}
	s.forget(p)
	if text := p.text(); strings.Contains(text, "panic:") || strings.Contains(text, "DATA RACE") {
		s.t.Fatalf("the service panicked:\n%s", text)
	}
	return p
}

// Log is what the running service has written to stderr, its newest 256 KiB.
func (s *Shop) Log() string { return s.running().text() }

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
	line := append(append(slices.Clone(s.under), harness.Binary(s.t)), args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
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

const (
	textMax = 256 << 10
	serving = `"event":"serving"`
)

func launch(cmd *exec.Cmd, note func(line string)) (*process, error) {
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
		p.read(bufio.NewScanner(pipe), note)
		p.err = cmd.Wait()
	}()
	return p, nil
}

func (p *process) read(lines *bufio.Scanner, note func(line string)) {
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		line := lines.Text()
		note(line)
		p.mu.Lock()
		p.lines = append(append(p.lines, line...), '\n')
		if over := len(p.lines) - textMax; over > 0 {
			p.lines = append(p.lines[:0], p.lines[over:]...)
		}
		p.mu.Unlock()
		if doors, ok := servingOf(line); ok {
			p.doors <- doors
		}
	}
}

// servingOf reads where the doors are from the event with which a service says that both are open.
func servingOf(line string) (doors [2]string, ok bool) {
	if !strings.Contains(line, serving) {
		return doors, false
	}
	var event struct{ Buyers, Operators string }
	err := json.Unmarshal([]byte(line), &event)
	return [2]string{event.Buyers, event.Operators}, err == nil
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

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.lines)
}
