package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// clock is the file from which a server reads, by libfaketime, how far its clock is off; empty: the
// server has the machine's clock.
type clock string

// newClock is a clock that is right, if the set was asked for clocks.
func (s *Stack) newClock(name string) (clock, error) {
	if !s.parts.Clocks {
		return "", nil
	}
	c := clock(filepath.Join(s.dir, name+".clock"))
	return c, c.move(0)
}

// in runs a server's command under the clock. Waits and ages of its monotonic clock stay true.
func (c clock) in(command func() *exec.Cmd) func() *exec.Cmd {
	if c == "" {
		return command
	}
	return func() *exec.Cmd {
		cmd := command()
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+faketimeLib(), "FAKETIME_TIMESTAMP_FILE="+string(c), "FAKETIME_CACHE_DURATION=1",
			"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1")
		return cmd
	}
}

// move renames a new file over the old one: the server may read at any moment.
func (c clock) move(offset time.Duration) error {
	part := string(c) + ".part"
	if err := os.WriteFile(part, fmt.Appendf(nil, "%+d\n", int64(offset.Seconds())), 0o644); err != nil {
		return err
	}
	return os.Rename(part, string(c))
}

// MoveClock sets the server's clock off by so much from the machine's, within about a second. Needs
// Parts.Clocks; MariaDB only.
func (s *Server) MoveClock(offset time.Duration) error {
	if s.clock == "" {
		return errors.New(s.Name + " has the machine's clock")
	}
	return s.clock.move(offset)
}

// faketimeLib is the library for programs with threads; Debian keeps it in a folder named after the architecture.
func faketimeLib() string {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1") // the pattern is well formed
	if len(found) == 0 {
		return "libfaketimeMT.so.1"
	}
	return found[0]
}
