package rehearse

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

const (
	plainEvery = 5 * time.Second
	barsEvery  = 100 * time.Millisecond
)

// display shows how far a rehearsal is: bars on a terminal, else a plain line every five seconds.
type display struct {
	w       io.Writer
	tally   *tally
	buyers  int64
	bars    *mpb.Progress
	rows    []row
	mu      sync.Mutex
	name    string
	started time.Time
	quit    chan struct{}
	stopped sync.WaitGroup
}

type row struct {
	bar   *mpb.Bar
	count func() int64
}

func newDisplay(w io.Writer, c Config, t *tally) *display {
	d := &display{w: w, tally: t, buyers: int64(c.Buyers), started: time.Now(), quit: make(chan struct{})}
	every := plainEvery
	if f, ok := w.(*os.File); ok && !c.Plain && term.IsTerminal(int(f.Fd())) {
		d.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(60))
		buyers, units := int64(c.Buyers), min(int64(c.Buyers), c.Units*int64(c.Products))
		d.addBar("asked", buyers, t.asked.Load, nil)
		d.addBar("accepted", units, t.accepted.Load, nil)
		d.addBar("refused", buyers, t.refused.Load, t.refusals)
		d.addBar("unknown", buyers, t.unknown.Load, nil)
		d.addBar("confirmed", units, t.confirmed, nil)
		d.addBar("checked", buyers, t.judged.Load, nil)
		every = barsEvery
	}
	d.stopped.Go(func() { d.loop(every) })
	return d
}

// addBar adds a bar; note, if there is one, says more behind it.
func (d *display) addBar(name string, total int64, count func() int64, note func() string) {
	if note == nil {
		note = func() string { return "" }
	}
	// One more than the total: a full bar ends itself, and counts may fall again.
	bar := d.bars.AddBar(total+1,
		mpb.PrependDecorators(decor.Name(name, decor.WC{W: 10, C: decor.DindentRight})),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string { return fmt.Sprintf("%d / %d  %s", s.Current, total, note()) })))
	d.rows = append(d.rows, row{bar, count})
}

func (d *display) loop(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-d.quit:
			return
		case <-tick.C:
			d.draw()
		}
	}
}

func (d *display) draw() {
	if d.bars == nil {
		d.line()
		return
	}
	for _, r := range d.rows {
		r.bar.SetCurrent(r.count())
	}
}

// step names what is being done now.
func (d *display) step(name string) {
	d.mu.Lock()
	d.name = name
	d.mu.Unlock()
	if d.bars == nil {
		d.line()
	}
}

func (d *display) line() {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tally
	_, _ = fmt.Fprintf(d.w, "%6.1f s  %-8s  asked %d/%d  accepted %d  refused %d  unknown %d  confirmed %d  checked %d\n",
		time.Since(d.started).Seconds(), d.name, t.asked.Load(), d.buyers,
		t.accepted.Load(), t.refused.Load(), t.unknown.Load(), t.confirmed(), t.judged.Load())
}

// stop draws for the last time.
func (d *display) stop() {
	close(d.quit)
	d.stopped.Wait()
	if d.bars == nil {
		return
	}
	d.draw()
	for _, r := range d.rows {
		r.bar.Abort(false)
	}
	d.bars.Wait()
}
