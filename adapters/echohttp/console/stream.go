package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	streamsMax  = 100
	retryMillis = 500 // after which a browser comes back by itself
	heartbeat   = 15 * time.Second
	writeMax    = 30 * time.Second // for one picture; who takes longer is gone
)

// stream sends pictures as server-sent events until the reader goes, the session ends or the door stops.
func (c *Console) stream(w http.ResponseWriter, r *http.Request) error {
	if _, err := c.visitor(r); err != nil {
		return err
	}
	leave, ok := c.hub.enter(streamsMax)
	if !ok {
		return ErrFull
	}
	defer leave()
	s := newStream(w)
	if err := s.send("retry: %d\n\n", retryMillis); err != nil {
		return nil // the reader has gone
	}
	seen := r.Header.Get("Last-Event-ID")
	var last *picture
	for {
		p, err := c.nextWithin(r.Context(), last)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			err = s.send(": still here\n\n")
		case err != nil: // the reader has gone, or the door stops
			return nil
		default:
			last = p
			if _, err := c.visitor(r); err != nil {
				_ = s.send("event: signed-out\ndata: {}\n\n")
				return nil // the session has run out, and the reader is told
			}
			if p.id == seen {
				continue
			}
			err = s.send("id: %s\ndata: %s\n\n", p.id, p.body)
		}
		if err != nil {
			return nil // the reader has gone
		}
	}
}

// nextWithin waits for the next picture as long as a stream may be silent.
func (c *Console) nextWithin(ctx context.Context, after *picture) (*picture, error) {
	waiting, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	p, err := c.hub.next(waiting, after)
	if ctx.Err() != nil {
		return nil, errStopping
	}
	return p, err
}

// stream is an answer that goes on; the server's deadlines no longer end it.
type stream struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

func newStream(w http.ResponseWriter) stream {
	s := stream{w, http.NewResponseController(w)}
	_ = s.conn.SetReadDeadline(time.Time{}) // not supported without a connection, as in a test: then there is none to move
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies that would gather it
	w.WriteHeader(http.StatusOK)
	return s
}

func (s stream) send(format string, args ...any) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeMax))
	if _, err := fmt.Fprintf(s.w, format, args...); err != nil {
		return err
	}
	return s.conn.Flush()
}
