//go:build stack

package fault

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/harness"
	"seckill/test/shop"
)

const l7 = "the database is lost, stands still, or its answer is"

// L7: the database is killed, stands still, holds locks and breaks deadlocks, and nothing is lost or
// applied twice.
func TestL7Database(t *testing.T) {
	t.Parallel()
	s, servers := ownParts(t, harness.Parts{MySQL: true}, t.TempDir())
	s.Start()
	for range campaign.Size(t, 1, 20) {
		t.Run("killed", func(t *testing.T) {
			layer := campaign.Open(t, "L7", l7)
			sellThrough(t, s.For(t), layer, func() {
				layer.Fault("database kill -9")
				killAndStart(t, servers.MySQL)
			})
		})
	}
	for range campaign.Size(t, 1, 10) {
		t.Run("stands_still", func(t *testing.T) {
			layer := campaign.Open(t, "L7", l7)
			sellThrough(t, s.For(t), layer, func() {
				layer.Fault("database stands still for 5 s")
				must(t, frozen(servers.MySQL, 5*time.Second)())
			})
		})
	}
	for range campaign.Size(t, 1, 50) {
		t.Run("lock_wait", func(t *testing.T) { l7LockWait(t, s.For(t)) })
	}
	t.Run("deadlocks", func(t *testing.T) { l7Deadlocks(t, s.For(t)) })
}

// l7LockWait has a transaction of the consumer wait for its stock row until it may not wait any longer.
func l7LockWait(t *testing.T, s *shop.Shop) {
	layer := campaign.Open(t, "L7", l7)
	product, db := onSale(t, s, crowdSize*9/10, 0), database(t, s)
	drive.Sell(t, drive.Sale{Doors: []*shop.Shop{s}, Product: product, Requests: crowdSize, Figures: layer, Within: liveWithin, Fault: func() {
		layer.Fault("lock wait timeout")
		release := holdStock(t, db, product)
		gone(t, db, waitingForStock(t, db))
		release()
	}})
}

// l7Deadlocks has a stranger lock a product's rows in the order that is the reverse of the consumers',
// with so much to undo that the consumers are chosen to die.
func l7Deadlocks(t *testing.T, s *shop.Shop) {
	layer := campaign.Open(t, "L7", l7)
	doors := []*shop.Shop{s}
	for range campaign.Size(t, 1, 7) { // with s two; eight in a full run
		more := s.Another()
		more.Start()
		doors = append(doors, more)
	}
	db := database(t, s)
	_, err := db.Exec("CREATE TABLE IF NOT EXISTS heavy (n INT PRIMARY KEY)")
	must(t, err)
	seconds := campaign.Size(t, 6, 600)
	product := onSale(t, s, int64(seconds*100), 0)
	before := deadlocks(t, db)
	var died int64
	drive.Sell(t, drive.Sale{Doors: doors, Product: product, Requests: seconds * 100, Rate: 100, At: 0.1, Figures: layer, Within: liveWithin, Fault: func() {
		for end := time.Now().Add(time.Duration(seconds) * time.Second * 8 / 10); time.Now().Before(end); {
			if lockInReverse(t, db, product) {
				died++
			}
		}
	}})
	broken := deadlocks(t, db) - before - died
	layer.Add(campaign.Figures{Faults: map[string]int64{"deadlock that a consumer died in": broken}})
	if broken == 0 {
		t.Errorf("no consumer met a deadlock; the stranger died in %d", died)
	}
	for _, more := range doors[1:] {
		more.Stop()
	}
}

// lockInReverse locks the stock row and then the product's orders. It says whether the stranger itself died.
func lockInReverse(t *testing.T, db *sql.DB, product string) bool {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{
		"INSERT INTO heavy SELECT seq FROM seq_1_to_3000",
		"SELECT stock FROM product_stock WHERE product_id = ? FOR UPDATE",
		"SELECT COUNT(*) FROM (SELECT id FROM orders WHERE product_id = ? FOR UPDATE) locked",
	} {
		var args []any
		if bytes.ContainsRune([]byte(statement), '?') {
			args = append(args, product)
		}
		if _, err := tx.Exec(statement, args...); err != nil {
			if !isDeadlock(err) {
				t.Fatalf("%s: %v", statement, err)
			}
			return true
		}
		if len(args) > 0 {
			time.Sleep(30 * time.Millisecond) // a consumer inserts its rows and comes to the stock row
		}
	}
	return false
}

func isDeadlock(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == 1213
}

// deadlocks is how many the server has broken since its start.
func deadlocks(t *testing.T, db *sql.DB) (n int64) {
	t.Helper()
	var name string
	must(t, db.QueryRow("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'").Scan(&name, &n))
	return n
}

// L7: the power of the database is cut; it flushes at each commit, so what it acknowledged is there.
func TestL7PowerCut(t *testing.T) {
	t.Parallel()
	disk := harness.NewDisk(t)
	s, servers := ownParts(t, harness.Parts{MySQL: true}, disk.Dir)
	s.Start()
	layer := campaign.Open(t, "L7", l7)
	for range campaign.Size(t, 1, 10) {
		sellThrough(t, s, layer, func() {
			layer.Fault("database power cut, flush at each commit")
			cutPower(t, disk, servers.MySQL)
		})
	}
}

// L7: the answer to COMMIT is swallowed, time and again: the consumer cannot know, tries again, and meets
// its own rows.
func TestL7CommitSwallowed(t *testing.T) {
	t.Parallel()
	layer := campaign.Open(t, "L7", l7)
	target, err := mysql.ParseDSN(harness.MySQLDatabase(t))
	must(t, err)
	swallower := &swallower{}
	target.Addr = relayTo(t, target.Addr, swallower.pass)
	s := shop.New(t, shop.Stack, "SECKILL_DATABASE__DSN="+target.FormatDSN())
	s.DSN = target.FormatDSN()
	s.Start()
	wanted := int64(campaign.Size(t, 5, 200))
	for swallower.count.Load() < wanted {
		before := swallower.count.Load()
		sellThrough(t, s, layer, func() {
			swallower.armed.Store(true)
			shop.Eventually(t, time.Minute, "answers swallowed", func() (bool, string) {
				return swallower.count.Load() >= before+5, "too few commits"
			})
			swallower.armed.Store(false)
		})
		layer.Add(campaign.Figures{Faults: map[string]int64{"reply to COMMIT swallowed": swallower.count.Load() - before}})
	}
}

// swallower passes a connection to the database on; while it is armed, each second COMMIT takes effect and
// its connection is cut before the answer.
type swallower struct {
	armed atomic.Bool
	seen  atomic.Int64
	count atomic.Int64
}

// commitPacket is COM_QUERY "COMMIT", which the driver writes at once and then waits for its answer.
var commitPacket = []byte("\x07\x00\x00\x00\x03COMMIT")

func (s *swallower) pass(c relayed) {
	var swallow atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { _, _ = c.client.Close(), c.server.Close() }()
		b := make([]byte, 64<<10)
		for {
			n, err := c.client.Read(b)
			if err != nil {
				return
			}
			if s.armed.Load() && bytes.Equal(b[:n], commitPacket) && s.seen.Add(1)%2 == 0 {
				swallow.Store(true)
			}
			if _, err := c.server.Write(b[:n]); err != nil {
				return
			}
		}
	})
	wg.Go(func() {
		defer func() { _, _ = c.client.Close(), c.server.Close() }()
		_, _ = io.Copy(struct{ io.Writer }{c.client}, readerUntil{c.server, &swallow, &s.count})
	})
	wg.Wait()
}

// readerUntil ends with the first answer that is to be swallowed.
type readerUntil struct {
	io.Reader
	swallow *atomic.Bool
	count   *atomic.Int64
}

func (r readerUntil) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 && r.swallow.Load() {
		r.count.Add(1)
		return 0, io.EOF
	}
	return n, err
}
