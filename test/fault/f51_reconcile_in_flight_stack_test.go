//go:build stack

package fault

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F51: reconciliations while accepted purchases wait for the database, one of them killed amid its work,
// give nothing back: what is sold on until nothing is left is as much as was put on sale.
func f51ReconcileInFlight(t *testing.T, s *shop.Shop) {
	n := tenth(t, 500)
	product := onSale(t, s, int64(2*n), 0)
	release := holdStock(t, database(t, s), product)
	first := crowdOf(product, "first", n)
	atOnce(s, first)
	reconcile(t, s, product, n)
	killAmidReconcile(s, product)
	s.Start()
	s.WaitOpen(product)
	reconcile(t, s, product, n)
	reconcile(t, s, product, n)
	second := crowdOf(product, "second", n+10)
	atOnce(s, second)
	v, a := s.Stock(product)
	if v.Gate == nil || v.Gate.Remaining != 0 || v.Ledger == nil || v.Ledger.Stock != int64(2*n) {
		t.Errorf("sold to zero, nothing applied: %v", a)
	}
	release()
	all := append(first, second...)
	for _, p := range all {
		converge(t, s, p)
	}
	if got := bought(all); got != int64(2*n) {
		t.Errorf("%d of %d units were sold", got, 2*n)
	}
	waitLag(t, s)
	holds(t, s, product, int64(2*n), int64(2*n), all...)
}

// killAmidReconcile kills the service as soon as it has the request.
func killAmidReconcile(s *shop.Shop, product string) {
	written := make(chan struct{}, 1)
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { written <- struct{}{} }})
	var asked sync.WaitGroup
	asked.Go(func() {
		s.Ask(ctx, http.MethodPost, s.Operators()+"/admin/v1/reconciliations", s.OperatorToken(),
			map[string]any{"mode": application.ReconcileApply, "productId": product})
	})
	<-written
	s.Kill()
	asked.Wait()
}

// F51, with the broker down: reconciliations meet flows that could not be sent and give nothing back.
func f51BrokerAway(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	product := onSale(t, s, 20, 0)
	if err := servers.Broker.Kill(); err != nil {
		t.Fatal(err)
	}
	crowd := crowdOf(product, "u", 10)
	atOnce(s, crowd)
	for range 3 {
		reconcile(t, s, product, 1)
	}
	late := crowdOf(product, "late", 20)
	atOnce(s, late)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := servers.Broker.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	all := append(crowd, late...)
	for _, p := range all {
		converge(t, s, p)
	}
	if n := bought(all); n != 20 {
		t.Errorf("%d of 20 units were sold", n)
	}
	holds(t, s, product, 20, 20, all...)
}

// reconcile waits until a dry run finds so many open flows old enough to act on, and applies.
func reconcile(t *testing.T, s *shop.Shop, product string, open int) {
	t.Helper()
	shop.Eventually(t, time.Minute, "flows that a reconciliation may touch", func() (bool, string) {
		report, a := reconcileOnce(s, product, application.ReconcileDryRun)
		return report.Found[application.AnomalyOpenWithoutRow] >= int64(open), a.String()
	})
	report, a := reconcileOnce(s, product, application.ReconcileApply)
	if a.Status != http.StatusOK {
		t.Fatalf("reconciliation: %v", a)
	}
	t.Logf("found %v, repaired %d", report.Found, report.Repaired)
}

func reconcileOnce(s *shop.Shop, product string, mode application.ReconcileMode) (report application.ReconcileReport, a shop.Answer) {
	a = s.Admin(http.MethodPost, "/admin/v1/reconciliations", map[string]string{"mode": string(mode), "productId": product})
	_ = json.Unmarshal(a.Body, &report)
	return report, a
}
