package embedded

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// Whatever a crash left behind the last whole record, what stands before it is read, and nothing panics; and
// whatever a journal holds, a broker starts on it.
func FuzzJournal(f *testing.F) {
	whole := record{recordMessage, 3, []byte("body")}.appendTo(nil)
	f.Add(uint8(2), []byte{})
	f.Add(uint8(1), whole[:len(whole)-1])
	f.Add(uint8(0), whole)
	f.Add(uint8(3), bytes.Repeat([]byte{0}, headerBytes))
	f.Add(uint8(3), bytes.Repeat([]byte{0xff}, 64))
	f.Add(uint8(1), append([]byte{1, 0, 0, 0}, whole[4:]...))
	f.Add(uint8(1), record{99, -1, nil}.appendTo(record{recordNext, 1 << 62, nil}.appendTo(nil)))
	f.Fuzz(func(t *testing.T, records uint8, tail []byte) {
		var want []record
		var body []byte
		for i := range records % 8 {
			r := record{recordHalf + i%recordNext, int64(i) + 1, bytes.Repeat([]byte{i}, int(i)*3)}
			want, body = append(want, r), r.appendTo(body)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, journalName), append(body, tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []record
		torn, err := readJournal(dir, func(r record) { got = append(got, r) })
		if err != nil || torn < 0 || torn > int64(len(tail)) {
			t.Fatalf("torn %d of %d, %v", torn, len(tail), err)
		}
		for i, r := range want {
			if i >= len(got) || got[i].kind != r.kind || got[i].number != r.number || !bytes.Equal(got[i].body, r.body) {
				t.Fatalf("record %d of %d is lost", i, len(want))
			}
		}
		var again []byte
		for _, r := range got {
			again = r.appendTo(again)
		}
		if all := append(body, tail...); !bytes.Equal(again, all[:int64(len(all))-torn]) {
			t.Fatal("what was read is not what was written")
		}
		b := &Broker{halves: map[int64]*message{}, pending: map[int64]*message{}, next: 1, log: slog.New(slog.DiscardHandler)}
		for _, r := range got {
			b.replay(r)
		}
	})
}
