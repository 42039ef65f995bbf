package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	diskSize   = 1 << 30 // of a sparse file: what is not written takes no place
	diskWithin = 30 * time.Second
)

// Disk is a file system of a test's own, from which the power can be cut: what was not flushed is
// gone, as on a machine without a battery. Start a set of servers with Dir as its folder, and all
// their data lies on it.
type Disk struct {
	Dir string // where it is mounted

	image string
}

// NewDisk makes an ext4 file system in a file and mounts it until the test ends. Servers whose data
// lies on it must be ended by then: clean-ups that are registered after this call are. A machine
// that allows no loop mount (not Linux, not root, a container without loop devices) skips the
// test and says so.
func NewDisk(t testing.TB) *Disk {
	t.Helper()
	dir := t.TempDir()
	d := &Disk{Dir: filepath.Join(dir, "disk"), image: filepath.Join(dir, "image")}
	if os.Geteuid() != 0 {
		t.Skip("a power cut needs root, to mount a file system of the test's own")
	}
	for _, p := range programs(Parts{Disk: true}) {
		if find(p.name) == "" {
			t.Fatalf("%s is missing: apt-get install -y --no-install-recommends %s", p.name, p.debian)
		}
	}
	if err := d.make(); err != nil {
		t.Fatal(err)
	}
	if err := d.mount(); err != nil {
		t.Skipf("a power cut needs a loop mount, which this machine does not allow: %v", err)
	}
	t.Cleanup(func() {
		if err := d.unmount(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Cut cuts the power: the servers stand still, so that none answers what it could not keep, then the
// file system goes down without a flush, then the servers die. The disk is mounted again, its journal
// recovered; Start brings a server back on what is left.
func (d *Disk) Cut(servers ...*Server) error {
	for _, s := range servers {
		if err := s.Stop(); err != nil {
			return err
		}
	}
	if err := command("xfs_io", "-x", "-c", "shutdown", d.Dir); err != nil {
		return err
	}
	for _, s := range servers {
		if err := s.Kill(); err != nil {
			return err
		}
	}
	if err := d.unmount(); err != nil {
		return err
	}
	return d.mount()
}

// Flush writes everything down, as if it had been done long ago.
func (d *Disk) Flush() error { return command("sync", "-f", d.Dir) }

func (d *Disk) make() error {
	if err := os.Mkdir(d.Dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(d.image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(d.image, diskSize); err != nil {
		return err
	}
	return command("mkfs.ext4", "-q", "-F", d.image)
}

func (d *Disk) mount() error { return command("mount", "-o", "loop", d.image, d.Dir) }

func (d *Disk) unmount() error { return command("umount", d.Dir) }

func command(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), diskWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, find(name), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
