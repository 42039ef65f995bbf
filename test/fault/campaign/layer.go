package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/test/harness"
	"seckill/test/scale"
)

// Layer is where one test keeps its figures. It is safe for concurrent use.
type Layer struct {
	mu  sync.Mutex
	own Figures
}

// layers are those of this process, merged.
var layers = struct {
	sync.Mutex
	all map[string]*Figures
}{all: map[string]*Figures{}}

// Open opens a layer for a test. What the test counts is merged and written when it has ended; what
// says what the layer breaks, and is the same in all its tests.
func Open(t testing.TB, layer, what string) *Layer {
	t.Helper()
	folder, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	l := &Layer{own: Figures{Layer: layer, What: what, Scale: scale.Of(t)}}
	t.Cleanup(func() {
		l.mu.Lock()
		own := l.own.clone()
		l.mu.Unlock()
		if t.Failed() {
			own.Failed = append(own.Failed, t.Name())
		} else {
			own.Passed++
		}
		if err := mergeAndWrite(folder, own); err != nil {
			t.Errorf("figures of %s: %v", layer, err)
		}
	})
	return l
}

// Fault counts a fault of a kind.
func (l *Layer) Fault(kind string) { l.Add(Figures{Faults: map[string]int64{kind: 1}}) }

// Seen counts what a run came across.
func (l *Layer) Seen(what string, n int64) { l.Add(Figures{Seen: map[string]int64{what: n}}) }

// Add adds counts and times; what names the layer stays as it is.
func (l *Layer) Add(f Figures) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own.merge(f)
}

func mergeAndWrite(folder string, own Figures) error {
	layers.Lock()
	defer layers.Unlock()
	all := layers.all[own.Layer]
	if all == nil {
		all = &Figures{Layer: own.Layer, What: own.What, Scale: own.Scale, Failed: []string{}, Settle: []float64{}, Closed: []float64{},
			Date: time.Now().UTC().Format(time.DateOnly), Code: code(), On: machine()}
		layers.all[own.Layer] = all
	}
	all.merge(own)
	return write(folder, *all)
}

func write(folder string, f Figures) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	path := filepath.Join(folder, f.Layer+".json")
	part := path + "." + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(part, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// Read reads the figures that lie in a folder, by layer.
func Read(folder string) (map[string]Figures, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	found := map[string]Figures{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var f Figures
		if err := json.Unmarshal(b, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		found[f.Layer] = f
	}
	return found, nil
}

// Folder is where the figures lie: test/fault/out of this module, seen from any folder in it.
func Folder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "test", "fault", "out"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working folder")
		}
	}
}

func code() Code {
	c := Code{Commit: "unknown", Go: runtime.Version()}
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		c.Commit = strings.TrimSpace(string(out))
	}
	return c
}

func machine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Servers: harness.Versions()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			m.MemoryBytes = kib << 10
		}
	}
	return m
}
