//go:build stack

package fault

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"seckill/domain"
	"seckill/test/shop"
)

// F46: neither a restart nor putting the product on sale again gives back what is accepted and not yet
// applied. The consumer is held up by a lock on its table, through two restarts.
func TestF46NothingWarmsUpALiveStock(t *testing.T) {
	t.Parallel()
	const total, first = 100, 60
	s := shop.New(t, shop.Stack)
	s.Start()
	product := onSale(t, s, total, 0)
	unlock := lockOrders(t, s)
	early := sellEarly(t, s, product, first)
	for restart := range 2 {
		s.Kill()
		s.Start()
		shop.Eventually(t, time.Minute, "served again", func() (bool, string) {
			v, a := s.Stock(product)
			return v.Gate != nil && v.State == "open" && !v.Gate.Shut, a.String()
		})
		if a := s.Admin(http.MethodPut, "/admin/v1/products/"+product, map[string]int64{"total": total}); a.Status != http.StatusOK {
			t.Errorf("put on sale again: %v", a)
		}
		if a := s.Admin(http.MethodPut, "/admin/v1/products/"+product, map[string]int64{"total": total + 1}); a.Code() != domain.CodeProductExists {
			t.Errorf("put on sale with another total: %v", a)
		}
		if v, a := s.Stock(product); v.Gate == nil || v.Gate.Remaining != total-first || v.Ledger == nil || v.Ledger.Stock != total || v.Epoch != 1 {
			t.Errorf("after restart %d: %v", restart+1, a)
		}
	}
	late := sellTheRest(t, s, product, total-first)
	unlock()
	holds(t, s, product, total, total, append(early, late...)...)
}

// F46, the other road: a gate that is gone is filled again only when what was accepted is applied, and
// until then nobody is sold anything.
func TestF46ALostStockIsWarmedUpAfterTheDrain(t *testing.T) {
	t.Parallel()
	const total, first = 100, 60
	s := shop.New(t, shop.Stack)
	s.Start()
	product := onSale(t, s, total, 0)
	unlock := lockOrders(t, s)
	early := sellEarly(t, s, product, first)
	client := redis.NewClient(&redis.Options{Addr: s.Redis})
	t.Cleanup(func() { _ = client.Close() })
	keys, err := client.Keys(context.Background(), "seckill:{"+product+"}*").Result()
	if err != nil || len(keys) < first {
		t.Fatalf("%d keys: %v", len(keys), err)
	}
	if err := client.Del(context.Background(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	held := &purchase{product: product, user: "held", token: "t", quantity: total} // nobody can be sold so many
	noticed := 0
	shop.Eventually(t, time.Minute, "the loss is noticed", func() (bool, string) {
		if held.buy(s); held.answer.Code() == domain.CodeRebuilding {
			noticed++
		} else {
			t.Errorf("before the drain: %v", held.answer)
		}
		if a := s.Admin(http.MethodPut, "/admin/v1/products/"+product, map[string]int64{"total": total}); !a.Accepted() && a.Status != http.StatusServiceUnavailable {
			t.Errorf("put on sale again: %v", a)
		}
		v, a := s.Stock(product)
		return noticed >= 30 && v.State == "suspended", a.String() // three seconds, several ticks of everything
	})
	unlock()
	s.WaitOpen(product)
	if v, a := s.Stock(product); v.Gate == nil || v.Gate.Remaining != total-first || v.Epoch < 2 {
		t.Errorf("after the rebuild: %v", a)
	}
	late := sellTheRest(t, s, product, total-first)
	holds(t, s, product, total, total, append(early, late...)...)
}

func sellEarly(t *testing.T, s *shop.Shop, product string, n int) []*purchase {
	t.Helper()
	early := make([]*purchase, n)
	for i := range early {
		early[i] = &purchase{product: product, user: fmt.Sprintf("early%d", i), token: "t", quantity: 1}
	}
	atOnce(s, early)
	for _, p := range early {
		if p.answer.Status != http.StatusAccepted {
			t.Errorf("%s: %v", p.user, p.answer)
		}
	}
	return early
}

// sellTheRest lets in more buyers than there are units left.
func sellTheRest(t *testing.T, s *shop.Shop, product string, left int) []*purchase {
	t.Helper()
	late := make([]*purchase, 2*left+20)
	for i := range late {
		late[i] = &purchase{product: product, user: fmt.Sprintf("late%d", i), token: "t", quantity: 1}
	}
	atOnce(s, late)
	sold := 0
	for _, p := range late {
		if p.answer.Accepted() {
			sold++
		} else if p.answer.Code() != domain.CodeStockNotEnough {
			t.Errorf("%s: %v", p.user, p.answer)
		}
	}
	if sold != left {
		t.Errorf("%d sold of the %d that were left", sold, left)
	}
	return late
}

// lockOrders lets nobody write an order, and everyone read, until it is undone.
func lockOrders(t *testing.T, s *shop.Shop) (unlock func()) {
	t.Helper()
	db, err := sql.Open("mysql", s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(context.Background(), "LOCK TABLES orders READ"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "UNLOCK TABLES"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
}
