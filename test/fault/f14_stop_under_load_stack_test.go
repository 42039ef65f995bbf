//go:build stack

package fault

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill/test/harness"
	"seckill/test/shop"
)

// F14: stops under 200 D/s, again and again: exit code 0, no panic, and after each the next start goes on.
// Buyers who found nobody, or were told nothing, ask again at the end.
func TestF14StopsUnderLoad(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			s := shop.New(t, profile)
			s.Start()
			product := onSale(t, s, 1_000_000, 0)
			c := stream(s, product, "u", 200)
			for range stops(t) {
				before := c.count(bought)
				shop.Eventually(t, time.Minute, "the sale goes on", func() (bool, string) {
					now := c.count(bought)
					return now >= before+50, fmt.Sprint(now)
				})
				s.Signal(syscall.SIGTERM)
				s.WaitEnd() // with exit code 0, and no panic
				s.Start()
				s.WaitOpen(product)
			}
			crowd := c.home()
			again(s, crowd)
			n := bought(crowd)
			t.Logf("%d purchases, %d bought", len(crowd), n)
			holds(t, s, product, n, n, crowd...)
		})
	}
}

// stops is how often the service is stopped: 20 times in a full run, twice at least.
func stops(t *testing.T) int { return max(tenth(t, 200)/10, 2) }

// streamed are buyers who come so many a second, whether the others are answered or not.
type streamed struct {
	came atomic.Int64
	done chan struct{}
	gone sync.WaitGroup
	mu   sync.Mutex
	all  []*purchase
}

func stream(s *shop.Shop, product, name string, perSecond int) *streamed {
	c := &streamed{done: make(chan struct{})}
	c.gone.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-c.done:
				return
			case <-tick.C:
			}
			c.gone.Go(func() {
				p := &purchase{product: product, user: fmt.Sprint(name, i), token: "t", quantity: 1}
				c.came.Add(1)
				p.buy(s)
				c.mu.Lock()
				defer c.mu.Unlock()
				c.all = append(c.all, p)
			})
		}
	})
	return c
}

func (c *streamed) count(of func([]*purchase) int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return of(c.all)
}

// home sends the buyers home, and gives those who came.
func (c *streamed) home() []*purchase {
	close(c.done)
	c.gone.Wait()
	return c.all
}

// again lets everyone without an answer that stands ask until there is one.
func again(s *shop.Shop, crowd []*purchase) {
	var asked sync.WaitGroup
	places := make(chan struct{}, 32)
	for _, p := range crowd {
		asked.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			for deadline := time.Now().Add(time.Minute); !p.answer.Definite() && time.Now().Before(deadline); {
				if p.buy(s); !p.answer.Definite() {
					time.Sleep(200 * time.Millisecond) // as a buyer does
				}
			}
		})
	}
	asked.Wait()
}

// graceUnderHang is the grace time of the stops below.
const graceUnderHang = 6 * time.Second

// F14, while a server hangs: the stop keeps its time, whatever it has to cut off, and does not panic; what was
// accepted is finished after the next start.
func f14StopsWhileAServerHangs(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	s.Stop()
	s.Set("SECKILL_STOP__GRACE=" + graceUnderHang.String())
	s.Start()
	product := onSale(t, s, 10_000, 0)
	var crowd []*purchase
	for _, server := range []*harness.Server{servers.MySQL, servers.Redis, servers.Broker, servers.NameServer} {
		c := stream(s, product, server.Name, 200)
		shop.Eventually(t, time.Minute, "the sale goes on", func() (bool, string) {
			n := c.count(bought)
			return n >= 20, fmt.Sprint(n)
		})
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		inside := c.came.Load() + 100
		shop.Eventually(t, time.Minute, "more buyers are inside", func() (bool, string) {
			return c.came.Load() >= inside, fmt.Sprint(c.came.Load())
		})
		s.Signal(syscall.SIGTERM)
		begun := time.Now()
		code := s.WaitExit()
		took := time.Since(begun)
		t.Logf("%s hangs: exit code %d after %v", server.Name, code, took)
		if took > graceUnderHang+20*time.Second { // room for a machine that is slow
			t.Errorf("%s hangs: the stop took %v", server.Name, took)
		}
		if code != 0 && code != 1 {
			t.Errorf("%s hangs: exit code %d", server.Name, code)
		}
		if err := server.Cont(); err != nil {
			t.Fatal(err)
		}
		s.Start()
		s.WaitOpen(product)
		crowd = append(crowd, c.home()...)
	}
	again(s, crowd)
	n := bought(crowd)
	holds(t, s, product, n, n, crowd...)
}

// F14: a second signal ends a stop that waits, at once.
func f14SecondSignal(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	s.Stop()
	s.Set("SECKILL_STOP__GRACE=10m")
	s.Start()
	product := onSale(t, s, 100, 0)
	crowd := crowdOf(product, "u", 10)
	if err := servers.MySQL.Stop(); err != nil {
		t.Fatal(err)
	}
	atOnce(s, crowd)
	s.Signal(syscall.SIGTERM)
	waitLog(t, s, "stopping", 1)
	s.Signal(syscall.SIGTERM)
	if code := s.WaitExit(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	if err := servers.MySQL.Cont(); err != nil {
		t.Fatal(err)
	}
	s.Set("SECKILL_STOP__GRACE=25s")
	s.Start()
	s.WaitOpen(product)
	again(s, crowd)
	n := bought(crowd)
	holds(t, s, product, n, n, crowd...)
}

// Readiness is off while the doors still answer.
func TestF14ReadinessIsOffBeforeTheDoorsClose(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Embedded, "SECKILL_STOP__DELAY=1m", "SECKILL_STOP__GRACE=5m")
	s.Start()
	product := onSale(t, s, 10, 0)
	s.Signal(syscall.SIGTERM)
	shop.Eventually(t, time.Minute, "readiness is off", func() (bool, string) {
		a := s.Ask(context.Background(), http.MethodGet, s.Buyers()+"/readyz", "", nil)
		return a.Status == http.StatusServiceUnavailable && a.Text("draining") == "true", a.String()
	})
	p := &purchase{product: product, user: "u", token: "t", quantity: 1}
	if p.buy(s); !p.answer.Accepted() {
		t.Errorf("while readiness is off: %v", p.answer)
	}
	s.Signal(syscall.SIGTERM)
	if code := s.WaitExit(); code != 130 {
		t.Errorf("exit code %d", code)
	}
	s.Start()
	holds(t, s, product, 1, 1, p)
}
