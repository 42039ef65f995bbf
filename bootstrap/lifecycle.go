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
//   - the ledger and the gate first: everything below asks them;
//   - the producer before the consumer and the lane, since both send or answer through it,
//     and last but the stores to stop, so that nothing is left unsent;
//   - the rebuilder before the consumer, since a delivery may find a suspect, and the
//     consumer before the cold road, since a drain needs one;
//   - the lane before the doors, so that a request finds it running, and after them at the
//     stop, so that every caller inside gets an answer;
//   - the buyers' door last in and first out.
var startOrder = []string{
	"ledger", "gate", "producer", "lease", "rebuild", "consumer", "cold-road", "watch-gates", "lane", "relay",
	"replay", "graves", "schedule", "operators", "buyers",
}

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

// Stop stops in reverse order; one that fails does not keep the others from it.
func (l *Lifecycle) Stop(ctx context.Context) error { return l.stop(ctx, l.runners) }

func (l *Lifecycle) stop(ctx context.Context, runners []application.Runner) error {
	var faults []error
	for _, r := range slices.Backward(runners) {
		begun := time.Now()
		if err := r.Stop(ctx); err != nil {
			faults = append(faults, fmt.Errorf("stop %s: %w", r.Name(), err))
		}
		l.log.Debug("stopped", "event", "stopped", "part", r.Name(), "took", time.Since(begun))
	}
	return errors.Join(faults...)
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
