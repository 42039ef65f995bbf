package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"seckill/application"
)

// inFlightWithin is how long a reconciliation may leave alone what was sold last.
const inFlightWithin = 2 * time.Minute

// playReconcile is figure 11.
func playReconcile(ctx context.Context, r *round) error {
	f, err := r.filledGate(ctx)
	if err != nil {
		return err
	}
	var compared int64
	var took float64
	for deadline := time.Now().Add(inFlightWithin); compared < f.sold; {
		if time.Now().After(deadline) || !sleepUntil(ctx, time.Now().Add(time.Second)) {
			return fmt.Errorf("the dry run compared %d rows of %d", compared, f.sold)
		}
		began := time.Now()
		if compared, err = r.reconcile(ctx, f.product); err != nil {
			return err
		}
		took = time.Since(began).Seconds()
	}
	r.note("reconcile", map[string]float64{"rows": float64(compared), "seconds": took})
	r.result.record("11a", over(float64(compared), took))
	return r.sellBesideReconcile(ctx, f.product)
}

// reconcile is a dry run over a product, and gives how many rows it compared.
func (r *round) reconcile(ctx context.Context, product string) (compared int64, err error) {
	var report application.ReconcileReport
	err = r.operate(ctx, r.s.admin, http.MethodPost, "/admin/v1/reconciliations", "",
		fmt.Appendf(nil, `{"mode":"dry-run","productId":%q}`, product), &report)
	return report.Orders, err
}

// sellBesideReconcile measures figure 11b on a product of its own.
func (r *round) sellBesideReconcile(ctx context.Context, filled string) error {
	seen, err := r.sales(ctx)
	if err != nil {
		return err
	}
	_, products := r.names(1)
	if err := r.open(ctx, r.s.admin, products, plenty); err != nil {
		return err
	}
	half := func() (loaded, error) { return r.let(ctx, r.steadyCrowd(products, seen)) }
	without, err := half()
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := r.reconcile(running, filled); err != nil {
				if running.Err() != nil {
					err = nil
				}
				ended <- err
				return
			}
		}
	}()
	with, err := half()
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	r.note("sales at half the rate, alone", detail(without, nil))
	r.note("sales at half the rate, beside reconcile", detail(with, nil))
	r.result.record("11b", over(with.p99(), without.p99()))
	if err := r.drain(ctx); err != nil {
		return err
	}
	return r.verify(ctx, r.s.admin, products, without.accepted+with.accepted)
}
