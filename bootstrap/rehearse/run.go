package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"seckill/application"
)

// openMax bounds putting the products on sale.
const openMax = 2 * time.Minute

// rehearsal is the state of one run. Each field is written by one step and read by later ones.
type rehearsal struct {
	cfg   Config
	crowd *crowd
	doors *doors
	tally *tally

	held               []kind // by buyer; each is written by the one goroutine that asks for it
	started            time.Time
	loadStart, loadEnd time.Time
	stopped            error // why not everybody asked
	unread             error // why the service's own word is missing

	rowsAt         time.Time // the first look after the last acceptance that found no open flow
	verifications  []*application.Verification
	confirmedOf    []atomic.Int64 // confirmed orders read back, by product
	confirmedAfter *Percentiles
}

// Run plays a whole rehearsal and writes its report to out: products on sale, the load, asking
// again where the answer is unknown, waiting until everything is settled, and the verdict.
// Progress goes to progress: bars on a terminal, else a line every five seconds.
//
// The report is written and returned also with ErrGeneratorLate and ErrSilent, with which the
// load ended early, and where the service's own verification could not be read. There is none
// for bad settings (CodeInvalidRequest), a door that does not answer at the start
// (CodeUnavailable) and when ctx ended. A broken invariant is no error; see Report.Violations.
func Run(ctx context.Context, cfg Config, out, progress io.Writer) (Report, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return Report{}, err
	}
	w, err := newCrowd(cfg)
	if err != nil {
		return Report{}, err
	}
	r := &rehearsal{cfg: cfg, crowd: w, doors: newDoors(cfg, w), tally: newTally(), started: time.Now(),
		held: make([]kind, cfg.Buyers), verifications: make([]*application.Verification, cfg.Products),
		confirmedOf: make([]atomic.Int64, cfg.Products)}
	defer r.doors.closeIdle()
	for i := range r.held {
		r.held[i] = notAsked
	}
	show := newDisplay(progress, cfg, r.tally)
	err = r.steps(ctx, show)
	show.stop()
	if err != nil {
		return Report{}, err
	}
	report := r.report()
	if err := report.Write(out, cfg.Output, cfg.Paint); err != nil {
		return report, fmt.Errorf("write the report: %w", err)
	}
	return report, errors.Join(r.stopped, r.unread, report.writePage(cfg.HTMLPath))
}

func (r *rehearsal) steps(ctx context.Context, show *display) error {
	show.step("opening")
	if err := r.open(ctx); err != nil {
		return err
	}
	show.step("buying")
	r.stopped = r.load(ctx)
	if ctx.Err() == nil {
		show.step("settling")
		deadline, cancel := context.WithDeadline(ctx, r.loadEnd.Add(r.cfg.Settle))
		defer cancel()
		r.converge(deadline)
	}
	if err := r.writeJournal(); err != nil {
		return err
	}
	r.unread = r.drain(ctx)
	show.step("checking")
	r.judge(ctx)
	r.confirmedAfter = r.traceSome(ctx)
	return ctx.Err()
}

// open puts the products on sale and waits until the gate sells them.
func (r *rehearsal) open(ctx context.Context) error {
	if err := r.doors.alive(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openMax)
	defer cancel()
	var mu sync.Mutex
	var faults []error
	r.parallel(ctx, 8, len(r.crowd.products), func(n int) {
		if err := r.openOne(ctx, r.crowd.products[n]); err != nil {
			mu.Lock()
			faults = append(faults, err)
			mu.Unlock()
			cancel() // one is enough to know
		}
	})
	if len(faults) > 0 {
		return faults[0]
	}
	return ctx.Err()
}

func (r *rehearsal) openOne(ctx context.Context, product string) error {
	if err := r.doors.putOnSale(ctx, product, r.cfg.Units); err != nil {
		return err
	}
	for {
		open, err := r.doors.onSale(ctx, product)
		if err != nil || open {
			return err
		}
		if !pause(ctx, firstPause) {
			return fmt.Errorf("product %s did not open within %v", product, openMax)
		}
	}
}

// parallel calls do for 0 to n−1, so many at a time, until ctx ends.
func (r *rehearsal) parallel(ctx context.Context, workers, n int, do func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	wg.Wait()
}

// early says why the load ended before everybody had asked; "" if it did not.
func early(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrGeneratorLate), errors.Is(err, ErrSilent):
		return err.Error()
	}
	return "stopped: " + err.Error()
}
