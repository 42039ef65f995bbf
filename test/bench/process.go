package main

import (
	"bufio"
	"context"
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
	return start(ctx, cmd, filepath.Join(s.out, as+".log"), 1)
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
