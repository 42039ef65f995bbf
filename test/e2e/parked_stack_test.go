//go:build stack

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"seckill/application"
	"seckill/test/harness"
	"seckill/test/shop"
)

// Orders for a product that nobody knows wait for an operator: a replay before the product is on sale says
// why it changed nothing, one afterwards sells as much as there is, by door and by command, and no replay
// sells anything twice.
func TestAnUnknownProductsOrdersAreReplayedOnceItIsOnSale(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Start()
	product := harness.UniqueID(t)
	const wanted, total = 5, 3
	var bodies [][]byte
	for i := range wanted {
		bodies = append(bodies, fmt.Appendf(nil, `{"productId":%q,"uid":"u%d","token":"t","quantity":1}`, product, i))
	}
	s.Publish(bodies...)
	ids := waitParked(t, s, wanted)
	matching := "parked replay --yes --reason unknown-product --product " + product
	expect(t, s, command{0, "unknown-product", "parked list"}, command{0, "0 listed", "parked list --reason poison"}, command{0, "unknown-product", "parked list --product " + product},
		command{0, "0 listed", "parked list --product nobody-knows"}, command{2, "no reason that", "parked list --reason because"}, command{1, "0 replayed, 5 left", matching})
	s.OpenSale(product, total, 0)
	a := s.Admin(http.MethodPost, "/admin/v1/parked/"+ids[0]+"/replay", map[string]string{"why": "on sale now"})
	if a.Status != http.StatusOK || a.Text("outcome") != string(application.ReplayDone) {
		t.Fatalf("replay one: %v", a)
	}
	door := " --admin " + s.Operators() + " --token " + s.OperatorToken()
	expect(t, s, command{0, "4 replayed, 0 left", matching + door}, command{0, "0 replayed, 0 left", matching},
		command{0, "1 replayed, 0 left", "parked replay --yes " + ids[0] + door}, command{1, "not-found", "parked replay --yes " + harness.UniqueID(t)},
		command{0, "0 listed", "parked list" + door})
	if v := s.HoldsEventually(product); v.Confirmed != total || v.Orders != wanted {
		t.Errorf("%d confirmed of %d orders, want %d of %d", v.Confirmed, v.Orders, total, wanted)
	}
	s.Stop()
}

// waitParked waits until so many messages are parked, and gives their ids.
func waitParked(t *testing.T, s *shop.Shop, n int) (ids []string) {
	t.Helper()
	shop.Eventually(t, time.Minute, "parked messages", func() (bool, string) {
		var list struct{ Items []struct{ ID string } }
		a := s.Admin(http.MethodGet, "/admin/v1/parked", nil)
		_ = json.Unmarshal(a.Body, &list)
		ids = nil
		for _, item := range list.Items {
			ids = append(ids, item.ID)
		}
		return len(ids) == n, a.String()
	})
	return ids
}
