package architecture_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "seckill"

// goPackage is what `go list -json` says of one; Imports are those of the code
// that is built, without tests, which may import anything.
type goPackage struct {
	ImportPath string
	Imports    []string
}

// layer says what the packages at and below a path may import beside the
// standard library and themselves. A path ends with /... when everything below it
// is meant. The first layer that holds a package is its layer.
type layer struct {
	path     string
	internal []string // of this module
	external []string // nil: none; "*": any but those in reserved
}

var layers = []layer{
	{path: "domain"},
	{path: "application/port/portmock", internal: []string{"domain", "application/port"}, external: []string{"github.com/golang/mock/..."}},
	{path: "application/port", internal: []string{"domain"}},
	{path: "application", internal: []string{"domain", "application/port"}, external: []string{
		"github.com/cenkalti/backoff/v5", "github.com/hashicorp/golang-lru/v2/...", "golang.org/x/sync/...",
	}},
	{path: "adapters/wire", internal: []string{"domain"}, external: []string{"*"}},
	{path: "adapters/echohttp/...", internal: []string{"domain", "application", "application/port", "adapters/wire"}, external: []string{"*"}},
	{path: "adapters/prommetrics/...", internal: []string{"domain", "application", "application/port"}, external: []string{"*"}},
	{path: "adapters/gormmysql/...", internal: []string{"domain", "application/port", "migrations"}, external: []string{"*"}},
	{path: "adapters/...", internal: []string{"domain", "application/port", "adapters/wire"}, external: []string{"*"}},
	{path: "migrations/...", external: []string{"*"}},
	{path: "bootstrap/...", internal: []string{"domain", "application", "application/port", "adapters/...", "migrations/...", "bootstrap/..."}, external: []string{"*"}},
	{path: "test/...", internal: []string{"..."}, external: []string{"*"}},
}

// reserved are the libraries that only some packages may import.
var reserved = map[string][]string{
	"go.uber.org/fx/...":                          {"bootstrap/...", "test/..."},
	"go.uber.org/dig/...":                         {"bootstrap/..."},
	"github.com/golang/mock/...":                  {"application/port/portmock"},
	"github.com/apache/rocketmq-client-go/v2/...": {"adapters/rocketmq/...", "test/..."},
	"github.com/labstack/echo/v4/...":             {"adapters/echohttp/...", "test/..."},
	"gorm.io/...":                                 {"adapters/gormmysql/...", "bootstrap/...", "test/..."},
}

func TestImportsFollowTheArrows(t *testing.T) {
	t.Parallel()
	packages := list(t)
	if len(packages) < 5 {
		t.Fatalf("only %d packages found", len(packages))
	}
	for _, p := range packages {
		for _, fault := range faults(p) {
			t.Error(fault)
		}
	}
}

// The check itself: each arrow that must not be is found.
func TestEveryWrongArrowIsFound(t *testing.T) {
	t.Parallel()
	wrong := map[string][]string{
		"domain":               {"github.com/google/uuid", "seckill/application"},
		"application/port":     {"seckill/application", "github.com/redis/go-redis/v9"},
		"application":          {"seckill/adapters/wire", "gorm.io/gorm", "github.com/golang/mock/gomock", "go.uber.org/fx"},
		"adapters/redislua":    {"seckill/application", "seckill/adapters/gormmysql", "seckill/bootstrap", "go.uber.org/fx", "seckill/test/harness"},
		"adapters/redisluatwo": {"seckill/adapters/redislua"},
		"adapters/embedded":    {"github.com/apache/rocketmq-client-go/v2/primitive", "seckill/migrations"},
		"adapters/echohttp":    {"seckill/adapters/redislua", "gorm.io/gorm"},
		"bootstrap":            {"seckill/test/harness", "github.com/golang/mock/gomock", "github.com/labstack/echo/v4"},
		"surprise":             {"fmt"},
	}
	for path, imports := range wrong {
		for _, imported := range imports {
			if len(faults(goPackage{ImportPath: module + "/" + path, Imports: []string{imported}})) == 0 {
				t.Errorf("%s may import %s", path, imported)
			}
		}
	}
	right := map[string]string{
		"domain":               "strings",
		"application":          "golang.org/x/sync/errgroup",
		"adapters/rocketmq":    "github.com/apache/rocketmq-client-go/v2/primitive",
		"adapters/redislua/in": "seckill/adapters/redislua",
		"bootstrap/seckill":    "seckill/bootstrap",
	}
	for path, imported := range right {
		if found := faults(goPackage{ImportPath: module + "/" + path, Imports: []string{imported}}); len(found) > 0 {
			t.Error(found)
		}
	}
}

func TestTheTopHoldsOnlyWhatWasAgreed(t *testing.T) {
	t.Parallel()
	agreed := []string{
		"domain", "application", "adapters", "bootstrap", "migrations", "test",
		"go.mod", "go.sum", "Makefile", "README.md", "CHANGELOG.md",
		"bin", // built, ignored by git
	}
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if slices.Contains(agreed, name) || strings.HasPrefix(name, ".") {
			continue
		}
		// What the go command leaves behind is ignored by git as well.
		if slices.Contains([]string{".out", ".test", ".prof"}, filepath.Ext(name)) {
			continue
		}
		t.Errorf("%s does not belong at the top", name)
	}
}

func faults(p goPackage) []string {
	path := strings.TrimPrefix(p.ImportPath, module+"/")
	at := slices.IndexFunc(layers, func(l layer) bool { return matches(l.path, path) })
	if at < 0 {
		return []string{p.ImportPath + " belongs to no layer"}
	}
	var found []string
	for _, imported := range p.Imports {
		if !allowed(layers[at], path, imported) {
			found = append(found, p.ImportPath+" must not import "+imported)
		}
	}
	return found
}

func allowed(of layer, path, imported string) bool {
	if inner, ours := strings.CutPrefix(imported, module+"/"); ours {
		return matchesAny(of.internal, inner) || sameAdapter(path, inner)
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return true // the standard library
	}
	for library, users := range reserved {
		if matches(library, imported) && !matchesAny(users, path) {
			return false
		}
	}
	return slices.Contains(of.external, "*") || matchesAny(of.external, imported)
}

// sameAdapter: an adapter may be cut into several packages.
func sameAdapter(path, imported string) bool {
	a, b := strings.Split(path, "/"), strings.Split(imported, "/")
	return len(a) > 1 && len(b) > 1 && a[0] == "adapters" && b[0] == "adapters" && a[1] == b[1]
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, path) })
}

func matches(pattern, path string) bool {
	base, below := strings.CutSuffix(pattern, "...")
	base = strings.TrimSuffix(base, "/")
	return path == base || below && (base == "" || strings.HasPrefix(path, base+"/"))
}

func list(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", "stack", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("answer of go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// root is the module's folder; tests run in their package's.
func root(t *testing.T) string {
	t.Helper()
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return top
}
