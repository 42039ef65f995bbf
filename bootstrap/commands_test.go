package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"seckill/application"
)

// everyCommand calls check for each command that a person may type.
func everyCommand(t *testing.T, check func(*cobra.Command)) {
	t.Helper()
	root := Commands()
	root.InitDefaultCompletionCmd()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			check(c)
			walk(c)
		}
	}
	walk(root)
}

var flagInText = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z-]*|-[a-z])\b`)

func TestEveryCommandSaysWhatItDoesAndItsExamplesAreReal(t *testing.T) {
	t.Parallel()
	everyCommand(t, func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Short == "" {
			t.Errorf("%s has no short help", path)
		}
		if strings.HasPrefix(path, "seckill completion") {
			return // cobra's own text
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", path)
		}
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "   #")
			for len(line) > 0 && !strings.HasPrefix(line, "seckill ") { // settings of the environment before it
				_, line, _ = strings.Cut(line, " ")
			}
			named, _, err := cmd.Root().Find(strings.Fields(line)[1:])
			if err != nil || named == cmd.Root() {
				t.Errorf("%s: %q is no command: %v", path, line, err)
				continue
			}
			for _, m := range flagInText.FindAllStringSubmatch(line, -1) {
				name := strings.TrimLeft(m[1], "-")
				if named.Flag(name) == nil && (len(name) > 1 || named.Flags().ShorthandLookup(name) == nil) {
					t.Errorf("%s: %s has no flag %s: %q", path, named.CommandPath(), m[1], line)
				}
			}
		}
	})
}

// run is one command line in this process.
func run(line ...string) (code int, out, fault string) {
	var o, f bytes.Buffer
	code = Main(line, &o, &f, "test")
	return code, o.String(), f.String()
}

func TestCommandsLookAtARunningServiceAndAtItsFolder(t *testing.T) {
	t.Parallel()
	c := embeddedConfig(t)
	text, event, stop := serving(t, c, serveOptions{demo: true})
	if res, _ := paste(t, text); res.StatusCode != http.StatusAccepted {
		t.Fatal(res.Status)
	}
	data := []string{"--data", c.Data}
	expect := func(want int, says string, line string) {
		t.Helper()
		words := strings.Fields(line)
		code, out, fault := run(slices.Insert(words, 1, data...)...)
		if code != want || !strings.Contains(out+fault, says) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", line, code, want, says, out, fault)
		}
		if strings.Contains(out+fault, "\x1b[") {
			t.Errorf("%s: colour where there is no terminal: %q", line, out)
		}
	}
	look := func() {
		t.Helper()
		expect(0, "demo-phone", "products")
		expect(0, `"confirmed": 1`, "products demo-phone -o json")
		expect(1, "product-not-found", "products nothing")
		expect(0, "deducted", "trace demo-phone alice try-1")
		expect(0, `"productId"`, "trace demo-phone alice try-1 -o jsonl")
		expect(2, "", "trace demo-phone alice")
	}
	expect(0, "ready", "healthcheck")
	expect(0, `"parts"`, "healthcheck -o json --target "+event["operators"])
	expect(0, "alice try-1: 1 units", "orders demo-phone try-1 --user alice")
	expect(1, "order-not-found", "orders demo-phone try-1 --user bob")
	expect(2, "--user", "orders demo-phone try-1")
	expect(0, "demo-phone\n:4", "__complete products demo")
	expect(0, "demo-phone\n:4", "__complete verify --product demo")
	expect(0, ":4", "__complete trace x")
	expect(0, "jsonl", "__complete verify -o j")
	awaitConfirmed(t, data)
	look()
	stop()
	look()
	expect(3, "no answer", "healthcheck --timeout 1s --target "+event["buyers"])
	expect(0, ":4", "__complete products demo")
}

// awaitConfirmed waits until the demo buyer's order is a row.
func awaitConfirmed(t *testing.T, data []string) {
	t.Helper()
	for {
		_, out, fault := run(append([]string{"orders", "demo-phone", "try-1", "--user", "alice"}, data...)...)
		switch {
		case strings.Contains(out, "confirmed"):
			return
		case !strings.Contains(out, "pending") || t.Context().Err() != nil:
			t.Fatalf("%s%s", out, fault)
		}
	}
}

func TestARehearsalEndsWithItsThresholds(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	crowd := []string{"rehearse", "--data", data, "--buyers", "60", "--units", "5"}
	for rule, want := range map[string]int{"max>1h": ExitFine, "max>1ns": ExitThreshold, "max>1": ExitUsage} {
		code, out, fault := run(append(crowd, "--fail-if", rule)...)
		if code != want || want != ExitUsage && !strings.Contains(out, "5/5 sold") {
			t.Errorf("%s: exit code %d, want %d:\n%s%s", rule, code, want, out, fault)
		}
	}
}

func TestHealthcheckTellsWhatIsAway(t *testing.T) {
	t.Parallel()
	answer := readiness{Parts: map[string]application.PartStatus{"redis": {Detail: "does not answer", AgeSeconds: -1}, "ledger": {OK: true}}}
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(door.Close)
	code, out, fault := run("healthcheck", "--target", door.URL)
	if code != ExitFailed || !strings.Contains(out, "not ready") || !strings.Contains(out, "redis      away  never seen does not answer") || fault != "" {
		t.Errorf("exit code %d: %s%s", code, out, fault)
	}
	if code, out, _ := run("healthcheck", "--target", door.URL+"/elsewhere"); code != ExitFailed || out != "" {
		t.Errorf("an answer of somebody else: exit code %d: %s", code, out)
	}
}

func TestWhatChangesSomethingAsksFirst(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "data")
	for _, line := range []string{"reconcile --apply", "parked replay --reason poison", "migrate down"} {
		code, out, fault := run(append(strings.Fields(line), "--data", folder)...)
		if code != ExitUsage || !strings.Contains(fault, "--yes") || out != "" {
			t.Errorf("%s: exit code %d: %s%s", line, code, out, fault)
		}
	}
	if code, _, fault := run("reconcile", "--apply", "--yes", "--data", folder); code != ExitFine {
		t.Errorf("reconcile --apply --yes: exit code %d: %s", code, fault)
	}
}

func TestColourIsOnlyForATerminalThatWantsIt(t *testing.T) {
	p := &program{stdout: io.Discard}
	if got := p.paint("holds", 8); got != "holds   " {
		t.Errorf("no terminal: %q", got)
	}
	if err := (&program{stdin: strings.NewReader("y\n"), stderr: io.Discard}).confirmed(context.Background(), "x"); exitCode(err) != ExitUsage {
		t.Errorf("a yes from a pipe was taken: %v", err)
	}
}
