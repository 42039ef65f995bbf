package console

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/application"
)

// bench is a hub on a virtual clock that counts its looks.
type bench struct {
	*hub
	looks atomic.Int64
	see   func(context.Context) application.Overview // nil: an empty one
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func newBench(t *testing.T) *bench {
	t.Helper()
	until, stop := context.WithCancel(context.Background())
	b := &bench{stop: stop}
	b.hub = newHub(until, b.ended.Go, b.count, About{Started: time.Now()}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { stop(); b.ended.Wait() })
	return b
}

func (b *bench) count(ctx context.Context) application.Overview {
	b.looks.Add(1)
	if b.see != nil {
		return b.see(ctx)
	}
	return application.Overview{At: time.Now()}
}

// watch takes picture after picture until ctx ends, and says how many.
func (b *bench) watch(ctx context.Context) (pictures int) {
	var last *picture
	for {
		p, err := b.next(ctx, last)
		if err != nil {
			return pictures
		}
		last = p
		pictures++
	}
}

func TestOneLookASecondHoweverManyWatch(t *testing.T) {
	t.Parallel()
	for _, viewers := range []int{1, 20, streamsMax} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
			defer cancel()
			var all sync.WaitGroup
			for range viewers {
				all.Go(func() {
					leave, ok := b.enter(streamsMax)
					if !ok {
						t.Error("turned away")
						return
					}
					defer leave()
					if got := b.watch(ctx); got != 11 {
						t.Errorf("a viewer of %d saw %d pictures in 10 s", viewers, got)
					}
				})
			}
			all.Wait()
			if got := b.looks.Load(); got != 11 {
				t.Errorf("%d looks in 10 s with %d viewers", got, viewers)
			}
			b.stop()
		})
	}
}

func TestNobodyLooksWhileNobodyWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		time.Sleep(time.Hour)
		if b.looks.Load() != 0 {
			t.Error("looked before anybody came")
		}
		leave, _ := b.enter(streamsMax)
		time.Sleep(3500 * time.Millisecond)
		leave()
		time.Sleep(time.Hour)
		seen := b.looks.Load()
		if seen > 9 {
			t.Errorf("%d looks for one viewer who stayed 3.5 s", seen)
		}
		p, err := b.latest(t.Context()) // somebody comes again: the old picture is not handed out
		if err != nil || b.looks.Load() != seen+1 || time.Since(p.view.At) > time.Second {
			t.Errorf("%v %v: %d looks after %d", p, err, b.looks.Load(), seen)
		}
		b.stop()
	})
}

func TestASlowReaderGetsTheNewestPicture(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		leave, _ := b.enter(streamsMax)
		defer leave()
		first, err := b.next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(7500 * time.Millisecond) // it writes to somebody slow
		second, err := b.next(t.Context(), first)
		if err != nil || b.taken != 8 || !strings.HasSuffix(second.id, "-8") {
			t.Errorf("%+v %v: not the newest of %d", second, err, b.taken)
		}
		b.stop()
	})
}

func TestALookThatPanicsCostsOnePictureAndNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.see = func(context.Context) application.Overview {
			if b.looks.Load() == 2 {
				panic("a fault in a look")
			}
			return application.Overview{At: time.Now()}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		leave, _ := b.enter(streamsMax)
		defer leave()
		if got := b.watch(ctx); got != 3 {
			t.Errorf("%d pictures of four looks", got)
		}
		b.stop()
	})
}

func TestALookThatTheStopCutsOffIsNotShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.see = func(ctx context.Context) application.Overview {
			<-ctx.Done()
			return application.Overview{At: time.Now()}
		}
		var err error
		var asked sync.WaitGroup
		asked.Go(func() { _, err = b.latest(context.Background()) })
		synctest.Wait()
		b.stop()
		asked.Wait()
		b.ended.Wait()
		if err == nil || b.newest != nil {
			t.Errorf("%v, shown: %+v", err, b.newest)
		}
	})
}

// Exported history in the wrong order is a fault that consoles shipped with.
func TestTheHistoryIsOldestFirstBoundedAndKeepsWhatCouldNotBeReadAsNull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		left := int64(12)
		b.see = func(context.Context) application.Overview {
			view := application.Overview{At: time.Now(), Products: []application.ProductLine{{Product: "p"}}}
			if b.looks.Load()%2 == 0 {
				view.Pipeline.LagMessages, view.Products[0].Gate = &left, &left
				view.Times = &application.AnswerTimes{P50: 0.002, P99: 0.01}
			}
			return view
		}
		leave, _ := b.enter(streamsMax)
		time.Sleep(1000*time.Second + time.Millisecond)
		leave()
		body, err := b.samples()
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Samples []struct {
				At        int64
				Lag       *int64
				P50, P99  *float64
				Remaining map[string]*int64
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Samples) != historyMax {
			t.Fatalf("%d samples", len(got.Samples))
		}
		for i, s := range got.Samples[1:] {
			before := got.Samples[i]
			if s.At <= before.At {
				t.Fatalf("sample %d is not later than the one before", i+1)
			}
			if known := s.Lag != nil; known == (before.Lag != nil) || known != (s.Remaining["p"] != nil) || known && *s.Lag != 12 ||
				known != (s.P50 != nil) || known != (s.P99 != nil) || known && *s.P99 != 0.01 {
				t.Fatalf("a reading that failed is not null: %+v after %+v", s, before)
			}
		}
		b.stop()
	})
}
