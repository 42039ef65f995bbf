//go:build stack

package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/harness"
	"seckill/test/harness/link"
	"seckill/test/shop"
)

const (
	l12         = "two instances sell for a long time while something breaks at random every 10 to 20 s"
	soakRate    = 200
	soakLap     = 60 * time.Second
	soakFull    = 30 // laps
	calmLeast   = 10 * time.Second
	calmMost    = 20 * time.Second
	sampleEvery = 2 * time.Second
)

// L12: whatever breaks, in whatever order, for however long: nothing is lost, nothing sold twice, and the
// service does not grow.
func TestL12Soak(t *testing.T) {
	t.Parallel()
	layer := campaign.Open(t, "L12", l12)
	n := newNemesis(t, layer)
	steadfast, other := n.shop, n.other // the first is never killed: it is the one that must not grow
	steadfast.Start()
	other.Start()
	size := watchSize(t, steadfast)
	for lap := range campaign.Size(t, 1, soakFull) {
		began := time.Now()
		r := drive.Sell(t, drive.Sale{Doors: []*shop.Shop{steadfast, other}, Requests: soakRate * int(soakLap/time.Second), Rate: soakRate,
			At: 0.05, CancelEvery: 20, Within: 3 * time.Minute, Figures: layer, Fault: func() { n.rage(began.Add(soakLap)) }})
		t.Logf("lap %d: %v", lap, r.Settled)
	}
	other.Stop()
	size.mustBeFlat()
}

// nemesis breaks things and mends them.
type nemesis struct {
	t       *testing.T
	layer   *campaign.Layer
	chance  *rand.Rand
	servers *harness.Stack
	redis   *redis.Client
	toRedis *link.Link
	toBooks *link.Link
	shop    *shop.Shop
	other   *shop.Shop
	deeds   []deed
}

// deed is one thing that breaks, and is whole again when do returns.
type deed struct {
	name   string
	weight int
	do     func() error
}

func newNemesis(t *testing.T, layer *campaign.Layer) *nemesis {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s, servers := ownStack(t)
	n := &nemesis{t: t, layer: layer, chance: rand.New(rand.NewPCG(seed, 1)), servers: servers,
		redis:   redis.NewClient(&redis.Options{Addr: servers.Redis.Addr}),
		toRedis: link.New(t, servers.Redis.Addr), toBooks: link.New(t, servers.MySQL.Addr)}
	t.Cleanup(func() { _ = n.redis.Close() })
	s.Set("SECKILL_REDIS__ADDRS="+n.toRedis.Addr(), "SECKILL_DATABASE__DSN="+strings.Replace(s.DSN, servers.MySQL.Addr, n.toBooks.Addr(), 1))
	n.shop, n.other = s, s.Another()
	n.deeds = n.everything()
	return n
}

func (n *nemesis) everything() []deed {
	s := n.servers
	return []deed{
		{"instance kill -9", 3, func() error { n.other.Kill(); n.other.Start(); return nil }},
		{"instance restarted", 2, func() error { n.other.Stop(); n.other.Start(); return nil }},
		{"instance frozen 5 s", 2, func() error {
			n.other.Signal(syscall.SIGSTOP)
			time.Sleep(5 * time.Second)
			n.other.Signal(syscall.SIGCONT)
			return nil
		}},
		{"redis kill -9", 1, func() error { return endAndStart(n.t, s.Redis, s.Redis.Kill) }},
		{"redis flushed", 1, func() error { return n.redis.FlushAll(n.t.Context()).Err() }},
		{"redis frozen 3 s", 2, frozen(s.Redis, 3*time.Second)},
		{"broker kill -9", 1, func() error { return endAndStart(n.t, s.Broker, s.Broker.Kill) }},
		{"broker restarted", 1, func() error { return endAndStart(n.t, s.Broker, s.Broker.Terminate) }},
		{"broker frozen 5 s", 2, frozen(s.Broker, 5*time.Second)},
		{"mariadb kill -9", 2, func() error { return endAndStart(n.t, s.MySQL, s.MySQL.Kill) }},
		{"mariadb frozen 4 s", 2, frozen(s.MySQL, 4*time.Second)},
		{"redis 300 ms away for 5 s", 2, disturbed(n.toRedis, "latency", link.Back, map[string]any{"latency": 300}, 5*time.Second)},
		{"redis' replies lost for 3 s", 2, disturbed(n.toRedis, "timeout", link.Back, map[string]any{"timeout": 0}, 3*time.Second)},
		{"redis' connections torn for 2 s", 2, disturbed(n.toRedis, "reset_peer", link.There, map[string]any{"timeout": 0}, 2*time.Second)},
		{"mariadb 300 ms away for 5 s", 2, disturbed(n.toBooks, "latency", link.Back, map[string]any{"latency": 300}, 5*time.Second)},
		{"mariadb's replies lost for 3 s", 2, disturbed(n.toBooks, "timeout", link.Back, map[string]any{"timeout": 0}, 3*time.Second)},
		{"mariadb's connections torn for 2 s", 2, disturbed(n.toBooks, "reset_peer", link.There, map[string]any{"timeout": 0}, 2*time.Second)},
	}
}

// endAndStart ends a server and starts it again.
func endAndStart(t *testing.T, server *harness.Server, end func() error) error {
	if err := end(); err != nil {
		return err
	}
	return server.Start(t.Context())
}

func frozen(server *harness.Server, lasting time.Duration) func() error {
	return func() error {
		if err := server.Stop(); err != nil {
			return err
		}
		time.Sleep(lasting) // the fault itself
		return server.Cont()
	}
}

func disturbed(l *link.Link, kind, direction string, attributes map[string]any, lasting time.Duration) func() error {
	return func() error {
		defer l.Disturb(kind, direction, attributes)()
		time.Sleep(lasting) // the fault itself
		return nil
	}
}

// rage breaks one thing after another until the time is over; at least one.
func (n *nemesis) rage(until time.Time) {
	n.t.Helper()
	for first := true; ; first = false {
		if calm := calmLeast + time.Duration(n.chance.Int64N(int64(calmMost-calmLeast))); !first {
			if time.Now().Add(calm).After(until) {
				return
			}
			time.Sleep(calm) // the schedule
		}
		d := n.pick()
		began := time.Now()
		if err := d.do(); err != nil {
			n.t.Fatalf("%s: %v", d.name, err)
		}
		n.layer.Fault(d.name)
		n.t.Logf("%s %s, %v", began.Format(time.TimeOnly), d.name, time.Since(began).Round(time.Millisecond))
	}
}

func (n *nemesis) pick() deed {
	sum := 0
	for _, d := range n.deeds {
		sum += d.weight
	}
	at := n.chance.IntN(sum)
	for _, d := range n.deeds {
		if at -= d.weight; at < 0 {
			return d
		}
	}
	panic("unreachable")
}

// sizes are samples of a process that lives long.
type sizes struct {
	t       *testing.T
	shop    *shop.Shop
	stop    func()
	samples map[string][]int64 // of the watcher alone until it has stopped
}

// watchSize samples the shop's process until the samples are judged.
func watchSize(t *testing.T, s *shop.Shop) *sizes {
	t.Helper()
	z, done := &sizes{t: t, shop: s, samples: map[string][]int64{}}, make(chan struct{})
	var watcher sync.WaitGroup
	pid := s.Pid()
	watcher.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				z.sample(pid)
			}
		}
	})
	z.stop = sync.OnceFunc(func() { close(done); watcher.Wait() })
	t.Cleanup(z.stop)
	return z
}

// sample takes what it can read.
func (z *sizes) sample(pid int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil && (fields[0] == "VmRSS:" || fields[0] == "Threads:") {
			z.samples[fields[0]] = append(z.samples[fields[0]], n)
		}
	}
	if files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		z.samples["files"] = append(z.samples["files"], int64(len(files)))
	}
}

// mustBeFlat compares the medians of the first and the last third of what came after the warm-up, with
// room for what a moment's load takes: it finds what grows without end. It ends the process,
// which then tells its goroutines.
func (z *sizes) mustBeFlat() {
	z.t.Helper()
	z.stop()
	for what, room := range map[string]int64{"VmRSS:": 96 << 10, "Threads:": 60, "files": 2000} {
		samples := z.samples[what]
		samples = samples[len(samples)/5:]
		third := len(samples) / 3
		if third < 3 {
			z.t.Errorf("only %d samples of %s", len(samples), what)
			continue
		}
		first, last := median(samples[:third]), median(samples[2*third:])
		z.t.Logf("%s median %d in the first third, %d in the last, %d samples", what, first, last, len(samples))
		if last > first+first/2+room {
			z.t.Errorf("%s grew from %d to %d", what, first, last)
		}
	}
	n := goroutines(z.t, z.shop)
	z.t.Logf("%d goroutines at rest", n)
	if n > 500 {
		z.t.Errorf("%d goroutines at rest", n)
	}
	z.shop.WaitDead(time.Minute)
}

func median(samples []int64) int64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}
