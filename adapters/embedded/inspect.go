package embedded

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"seckill/application/port"
)

// filesMax is how many of the folder's files are looked at.
const filesMax = 1000

// Inspector looks at the data folder: who may read it, and how much room it has.
type Inspector struct{ dir string }

var _ port.Inspector = Inspector{}

// NewInspector inspects the data folder dir.
func NewInspector(dir string) Inspector { return Inspector{dir} }

// Inspect implements port.Inspector.
func (i Inspector) Inspect(ctx context.Context) []port.Reading {
	return []port.Reading{i.mode(ctx), i.space()}
}

func (i Inspector) mode(ctx context.Context) port.Reading {
	r := port.Reading{Part: port.PartService, Node: i.dir, Name: port.ReadFolderMode}
	folder, err := os.Stat(i.dir)
	if err != nil {
		r.Detail = err.Error()
		return r
	}
	if open := folder.Mode().Perm() & 0o077; open != 0 {
		r.Known, r.Text = true, fmt.Sprintf("the folder has mode %04o", folder.Mode().Perm())
		return r
	}
	seen := 0
	err = filepath.WalkDir(i.dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if seen++; seen > filesMax || ctx.Err() != nil {
			return filepath.SkipAll
		}
		info, err := entry.Info()
		if os.IsNotExist(err) { // a journal that was renamed meanwhile
			return nil
		}
		if err == nil && info.Mode().Perm()&0o022 != 0 {
			r.Text = fmt.Sprintf("%s has mode %04o", entry.Name(), info.Mode().Perm())
			return filepath.SkipAll
		}
		return err
	})
	switch {
	case err != nil:
		r.Detail = err.Error()
	case r.Text == "":
		r.Known, r.Text = true, "private"
	default:
		r.Known = true
	}
	return r
}

func (i Inspector) space() port.Reading {
	r := port.Reading{Part: port.PartService, Node: i.dir, Name: port.ReadFolderSpace}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(i.dir, &disk); err != nil {
		r.Detail = err.Error()
		return r
	}
	r.Known = true
	block := uint64(disk.Bsize) // a size, whose type differs between systems
	r.Number = int64(min(disk.Bavail, math.MaxInt64/block) * block)
	return r
}
