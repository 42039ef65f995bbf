package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.uber.org/fx"

	"seckill/application"
)

// startOrder is the order in which what runs is started; it is stopped in reverse. Why:
//   - the traces before all, so that what is still to be sent of them has everything that was done;
//   - the ledger and the gate first: everything below asks them;
//   - nothing is sent before it is known that the gate evicts nothing;
//   - the producer before the consumer and the lane, since both send or answer through it,
//     and last but the stores to stop, so that nothing is left unsent;
//   - the rebuilder before the consumer, since a delivery may find a suspect, and the
//     consumer before the cold road, since a drain needs one;
//   - the lane before the doors, so that a request finds it running, and after them at the
//     stop, so that every caller inside gets an answer;
//   - the buyers' door last in; first out but for readiness, which is turned off while the doors
//     still answer, so that whoever spreads the buyers sends no more of them here.
var startOrder = []string{
	"traces", "ledger", "gate", "eviction", "producer", "lease", "rebuild", "consumer", "cold-road", "watch-gates", "lane", "relay",
	"replay", "graves", "schedule", "survey", "examine", "operators", "buyers", "readiness",
}

// overtime is how long a part that does not keep to its time is waited for before the next one is stopped.
const overtime = time.Second

// Lifecycle starts and stops everything that runs, in order.
type Lifecycle struct {
	runners []application.Runner
	log     *slog.Logger
}

type lifecycleParams struct {
	fx.In
	Runners []application.Runner `group:"runners"`
	Log     *slog.Logger
}

func newLifecycle(p lifecycleParams) (*Lifecycle, error) {
	l := &Lifecycle{log: p.Log}
	for _, name := range startOrder {
		for _, r := range p.Runners {
			if r.Name() == name {
				l.runners = append(l.runners, r)
			}
		}
	}
	for _, r := range p.Runners {
		if !slices.Contains(startOrder, r.Name()) {
			return nil, fmt.Errorf("%q runs but has no place in the start order", r.Name())
		}
	}
	return l, nil
}

// Start starts each in turn; on a failure what was started is stopped again, so that no
// half-started listener stays.
func (l *Lifecycle) Start(ctx context.Context) error {
	for i, r := range l.runners {
		begun := time.Now()
		if err := r.Start(ctx); err != nil {
			stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return errors.Join(fmt.Errorf("start %s: %w", r.Name(), err), l.stop(stopCtx, l.runners[:i]))
		}
		l.log.Debug("started", "event", "started", "part", r.Name(), "took", time.Since(begun))
	}
	return nil
}

// Stop stops in reverse order, at most until ctx ends; one that fails does not keep the others from it.
func (l *Lifecycle) Stop(ctx context.Context) error { return l.stop(ctx, l.runners) }

func (l *Lifecycle) stop(ctx context.Context, runners []application.Runner) error {
	var faults []error
	for _, r := range slices.Backward(runners) {
		begun := time.Now()
		err := stopWithin(ctx, r)
		if err != nil {
			faults = append(faults, fmt.Errorf("stop %s: %w", r.Name(), err))
			l.log.Warn("a part did not stop in order", "event", "stop_cut", "part", r.Name(), "took", time.Since(begun), "error", err)
			continue
		}
		l.log.Debug("stopped", "event", "part_stopped", "part", r.Name(), "took", time.Since(begun))
	}
	return errors.Join(faults...)
}

// stopWithin gives a part half of the time that is left, so that one which waits for a server that hangs
// leaves some for the others: a consumer whose database is away must not cost the producer its
// sends. One that does not come back at all is left behind.
func stopWithin(ctx context.Context, r application.Runner) error {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return r.Stop(ctx)
	}
	half := time.Until(deadline) / 2
	ctx, cancel := context.WithTimeout(ctx, half)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- r.Stop(ctx) }()
	late := time.NewTimer(half + overtime)
	defer late.Stop()
	select {
	case err := <-stopped:
		return err
	case <-late.C:
		return errors.New("it does not come back")
	}
}

// part makes a Runner of functions; nil functions do nothing.
type part struct {
	name        string
	start, stop func(context.Context) error
}

func (p part) Name() string { return p.name }

func (p part) Start(ctx context.Context) error {
	if p.start == nil {
		return nil
	}
	return p.start(ctx)
}

func (p part) Stop(ctx context.Context) error {
	if p.stop == nil {
		return nil
	}
	return p.stop(ctx)
}

// asRunner makes a constructor's result a member of the group of everything that runs.
func asRunner(constructor any) any {
	return fx.Annotate(constructor, fx.As(new(application.Runner)), fx.ResultTags(`group:"runners"`))
}
