//go:build stack

package harness_test

import (
	"context"
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"seckill/test/harness"
)

func TestMySQLDatabaseIsEmptyAndOfTheTestsOwn(t *testing.T) {
	t.Parallel()
	first, second := harness.MySQLDatabase(t), harness.MySQLDatabase(t)
	for _, dsn := range []string{first, second} {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE only_here (id INT)"); err != nil {
			t.Errorf("create a table: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func TestTopicIsThereUntilTheTestEnds(t *testing.T) {
	t.Parallel()
	var names, topic string
	t.Run("inner", func(t *testing.T) { names, topic = harness.Topic(t) })
	if topic == "" {
		t.Fatal("no topic")
	}
	// Creating it anew works only on a broker that answers "create topic".
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := harness.CreateTopic(ctx, names, os.Getenv(harness.EnvBroker), topic); err != nil {
		t.Errorf("create the deleted topic again: %v", err)
	}
	if err := harness.CreateTopic(ctx, names, os.Getenv(harness.EnvBroker), "no blank allowed"); err == nil {
		t.Error("the broker's refusal was taken for success")
	}
}

func TestServersOfATestsOwnAreKilledFrozenRestartedAndRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stack, err := harness.Start(t.Context(), harness.Parts{Redis: true, MySQL: true}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stack.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	client := redis.NewClient(&redis.Options{Addr: stack.Redis.Addr, MaxRetries: -1, ReadTimeout: 300 * time.Millisecond})
	t.Cleanup(func() { _ = client.Close() })

	if err := stack.Redis.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("a frozen server answered")
	}
	if err := stack.Redis.Cont(); err != nil {
		t.Fatal(err)
	}
	if err := client.Set(t.Context(), "key", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := stack.Redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := client.Get(t.Context(), "key").Val(); got != "kept" {
		t.Errorf("after a restart: %q", got)
	}
	if err := stack.Redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", stack.Redis.Addr); err == nil {
		_ = conn.Close()
		t.Error("a killed server took a connection")
	}
	if err := stack.MySQL.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stack.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func init() { _ = mysql.SetLogger(quiet{}) } // its probes of a server that starts are no news

type quiet struct{}

func (quiet) Print(...any) {}
