//go:build stack

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"seckill/application"
	"seckill/domain"
	"seckill/test/shop"
)

// A flow whose message was deleted: a dry run reports exactly it and changes nothing, the apply of that
// plan makes the order, and the plan is then outdated.
func TestReconcileRepairsAFlowWhoseMessageWasDeleted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile, relayOff, "SECKILL_RECONCILE__SAFE_AGE=1s", "SECKILL_RECONCILE__POLICY=report-only")
		startReachable(s)
		product := onSale(t, s, 10)
		if a := s.Buy(t.Context(), product, "alice", "t", 1); !a.Accepted() { // what is well is not reported
			t.Fatal(a)
		}
		s.WaitOrder(product, "alice", "t", "confirmed")
		taken := take(t, s, product, 1)
		_, before := s.Stock(product)

		var plan application.ReconcileReport
		shop.Eventually(t, 30*time.Second, "the dry run finds the flow", func() (bool, string) {
			var a shop.Answer
			plan, a = reconcile(s, map[string]any{"mode": "dry-run", "productId": product})
			return plan.Found[application.AnomalyOpenWithoutRow] == 1 && len(plan.Found) == 1, a.String()
		})
		if len(plan.Anomalies) != 1 || plan.Repaired != 0 ||
			plan.Anomalies[0].User != taken[0].Key.User() || plan.Anomalies[0].Token != taken[0].Key.Token() || plan.Anomalies[0].Done {
			t.Errorf("the dry run: %+v", plan)
		}
		if _, after := s.Stock(product); string(after.Body) != string(before.Body) {
			t.Errorf("a dry run changed %s to %s", before.Body, after.Body)
		}
		if a := s.Order(product, taken[0].Key.User(), taken[0].Key.Token()); a.Text("status") != "pending" {
			t.Errorf("the order after a dry run: %v", a)
		}

		apply := map[string]any{"mode": "apply", "planId": plan.PlanID}
		if done, a := reconcile(s, apply); a.Status != http.StatusOK || done.Repaired < 1 { // the order may be there at once, and the gate is told of it
			t.Fatalf("apply: %v", a)
		}
		waitOrders(s, taken)
		shop.Eventually(t, 30*time.Second, "the plan is outdated", func() (bool, string) {
			_, a := reconcile(s, apply)
			return a.Status == http.StatusConflict && a.Code() == domain.CodePlanOutdated, fmt.Sprint(a)
		})
		wantOrders(t, s, product, 2)
	})
}

func reconcile(s *shop.Shop, request map[string]any) (r application.ReconcileReport, a shop.Answer) {
	a = s.Admin(http.MethodPost, "/admin/v1/reconciliations", request)
	_ = json.Unmarshal(a.Body, &r)
	return r, a
}
