package faultpoint

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"seckill/domain"
)

// calls are the calls that have a point before and one after them.
var calls = []string{"deduct", "confirm", "send", "apply", "decide", "cancel", "tell", "told", "claim",
	"prepare", "write-back", "rebuild", "reopen", "open"}

// Names are all points.
func Names() []string {
	names := make([]string, 0, 2*len(calls))
	for _, c := range calls {
		names = append(names, c+before, c+after)
	}
	return names
}

const (
	before = ".before"
	after  = ".after"
)

// action is what happens at a point.
type action uint8

const (
	fail action = iota
	sleep
	kill
)

// arm is one point with what happens there.
type arm struct {
	point  string
	action action
	sleep  time.Duration
	nth    int // hit at which it happens; 0: each
	hits   int
}

// Points are the armed points of a process.
type Points struct {
	log  *slog.Logger
	kill func()

	mu   sync.Mutex
	arms []arm
}

// Parse reads points such as "apply.after=kill@3"; its error names every mistake of the first that has one.
func Parse(specs []string, log *slog.Logger) (*Points, error) {
	p := &Points{log: log, kill: killSelf}
	for _, spec := range specs {
		a, err := parse(spec)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", spec, err)
		}
		p.arms = append(p.arms, a)
	}
	return p, nil
}

func parse(spec string) (a arm, err error) {
	point, what, _ := strings.Cut(strings.TrimSpace(spec), "=")
	if a.point = point; !slices.Contains(Names(), point) {
		return a, fmt.Errorf("no such point; there are %s", strings.Join(Names(), " "))
	}
	what, nth, counted := strings.Cut(what, "@")
	if counted {
		if a.nth, err = strconv.Atoi(nth); err != nil || a.nth < 1 {
			return a, fmt.Errorf("%q is no number of a hit", nth)
		}
	}
	switch name, arg, _ := strings.Cut(what, ":"); {
	case name == "kill" && arg == "":
		a.action = kill
	case name == "fail" && arg == "":
		a.action = fail
	case name == "sleep":
		a.action = sleep
		if a.sleep, err = time.ParseDuration(arg); err != nil || a.sleep <= 0 {
			return a, fmt.Errorf("%q is no time to sleep", arg)
		}
	default:
		return a, fmt.Errorf("%q is neither kill, fail nor sleep:DURATION", what)
	}
	return a, nil
}

// hit passes a point. Its error is CodeUnavailable, as of a server that is away.
func (p *Points) hit(ctx context.Context, point string) error {
	for _, a := range p.due(point) {
		p.log.WarnContext(ctx, "a fault point was hit", "event", "fault_point", "point", point, "hit", a.hits)
		switch a.action {
		case kill:
			p.kill()
		case sleep:
			select {
			case <-time.After(a.sleep):
			case <-ctx.Done():
			}
		case fail:
			return domain.NewError(domain.CodeUnavailable, "fault point "+point, nil)
		}
	}
	return nil
}

// due counts the hit and gives what happens at it.
func (p *Points) due(point string) (due []arm) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.arms {
		a := &p.arms[i]
		if a.point != point {
			continue
		}
		if a.hits++; a.nth == 0 || a.nth == a.hits {
			due = append(due, *a)
		}
	}
	return due
}

// killSelf ends the process as a crash does, and does not return.
func killSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // the signal is on its way
}
