package application

import (
	"sync/atomic"
	"time"

	"seckill/application/port"
)

// IntakeConfig says when new purchases are no longer taken. What was taken and cannot be sent on is an
// unknown answer to its buyer, so a broker that is away must not eat the whole stock.
type IntakeConfig struct {
	OpenMax  int64         // open flows of all products beyond which nothing new is taken
	AwayMax  time.Duration // how long sends may fail, one after another, until nothing new is taken
	TryPause time.Duration // between purchases that are taken all the same, to see whether sends succeed again
}

// DefaultIntakeConfig is far beyond what a healthy pipeline has under way.
func DefaultIntakeConfig() IntakeConfig {
	return IntakeConfig{OpenMax: 100_000, AwayMax: 5 * time.Second, TryPause: time.Second}
}

// IntakeState says whether new purchases are taken.
type IntakeState string

// The states.
const (
	IntakeOpen    IntakeState = "open"
	IntakeCrowded IntakeState = "too-many-open" // the relay saw more than OpenMax open flows
	IntakeAway    IntakeState = "sends-fail"    // no send succeeded for AwayMax
)

// Intake holds what the lane and the relay see anyway, so that it costs no call: how many flows are
// open, and whether sends succeed.
type Intake struct {
	cfg   IntakeConfig
	began time.Time // of this process: times are counted from it, on the monotonic clock

	open    atomic.Int64
	failing atomic.Int64 // since when sends have failed, counted from began; 0: the last one succeeded
	tried   atomic.Int64 // when a purchase was last taken to see whether they succeed again
}

// NewIntake makes one that is open.
func NewIntake(cfg IntakeConfig) *Intake { return &Intake{cfg: cfg, began: time.Now()} }

// now is never 0, which stands for never.
func (i *Intake) now() int64 { return int64(time.Since(i.began)) + 1 }

// NoteOpen takes the number of open flows.
func (i *Intake) NoteOpen(flows int64) { i.open.Store(flows) }

// NoteSend takes what became of a send.
func (i *Intake) NoteSend(result port.SendResult) {
	if result == port.SendCommitted {
		i.failing.Store(0)
		return
	}
	i.failing.CompareAndSwap(0, i.now())
}

// State says whether new purchases are taken.
func (i *Intake) State() IntakeState {
	if since := i.failing.Load(); since > 0 && time.Duration(i.now()-since) >= i.cfg.AwayMax {
		return IntakeAway
	}
	if i.open.Load() > i.cfg.OpenMax {
		return IntakeCrowded
	}
	return IntakeOpen
}

// TryOne says whether one purchase may be taken although sends fail: nobody would learn otherwise that
// they succeed again.
func (i *Intake) TryOne() bool {
	last, now := i.tried.Load(), i.now()
	return (last == 0 || time.Duration(now-last) >= i.cfg.TryPause) && i.tried.CompareAndSwap(last, now)
}
