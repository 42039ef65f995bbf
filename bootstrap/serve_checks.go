package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"seckill/adapters/embedded"
)

// portsFree finds out before anything starts whether both doors' addresses can be had. One that cannot is a
// mistake of usage: another address is for whoever called to choose.
func portsFree(ctx context.Context, c Config) error {
	var lc net.ListenConfig
	for _, door := range []struct{ addr, flag string }{{c.HTTP.Addr, "--listen"}, {c.Admin.Addr, "--admin-listen"}} {
		l, err := lc.Listen(ctx, "tcp", door.addr)
		if err != nil {
			why := err.Error()
			if errors.Is(err, syscall.EADDRINUSE) {
				why = door.addr + " is in use"
			}
			return withExit(ExitUsage, fmt.Errorf("%s; choose another address with %s host:port (port 0: any free one)", why, door.flag))
		}
		defer func() { _ = l.Close() }() // together with the other, so that both of one address are found
	}
	return nil
}

// kept are the files of an embedded service's past. The signing key is none of them: tokens stay good.
var kept = []string{"ledger.db", "ledger.db-wal", "ledger.db-shm", "broker.journal", "broker.journal.new", "run.json"}

// startOver removes the past from a data folder while nobody else can have it, and nothing else.
func startOver(folder string) error {
	release, err := embedded.LockFolder(folder)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range kept {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, fmt.Errorf("--fresh: %w", err))
		}
	}
	return errors.Join(append(faults, release())...)
}
