package bootstrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/bootstrap"
)

const sampleKey = "0123456789abcdef0123456789abcdef"

func TestDefaultsAreTheEmbeddedProfileOnLoopback(t *testing.T) {
	t.Parallel()
	c, err := bootstrap.LoadConfig("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Embedded() || c.HTTP.Addr != "127.0.0.1:8080" || c.Admin.Addr != "127.0.0.1:8081" || c.RocketMQ.Topic != "seckill_topic" {
		t.Fatalf("unexpected defaults: %+v", c)
	}
}

func TestLaterSourcesWinOverEarlierOnes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte("http:\n  addr: 127.0.0.1:1\nadmin:\n  addr: 127.0.0.1:2\nstop:\n  grace: 5s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SECKILL_CONFIG=" + path, "SECKILL_ADMIN__ADDR=127.0.0.1:3", "SECKILL_PORT=tcp://10.0.0.1:80", "SECKILL_SERVICE_HOST=10.0.0.1",
		"SECKILL_OPERATORS_PORT_8081_TCP_ADDR=10.0.0.1", "SECKILL_OPERATORS_SERVICE_PORT_HTTP=80",
		"SECKILL_REDIS__ADDRS=127.0.0.1:1,127.0.0.1:2", "OTHER=x"}
	c, err := bootstrap.LoadConfig("", env, map[string]any{"data": "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	if c.HTTP.Addr != "127.0.0.1:1" || c.Admin.Addr != "127.0.0.1:3" || c.Data != "elsewhere" || c.Stop.Grace != 5*time.Second || len(c.Redis.Addrs) != 2 {
		t.Fatalf("unexpected settings: %+v", c)
	}
}

func TestEveryMistakeIsListedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := bootstrap.LoadConfig("", []string{"SECKILL_PROFILE=stack", "SECKILL_HTTP__ADDR=nowhere", "SECKILL_AUTH__KEY=short", "SECKILL_CONSOLE__TOKEN=guess me",
		"SECKILL_DEDUCT__BATCH_MAX=0", "SECKILL_RECONCILE__POLICY=roll-back", "SECKILL_RECONCILE__SCHEDULE=never"}, nil)
	if err == nil {
		t.Fatal("bad settings were taken")
	}
	for _, key := range []string{"http.addr", "auth.key", "console.token", "deduct.batch_max", "reconcile.policy", "reconcile.schedule", "redis.addrs", "rocketmq.name_servers", "database.dsn"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not named in: %v", key, err)
		}
	}
}

func TestFaultPointsAreTakenOnlyWhereTheyAreAllowed(t *testing.T) {
	t.Parallel()
	const points, allowed = "SECKILL_FAULT__POINTS=apply.after=kill@3,send.after=fail", "SECKILL_FAULT__ALLOWED=true"
	if c, err := bootstrap.LoadConfig("", []string{points, allowed}, nil); err != nil || len(c.Fault.Points) != 2 {
		t.Errorf("%+v %v", c.Fault, err)
	}
	for why, env := range map[string][]string{"fault.allowed": {points}, "fault.clock_offset": {"SECKILL_FAULT__CLOCK_OFFSET=1h"}, "no such point": {"SECKILL_FAULT__POINTS=nowhere=kill", allowed}} {
		if _, err := bootstrap.LoadConfig("", env, nil); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v: %v", env, err)
		}
	}
}

func TestUnknownSettingsAndBareNumbersForTimesAreRefused(t *testing.T) {
	t.Parallel()
	_, err := bootstrap.LoadConfig("", []string{"SECKILL_REDIS__ADRS=x"}, nil)
	if err == nil || !strings.Contains(err.Error(), "SECKILL_REDIS__ADDRS") {
		t.Errorf("unknown key: %v does not name the nearest", err)
	}
	_, err = bootstrap.LoadConfig("", []string{"SECKILL_HTTP__PORT=80"}, nil)
	if err == nil || !strings.Contains(err.Error(), "http.port") {
		t.Errorf("a setting that looks like Kubernetes': %v", err)
	}
	_, err = bootstrap.LoadConfig("", []string{"SECKILL_STOP__GRACE=5"}, nil)
	if err == nil || !strings.Contains(err.Error(), "missing unit") {
		t.Errorf("time without a unit: %v", err)
	}
}

func TestSecretsComeFromFilesAndAreNeverPrinted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(sampleKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := bootstrap.LoadConfig("", []string{"SECKILL_AUTH__KEY_FILE=" + path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Auth.Key) != sampleKey {
		t.Fatal("the key file was not read")
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c)} {
		if strings.Contains(text, sampleKey) {
			t.Errorf("the key is printed: %s", text)
		}
	}
	if _, err := bootstrap.LoadConfig("", []string{"SECKILL_AUTH__KEY_FILE=" + path, "SECKILL_AUTH__KEY=" + sampleKey}, nil); err == nil {
		t.Error("a secret that is set twice was taken")
	}
}

func TestEverySettingSaysWhatItMeans(t *testing.T) {
	t.Parallel()
	for _, s := range bootstrap.Settings() {
		if s.Meaning == "" || s.Type == "" {
			t.Errorf("%s: %+v", s.Key, s)
		}
		if s.Secret() && s.Default != "" {
			t.Errorf("%s has a default", s.Key)
		}
	}
}
