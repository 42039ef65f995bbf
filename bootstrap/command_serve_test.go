package bootstrap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seckill/adapters/embedded"
	"seckill/application"
)

// embeddedConfig is a service of its own on free ports.
func embeddedConfig(t *testing.T) Config {
	t.Helper()
	c := DefaultConfig()
	c.Data = filepath.Join(t.TempDir(), "data")
	c.HTTP.Addr, c.Admin.Addr = "127.0.0.1:0", "127.0.0.1:0"
	c.Log.Level = "error"
	return c
}

// serving runs `serve` until stop is called; the text is what stood on stderr when both doors were open.
func serving(t *testing.T, c Config, o serveOptions) (text string, event map[string]string, stop func()) {
	t.Helper()
	reader, writer := io.Pipe()
	p := &program{stdout: io.Discard, stderr: writer, version: "test"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.serve(ctx, c, o); _ = writer.Close() }()
	lines := bufio.NewScanner(reader)
	for lines.Scan() && event == nil {
		text += lines.Text() + "\n"
		if strings.Contains(lines.Text(), `"event":"serving"`) {
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	if event == nil {
		t.Fatalf("serve ended: %v\n%s", <-ended, text)
	}
	return text, event, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

var printedCurl = regexp.MustCompile(`curl -i -X POST (\S+) \\\n.*"Authorization: (Bearer \S+)".*"Idempotency-Key: (\S+)".*-d '([^']+)'`)

// paste does what the printed curl line does.
func paste(t *testing.T, text string) (*http.Response, map[string]any) {
	t.Helper()
	m := printedCurl.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no curl line in\n%s", text)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+m[1], strings.NewReader(m[4]))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", m[2])
	req.Header.Set("Idempotency-Key", m[3])
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var body map[string]any
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return res, body
}

func TestTheFirstMinuteNeedsNothingButWhatServePrints(t *testing.T) {
	t.Parallel()
	c := embeddedConfig(t)
	text, event, stop := serving(t, c, serveOptions{demo: true})
	for _, says := range []string{"seckill test  profile embedded", c.Data, "--fresh", event["buyers"] + "/docs", event["operators"] + "/console#t=",
		"demo-phone: 100 of 100 units left, at most 2 per buyer, open now", "rehearse --buyers 5000 --rate 2000", "--data " + c.Data, "Ctrl-C", "Nothing here is for production"} {
		if !strings.Contains(text, says) {
			t.Errorf("the banner does not say %q:\n%s", says, text)
		}
	}
	res, order := paste(t, text)
	if res.StatusCode != http.StatusAccepted || order["status"] != "pending" || order["remaining"] != 99.0 ||
		res.Header.Get("Location") != "/api/v1/products/demo-phone/orders/try-1" {
		t.Errorf("the first purchase: %s %v", res.Status, order)
	}
	if res, order = paste(t, text); res.Header.Get("Idempotency-Replayed") != "true" || order["token"] != "try-1" {
		t.Errorf("the same again: %s %v", res.Status, order)
	}
	stop()
	text, _, stop = serving(t, c, serveOptions{demo: true})
	if !strings.Contains(text, "99 of 100 units left") {
		t.Errorf("what was sold is not kept:\n%s", text)
	}
	stop()
	text, _, stop = serving(t, c, serveOptions{demo: true, fresh: true})
	if !strings.Contains(text, "100 of 100 units left") {
		t.Errorf("not started over:\n%s", text)
	}
	stop()
}

func TestAPortInUseIsOneLineThatNamesItsFlag(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	addr := taken.Addr().String()
	for flag, args := range map[string][]string{
		"--listen":       {"--listen", addr, "--admin-listen", "127.0.0.1:0"},
		"--admin-listen": {"--listen", "127.0.0.1:0", "--admin-listen", addr},
	} {
		folder := filepath.Join(t.TempDir(), "data")
		var fault bytes.Buffer
		code := Main(append([]string{"serve", "--data", folder}, args...), io.Discard, &fault, "test")
		if said := fault.String(); code != ExitUsage || strings.Count(said, "\n") != 1 || !strings.Contains(said, addr+" is in use") ||
			!strings.Contains(said, " "+flag+" ") {
			t.Errorf("%s: exit code %d: %s", flag, code, said)
		}
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%s: something had started before the port was looked at", flag)
		}
	}
}

func TestFreshRemovesOnlyWhatTheServiceKeeps(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	others := []string{"auth.key", "ledger.db.backup", "notes.txt"}
	for _, name := range slices.Concat(kept, others) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	release, err := embedded.LockFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := startOver(folder); exitCode(err) != ExitUnreachable {
		t.Errorf("a folder in use: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := startOver(folder); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := append(others, "lock"); !slices.Equal(left, []string{"auth.key", "ledger.db.backup", "lock", "notes.txt"}) {
		t.Errorf("left: %v, want %v", left, want)
	}
}

func TestDemoAndFreshAreForTheEmbeddedProfile(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--demo", "--fresh"} {
		var fault bytes.Buffer
		line := "serve --profile stack --config " + stackFile(t) + " " + flag
		if code := Main(strings.Fields(line), io.Discard, &fault, "test"); code != ExitUsage || !strings.Contains(fault.String(), "embedded") {
			t.Errorf("%s: exit code %d: %s", flag, code, fault.String())
		}
	}
}

// stackFile holds settings with which the stack profile is complete; nobody answers there.
func stackFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seckill.yaml")
	text := "redis: {addrs: ['127.0.0.1:1']}\nrocketmq: {name_servers: ['127.0.0.1:1']}\n" +
		"database: {dsn: 'u:p@tcp(127.0.0.1:1)/x'}\nauth: {key: '" + strings.Repeat("k", 32) + "'}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOnlyTheEmbeddedDemosConsoleBuys(t *testing.T) {
	t.Parallel()
	stack := DefaultConfig()
	stack.Profile = ProfileStack
	for name, c := range map[string]struct {
		config Config
		demo   Demo
		buys   bool
	}{
		"the embedded demo":     {DefaultConfig(), true, true},
		"embedded without demo": {DefaultConfig(), false, false},
		"stack":                 {stack, true, false},
	} {
		if deps := consoleDeps(doorsParams{Config: c.config, Demo: c.demo, Deduct: &application.DeductStock{}}); (deps.Demo != nil) != c.buys {
			t.Errorf("%s: %v", name, deps.Demo)
		}
	}
	for _, demo := range []bool{true, false} {
		_, event, stop := serving(t, embeddedConfig(t), serveOptions{demo: demo})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, event["operators"]+"/console/api/demo/purchases", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if there := res.StatusCode == http.StatusUnauthorized; there != demo || !there && res.StatusCode != http.StatusNotFound {
			t.Errorf("demo %v: %s", demo, res.Status)
		}
		stop()
	}
}
