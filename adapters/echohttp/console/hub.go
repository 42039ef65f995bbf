package console

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"seckill/application"
)

const (
	lookEvery  = time.Second
	lookMax    = 5 * time.Second // for one look
	idleAfter  = 5 * time.Second // without a stream, from the last question on
	historyMax = 900             // samples: 15 minutes
	tracedMax  = 6               // products whose stock is in the history
)

// picture is one look, as every viewer gets it.
type picture struct {
	id   string
	view application.Overview
	body []byte // JSON
}

// sample is what the charts keep of a picture. Counters are since the start; nil could not be read.
type sample struct {
	At        int64             `json:"at"` // Unix milliseconds
	Accepted  int64             `json:"accepted"`
	Refused   int64             `json:"refused"`
	P50       *float64          `json:"p50"` // seconds
	P99       *float64          `json:"p99"`
	InFlight  *int64            `json:"inFlight"`
	Lag       *int64            `json:"lag"`
	Remaining map[string]*int64 `json:"remaining"`
}

// hub looks once a second while somebody watches, and hands the newest picture to all.
type hub struct {
	look  func(context.Context) application.Overview
	about About
	log   *slog.Logger
	until context.Context // ends when the door stops
	spawn func(func())    // runs what the door waits for

	mu      sync.Mutex
	newest  *picture      // nil while nobody watched
	changed chan struct{} // closed when newest is replaced
	streams int
	asked   time.Time
	running bool
	taken   uint64
	history []sample
}

func newHub(until context.Context, spawn func(func()), look func(context.Context) application.Overview, about About, log *slog.Logger) *hub {
	return &hub{look: look, about: about, log: log, until: until, spawn: spawn, changed: make(chan struct{})}
}

// enter counts a stream in; false when there are too many.
func (h *hub) enter(most int) (leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams >= most {
		return nil, false
	}
	h.streams++
	h.wake()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.streams--
	}, true
}

// wake has somebody look; the lock is held.
func (h *hub) wake() {
	h.asked = time.Now()
	if !h.running && h.until.Err() == nil {
		h.running = true
		h.spawn(h.run)
	}
}

func (h *hub) run() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		h.take()
		select {
		case <-tick.C:
		case <-h.until.Done():
		}
		if h.rest() {
			return
		}
	}
}

// rest ends the looking when nobody watches any more. The last picture goes: it must not be shown as new.
func (h *hub) rest() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.until.Err() == nil && (h.streams > 0 || time.Since(h.asked) < idleAfter) {
		return false
	}
	h.running, h.newest = false, nil
	return true
}

func (h *hub) take() {
	defer func() {
		if cause := recover(); cause != nil { // viewers see that their numbers grow old
			h.log.Error("a look at the service failed", "event", "look_failed", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(h.until, lookMax)
	defer cancel()
	view := h.look(ctx)
	if h.until.Err() != nil { // cut off: nothing that it says is true
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken++
	p := &picture{id: fmt.Sprintf("%x-%d", h.about.Started.UnixMilli(), h.taken), view: view}
	body, err := json.Marshal(h.wireOf(p), withTimes)
	if err != nil {
		h.log.Error("a look at the service cannot be written", "event", "look_failed", "error", err)
		return
	}
	p.body, h.newest = body, p
	if len(h.history) == historyMax {
		h.history = append(h.history[:0], h.history[1:]...)
	}
	h.history = append(h.history, sampleOf(view))
	close(h.changed)
	h.changed = make(chan struct{})
}

// wirePicture is what a page is sent.
type wirePicture struct {
	ID      string    `json:"id"`
	Started int64     `json:"started"` // Unix milliseconds; another one: counters began anew
	NextRun time.Time `json:"nextReconcile,omitzero"`
	application.Overview
}

func (h *hub) wireOf(p *picture) wirePicture {
	w := wirePicture{ID: p.id, Started: h.about.Started.UnixMilli(), Overview: p.view}
	if h.about.NextRun != nil {
		w.NextRun = h.about.NextRun(p.view.At)
	}
	return w
}

// withTimes writes times in UTC with milliseconds.
var withTimes = json.WithMarshalers(json.MarshalToFunc(func(out *jsontext.Encoder, t time.Time) error {
	return out.WriteToken(jsontext.String(t.UTC().Format("2006-01-02T15:04:05.000Z")))
}))

func sampleOf(view application.Overview) sample {
	s := sample{At: view.At.UnixMilli(), Accepted: view.Accepted(), Refused: view.Refused(), InFlight: view.Pipeline.OpenFlows,
		Lag: view.Pipeline.LagMessages, Remaining: make(map[string]*int64, tracedMax)}
	if t := view.Times; t != nil {
		s.P50, s.P99 = &t.P50, &t.P99
	}
	for _, p := range view.Products[:min(len(view.Products), tracedMax)] {
		s.Remaining[p.Product] = p.Gate
	}
	return s
}

// next waits for a picture that is another one than after; ctx's error when it ends first, and the
// door's when it stops.
func (h *hub) next(ctx context.Context, after *picture) (*picture, error) {
	for {
		h.mu.Lock()
		newest, changed := h.newest, h.changed
		h.mu.Unlock()
		if newest != nil && newest != after {
			return newest, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-h.until.Done():
			return nil, errStopping
		}
	}
}

// latest is a picture that is not older than the last look; who asks counts as watching for a while.
func (h *hub) latest(ctx context.Context) (*picture, error) {
	h.mu.Lock()
	h.wake()
	h.mu.Unlock()
	return h.next(ctx, nil)
}

// samples are the history, oldest first, and what they are of.
func (h *hub) samples() ([]byte, error) {
	h.mu.Lock()
	kept := append([]sample{}, h.history...)
	h.mu.Unlock()
	return json.Marshal(struct {
		Started int64    `json:"started"`
		Samples []sample `json:"samples"`
	}{h.about.Started.UnixMilli(), kept})
}
