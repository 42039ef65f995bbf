//go:build stack

package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/rocketmq"
	"seckill/application"
	"seckill/test/harness"
	"seckill/test/shop"
)

// examined is what doctor says, and its exit code.
func examined(t *testing.T, s *shop.Shop, more ...string) (application.Examination, int) {
	t.Helper()
	out, err := s.Run(append([]string{"doctor", "-o", "json"}, more...)...)
	var x application.Examination
	if bad := json.NewDecoder(strings.NewReader(out)).Decode(&x); bad != nil {
		t.Fatalf("%v: %s", bad, out)
	}
	return x, shop.ExitCode(err)
}

// wrongs names what is wrong.
func wrongs(x application.Examination) (names []string) {
	for _, c := range x.Checks {
		if c.Verdict == application.VerdictWrong {
			names = append(names, c.Name)
		}
	}
	return names
}

// In an environment as it should be doctor finds nothing wrong, beside a running service and without
// one; the short times of the tests' broker are notes.
func TestDoctorFindsNothingWrongWhereAllIsRight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile)
		s.Start()
		s.OpenSale(harness.UniqueID(t), 100, 0)
		token, err := s.Run("token", "--sub", "ops", "--scope", "ops:read")
		if err != nil {
			t.Fatal(token, err)
		}
		for _, more := range [][]string{nil, {"--admin", s.Operators(), "--token", strings.TrimSpace(token)}} {
			if x, code := examined(t, s, more...); code != 0 || !x.Healthy || len(x.Checks) < 8 {
				t.Errorf("exit code %d, wrong %v: %+v", code, wrongs(x), x)
			}
		}
		s.Stop()
		if x, code := examined(t, s); code != 0 {
			t.Errorf("without the service: exit code %d, wrong %v: %+v", code, wrongs(x), x)
		}
	})
}

// Each setting that is wrong on a live server is found, by its name, and is gone when it is put right.
func TestDoctorFindsEachWrongSetting(t *testing.T) {
	t.Parallel()
	own, err := harness.Start(t.Context(), harness.Parts{Redis: true, MySQL: true, RocketMQ: true}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	s := shop.New(t, shop.Stack)
	db, err := sql.Open("mysql", own.MySQLDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE DATABASE shop")
	queues := func(n int) {
		t.Helper()
		cfg := rocketmq.DefaultConfig()
		cfg.NameServers, cfg.Topic = []string{own.NameServer.Addr}, s.Topic
		if err := rocketmq.EnsureTopic(t.Context(), cfg, own.Broker.Addr, n); err != nil {
			t.Fatal(err)
		}
	}
	queues(4)
	s.Set("SECKILL_REDIS__ADDRS="+own.Redis.Addr, "SECKILL_DATABASE__DSN="+own.MySQLDSN()+"shop", "SECKILL_ROCKETMQ__NAME_SERVERS="+own.NameServer.Addr)
	if x, code := examined(t, s); code != 4 || fmt.Sprint(wrongs(x)) != "[migrations]" {
		t.Errorf("before migrate up: exit code %d, wrong %v", code, wrongs(x))
	}
	if out, err := s.Run("migrate", "up"); err != nil {
		t.Fatal(out, err)
	}
	client := redis.NewClient(&redis.Options{Addr: own.Redis.Addr})
	t.Cleanup(func() { _ = client.Close() })
	policy := func(to string) {
		t.Helper()
		if err := client.ConfigSet(t.Context(), "maxmemory-policy", to).Err(); err != nil {
			t.Fatal(err)
		}
	}
	broker := func(name, value string) {
		t.Helper()
		if err := harness.SetBroker(t.Context(), own.Broker.Addr, name, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name        string
		spoil, mend func()
	}{
		{"maxmemory-policy", func() { policy("allkeys-lru") }, func() { policy("noeviction") }},
		{"flushDiskType", func() { broker("flushDiskType", "ASYNC_FLUSH") }, func() { broker("flushDiskType", "SYNC_FLUSH") }},
		{"longest-outage", func() { broker("transactionCheckMax", "15") }, func() { broker("transactionCheckMax", "2880") }},
		{"innodb_flush_log_at_trx_commit", func() { exec("SET GLOBAL innodb_flush_log_at_trx_commit = 2") }, func() { exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1") }},
		{"topic-queues", func() { queues(1) }, func() { queues(4) }},
	} {
		c.spoil()
		waitExamined(t, s, 4, "["+c.name+"]")
		c.mend()
		waitExamined(t, s, 0, "[]")
	}
}

// waitExamined asks until doctor says so: the name server learns of a topic a moment later.
func waitExamined(t *testing.T, s *shop.Shop, code int, names string) {
	t.Helper()
	shop.Eventually(t, time.Minute, "doctor to say "+names, func() (bool, string) {
		x, got := examined(t, s)
		return got == code && fmt.Sprint(wrongs(x)) == names, fmt.Sprintf("exit code %d, wrong %v", got, wrongs(x))
	})
}

// A part that is away is exit code 3, and everything else is examined all the same. No password shows.
func TestDoctorNamesAPartThatIsAway(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	for part, setting := range map[string]string{
		"gate":   "SECKILL_REDIS__ADDRS=" + nowhere,
		"broker": "SECKILL_ROCKETMQ__NAME_SERVERS=" + nowhere,
		"ledger": "SECKILL_DATABASE__DSN=u:hidden-word@tcp(" + nowhere + ")/nothing",
	} {
		one := s.For(t)
		one.Set("SECKILL_REDIS__PASSWORD=", "SECKILL_ROCKETMQ__SECRET_KEY=hidden-word", setting)
		x, code := examined(t, one)
		said := fmt.Sprintf("%+v", x)
		if code != 3 || !strings.Contains(said, nowhere) || x.Wrong != 0 || strings.Contains(said, "hidden-word") {
			t.Errorf("%s: exit code %d: %s", part, code, said)
		}
		for _, c := range x.Checks {
			if c.Part == part && c.Name == "reachable" && c.Verdict != application.VerdictUnknown {
				t.Errorf("%s is %s", part, c.Verdict)
			}
		}
	}
	expect(t, s, command{2, "output", "doctor -o xml"}, command{2, "stray", "doctor stray"}, command{2, "--token", "doctor --admin http://" + nowhere})
}

// A service does not sell on a Redis that may evict, and says what to do.
func TestAServiceDoesNotStartOnARedisThatEvicts(t *testing.T) {
	t.Parallel()
	own, err := harness.Start(t.Context(), harness.Parts{Redis: true}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	client := redis.NewClient(&redis.Options{Addr: own.Redis.Addr})
	t.Cleanup(func() { _ = client.Close() })
	if err := client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	s := shop.New(t, shop.Stack, "SECKILL_REDIS__ADDRS="+own.Redis.Addr)
	err = s.TryStart()
	if shop.ExitCode(err) != 2 || !strings.Contains(err.Error(), "maxmemory-policy noeviction") || strings.Contains(err.Error(), `"event":"serving"`) {
		t.Fatalf("exit code %d: %v", shop.ExitCode(err), err)
	}
	if err := client.ConfigSet(context.Background(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Stop()
}

// A topic with too few queues is said loudly at the start, and sells.
func TestAServiceSaysAtItsStartThatTheTopicHasTooFewQueues(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	cfg := rocketmq.DefaultConfig()
	cfg.NameServers, cfg.Topic = []string{s.NameServers}, s.Topic
	if err := rocketmq.EnsureTopic(t.Context(), cfg, harness.BrokerAddr(t), 1); err != nil {
		t.Fatal(err)
	}
	waitExamined(t, s, 4, "[topic-queues]")
	s.Start()
	shop.Eventually(t, time.Minute, "the log to say so", func() (bool, string) {
		log := s.Log()
		return strings.Contains(log, "doctor_finding") && strings.Contains(log, "topic-queues") && strings.Contains(log, "migrate up"), log
	})
	product := onSale(t, s, 3)
	if a := s.Buy(t.Context(), product, "alice", "t", 1); !a.Accepted() {
		t.Error(a)
	}
	wantOrders(t, s, product, 1)
	s.Stop()
}
