package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"seckill/application/port"
	"seckill/test/contract"
)

func TestInspectorContract(t *testing.T) {
	t.Parallel()
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartService,
		Here:  func(tb testing.TB) port.Inspector { return NewInspector(privateFolder(tb)) },
		Known: []port.ReadingName{port.ReadFolderMode, port.ReadFolderSpace}})
	contract.RunInspector(t, contract.InspectorFixture{Part: port.PartService,
		Here:    func(tb testing.TB) port.Inspector { return NewInspector(filepath.Join(tb.TempDir(), "none")) },
		Unknown: []port.ReadingName{port.ReadFolderMode, port.ReadFolderSpace}})
}

func privateFolder(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	return dir
}

func TestAFolderThatOthersMayEnterOrWriteIsFound(t *testing.T) {
	t.Parallel()
	dir := privateFolder(t)
	file := filepath.Join(dir, "journal")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folder, file os.FileMode
		want         string
	}{{0o700, 0o600, "private"}, {0o755, 0o600, "the folder has mode 0755"}, {0o700, 0o666, "journal has mode 0666"}, {0o700, 0o644, "private"}} {
		for path, mode := range map[string]os.FileMode{dir: c.folder, file: c.file} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		if got := NewInspector(dir).mode(t.Context()); !got.Known || got.Text != c.want {
			t.Errorf("%+v, want %q", got, c.want)
		}
	}
}
