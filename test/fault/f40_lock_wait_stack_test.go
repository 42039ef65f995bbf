//go:build stack

package fault

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"seckill/test/shop"
)

// TestHeldStock plays the cases in which the stock row is locked by somebody else, one after another in
// one shop.
func TestHeldStock(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack, "SECKILL_RECONCILE__SAFE_AGE=1s")
	s.Start()
	t.Run("F40_lock_wait", func(t *testing.T) { f40LockWait(t, s.For(t)) })
	f51ReconcileInFlight(t, s) // last: it kills the shop and starts it again
}

// F40: a statement that waits too long for a lock, or whose connection is killed, leaves nothing of its
// transaction: no order without its deduction, and each order after the lock is gone.
func f40LockWait(t *testing.T, s *shop.Shop) {
	product := onSale(t, s, 100, 0)
	db := database(t, s)
	release := holdStock(t, db, product)
	crowd := crowdOf(product, "u", 10)
	atOnce(s, crowd)
	first := waitingUpdate(t, db, 0)
	if _, err := db.Exec("KILL ?", first.connection); err != nil {
		t.Fatal(err)
	}
	second := waitingUpdate(t, db, first.transaction) // after the kill
	waitingUpdate(t, db, second.transaction)          // after the lock wait
	for _, p := range crowd {
		if a := s.Order(product, p.user, p.token); a.Status != http.StatusOK || a.Text("status") != "pending" {
			t.Errorf("an order without its deduction: %v", a)
		}
	}
	release()
	for _, p := range crowd {
		converge(t, s, p)
	}
	waitLag(t, s)
	holds(t, s, product, int64(len(crowd)), int64(len(crowd)), crowd...)
}

type waiting struct{ connection, transaction int64 }

// waitingUpdate waits until a transaction other than the one before waits for the stock row.
func waitingUpdate(t *testing.T, db *sql.DB, before int64) (w waiting) {
	t.Helper()
	shop.Eventually(t, 30*time.Second, "a transaction that waits for the stock row", func() (bool, string) {
		err := db.QueryRow(`SELECT t.trx_mysql_thread_id, t.trx_id FROM information_schema.innodb_trx t
			JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
			WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE() AND t.trx_id <> ? LIMIT 1`, before).Scan(&w.connection, &w.transaction)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
	return w
}
