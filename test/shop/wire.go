package shop

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Wire is a proxy in front of a server that loses the replies to chosen requests: the server has
// carried them out, and the client does not learn it.
type Wire struct {
	listener net.Listener
	upstream string
	lost     atomic.Int64

	mu     sync.Mutex
	marker []byte
	times  int
	hold   time.Duration
}

// NewWire opens a proxy to host:port that lets everything through until it is told otherwise.
func NewWire(t testing.TB, upstream string) *Wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{listener: listener, upstream: upstream}
	t.Cleanup(func() { _ = listener.Close() })
	go w.accept()
	return w
}

// Addr is the proxy's host:port.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// LoseReplies lets the next requests that hold the marker through, as many as times says, and keeps
// their replies back: for ever, with the connection cut, or for as long as hold says.
func (w *Wire) LoseReplies(marker string, times int, hold time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marker, w.times, w.hold = []byte(marker), times, hold
	w.lost.Store(0)
}

// Lost is how many replies were kept back since LoseReplies.
func (w *Wire) Lost() int64 { return w.lost.Load() }

// chosen says whether the reply to a request is to be kept back, and how long; 0 is a cut.
func (w *Wire) chosen(request []byte) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.times == 0 || !bytes.Contains(request, w.marker) {
		return 0, false
	}
	w.times--
	return w.hold, true
}

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.serve(client)
	}
}

// serve carries one connection. A client has one request under way at a time, so the next reply
// after a chosen request is the reply to it.
func (w *Wire) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", w.upstream)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	kept := make(chan time.Duration, 1)
	go func() {
		defer func() { _ = client.Close() }()
		for buf := make([]byte, 64<<10); ; {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			select {
			case hold := <-kept:
				w.lost.Add(1)
				if hold == 0 {
					return
				}
				time.Sleep(hold) // the fault itself
			default:
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	for buf := make([]byte, 64<<10); ; {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if hold, chosen := w.chosen(buf[:n]); chosen {
			kept <- hold
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}
