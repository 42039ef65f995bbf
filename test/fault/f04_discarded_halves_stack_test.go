//go:build stack

package fault

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F04: the broker throws away the halves of accepted purchases after the maximum of checks, since Redis is
// away and every check says unknown. The relay finishes the purchases by itself, the halves are
// parked where an operator sees them, a reconciliation finds nothing to do, twice, and neither does a replay.
func f04DiscardedHalves(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	setBroker(t, servers, "transactionCheckMax", "2")
	defer setBroker(t, servers, "transactionCheckMax", "2880")
	n := tenth(t, 100)
	product := onSale(t, s, int64(2*n), 0)
	crowd := crowdOf(product, "u", n)
	halves := make([]string, n)
	for i, f := range flowsOf(t, s, crowd) {
		crowd[i].answer = shop.Answer{Status: http.StatusAccepted} // what its buyer was told
		halves[i] = string(messageOf(t, f))
	}
	leaveHalves(t, s, halves...)
	if err := servers.Redis.Stop(); err != nil {
		t.Fatal(err)
	}
	store := s.Store()
	shop.Eventually(t, 2*time.Minute, "every discarded half is parked", func() (bool, string) {
		found, err := store.FindParked(context.Background(), port.ParkDiscardedHalf, product, "", 1000)
		return err == nil && len(found) == n, fmt.Sprint(len(found), " of ", n, ", ", err)
	})
	if err := servers.Redis.Cont(); err != nil {
		t.Fatal(err)
	}
	holds(t, s, product, int64(n), int64(n), crowd...)
	changesNothing(t, s, product, func() {
		for range 2 {
			report, a := reconcileOnce(s, product, application.ReconcileApply)
			if len(report.Found) > 0 || a.Status != http.StatusOK {
				t.Errorf("a reconciliation found something: %v", a)
			}
		}
		ids := parkedAs(t, s, port.ParkDiscardedHalf)
		for range 2 { // as two operators may
			for _, r := range replay(t, s, map[string]any{"ids": ids[:min(len(ids), 100)]}) {
				if r.Outcome != application.ReplayDone {
					t.Errorf("replay: %+v", r)
				}
			}
		}
	})
	if left := parkedAs(t, s, port.ParkDiscardedHalf); len(left) > 0 {
		t.Errorf("%d still parked", len(left))
	}
}
