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
	t.Run("F48_beside_a_consumer_that_waits", func(t *testing.T) { f48BesideAConsumerThatWaits(t, s.For(t)) })
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
	killed := waitingForStock(t, db)
	if _, err := db.Exec("KILL ?", killed.connection); err != nil {
		t.Fatal(err)
	}
	gone(t, db, killed)
	gone(t, db, waitingForStock(t, db)) // its lock wait has timed out
	waitingForStock(t, db)              // and it is tried again
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

// waitingForStock waits until a transaction waits for the stock row.
func waitingForStock(t *testing.T, db *sql.DB) (w waiting) {
	t.Helper()
	shop.Eventually(t, 30*time.Second, "a transaction that waits for the stock row", func() (bool, string) {
		err := db.QueryRow(`SELECT t.trx_mysql_thread_id, t.trx_id FROM information_schema.innodb_trx t
			JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
			WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE() LIMIT 1`).Scan(&w.connection, &w.transaction)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
	return w
}

// gone waits until the transaction has ended.
func gone(t *testing.T, db *sql.DB, w waiting) {
	t.Helper()
	shop.Eventually(t, 30*time.Second, "the end of the transaction that waited", func() (bool, string) {
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_id = ?", w.transaction).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0, "it still waits"
	})
}
