//go:build stack

package fault

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/harness"
	"seckill/test/harness/link"
	"seckill/test/shop"
)

const (
	l8          = "the network between the service and its servers is slow, narrow, silent, or torn"
	l8Rate      = 50
	l8StepLeast = time.Second
	l8StepMost  = 3 * time.Second
)

// l8IP is where the broker's clients are told to find it: any address of the loopback net does.
const l8IP = "127.0.0.2"

// disturbance is what a link may suffer.
type disturbance struct {
	name       string
	kind       string
	attributes map[string]any
}

var disturbances = []disturbance{
	{"50 ms late", "latency", map[string]any{"latency": 50, "jitter": 20}},
	{"500 ms late", "latency", map[string]any{"latency": 500}},
	{"3000 ms late", "latency", map[string]any{"latency": 3000}},
	{"silent", "timeout", map[string]any{"timeout": 0}},
	{"reset", "reset_peer", map[string]any{"timeout": 0}},
	{"cut into pieces", "slicer", map[string]any{"average_size": 40, "size_variation": 20, "delay": 500}},
	{"20 KB/s", "bandwidth", map[string]any{"rate": 20}},
}

// L8: each link suffers one disturbance after another, by a schedule that a seed makes. SECKILLTEST_SEED
// plays the schedules from that seed on.
func TestL8Network(t *testing.T) {
	t.Parallel()
	layer := campaign.Open(t, "L8", l8)
	s, links := l8Shop(t)
	s.Start()
	seconds := 8
	switch schedules := campaign.Size(t, 2, 50); {
	case schedules == 50:
		seconds = 60
	case schedules > 2:
		seconds = 20
	}
	first := l8Seed(t)
	for i := range campaign.Size(t, 2, 50) {
		schedule := newSchedule(first+uint64(i), links)
		t.Logf("schedule of seed %d, %d s", schedule.seed, seconds)
		requests := (seconds + 2) * l8Rate
		drive.Sell(t, drive.Sale{Doors: []*shop.Shop{s}, Requests: requests, Rate: l8Rate, At: 0.1, Figures: layer, Within: liveWithin, Fault: func() {
			schedule.play(t, layer, time.Duration(seconds)*time.Second)
		}})
	}
}

// l8Shop is a shop behind a link to each server. The broker is the test's own, since its name server tells
// the clients where it is.
func l8Shop(t *testing.T) (*shop.Shop, map[string]*link.Link) {
	t.Helper()
	s, servers := ownParts(t, harness.Parts{RocketMQ: true, BrokerIP: l8IP}, t.TempDir())
	books, err := mysql.ParseDSN(s.DSN)
	must(t, err)
	links := map[string]*link.Link{
		"redis":       link.New(t, s.Redis),
		"database":    link.New(t, books.Addr),
		"name server": link.New(t, servers.NameServer.Addr),
		"broker":      link.At(t, strings.Replace(servers.Broker.Addr, "127.0.0.1", l8IP, 1), servers.Broker.Addr),
	}
	books.Addr = links["database"].Addr()
	s.Set("SECKILL_REDIS__ADDRS="+links["redis"].Addr(), "SECKILL_DATABASE__DSN="+books.FormatDSN(),
		"SECKILL_ROCKETMQ__NAME_SERVERS="+links["name server"].Addr())
	return s, links
}

// l8Seed is the one asked for, or any.
func l8Seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SECKILLTEST_SEED")
	if text == "" {
		return rand.Uint64N(1_000_000)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	must(t, err)
	return seed
}

// schedule is a row of disturbances that only its seed decides.
type schedule struct {
	seed   uint64
	chance *rand.Rand
	links  map[string]*link.Link
	next   int // the disturbance to come: each comes before one comes again
	order  []int
}

func newSchedule(seed uint64, links map[string]*link.Link) *schedule {
	chance := rand.New(rand.NewPCG(seed, 8))
	return &schedule{seed: seed, chance: chance, links: links, order: chance.Perm(len(disturbances))}
}

// play disturbs one link after another, sometimes two at once, and leaves none disturbed.
func (s *schedule) play(t *testing.T, layer *campaign.Layer, long time.Duration) {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); {
		calm := s.disturb(t, layer)
		if s.chance.IntN(3) == 0 {
			also := s.disturb(t, layer)
			first := calm
			calm = func() { first(); also() }
		}
		time.Sleep(l8StepLeast + time.Duration(s.chance.Int64N(int64(l8StepMost-l8StepLeast)))) // the fault itself
		calm()
	}
}

func (s *schedule) disturb(t *testing.T, layer *campaign.Layer) (calm func()) {
	t.Helper()
	d := disturbances[s.order[s.next%len(s.order)]]
	s.next++
	names := []string{"redis", "database", "broker", "broker", "name server"} // in an order that is always the same
	name := names[s.chance.IntN(len(names))]
	direction := link.There
	if s.chance.IntN(2) == 0 {
		direction = link.Back
	}
	layer.Fault(fmt.Sprintf("link to the %s %s", name, d.name))
	t.Logf("%s %s, %s", name, d.name, direction)
	return s.links[name].Disturb(d.kind, direction, d.attributes)
}
