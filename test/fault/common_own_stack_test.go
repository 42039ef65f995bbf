//go:build stack

package fault

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// TestOwnStack plays the cases that stop the database, Redis or the broker in turn, in one shop on
// servers of its own.
func TestOwnStack(t *testing.T) {
	t.Parallel()
	s, servers := ownStack(t)
	s.Start()
	for _, c := range []struct {
		name string
		play func(*testing.T, *shop.Shop, *harness.Stack)
	}{
		{"F04_discarded_halves", f04DiscardedHalves},
		{"broker_away_eats_no_stock", brokerAwayEatsNoStock},
	} {
		t.Run(c.name, func(t *testing.T) { c.play(t, s.For(t), servers) })
	}
	// These restart the shop.
	t.Run("F07_broker_refuses_writes", func(t *testing.T) { f07BrokerRefusesWrites(t, s.For(t), servers) })
	t.Run("F14_stops_while_a_server_hangs", func(t *testing.T) { f14StopsWhileAServerHangs(t, s.For(t), servers) })
	t.Run("F14_second_signal", func(t *testing.T) { f14SecondSignal(t, s.For(t), servers) })
}

// ownStack is a shop whose three servers are the test's own, to be stopped and changed at will.
func ownStack(t *testing.T, settings ...string) (*shop.Shop, *harness.Stack) {
	t.Helper()
	return ownParts(t, harness.Parts{Redis: true, MySQL: true, RocketMQ: true}, t.TempDir(), settings...)
}

// ownParts is a shop with some servers of the test's own, whose data lie in dir; the others are the run's.
func ownParts(t *testing.T, parts harness.Parts, dir string, settings ...string) (*shop.Shop, *harness.Stack) {
	t.Helper()
	servers, err := harness.Start(t.Context(), parts, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	own, dsn := []string{"SECKILL_RECONCILE__SAFE_AGE=1s"}, ""
	if parts.Redis {
		own = append(own, "SECKILL_REDIS__ADDRS="+servers.Redis.Addr)
	}
	if parts.MySQL {
		dsn = ownDatabase(t, servers)
		own = append(own, "SECKILL_DATABASE__DSN="+dsn)
	}
	if parts.RocketMQ {
		own = append(own, "SECKILL_ROCKETMQ__NAME_SERVERS="+servers.NameServer.Addr, "SECKILL_ROCKETMQ__BROKER="+servers.Broker.Addr)
	}
	s := shop.New(t, shop.Stack, append(own, settings...)...)
	if parts.Redis {
		s.Redis = servers.Redis.Addr
	}
	if parts.MySQL {
		s.DSN = dsn
	}
	if parts.RocketMQ {
		s.NameServers = servers.NameServer.Addr
	}
	return s, servers
}

// ownDatabase makes an empty database on the test's own server.
func ownDatabase(t *testing.T, servers *harness.Stack) string {
	t.Helper()
	db, err := sql.Open("mysql", servers.MySQLDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	name := harness.UniqueID(t)
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		t.Fatal(err)
	}
	return servers.MySQLDSN() + name
}

// setBroker changes a setting of the test's own broker.
func setBroker(t *testing.T, servers *harness.Stack, name, value string) {
	t.Helper()
	if err := harness.SetBroker(context.Background(), servers.Broker.Addr, name, value); err != nil {
		t.Fatal(err)
	}
}

// flowsOf are flows that the gate has, as another instance left them that died after its deducts.
func flowsOf(t *testing.T, s *shop.Shop, crowd []*purchase) []domain.Flow {
	t.Helper()
	items := make([]port.DeductItem, len(crowd))
	for i, p := range crowd {
		command, err := domain.NewDeductCommand(p.product, p.user, p.token, p.quantity)
		if err != nil {
			t.Fatal(err)
		}
		items[i] = port.DeductItem{Command: command, Attempt: harness.UniqueID(t)}
	}
	flows := make([]domain.Flow, len(crowd))
	for i, r := range s.Gate().Deduct(context.Background(), time.Now(), items) {
		if r.Outcome != port.DeductAccepted {
			t.Fatalf("%s was not deducted: %v %v", crowd[i].user, r.Outcome, r.Err)
		}
		flows[i] = r.Flow
	}
	return flows
}

// parkedAs are the ids of what waits for that reason.
func parkedAs(t *testing.T, s *shop.Shop, reason port.ParkReason) (ids []string) {
	t.Helper()
	found, err := s.Store().FindParked(context.Background(), reason, "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		ids = append(ids, p.ID)
	}
	return ids
}

// replay asks for a replay at the operators' door.
func replay(t *testing.T, s *shop.Shop, wish map[string]any) []application.ReplayResult {
	t.Helper()
	var answer struct{ Items []application.ReplayResult }
	a := s.Admin(http.MethodPost, "/admin/v1/parked/replay", wish)
	if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != http.StatusOK {
		t.Fatalf("replay: %v", a)
	}
	return answer.Items
}

// waitLog waits until the running service has logged an event so many times.
func waitLog(t *testing.T, s *shop.Shop, event string, times int) {
	t.Helper()
	shop.Eventually(t, time.Minute, event, func() (bool, string) {
		n := strings.Count(s.Log(), `"event":"`+event+`"`)
		return n >= times, s.Log()[max(0, len(s.Log())-2000):]
	})
}
