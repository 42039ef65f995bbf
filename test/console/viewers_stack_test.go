//go:build stack

package console

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/test/shop"
)

const (
	ticksASecond = 100 // of /proc, on every Linux
	loadRate     = 1000
	loadFor      = 10 * time.Second
)

// BenchmarkViewers says what watching costs a service that gets 1,000 purchases a second: its CPU without and with 20
// viewers, in turn, and how many pictures were taken a second. Real servers:
//
//	bin/stack exec -- go test -tags stack -run '^$' -bench Viewers -benchtime 3x ./test/console
func BenchmarkViewers(b *testing.B) {
	s := shop.New(b, shop.Stack)
	s.Start()
	product := "p" + strconv.FormatInt(time.Now().UnixNano(), 36)
	s.OpenSale(product, 100_000_000, 0)
	buyers := 0
	load(s, product, &buyers) // warms up
	var alone, watched, pictures float64
	for range b.N {
		cpu, _ := measured(b, s, product, &buyers, 0)
		alone += cpu
		cpu, seen := measured(b, s, product, &buyers, 20)
		watched += cpu
		pictures += seen
	}
	n := float64(b.N)
	b.ReportMetric(alone/n, "cpu-s/s-alone")
	b.ReportMetric(watched/n, "cpu-s/s-watched")
	b.ReportMetric((watched/alone-1)*100, "%-more")
	b.ReportMetric(pictures/n, "pictures/s")
	b.ReportMetric(0, "ns/op")
	s.Stop()
}

// measured gives the service's CPU seconds for each second of the load while so many watch, and the pictures taken in one.
func measured(b *testing.B, s *shop.Shop, product string, buyers *int, viewers int) (cpu, pictures float64) {
	b.Helper()
	ctx, leave := context.WithCancel(b.Context())
	var watching sync.WaitGroup
	var newest atomic.Int64
	for range viewers {
		watching.Go(func() { watch(ctx, b, s, &newest) })
	}
	if viewers > 0 {
		for newest.Load() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	first, before, begun := newest.Load(), cpuSeconds(b, s.Pid()), time.Now()
	load(s, product, buyers)
	took := time.Since(begun).Seconds()
	cpu, pictures = (cpuSeconds(b, s.Pid())-before)/took, float64(newest.Load()-first)/took
	leave()
	watching.Wait()
	return cpu, pictures
}

// watch reads the stream as a browser does, and notes the number of the newest picture.
func watch(ctx context.Context, b *testing.B, s *shop.Shop, newest *atomic.Int64) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Operators()+"/console/stream", nil)
	if err != nil {
		b.Error(err)
		return
	}
	r.AddCookie(&http.Cookie{Name: "seckill_console", Value: s.OperatorToken()})
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if id, is := strings.CutPrefix(lines.Text(), "id: "); is {
			if n, err := strconv.ParseInt(id[strings.LastIndex(id, "-")+1:], 10, 64); err == nil {
				newest.Store(n)
			}
		}
	}
}

// load asks at the rate, whether or not the earlier ones are answered.
func load(s *shop.Shop, product string, buyers *int) {
	var asking sync.WaitGroup
	begun := time.Now()
	for i := range int(loadFor.Seconds() * loadRate) {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / loadRate)))
		*buyers++
		user := fmt.Sprintf("u%d", *buyers)
		asking.Go(func() { s.Buy(context.Background(), product, user, "t", 1) })
	}
	asking.Wait()
}

func cpuSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksASecond
}
