package application_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
)

// answersIn is a lane whose gate takes as long as is said now, and whose answers are counted so far.
func answersIn(t *testing.T) (buy func(took time.Duration, purchases int), counted func() application.TimeCounts) {
	t.Helper()
	p := laneWith(t, nil)
	var takes time.Duration
	p.gate.EXPECT().Deduct(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(
		func(_ context.Context, _ time.Time, items []port.DeductItem) []port.DeductReply {
			time.Sleep(takes)
			return allReplies(len(items), port.DeductReply{Outcome: port.DeductClosed})
		}).AnyTimes()
	buy = func(took time.Duration, purchases int) {
		takes = took
		for i := range purchases {
			if _, err := p.deduct.Deduct(t.Context(), commandFor(keyIn("p", fmt.Sprint(i)))); domain.CodeOf(err) != domain.CodeSaleClosed {
				t.Fatal(err)
			}
		}
	}
	return buy, func() application.TimeCounts { return p.deduct.Stats().Times }
}

func TestAnswerTimesAreThoseOfTheLatestPurchases(t *testing.T) {
	t.Parallel()
	inBubble(t, "nothing was answered", func(t *testing.T) {
		_, counted := answersIn(t)
		if got := counted().Since(application.TimeCounts{}); got != nil {
			t.Errorf("%+v", got)
		}
	})
	inBubble(t, "what was before does not count", func(t *testing.T) {
		buy, counted := answersIn(t)
		buy(3*time.Second, 10)
		before := counted()
		if counted().Since(before) != nil {
			t.Error("times without a purchase")
		}
		buy(2*time.Millisecond, 98)
		buy(100*time.Millisecond, 2)
		got := counted().Since(before)
		if got == nil || !near(got.P50, 0.002) || !near(got.P99, 0.1) {
			t.Errorf("%+v", got)
		}
	})
	for _, took := range []time.Duration{32 * time.Microsecond, 999 * time.Microsecond, 17 * time.Millisecond, time.Second, 50 * time.Second} {
		inBubble(t, took.String(), func(t *testing.T) {
			buy, counted := answersIn(t)
			buy(took, 3)
			got := counted().Since(application.TimeCounts{})
			if got == nil || !near(got.P50, took.Seconds()) || !near(got.P99, took.Seconds()) || got.P50 > got.P99 {
				t.Errorf("%+v", got)
			}
		})
	}
	inBubble(t, "none is lost beyond the ends", func(t *testing.T) {
		buy, counted := answersIn(t)
		buy(0, 1)
		buy(time.Hour, 1)
		if got := counted().Since(application.TimeCounts{}); got == nil || got.P50 > 0.0001 || got.P99 < 50 || got.P99 > 100 {
			t.Errorf("%+v", got)
		}
	})
}

// near allows for the width of a bucket.
func near(got, want float64) bool { return math.Abs(got-want) <= want/4 }
