package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"
)

// crowd is what buyers are to do.
type crowd struct {
	door        string
	run         string // makes their tokens unique
	products    []string
	connections int
	window      time.Duration // 0: until count is reached
	count       int64         // purchases, 0: until the window ends
	distinct    int64         // after so many the tokens come again, 0: never
	rate        float64       // requests per second that are intended, 0: each connection as fast as it is answered
}

// loaded is what a crowd saw.
type loaded struct {
	accepted, refused, unknown int64 // requests: 200 or 202, other definite answers, the rest
	seconds                    float64
	latency                    *hdrhistogram.Histogram // microseconds to the definite answer, from when the request was intended
}

func newLatency() *hdrhistogram.Histogram { return hdrhistogram.New(1, 60_000_000, 3) }

func (l *loaded) perSecond() float64 { return over(float64(l.accepted), l.seconds) }

func (l *loaded) p50() float64 { return float64(l.latency.ValueAtQuantile(50)) / 1000 }
func (l *loaded) p99() float64 { return float64(l.latency.ValueAtQuantile(99)) / 1000 }

func (l *loaded) count(status int) (definite bool) {
	switch {
	case status >= 500 || status == fasthttp.StatusTooManyRequests || status == 0:
		l.unknown++
		return false
	case status == fasthttp.StatusOK || status == fasthttp.StatusAccepted:
		l.accepted++
	default:
		l.refused++
	}
	return true
}

func (l *loaded) took(d time.Duration) { _ = l.latency.RecordValue(max(d.Microseconds(), 1)) }

// together sums what the connections saw.
func together(parts []loaded, took time.Duration) loaded {
	all := loaded{seconds: took.Seconds(), latency: newLatency()}
	for _, p := range parts {
		all.accepted, all.refused, all.unknown = all.accepted+p.accepted, all.refused+p.refused, all.unknown+p.unknown
		if p.latency != nil {
			all.latency.Merge(p.latency)
		}
	}
	return all
}

// let lets a crowd buy one unit after the other.
func (b *bench) let(ctx context.Context, c crowd) (loaded, error) {
	u, err := url.Parse(c.door)
	if err != nil {
		return loaded{}, err
	}
	client := &fasthttp.HostClient{Addr: u.Host, MaxConns: c.connections, ReadTimeout: 20 * time.Second,
		WriteTimeout: 20 * time.Second, MaxIdemponentCallAttempts: 1, NoDefaultUserAgentHeader: true}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	parts := make([]loaded, c.connections)
	turn := newTurns(c, time.Now())
	for n := range parts {
		wg.Go(func() { parts[n] = b.connection(ctx, client, c, turn) })
	}
	wg.Wait()
	all := together(parts, time.Since(turn.began))
	if all.accepted+all.refused == 0 && ctx.Err() == nil {
		return all, fmt.Errorf("%s gave no definite answer", c.door)
	}
	return all, ctx.Err()
}

// turns gives out the purchases of a crowd.
type turns struct {
	crowd
	began time.Time
	until time.Time // zero: no end but the count
	next  atomic.Int64
}

func newTurns(c crowd, now time.Time) *turns {
	t := &turns{crowd: c, began: now}
	if c.window > 0 {
		t.until = now.Add(c.window)
	}
	return t
}

func (t *turns) over(at time.Time) bool { return !t.until.IsZero() && !at.Before(t.until) }

// take gives the number of a purchase and the time for which it is intended; more is false at the end.
func (t *turns) take(now time.Time) (n int64, intended time.Time, more bool) {
	i := t.next.Add(1) - 1
	if t.count > 0 && i >= t.count {
		return 0, now, false
	}
	if intended = now; t.rate > 0 {
		intended = intendedAt(t.began, i, t.rate)
	}
	first := i == 0 // is asked however late it is: a load that saw nothing says nothing
	if t.distinct > 0 {
		i %= t.distinct
	}
	return i, intended, first || !t.over(intended)
}

// connection buys until the turns are over. One that was answered "not known" is asked again with its token.
func (b *bench) connection(ctx context.Context, client *fasthttp.HostClient, c crowd, turn *turns) loaded {
	l := loaded{latency: newLatency()}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	req.SetBodyString(`{"quantity":1}`)
	var key []byte
	for ctx.Err() == nil {
		i, intended, more := turn.take(time.Now())
		if !more || !sleepUntil(ctx, intended) {
			return l
		}
		req.SetRequestURI(c.door + "/api/v1/products/" + c.products[i%int64(len(c.products))] + "/orders")
		req.Header.SetBytesV("Authorization", b.bearers[i%int64(len(b.bearers))])
		key = strconv.AppendInt(append(append(key[:0], c.run...), '-'), i, 10)
		req.Header.SetBytesV("Idempotency-Key", key)
		for first := true; ; first = false {
			if ctx.Err() != nil || !first && turn.over(time.Now()) {
				return l
			}
			status := 0
			if client.Do(req, resp) == nil {
				status = resp.StatusCode()
			}
			if l.count(status) {
				l.took(time.Since(intended))
				break
			}
		}
	}
	return l
}
