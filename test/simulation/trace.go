package simulation

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"
)

// tailMax is how many lines of a trace are kept for a report.
const tailMax = 120

// start is when every bubble's time begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func since(t time.Time) string { return fmt.Sprintf("%.6f", t.Sub(start).Seconds()) }

// trace is everything that was decided and answered in a run. Its hash says whether two runs were the same.
type trace struct {
	hash  uint64
	lines int
	tail  []string
	out   io.Writer // nil: nobody reads along
}

func (t *trace) add(format string, args ...any) {
	line := since(time.Now()) + " " + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%x %s", t.hash, line)
	t.hash = h.Sum64()
	t.lines++
	if len(t.tail) == tailMax {
		t.tail = append(t.tail[:0], t.tail[1:]...)
	}
	t.tail = append(t.tail, line)
	if t.out != nil {
		_, _ = fmt.Fprintln(t.out, line)
	}
}

func (t *trace) String() string { return strings.Join(t.tail, "\n") }
