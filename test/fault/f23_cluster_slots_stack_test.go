//go:build stack

package fault

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F23: the service sells on a cluster of three masters, whatever slot a product is in. (The gate's
// contract runs there, too.)
func TestF23ProductsOfEverySlotAreSoldOnACluster(t *testing.T) {
	t.Parallel()
	addrs := harness.ClusterAddrs(t)
	s := shop.New(t, shop.Stack, "SECKILL_REDIS__ADDRS="+strings.Join(addrs, ","))
	s.Start()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })

	masters := map[string]bool{}
	products := make([]string, tenth(t, 200))
	var crowd []*purchase
	for i := range products {
		products[i] = onSale(t, s, 4, 0)
		master, err := client.MasterForKey(context.Background(), "{"+products[i]+"}")
		if err != nil {
			t.Fatal(err)
		}
		masters[master.Options().Addr] = true
		for u := range 5 {
			crowd = append(crowd, &purchase{product: products[i], user: fmt.Sprintf("u%d", u), token: "t", quantity: 1})
		}
	}
	if len(masters) != len(addrs) {
		t.Errorf("the products are on %d masters", len(masters))
	}
	atOnce(s, crowd) // of all products at once: batches go to every master
	of := map[string][]*purchase{}
	for _, p := range crowd {
		of[p.product] = append(of[p.product], p)
		if p.answer.Status != http.StatusAccepted && p.answer.Code() != domain.CodeStockNotEnough {
			t.Errorf("%s of %s: %v", p.product, p.user, p.answer)
		}
	}
	for _, product := range products {
		holds(t, s, product, 4, 4, of[product]...)
	}
}
