package bootstrap

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configWith runs `seckill config` with flags and gives each key's value and origin.
func configWith(t *testing.T, want int, args ...string) (map[string]effectiveSetting, string) {
	t.Helper()
	var out, fault bytes.Buffer
	if code := Main(append([]string{"config", "-o", "jsonl"}, args...), &out, &fault, "test"); code != want {
		t.Fatalf("exit code %d: %s", code, fault.String())
	}
	found := map[string]effectiveSetting{}
	for line := range strings.Lines(out.String()) {
		var e effectiveSetting
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		found[e.Key] = e
	}
	return found, out.String() + fault.String()
}

func TestConfigShowsEachValueWithItsOrigin(t *testing.T) {
	const secret = "a signing key of a test, 32 bytes or more"
	folder := t.TempDir()
	file, key := filepath.Join(folder, "seckill.yaml"), filepath.Join(folder, "key")
	for path, text := range map[string]string{file: "stop:\n  grace: 5s\nadmin:\n  addr: 127.0.0.1:2\n", key: secret} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SECKILL_ADMIN__ADDR", "127.0.0.1:3")
	t.Setenv("SECKILL_AUTH__KEY_FILE", key)
	t.Setenv("SECKILL_REDIS__ADDRS", "127.0.0.1:4,127.0.0.1:5")
	found, text := configWith(t, ExitFine, "--config", file, "--data", folder)
	for _, want := range []effectiveSetting{
		{"http.addr", "127.0.0.1:8080", originDefault},
		{"stop.grace", "5s", originFile},
		{"admin.addr", "127.0.0.1:3", originEnv},
		{"redis.addrs", "127.0.0.1:4,127.0.0.1:5", originEnv},
		{"data", folder, originFlag},
		{"auth.key", "[hidden]", "auth.key_file, environment"},
		{"redis.password", "", originDefault},
	} {
		if found[want.Key] != want {
			t.Errorf("%+v, not %+v", found[want.Key], want)
		}
	}
	if strings.Contains(text, secret) {
		t.Error("a secret is shown")
	}
}

// A mistake does not hide the other values, nor is a secret shown beside it.
func TestConfigShowsTheSettingsBesideTheirMistakes(t *testing.T) {
	t.Setenv("SECKILL_AUTH__KEY", "too short")
	t.Setenv("SECKILL_DEDUCT__BATCH_MAX", "0")
	t.Setenv("SECKILL_REDIS__PASWORD", "hush")
	found, text := configWith(t, ExitUsage)
	if got := found["deduct.batch_max"]; got.Value != "0" || got.Origin != originEnv {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(text, "redis.pasword") || !strings.Contains(text, "SECKILL_REDIS__PASSWORD") {
		t.Errorf("the unknown setting is not named with its nearest: %s", text)
	}
	for _, secret := range []string{"too short", "hush"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is shown", secret)
		}
	}
}

func TestConfigSchemaListsEveryKey(t *testing.T) {
	var out, fault bytes.Buffer
	if code := Main([]string{"config", "--schema"}, &out, &fault, "test"); code != ExitFine {
		t.Fatal(fault.String())
	}
	for _, s := range Settings() {
		if !strings.Contains(out.String(), s.Key+"  (") || !strings.Contains(out.String(), s.Variable) {
			t.Errorf("%s is not listed", s.Key)
		}
	}
}
