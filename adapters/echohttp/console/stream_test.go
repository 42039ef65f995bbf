package console

import (
	"context"
	"errors"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill/application"
)

// follow reads the stream as the reader does for so long, and gives what was sent.
func (p *place) follow(t *testing.T, length time.Duration, lastID string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	r := get(Path + "/stream").WithContext(ctx)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	w, err := p.ask(t, "reader", r)
	if err != nil {
		t.Fatal(err)
	}
	if w.Header().Get("Content-Type") != "text/event-stream" {
		t.Error(w.Header())
	}
	return w.Body.String()
}

func TestAStreamHasAPictureASecondEachWithAnID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		sent := p.follow(t, 3500*time.Millisecond, "")
		ids := regexp.MustCompile(`(?m)^id: (.*)\ndata: \{"id":"(.*?)"`).FindAllStringSubmatch(sent, -1)
		if !strings.HasPrefix(sent, "retry: 500\n\n") || len(ids) != 4 {
			t.Fatalf("%d pictures in 3.5 s: %s", len(ids), sent)
		}
		for i, id := range ids {
			if id[1] != id[2] || i > 0 && id[1] == ids[i-1][1] {
				t.Errorf("ids: %v", ids)
			}
		}
		p.stop()
	})
}

func TestAReaderThatComesBackIsNotSentWhatItHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		sent := p.follow(t, 100*time.Millisecond, "")
		id := regexp.MustCompile(`id: (.*)`).FindStringSubmatch(sent)[1]
		if again := p.follow(t, 100*time.Millisecond, id); strings.Contains(again, "data:") {
			t.Error(again)
		}
		p.stop()
	})
}

func TestASilentStreamBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		hang := make(chan struct{})
		p.view = func() application.Overview { <-hang; return application.Overview{} }
		if sent := p.follow(t, 35*time.Second, ""); strings.Count(sent, ": still here\n\n") != 2 {
			t.Error(sent)
		}
		close(hang)
		p.stop()
	})
}

func TestAStreamEndsWithItsSessionAndSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		time.AfterFunc(2500*time.Millisecond, func() { p.expired.Store(true) })
		sent := p.follow(t, time.Minute, "")
		if strings.Count(sent, "\ndata: {\"id\"") != 3 || !strings.HasSuffix(sent, "event: signed-out\ndata: {}\n\n") {
			t.Error(sent)
		}
		p.stop()
	})
}

func TestAStreamEndsWhenTheDoorStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		time.AfterFunc(1500*time.Millisecond, func() { go p.stop() })
		begun := time.Now()
		if sent := p.follow(t, time.Minute, ""); strings.Count(sent, "id: ") != 2 || time.Since(begun) != 1500*time.Millisecond {
			t.Errorf("%v: %s", time.Since(begun), sent)
		}
	})
}

func TestTheHundredAndFirstStreamIsTurnedAwayUntilOneGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t)
		leave := make([]context.CancelFunc, streamsMax)
		for i := range leave {
			ctx, cancel := context.WithCancel(t.Context())
			leave[i] = cancel
			go func() { _, _ = p.ask(t, "reader", get(Path+"/stream").WithContext(ctx)) }()
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		r := get(Path + "/stream")
		r.Header.Set("Cookie", sessionCookie+"=reader")
		if err := p.stream(w, r); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		leave[0]()
		synctest.Wait()
		if sent := p.follow(t, 100*time.Millisecond, ""); !strings.Contains(sent, "data: ") {
			t.Error(sent)
		}
		for _, cancel := range leave {
			cancel()
		}
		synctest.Wait()
		p.stop()
	})
}
