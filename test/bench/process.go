package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

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

// serving is the event with which a server says where its doors are; a bare one has no operators.
type serving struct {
	Event     string `json:"event"`
	Buyers    string `json:"buyers"`
	Operators string `json:"operators,omitempty"`
}

// servingOf reads it from a line of a server's stderr.
func servingOf(line []byte) (s serving, ok bool) {
	err := json.Unmarshal(line, &s)
	return s, err == nil && s.Event == "serving"
}

// start runs a server and waits until it has said on its stderr where its doors are. All of its
// stderr goes to a file.
func start(ctx context.Context, cmd *exec.Cmd, log string) (*process, error) {
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
	found := make(chan serving, 1)
	go func() {
		defer close(p.copied)
		defer f.Close()
		lines := bufio.NewReader(io.TeeReader(stderr, f))
		for {
			line, err := lines.ReadBytes('\n')
			if doors, ok := servingOf(line); ok {
				found <- doors
				break
			}
			if err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, lines)
	}()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	select {
	case doors := <-found:
		p.buyers, p.operators = doors.Buyers, doors.Operators
		return p, nil
	case <-p.copied:
		return nil, errors.Join(fmt.Errorf("%s ended at its start, see %s", cmd.Path, log), p.stop())
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("%s has not said where its doors are, see %s", cmd.Path, log), p.stop())
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

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

// startSelf starts this very binary as a server: bare, or literal.
func startSelf(ctx context.Context, s settings, as string, env []string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, as)
	cmd.Env = append(append(os.Environ(), env...), keyVariable+"="+s.key)
	return start(ctx, cmd, filepath.Join(s.out, as+".log"))
}

// serveBare is the yardstick: the buyers' door with nothing behind it.
func serveBare(ctx context.Context) error { return serveDoor(ctx, echohttp.Bare) }

// serveDoor serves a buyers' door, with the settings of the service's own, and says where it is.
func serveDoor(ctx context.Context, door func(echohttp.Config) http.Handler) error {
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
	server := &http.Server{Handler: door(cfg), ReadHeaderTimeout: cfg.HeaderTimeout,
		ReadTimeout: cfg.ReadTimeout, WriteTimeout: cfg.WriteTimeout, IdleTimeout: cfg.IdleTimeout}
	if err := json.NewEncoder(os.Stderr).Encode(serving{Event: "serving", Buyers: "http://" + listener.Addr().String()}); err != nil {
		return errors.Join(err, listener.Close())
	}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
