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

// loaded is what one closed loop saw.
type loaded struct {
	accepted, refused, unknown int64 // requests: 200 or 202, other definite answers, the rest
	seconds                    float64
	latency                    *hdrhistogram.Histogram // microseconds of one request
}

// closedLoop lets so many connections buy one unit after the other for the time of a window.
// run makes their tokens unique.
func (b *bench) closedLoop(ctx context.Context, door, run string, products []string) (loaded, error) {
	u, err := url.Parse(door)
	if err != nil {
		return loaded{}, err
	}
	client := &fasthttp.HostClient{Addr: u.Host, MaxConns: b.s.connections, ReadTimeout: 20 * time.Second,
		WriteTimeout: 20 * time.Second, MaxIdemponentCallAttempts: 1, NoDefaultUserAgentHeader: true}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var wg sync.WaitGroup
	parts := make([]loaded, b.s.connections)
	began := time.Now()
	until := began.Add(b.s.window)
	for n := range parts {
		wg.Go(func() { parts[n] = b.connection(ctx, client, door, run, products, &next, until) })
	}
	wg.Wait()
	sum := loaded{seconds: time.Since(began).Seconds(), latency: newLatency()}
	for _, p := range parts {
		sum.accepted, sum.refused, sum.unknown = sum.accepted+p.accepted, sum.refused+p.refused, sum.unknown+p.unknown
		sum.latency.Merge(p.latency)
	}
	if sum.accepted+sum.refused == 0 && ctx.Err() == nil {
		return sum, fmt.Errorf("%s gave no definite answer", door)
	}
	return sum, ctx.Err()
}

func newLatency() *hdrhistogram.Histogram { return hdrhistogram.New(1, 60_000_000, 2) }

func (b *bench) connection(ctx context.Context, client *fasthttp.HostClient, door, run string, products []string, next *atomic.Int64, until time.Time) loaded {
	l := loaded{latency: newLatency()}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	req.SetBodyString(`{"quantity":1}`)
	var key []byte
	for ctx.Err() == nil {
		i := next.Add(1) - 1
		req.SetRequestURI(door + "/api/v1/products/" + products[i%int64(len(products))] + "/orders")
		req.Header.SetBytesV("Authorization", b.bearers[i%int64(len(b.bearers))])
		key = strconv.AppendInt(append(append(key[:0], run...), '-'), i, 10)
		req.Header.SetBytesV("Idempotency-Key", key)
		for definite := false; !definite; { // unknown: the same token again
			if ctx.Err() != nil || time.Now().After(until) {
				return l
			}
			began := time.Now()
			err := client.Do(req, resp)
			definite = l.count(err, resp.StatusCode(), time.Since(began))
		}
	}
	return l
}

func (l *loaded) count(err error, status int, took time.Duration) (definite bool) {
	switch {
	case err != nil || status >= 500 || status == fasthttp.StatusTooManyRequests:
		l.unknown++
		return false
	case status == fasthttp.StatusOK || status == fasthttp.StatusAccepted:
		l.accepted++
	default:
		l.refused++
	}
	_ = l.latency.RecordValue(max(took.Microseconds(), 1))
	return true
}
