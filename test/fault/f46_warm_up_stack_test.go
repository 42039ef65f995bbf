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

	"seckill/domain"
	"seckill/test/shop"
)

// F46: neither a restart nor putting the product on sale again gives back what is accepted and not yet
// applied. The consumer is held up by a lock on its table, through two restarts.
func TestF46NothingWarmsUpALiveStock(t *testing.T) {
	t.Parallel()
	const total, first, more = 100, 60, 100
	s := shop.New(t, shop.Stack)
	s.Start()
	product := onSale(t, s, total, 0)
	unlock := lockOrders(t, s)
	early := make([]*purchase, first)
	for i := range early {
		early[i] = &purchase{product: product, user: fmt.Sprintf("early%d", i), token: "t", quantity: 1}
	}
	atOnce(s, early)
	for _, p := range early {
		if p.answer.Status != http.StatusAccepted {
			t.Errorf("%s: %v", p.user, p.answer)
		}
	}
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
	late := make([]*purchase, more)
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
	if sold != total-first {
		t.Errorf("%d of %d sold after the restarts", sold, total-first)
	}
	unlock()
	holds(t, s, product, total, total, append(early, late...)...)
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
