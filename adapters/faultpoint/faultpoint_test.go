package faultpoint

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// inside is every port at once and counts the calls that reached it.
type inside struct {
	port.OpenFlows
	port.GateAdmin
	port.Epochs
	reached int
}

func (i *inside) Deduct(context.Context, time.Time, []port.DeductItem) []port.DeductReply {
	i.reached++
	return []port.DeductReply{{Outcome: port.DeductAccepted}}
}

func (i *inside) Check(context.Context, []domain.Key) ([]port.CheckReply, error) { return nil, nil }

func (i *inside) Adopt(context.Context, time.Time, []port.AdoptItem) []port.AdoptReply { return nil }

func (i *inside) Tell(context.Context, []domain.Fate) []port.TellOutcome {
	i.reached++
	return []port.TellOutcome{port.TellDone}
}

func (i *inside) Confirm(context.Context, domain.Batch) domain.Verdict {
	i.reached++
	return domain.VerdictCommit
}

func (i *inside) Resolve(context.Context, domain.Batch) domain.Verdict { return domain.VerdictCommit }

func (i *inside) Send(context.Context, domain.Batch) (port.SendResult, error) {
	i.reached++
	return port.SendCommitted, nil
}

func (i *inside) BatchBytesMax() int           { return 1 }
func (i *inside) BytesOf(domain.Deduction) int { return 1 }

func (i *inside) Claim(context.Context, string, string, time.Duration) (bool, error) {
	i.reached++
	return true, nil
}

func (i *inside) Prepare(context.Context, string, int64) (bool, error) {
	i.reached++
	return true, nil
}

func (i *inside) WriteBack(context.Context, string, int64, []domain.Order) (bool, error) {
	i.reached++
	return true, nil
}

func (i *inside) Rebuild(context.Context, port.GatePlan) (bool, error) {
	i.reached++
	return true, nil
}

func (i *inside) Open(context.Context, string, int64) (bool, error) {
	i.reached++
	return true, nil
}

func (i *inside) Locked(context.Context, string, int64, func(port.LockedStock) error) (bool, error) {
	i.reached++
	return true, nil
}

type insideLedger struct {
	port.Ledger
	port.Outbox
	*inside
}

func (l insideLedger) Apply(context.Context, []port.ApplyItem) (port.ApplyResult, error) {
	l.reached++
	return port.ApplyResult{}, nil
}

func (l insideLedger) Decide(context.Context, []port.FateClaim) ([]domain.Order, error) {
	l.reached++
	return make([]domain.Order, 1), nil
}

func (l insideLedger) Cancel(ctx context.Context, claims []port.FateClaim) ([]domain.Order, error) {
	return l.Decide(ctx, claims)
}

func (l insideLedger) Fates(context.Context, []domain.Key) ([]domain.Order, error) { return nil, nil }

func (l insideLedger) MarkTold(context.Context, []domain.Order) error {
	l.reached++
	return nil
}

func (l insideLedger) Untold(context.Context, time.Duration, string, int) ([]domain.Order, error) {
	return nil, nil
}

// play calls what the points of a call stand around; good says that the caller heard of success.
func play(t *testing.T, p *Points, call string, in *inside) (good bool) {
	t.Helper()
	ctx := t.Context()
	switch call {
	case "deduct":
		replies := p.Gate(in).Deduct(ctx, time.Time{}, make([]port.DeductItem, 1))
		return replies[0].Outcome == port.DeductAccepted
	case "tell":
		return p.Gate(in).Tell(ctx, make([]domain.Fate, 1))[0] == port.TellDone
	case "confirm":
		return p.Listener(in).Confirm(ctx, domain.Batch{}) == domain.VerdictCommit
	case "send":
		result, err := p.Sender(in).Send(ctx, domain.Batch{})
		return err == nil && result == port.SendCommitted
	case "apply":
		_, err := p.Ledger(insideLedger{inside: in}).Apply(ctx, nil)
		return err == nil
	case "decide":
		_, err := p.Ledger(insideLedger{inside: in}).Decide(ctx, nil)
		return err == nil
	case "cancel":
		_, err := p.Ledger(insideLedger{inside: in}).Cancel(ctx, nil)
		return err == nil
	case "told":
		return p.Outbox(insideLedger{inside: in}).MarkTold(ctx, nil) == nil
	}
	var ok bool
	var err error
	switch call {
	case "claim":
		ok, err = p.OpenFlows(in).Claim(ctx, "p", "h", 0)
	case "prepare":
		ok, err = p.GateAdmin(in).Prepare(ctx, "p", 1)
	case "write-back":
		ok, err = p.GateAdmin(in).WriteBack(ctx, "p", 1, nil)
	case "rebuild":
		ok, err = p.GateAdmin(in).Rebuild(ctx, port.GatePlan{})
	case "open":
		ok, err = p.GateAdmin(in).Open(ctx, "p", 1)
	case "reopen":
		ok, err = p.Epochs(in).Locked(ctx, "p", 1, nil)
	default:
		t.Fatalf("no such call: %s", call)
	}
	if err != nil && domain.CodeOf(err) != domain.CodeUnavailable {
		t.Errorf("%s: %v", call, err)
	}
	return ok && err == nil
}

func TestAPointBeforeKeepsTheCallAwayAndAPointAfterSwallowsTheReply(t *testing.T) {
	t.Parallel()
	for _, call := range calls {
		for edge, reached := range map[string]int{before: 1, after: 2} {
			p, err := Parse([]string{call + edge + "=fail@2"}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			in := &inside{}
			first, second := play(t, p, call, in), play(t, p, call, in)
			if !first || second || in.reached != reached {
				t.Errorf("%s%s: heard of success %v and %v, %d calls came through", call, edge, first, second, in.reached)
			}
			if !play(t, p, call, in) {
				t.Errorf("%s%s: the third call failed, too", call, edge)
			}
		}
	}
}

func TestAPointKillsAtItsHitAndSleepsAtEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, err := Parse([]string{"apply.after=kill@3", "apply.before=sleep:2s"}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var killedAt []int
		in := &inside{}
		p.kill = func() { killedAt = append(killedAt, in.reached) }
		begun := time.Now()
		for range 4 {
			play(t, p, "apply", in)
		}
		if len(killedAt) != 1 || killedAt[0] != 3 || time.Since(begun) != 8*time.Second {
			t.Errorf("killed at %v after %v", killedAt, time.Since(begun))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.hit(ctx, "apply.before"); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestAPointThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for spec, why := range map[string]string{
		"nowhere=kill": "deduct.before", "deduct=kill": "no such point", "deduct.after": "neither", "deduct.after=burn": "neither",
		"deduct.after=kill@0": "hit", "deduct.after=kill@x": "hit", "deduct.after=sleep": "sleep", "deduct.after=sleep:-1s": "sleep",
		"deduct.after=kill:1s": "neither",
	} {
		if _, err := Parse([]string{"tell.after=fail", spec}, nil); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", spec, err)
		}
	}
}
