//go:build stack

package fault

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"seckill/test/harness"
	"seckill/test/shop"
)

// queues is how many the harness gives a topic.
const queues = 4

// TestOneTopic plays the cases that put messages on the topic, side by side in one shop.
func TestOneTopic(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Start()
	for name, play := range map[string]func(*testing.T, *shop.Shop){
		"F02_same_body_twice":     f02SameBodyTwice,
		"F12_poison":              f12Poison,
		"F17_ids_of_every_length": f17IDsOfEveryLength,
		"F43_rows_that_never_fit": f43RowsThatNeverFit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s.For(t))
		})
	}
}

// TestOwnServers plays the cases that stop Redis and the broker, one after another in one shop.
func TestOwnServers(t *testing.T) {
	t.Parallel()
	servers, err := harness.Start(t.Context(), harness.Parts{Redis: true, RocketMQ: true}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	s := shop.New(t, shop.Stack, "SECKILL_REDIS__ADDRS="+servers.Redis.Addr,
		"SECKILL_ROCKETMQ__NAME_SERVERS="+servers.NameServer.Addr, "SECKILL_ROCKETMQ__BROKER="+servers.Broker.Addr,
		"SECKILL_RECONCILE__SAFE_AGE=1s")
	s.Redis, s.NameServers = servers.Redis.Addr, servers.NameServer.Addr
	s.Start()
	started := time.Now()
	for _, c := range []struct {
		name string
		play func(*testing.T, *shop.Shop, *harness.Stack)
	}{
		{"F02_late_commit", f02LateCommit},
		{"F06_nil_error", f06NilError},
		{"F48_redis_away", f48RedisAway},
		{"F51_broker_away", f51BrokerAway},
		{"F53_consumer_outlives_the_start", func(t *testing.T, s *shop.Shop, _ *harness.Stack) { f53OutlivesTheStart(t, s, started) }},
	} {
		t.Run(c.name, func(t *testing.T) { c.play(t, s.For(t), servers) })
	}
	f53StopWhileRedisHangs(t, s, servers) // last: it ends the shop and starts it again
}

// waitLag waits until the consumer has finished every message.
func waitLag(t *testing.T, s *shop.Shop) {
	t.Helper()
	shop.Eventually(t, time.Minute, "no message waits", func() (bool, string) {
		v := s.Pipeline()
		return v.LagMessages != nil && *v.LagMessages == 0, fmt.Sprintf("%+v", v)
	})
}

// leaveHalves stores half messages of the service's producer group that nobody commits: the broker asks the
// service for their fate.
func leaveHalves(t *testing.T, s *shop.Shop, bodies ...string) {
	t.Helper()
	rlog.SetLogLevel("error")
	p, err := rocketmq.NewTransactionProducer(nobodyKnows{}, producer.WithGroupName(s.Group+"_producer"),
		producer.WithInstanceName(harness.UniqueID(t)),
		producer.WithNsResolver(primitive.NewPassthroughResolver([]string{s.NameServers})))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Shutdown() }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, body := range bodies {
		m := primitive.NewMessage(s.Topic, []byte(body)).WithTag("stock_deduct")
		if r, err := p.SendMessageInTransaction(ctx, m); err != nil || r.Status != primitive.SendOK {
			t.Fatalf("half message: %v %v", r, err)
		}
	}
}

type nobodyKnows struct{}

func (nobodyKnows) ExecuteLocalTransaction(*primitive.Message) primitive.LocalTransactionState {
	return primitive.UnkonwnState
}

func (nobodyKnows) CheckLocalTransaction(*primitive.MessageExt) primitive.LocalTransactionState {
	return primitive.UnkonwnState
}

// parkedBodies are what the operators' door lists: how often a body's beginning is parked, and its reason.
func parkedBodies(t *testing.T, s *shop.Shop) map[string]int {
	t.Helper()
	var list struct {
		Items []struct{ Body, Reason string }
		Next  string
	}
	found := map[string]int{}
	for path := "/admin/v1/parked?limit=100"; ; path = "/admin/v1/parked?limit=100&cursor=" + list.Next {
		list.Items, list.Next = nil, ""
		a := s.Admin(http.MethodGet, path, nil)
		if err := json.Unmarshal(a.Body, &list); err != nil || a.Status != http.StatusOK {
			t.Fatalf("parked: %v", a)
		}
		for _, item := range list.Items {
			found[item.Body]++
		}
		if list.Next == "" {
			return found
		}
	}
}

// database is the shop's, in a session of the test's own.
func database(t *testing.T, s *shop.Shop) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// holdStock locks the product's stock row until release: whoever applies a message waits.
func holdStock(t *testing.T, db *sql.DB, product string) (release func()) {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	var stock int64
	if err := tx.QueryRow("SELECT stock FROM product_stock WHERE product_id = ? FOR UPDATE", product).Scan(&stock); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// crowdOf is one purchase each of n users.
func crowdOf(product, name string, n int) []*purchase {
	crowd := make([]*purchase, n)
	for i := range crowd {
		crowd[i] = &purchase{product: product, user: fmt.Sprintf("%s%d", name, i), token: "t", quantity: 1}
	}
	return crowd
}

// bought counts those who were told that the order appears.
func bought(purchases []*purchase) (n int64) {
	for _, p := range purchases {
		if p.answer.Accepted() {
			n++
		}
	}
	return n
}

type steadyCrowd struct {
	done     chan struct{}
	gone     sync.WaitGroup
	accepted atomic.Int64
	mu       sync.Mutex
	all      []*purchase
}

// steady are buyers who come one after another over a few connections until they are sent home.
func steady(s *shop.Shop, product, name string) (home func() []*purchase, accepted func() int64) {
	c := &steadyCrowd{done: make(chan struct{})}
	for w := range 8 {
		c.gone.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-c.done:
					return
				default:
				}
				p := &purchase{product: product, user: fmt.Sprintf("%s%d-%d", name, w, i), token: "t", quantity: 1}
				p.buy(s)
				if p.answer.Accepted() {
					c.accepted.Add(1)
				}
				c.mu.Lock()
				c.all = append(c.all, p)
				c.mu.Unlock()
				if p.answer.Err != nil {
					return // nobody is behind the door any more
				}
			}
		})
	}
	return func() []*purchase {
		close(c.done)
		c.gone.Wait()
		return c.all
	}, c.accepted.Load
}
