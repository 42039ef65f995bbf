//go:build stack

package fault

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/wire"
	"seckill/application"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F37: the flows of finished tokens are gone, as a time to live would leave it. The same purchase again and the same
// message again make no second order, and both sides agree after a reconciliation at the latest.
func TestF37TheGuardIsGoneBeforeTheDuplicateComes(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack, "SECKILL_RECONCILE__SAFE_AGE=1s")
	s.Start()
	n := tenth(t, 100)
	product := onSale(t, s, int64(10*n), 0)
	repeats, republished := crowdOf(product, "repeats", n), crowdOf(product, "republished", n)
	crowd := append(append([]*purchase{}, repeats...), republished...)
	orders := int64(len(crowd))
	atOnce(s, crowd)
	holds(t, s, product, orders, orders, crowd...)
	var messages [][]byte
	for _, f := range flowsNow(t, s, republished) {
		messages = append(messages, messageOf(t, f))
	}
	expire(t, s, crowd)
	atOnce(s, repeats)
	s.Publish(messages...)
	for _, p := range repeats {
		converge(t, s, p)
	}
	waitLag(t, s)
	shop.Eventually(t, 90*time.Second, "a reconciliation that finds nothing", func() (bool, string) {
		report, a := reconcileOnce(s, product, application.ReconcileApply)
		v, _ := s.Stock(product)
		return a.Status == http.StatusOK && v.State == "open" && len(report.Found) == 0, a.String()
	})
	s.WaitOpen(product)
	holds(t, s, product, orders, orders, crowd...)
	s.Stop()
}

// flowsNow are the crowd's flows as the gate has them.
func flowsNow(t *testing.T, s *shop.Shop, crowd []*purchase) []domain.Flow {
	t.Helper()
	keys := make([]domain.Key, len(crowd))
	for i, p := range crowd {
		key, err := domain.NewKey(p.product, p.user, p.token)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
	}
	replies, err := s.Gate().Check(context.Background(), keys)
	if err != nil {
		t.Fatal(err)
	}
	flows := make([]domain.Flow, len(replies))
	for i, r := range replies {
		if flows[i] = r.Flow; r.Flow.IsZero() {
			t.Fatalf("%s has no flow", crowd[i].user)
		}
	}
	return flows
}

// expire deletes the crowd's flows.
func expire(t *testing.T, s *shop.Shop, crowd []*purchase) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Redis})
	defer func() { _ = client.Close() }()
	for _, p := range crowd {
		gone, err := client.HDel(context.Background(), "seckill:{"+p.product+"}@"+p.user, p.token).Result()
		if err != nil || gone != 1 {
			t.Fatalf("flow of %s: %d deleted, %v", p.user, gone, err)
		}
	}
}

// messageOf is the message of one flow, as the service writes it.
func messageOf(t *testing.T, f domain.Flow) []byte {
	t.Helper()
	body, err := wire.Encode(domain.Batch{ID: harness.UniqueID(t), Kind: domain.BatchDeduct, Items: []domain.Deduction{domain.DeductionOf(f)}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
