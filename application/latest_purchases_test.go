package application_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

func TestLatestAreTheAcceptedPurchasesNewestFirstAndFewOfMany(t *testing.T) {
	t.Parallel()
	tokens := func(p laneParts) (all []string) {
		for _, l := range p.deduct.Latest() {
			all = append(all, l.Token)
		}
		return all
	}
	inBubble(t, "newest first, and no more than twenty", func(t *testing.T) {
		p := laneWith(t, nil)
		p.accepts()
		p.sends(port.SendCommitted, nil)
		if got := p.deduct.Latest(); got == nil || len(got) != 0 {
			t.Errorf("before the first: %+v", got)
		}
		for i := range 25 {
			must(0, <-p.buy(t.Context(), fmt.Sprint(i)))
			time.Sleep(100 * time.Millisecond)
		}
		got := tokens(p)
		if len(got) != 20 || got[0] != "24" || got[1] != "23" || got[19] != "5" {
			t.Errorf("%v", got)
		}
		if l := p.deduct.Latest()[0]; l.Product != "p" || l.User != "u-24" || l.Quantity != 1 || !l.At.Equal(time.UnixMilli(1_700_000_000_000)) {
			t.Errorf("%+v", l)
		}
	})
	inBubble(t, "one of those in a tenth of a second", func(t *testing.T) {
		p := laneWith(t, nil)
		p.accepts()
		p.sends(port.SendCommitted, nil)
		for i := range 300 {
			must(0, <-p.buy(t.Context(), fmt.Sprint(i)))
			time.Sleep(time.Millisecond)
		}
		if got := tokens(p); !slices.Equal(got, []string{"200", "100", "0"}) {
			t.Errorf("%v", got)
		}
	})
	for _, not := range []port.DeductReply{{Outcome: port.DeductClosed}, {Outcome: port.DeductAway},
		{Outcome: port.DeductRepeat, Flow: flowIn(keyIn("p", "a"), domain.FlowSettled, 7)}} {
		inBubble(t, fmt.Sprint("not with outcome ", not.Outcome), func(t *testing.T) {
			p := laneWith(t, nil)
			p.answers(not)
			if err := <-p.buy(t.Context(), "a"); (err == nil) != (not.Outcome == port.DeductRepeat) {
				t.Error(err)
			}
			if got := tokens(p); got != nil {
				t.Errorf("%v", got)
			}
		})
	}
	inBubble(t, "not while the outcome is unknown", func(t *testing.T) {
		p := laneWith(t, nil)
		p.accepts()
		p.sends(port.SendUnknown, nil)
		if err := <-p.buy(t.Context(), "a"); err == nil {
			t.Error("a send whose outcome is unknown is told as accepted")
		}
		if got := tokens(p); got != nil {
			t.Errorf("%v", got)
		}
	})
}
