//go:build stack

package fault

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/harness"
	"seckill/test/shop"
)

const (
	// crowdSize is the buyers of a sale during which a server breaks.
	crowdSize = 400

	// liveWithin is invariant E: how soon all is well after the last fault, by itself.
	liveWithin = 60 * time.Second

	startsWithin = 2 * time.Minute
)

// sellThrough sells while something breaks.
func sellThrough(t *testing.T, s *shop.Shop, layer *campaign.Layer, fault func()) drive.Result {
	t.Helper()
	return drive.Sell(t, drive.Sale{Doors: []*shop.Shop{s}, Requests: crowdSize, Figures: layer, Within: liveWithin, Fault: fault})
}

// must fails the test by the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// killAndStart ends servers as a crash does, and starts them again in that order.
func killAndStart(t *testing.T, servers ...*harness.Server) {
	t.Helper()
	for _, server := range servers {
		must(t, server.Kill())
	}
	startAgain(t, servers...)
}

func startAgain(t *testing.T, servers ...*harness.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startsWithin)
	defer cancel()
	for _, server := range servers {
		must(t, server.Start(ctx))
	}
}

// cutPower cuts the power of all servers that lie on the disk, and starts them again in that order.
func cutPower(t *testing.T, disk *harness.Disk, servers ...*harness.Server) {
	t.Helper()
	must(t, disk.Cut(servers...))
	startAgain(t, servers...)
}

// relayed is a connection through a relay of the test's own.
type relayed struct{ client, server net.Conn }

// relayTo lets connections through to upstream, each by pass, until the test ends, and gives its own address.
func relayTo(t *testing.T, upstream string, pass func(relayed)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var (
		mu   sync.Mutex
		open []net.Conn
		wg   sync.WaitGroup
	)
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			wg.Go(func() { pass(relayed{client, server}) })
		}
	})
	return listener.Addr().String()
}
