// Command stack starts the real servers for tests.
//
//	stack install                  bring what is missing (apt-get, Maven)
//	stack exec -- COMMAND ARGS…    start all, run COMMAND under their addresses, stop all
//	stack up --env-file FILE       start all, write FILE once all serve, stay until SIGTERM
//
// exec ends with COMMAND's exit code; other failures end with 1, wrong usage with 2,
// an interrupt with 130.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"seckill/test/harness"
)

const usage = `usage:
  stack install
  stack exec -- command [argument…]
  stack up --env-file file`

// interrupted is the exit code of what a signal ended.
const interrupted = 130

// afterTerm is how long the command may take to end once it was told to.
const afterTerm = 20 * time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	code, err := run(ctx, os.Args[1:])
	if code != 0 && ctx.Err() != nil {
		code = interrupted
	}
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		return 2, errors.New(usage)
	}
	switch verb, rest := args[0], args[1:]; verb {
	case "install":
		return codeOf(harness.Install(ctx, harness.All, os.Stderr))
	case "exec":
		if len(rest) > 0 && rest[0] == "--" {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return 2, errors.New(usage)
		}
		return execute(ctx, rest)
	case "up":
		flags := flag.NewFlagSet("up", flag.ContinueOnError)
		file := flags.String("env-file", "", "where to write the variables, as lines of export NAME=value")
		if err := flags.Parse(rest); err != nil || *file == "" {
			return 2, errors.New(usage)
		}
		return codeOf(up(ctx, *file))
	default:
		return 2, errors.New(usage)
	}
}

func codeOf(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// execute runs the command in a process group of its own, so that everything it
// started hears of an interrupt, too.
func execute(ctx context.Context, args []string) (code int, err error) {
	stack, err := harness.Start(ctx, harness.All, "")
	if err != nil {
		return 1, err
	}
	defer func() {
		if closeErr := stack.Close(); closeErr != nil {
			code, err = max(code, 1), errors.Join(err, closeErr)
		}
	}()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), stack.Env()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = afterTerm
	err = cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what did not hear SIGTERM; none left is fine
		return interrupted, errors.New("interrupted")
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	return codeOf(err)
}

// up leaves no file behind that names servers which are gone.
func up(ctx context.Context, file string) error {
	stack, err := harness.Start(ctx, harness.All, "")
	if err != nil {
		return err
	}
	err = writeEnv(file, stack.Env())
	if err == nil {
		fmt.Fprintln(os.Stderr, "stack: all servers run; source", file)
		<-ctx.Done()
		err = os.Remove(file)
	}
	return errors.Join(err, stack.Close())
}

// writeEnv renames the file into place: a reader who waits for it finds it whole.
func writeEnv(file string, env []string) error {
	var text strings.Builder
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&text, "export %s='%s'\n", name, value)
	}
	if err := os.WriteFile(file+".new", []byte(text.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
