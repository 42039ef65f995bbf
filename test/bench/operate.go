package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"seckill/application"
)

const (
	plenty      = 100_000_000 // units that no window sells
	drainWithin = 5 * time.Minute
	drainLook   = 20 * time.Millisecond
)

// open puts products on sale and waits until the gate sells them.
func (b *bench) open(ctx context.Context, admin string, products []string, units int64) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	body := fmt.Appendf(nil, `{"total":%d}`, units)
	for _, p := range products { // first all of them: their gates are built side by side
		if err := b.operate(ctx, admin, http.MethodPut, "/admin/v1/products/"+p, "", body, nil); err != nil {
			return err
		}
	}
	for _, p := range products {
		if err := b.waitOpen(ctx, admin, p); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) waitOpen(ctx context.Context, admin, product string) error {
	for {
		v, err := b.product(ctx, admin, product)
		if err != nil {
			return err
		}
		if v.Gate != nil && !v.Gate.Shut && v.State == "open" {
			return nil
		}
		time.Sleep(drainLook)
	}
}

func (b *bench) product(ctx context.Context, admin, product string) (v application.StockView, err error) {
	return v, b.operate(ctx, admin, http.MethodGet, "/admin/v1/products/"+product, "", nil, &v)
}

// drain waits until no flow is without its row.
func (b *bench) drain(ctx context.Context) error { return b.drainAt(ctx, b.s.admin) }

func (b *bench) drainAt(ctx context.Context, admin string) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	for {
		p, err := b.pipeline(ctx, admin)
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
func (b *bench) verify(ctx context.Context, admin string, products []string, accepted int64) error {
	var confirmed int64
	for _, p := range products {
		var v application.Verification
		if err := b.operate(ctx, admin, http.MethodGet, "/admin/v1/verification?productId="+p, "", nil, &v); err != nil {
			return err
		}
		confirmed += v.Confirmed
		for _, i := range v.Invariants {
			if i.Verdict == "broken" {
				return fmt.Errorf("%w: %s (%s) on %s: %+v", errBroken, i.Name, i.Title, p, i.Findings)
			}
		}
	}
	// More rows than acceptances are purchases whose answer the end of the window left unknown.
	if confirmed < accepted {
		return fmt.Errorf("%w: %d purchases were accepted, %d are confirmed orders", errBroken, accepted, confirmed)
	}
	return nil
}

func (b *bench) pipeline(ctx context.Context, admin string) (application.PipelineView, error) {
	var v application.PipelineView
	return v, b.operate(ctx, admin, http.MethodGet, "/admin/v1/pipeline", "", nil, &v)
}

// operate asks an operators' door; v may be nil.
func (b *bench) operate(ctx context.Context, admin, method, path, key string, body []byte, v any) error {
	answer, err := b.read(ctx, admin, method, path, key, body)
	if err != nil || v == nil {
		return err
	}
	return json.Unmarshal(answer, v)
}

// read gives the answer of an operators' door.
func (b *bench) read(ctx context.Context, admin, method, path, key string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, admin+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.operator)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s answered %s: %.300s", method, path, resp.Status, answer)
	}
	return answer, err
}
