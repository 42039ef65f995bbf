package harness

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	topicQueues = 4
	topicWithin = 30 * time.Second
	sqlWithin   = 30 * time.Second
)

// RedisAddr is host:port of the shared Redis. Tests keep apart by product ids of
// their own and never flush it.
func RedisAddr(t testing.TB) string {
	t.Helper()
	return need(t, EnvRedis)
}

// ClusterAddrs lists host:port of the shared cluster's three masters.
func ClusterAddrs(t testing.TB) []string {
	t.Helper()
	return strings.Split(need(t, EnvCluster), ",")
}

// BrokerAddr is host:port of the shared broker, for tests that make topics of their own.
func BrokerAddr(t testing.TB) string {
	t.Helper()
	return need(t, EnvBroker)
}

// Binary is the path of the built service, for tests that run it as users do.
func Binary(t testing.TB) string {
	t.Helper()
	return need(t, EnvBinary)
}

// Browser is the path of Chromium.
func Browser(t testing.TB) string {
	t.Helper()
	if err := missing(Parts{Browser: true}); err != nil {
		t.Fatal(err)
	}
	return find("chromium")
}

// Promtool is the path of Prometheus' promtool.
func Promtool(t testing.TB) string {
	t.Helper()
	if err := missing(Parts{Rules: true}); err != nil {
		t.Fatal(err)
	}
	return promtool()
}

// UniqueID is an id that no other test uses: a letter and 20 hexadecimal digits,
// so it serves as product, user, token, topic, group or database name.
func UniqueID(t testing.TB) string {
	t.Helper()
	random := make([]byte, 10)
	if _, err := rand.Read(random); err != nil {
		t.Fatalf("random id: %v", err)
	}
	return "t" + hex.EncodeToString(random)
}

// MySQLDatabase creates an empty database of the test's own and returns a data
// source name that selects it. It is dropped when the test ends.
func MySQLDatabase(t testing.TB) string {
	t.Helper()
	config, err := mysql.ParseDSN(need(t, EnvMySQL))
	if err != nil {
		t.Fatalf("%s: %v", EnvMySQL, err)
	}
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		t.Fatalf("open the database server: %v", err)
	}
	name := UniqueID(t)
	execSQL(t, db, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	t.Cleanup(func() {
		execSQL(t, db, "DROP DATABASE "+name)
		if err := db.Close(); err != nil {
			t.Errorf("close the database server's connection: %v", err)
		}
	})
	config.DBName = name
	return config.FormatDSN()
}

func execSQL(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	// Not the test's context: that one is cancelled before cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), sqlWithin)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Topic creates a topic of the test's own, with four queues, and waits until the
// name server knows it. It returns the name server's host:port and the topic,
// which is deleted when the test ends. Clients of the topic that the test stops
// by t.Cleanup, registered after this call, are gone by then.
func Topic(t testing.TB) (nameServer, topic string) {
	t.Helper()
	nameServer, broker := need(t, EnvNames), need(t, EnvBroker)
	topic = UniqueID(t)
	ctx, cancel := context.WithTimeout(context.Background(), topicWithin)
	defer cancel()
	if err := CreateTopic(ctx, nameServer, broker, topic); err != nil {
		t.Fatalf("topic %s: %v", topic, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), topicWithin)
		defer cancel()
		fields := map[string]string{"topic": topic}
		if _, _, err := remotingCall(ctx, broker, codeDeleteTopic, fields); err != nil {
			t.Errorf("delete topic at the broker: %v", err)
		}
		if _, _, err := remotingCall(ctx, nameServer, codeForgetTopic, fields); err != nil {
			t.Errorf("delete topic at the name server: %v", err)
		}
	})
	return nameServer, topic
}

// CreateTopic creates a topic with four queues on the broker and waits until the
// name server knows it; for tests that start servers of their own. Creating it
// again does no harm.
func CreateTopic(ctx context.Context, nameServer, broker, topic string) error {
	queues := strconv.Itoa(topicQueues)
	if _, _, err := remotingCall(ctx, broker, codeCreateTopic, map[string]string{
		"topic": topic, "defaultTopic": "TBW102",
		"readQueueNums": queues, "writeQueueNums": queues,
		"perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}); err != nil {
		return err
	}
	return WaitTopic(ctx, nameServer, topic)
}

// WaitTopic waits until the name server knows the topic: one that was restarted knows nothing until the
// broker registers again, each 30 s.
func WaitTopic(ctx context.Context, nameServer, topic string) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		_, _, err := remotingCall(ctx, nameServer, codeRoute, map[string]string{"topic": topic})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// SetBroker changes a setting of a running broker; for tests that start one of their own.
func SetBroker(ctx context.Context, broker, name, value string) error {
	_, _, err := remotingCall(ctx, broker, codeSetBroker, nil, []byte(name+"="+value+"\n")...)
	return err
}

// ConsumerIDs are the client ids of a consumer group's members, as the broker knows them.
func ConsumerIDs(ctx context.Context, broker, group string) ([]string, error) {
	_, body, err := remotingCall(ctx, broker, codeConsumers, map[string]string{"consumerGroup": group})
	if err != nil {
		return nil, err
	}
	var list struct {
		IDs []string `json:"consumerIdList"`
	}
	err = json.Unmarshal(body, &list)
	return list.IDs, err
}

func need(t testing.TB, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Fatalf("%s is not set: run this by `make test`", variable)
	}
	return value
}
