package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startEmbedded starts a service with everything in its process, on a folder that goes with it.
func (b *bench) startEmbedded(ctx context.Context) (*process, error) {
	if b.s.binary == "" {
		return nil, errNeeds
	}
	folder, err := os.MkdirTemp("", "seckill-bench-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.s.binary, "serve", "--profile", "embedded", "--data", folder)
	cmd.Env = append(append(os.Environ(), doorSettings...), keyVariable+"="+b.s.key)
	p, err := start(ctx, cmd, filepath.Join(b.s.out, "embedded.log"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	p.after = func() error { return os.RemoveAll(folder) }
	return p, nil
}

// playEmbedded is figure 12.
func playEmbedded(ctx context.Context, r *round) (err error) {
	p, err := r.startEmbedded(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	r.meter["embedded"] = p.pid()
	defer delete(r.meter, "embedded")
	_, products := r.names(1)
	if err := r.open(ctx, p.operators, products, plenty); err != nil {
		return err
	}
	var seen salesSeen
	bare, err := r.beside(ctx, func() (err error) {
		seen, err = r.sell(ctx, "sales, embedded", doors{p.buyers, p.operators}, products, 0)
		return err
	})
	if err == nil {
		r.result.record("12", over(seen.rows, bare.perSecond))
	}
	return err
}

// playStart are figures 13a and 13b.
func playStart(ctx context.Context, r *round) error {
	began := time.Now()
	p, err := r.startEmbedded(ctx)
	if err != nil {
		return err
	}
	err = r.ready(ctx, p.buyers)
	took := time.Since(began).Seconds()
	if err := errors.Join(err, p.stop()); err != nil {
		return err
	}
	r.result.record("13a", took)
	s, drop, err := r.prepareService(ctx)
	if err != nil {
		return err
	}
	began = time.Now()
	if err := r.run(ctx, s, "start"); err != nil {
		return errors.Join(err, drop())
	}
	s.after = drop
	err = r.ready(ctx, s.buyers)
	took = time.Since(began).Seconds()
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	r.result.record("13b", took)
	return nil
}

// ready asks until a service says that it is.
func (b *bench) ready(ctx context.Context, door string) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, door+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := b.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if !sleepUntil(ctx, time.Now().Add(drainLook)) {
			return fmt.Errorf("%s is not ready: %w", door, errors.Join(err, ctx.Err()))
		}
	}
}
