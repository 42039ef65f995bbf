//go:build stack

package fault

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/test/harness"
	"seckill/test/shop"
)

// F15: purchases leave nothing behind in the process: no socket, no thread, no goroutine.
func TestF15NothingGrowsWithPurchases(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Start()
	product := onSale(t, s, 100_000, 0)
	warm := buyers(s, product, "warm", 100)
	waitLag(t, s)
	before := sizeOf(t, s)
	all := append(warm, buyers(s, product, "u", tenth(t, 10_000))...)
	waitLag(t, s)
	holds(t, s, product, int64(len(all)), int64(len(all)), all...)
	after := sizeOf(t, s)
	const slack = 40 // pools that had not been full before
	if after.files > before.files+slack || after.threads > before.threads+slack {
		t.Errorf("after %d purchases %+v became %+v", len(all), before, after)
	}
	if n := goroutines(t, s); n > 500 {
		t.Errorf("%d goroutines after %d purchases", n, len(all))
	} else {
		t.Logf("%+v became %+v, %d goroutines", before, after, n)
	}
}

// F15: a topic that is not there ends the start; no client is made over and over.
func TestF15NoStartWithoutItsTopic(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Set("SECKILL_ROCKETMQ__TOPIC=" + harness.UniqueID(t))
	if err := s.TryStart(); shop.ExitCode(err) != exitDependency {
		t.Errorf("exit code %d: %.600v", shop.ExitCode(err), err)
	}
}

// buyers are n purchases over twenty connections.
func buyers(s *shop.Shop, product, name string, n int) []*purchase {
	crowd := crowdOf(product, name, n)
	work := make(chan *purchase)
	var gone sync.WaitGroup
	for range 20 {
		gone.Go(func() {
			for p := range work {
				p.buy(s)
			}
		})
	}
	for _, p := range crowd {
		work <- p
	}
	close(work)
	gone.Wait()
	return crowd
}

type size struct{ files, threads int }

func sizeOf(t *testing.T, s *shop.Shop) (n size) {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	return size{len(files), len(threads)}
}

// goroutines lets the service end with a trace of each of them, and counts.
func goroutines(t *testing.T, s *shop.Shop) (n int) {
	t.Helper()
	s.Signal(syscall.SIGQUIT)
	shop.Eventually(t, 30*time.Second, "the trace of every goroutine", func() (bool, string) {
		last := n
		n = strings.Count(s.Log(), "\ngoroutine ")
		return n > 0 && n == last, fmt.Sprint(n)
	})
	return n
}
