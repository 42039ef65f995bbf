// Package link is the network between the service and one of its servers: a proxy that can be slow,
// narrow, silent, or torn.
//
// Decision: Toxiproxy runs in the test's process, since this kernel has no netem and a test needs no
// rights for it.
package link

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Link is a proxy in front of a server.
type Link struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
	names atomic.Int64
}

// The directions of a disturbance: towards the server, or back to the service.
const (
	There = "upstream"
	Back  = "downstream"
)

// New opens a link to host:port that is as good as none until it is disturbed.
func New(t testing.TB, upstream string) *Link {
	t.Helper()
	return At(t, "127.0.0.1:0", upstream)
}

// At is New with its own host:port given, for a server that tells its clients where it is (harness.Parts.BrokerIP).
func At(t testing.TB, listen, upstream string) *Link {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // its toxics write to a logger of the whole process
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Link{t: t, proxy: toxiproxy.NewProxy(server, "link", listen, upstream)}
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.proxy.Stop)
	return l
}

// Addr is host:port to connect to; it stays the same.
func (l *Link) Addr() string { return l.proxy.Listen }

// Disturb adds a toxic of Toxiproxy (latency, bandwidth, slow_close, timeout, reset_peer, slicer, limit_data) to all
// connections, present and new, in one direction, and gives the function that takes it away.
func (l *Link) Disturb(kind, direction string, attributes map[string]any) (calm func()) {
	l.t.Helper()
	name := kind + strconv.FormatInt(l.names.Add(1), 10)
	toxic, err := json.Marshal(map[string]any{"name": name, "type": kind, "stream": direction, "attributes": attributes})
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.proxy.Toxics.AddToxicJson(bytes.NewReader(toxic)); err != nil {
		l.t.Fatal(err)
	}
	return func() {
		if err := l.proxy.Toxics.RemoveToxic(context.Background(), name); err != nil {
			l.t.Errorf("calm %s: %v", name, err)
		}
	}
}
