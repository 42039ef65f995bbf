package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"seckill/adapters/echohttp"
	"seckill/application"
)

const (
	plenty       = 100_000_000 // units that no window sells
	drainWithin  = 2 * time.Minute
	drainLook    = 20 * time.Millisecond
	batchVisible = 8 // a mean batch below this is worth a word
)

// bench drives one service and the bare server beside it.
type bench struct {
	s        settings
	bare     string
	operator string
	bearers  [][]byte
	client   *http.Client
	serial   int
}

func newBench(s settings, tokens *echohttp.Tokens, bare string) (*bench, error) {
	b := &bench{s: s, bare: bare, client: &http.Client{Timeout: 5 * time.Minute}}
	var err error
	if b.operator, err = tokens.Issue("bench", []string{"stock:admin", "ops:read"}, 12*time.Hour); err != nil {
		return nil, err
	}
	for i := range s.buyers {
		t, err := tokens.Issue("buyer-"+strconv.Itoa(i), []string{"order:create", "order:read"}, 12*time.Hour)
		if err != nil {
			return nil, err
		}
		b.bearers = append(b.bearers, []byte("Bearer "+t))
	}
	return b, nil
}

// rounds plays every scenario once unrecorded and short, then so many times in turn.
func (b *bench) rounds(ctx context.Context) (*result, error) {
	r := newResult(b.s)
	for round := range b.s.runs + 1 {
		window := b.s.window
		if round == 0 {
			b.s.window = min(window, time.Second)
		}
		for _, products := range b.s.products {
			samples, err := b.round(ctx, products)
			if err != nil {
				return nil, err
			}
			if round == 0 {
				continue
			}
			for _, one := range samples {
				r.add(one)
				fmt.Fprintf(os.Stderr, "round %d  %s\n", round, one)
			}
		}
		b.s.window = window
	}
	return r, nil
}

func (b *bench) round(ctx context.Context, products int) ([]sample, error) {
	var samples []sample
	for _, scenario := range []func(context.Context, int) (sample, error){b.bareEcho, b.sales, b.refusals} {
		one, err := scenario(ctx, products)
		if err != nil {
			return nil, err
		}
		samples = append(samples, one)
	}
	return samples, nil
}

func (b *bench) bareEcho(ctx context.Context, products int) (sample, error) {
	run, names := b.names(products)
	l, err := b.closedLoop(ctx, b.bare, run, names)
	if err != nil {
		return sample{}, err
	}
	s := sampleOf("bare", products, l)
	s.Values["acceptedPerSecond"] = float64(l.accepted) / l.seconds
	return s, nil
}

func (b *bench) sales(ctx context.Context, products int) (sample, error) {
	run, names := b.names(products)
	if err := b.open(ctx, names, plenty); err != nil {
		return sample{}, err
	}
	before, err := b.pipeline(ctx)
	if err != nil {
		return sample{}, err
	}
	began := time.Now()
	l, err := b.closedLoop(ctx, b.s.target, run, names)
	if err != nil {
		return sample{}, err
	}
	after, err := b.pipeline(ctx)
	if err != nil {
		return sample{}, err
	}
	loadSeconds, loadEnd := time.Since(began).Seconds(), time.Now()
	if err := b.drain(ctx); err != nil {
		return sample{}, err
	}
	s := sampleOf("sales", products, l)
	s.Values["acceptedPerSecond"] = float64(l.accepted) / l.seconds
	s.Values["rowsPerSecond"] = float64(after.AppliedRows-before.AppliedRows) / loadSeconds
	s.Values["drainSeconds"] = time.Since(loadEnd).Seconds()
	s.Values["meanDeductBatch"] = ratio(after.BatchedCommands-before.BatchedCommands, after.Batches-before.Batches)
	s.Values["meanSentBatch"] = ratio(after.SentFlows-before.SentFlows, after.SentBatches-before.SentBatches)
	s.Values["meanAppliedGroup"] = ratio(after.AppliedRows-before.AppliedRows, after.AppliedGroups-before.AppliedGroups)
	return s, b.verify(ctx, names, l.accepted)
}

// refusals asks for products that are sold out.
func (b *bench) refusals(ctx context.Context, products int) (sample, error) {
	run, names := b.names(products)
	if err := b.open(ctx, names, 1); err != nil {
		return sample{}, err
	}
	window := b.s.window
	b.s.window = 200 * time.Millisecond // sells the one unit of each product
	_, err := b.closedLoop(ctx, b.s.target, run+"a", names)
	b.s.window = window
	if err != nil {
		return sample{}, err
	}
	l, err := b.closedLoop(ctx, b.s.target, run+"b", names)
	if err != nil {
		return sample{}, err
	}
	s := sampleOf("refusals", products, l)
	s.Values["refusedPerSecond"] = float64(l.refused) / l.seconds
	return s, nil
}

// names gives a prefix for tokens and fresh products.
func (b *bench) names(products int) (run string, names []string) {
	b.serial++
	run = fmt.Sprintf("bench-%x-%d", time.Now().UnixMilli(), b.serial)
	for n := range products {
		names = append(names, run+"-p"+strconv.Itoa(n))
	}
	return run, names
}

// open puts products on sale and waits until the gate sells them.
func (b *bench) open(ctx context.Context, products []string, units int64) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	body := fmt.Appendf(nil, `{"total":%d}`, units)
	for _, p := range products {
		var v application.StockView
		if err := b.operate(ctx, http.MethodPut, "/admin/v1/products/"+p, body, &v); err != nil {
			return err
		}
		for v.Gate == nil || v.Gate.Shut || v.State != "open" {
			if err := b.operate(ctx, http.MethodGet, "/admin/v1/products/"+p, nil, &v); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain waits until no flow is without its row.
func (b *bench) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	for {
		p, err := b.pipeline(ctx)
		if err != nil {
			return fmt.Errorf("wait for the rows: %w", err)
		}
		if p.OpenFlows != nil && *p.OpenFlows == 0 {
			return nil
		}
		time.Sleep(drainLook)
	}
}

// verify holds the rows against what was accepted, and asks for the invariants.
func (b *bench) verify(ctx context.Context, products []string, accepted int64) error {
	var confirmed int64
	for _, p := range products {
		var v application.Verification
		if err := b.operate(ctx, http.MethodGet, "/admin/v1/verification?productId="+p, nil, &v); err != nil {
			return err
		}
		confirmed += v.Confirmed
		for _, i := range v.Invariants {
			if i.Verdict == "broken" {
				return fmt.Errorf("invariant %s (%s) is broken on %s: %+v", i.Name, i.Title, p, i.Findings)
			}
		}
	}
	// More rows than acceptances are purchases whose answer the end of the window left unknown.
	if confirmed < accepted {
		return fmt.Errorf("%d purchases were accepted, %d are confirmed orders", accepted, confirmed)
	}
	return nil
}

func (b *bench) pipeline(ctx context.Context) (application.PipelineView, error) {
	var v application.PipelineView
	return v, b.operate(ctx, http.MethodGet, "/admin/v1/pipeline", nil, &v)
}

func (b *bench) operate(ctx context.Context, method, path string, body []byte, v any) error {
	req, err := http.NewRequestWithContext(ctx, method, b.s.admin+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+b.operator)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s answered %s: %.300s", method, path, resp.Status, answer)
	}
	return json.Unmarshal(answer, v)
}

func ratio(n, d int64) float64 {
	if d == 0 {
		return 0
	}
	return float64(n) / float64(d)
}
