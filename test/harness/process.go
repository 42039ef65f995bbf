package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readyWithin = 90 * time.Second // a JVM on a busy machine takes its time
	stopWithin  = 20 * time.Second // after that SIGTERM becomes SIGKILL
	pollEvery   = 50 * time.Millisecond
)

// Server is one process that the harness started. Its methods are safe for
// concurrent use; the address stays the same over Restart.
type Server struct {
	Name string
	Addr string // host:port it serves clients on

	logFile string
	clock   clock
	command func() *exec.Cmd            // a fresh command, for each start
	ready   func(context.Context) error // nil once it serves

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has been waited for
}

// Start runs the process and waits until it serves. Starting a server that runs
// is an error.
func (s *Server) Start(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

// Launch runs the process and does not wait: for a broker that comes before its name server.
func (s *Server) Launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return fmt.Errorf("%s already runs as pid %d", s.Name, s.cmd.Process.Pid)
	}
	out, err := os.OpenFile(s.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log of %s: %w", s.Name, err)
	}
	defer out.Close() // the child holds its own descriptor
	cmd := s.command()
	cmd.Stdout, cmd.Stderr = out, out
	if err := startChild(cmd); err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	exited := make(chan struct{})
	s.cmd, s.exited = cmd, exited
	go func() {
		_ = cmd.Wait() // the way it ended is in its log
		close(exited)
	}()
	return nil
}

func (s *Server) waitReady(parent context.Context) error {
	s.mu.Lock()
	exited := s.exited
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(parent, readyWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := s.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("%s ended at its start; its last lines:\n%s", s.Name, s.tail())
		case <-ctx.Done():
			if parent.Err() != nil { // interrupted, or another part failed: not this one's fault
				return fmt.Errorf("start of %s: %w", s.Name, parent.Err())
			}
			return fmt.Errorf("%s at %s is not ready: %w; its last lines:\n%s", s.Name, s.Addr, err, s.tail())
		case <-tick.C:
		}
	}
}

func (s *Server) tail() string {
	text, err := os.ReadFile(s.logFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// Pid is the process id, or 0 when the server does not run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Kill ends the server with SIGKILL, as a crash does, and waits until it is
// gone. Killing a server that does not run is fine.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Terminate ends the server with SIGTERM, after a grace period with SIGKILL, and
// waits until it is gone. Terminating a server that does not run is fine.
func (s *Server) Terminate() error { return s.end(syscall.SIGTERM) }

func (s *Server) end(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	if sig == syscall.SIGTERM { // which a stopped process would not hear
		_ = s.signal(syscall.SIGCONT)
	}
	if err := s.signal(sig); err != nil {
		return err
	}
	select {
	case <-s.exited:
	case <-time.After(stopWithin):
		if err := s.signal(syscall.SIGKILL); err != nil {
			return err
		}
		<-s.exited
	}
	s.cmd = nil
	return nil
}

// Stop freezes the server with SIGSTOP: its sockets stay open, nothing answers.
func (s *Server) Stop() error { return s.signalRunning(syscall.SIGSTOP) }

// Cont lets a server go on that Stop froze.
func (s *Server) Cont() error { return s.signalRunning(syscall.SIGCONT) }

// Restart ends the server with SIGTERM if it runs, starts it again on the same
// address with the same data, and waits until it serves.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Terminate(); err != nil {
		return err
	}
	return s.Start(ctx)
}

func (s *Server) signalRunning(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return fmt.Errorf("%s does not run", s.Name)
	}
	return s.signal(sig)
}

// signal needs s.mu and a cmd. A process that has ended is no fault.
func (s *Server) signal(sig syscall.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%v to %s: %w", sig, s.Name, err)
	}
	return nil
}

// starts is served by one goroutine that keeps its thread for ever: Linux sends
// the parent-death signal when the *thread* that forked ends, not the process.
var starts = sync.OnceValue(func() chan func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

func startChild(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true // a ^C is for us; we end the servers in order
	dieWithParent(cmd.SysProcAttr)
	result := make(chan error)
	starts() <- func() { result <- cmd.Start() }
	return <-result
}
