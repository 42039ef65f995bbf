package rehearse_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"seckill/bootstrap/rehearse"
)

func thresholds(t *testing.T, rules ...string) (all []rehearse.Threshold) {
	t.Helper()
	for _, rule := range rules {
		one, err := rehearse.ParseThreshold(rule)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func TestTheReportHasSalesRefusalsWaitsAndTheInvariantsLineByLine(t *testing.T) {
	t.Parallel()
	c := config(open(t, &shop{}))
	c.Rate, c.Connections = 2000, 0
	var out bytes.Buffer
	if _, err := rehearse.Run(t.Context(), c, &out, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{
		`(?m)^Asked +300 +in \d+\.\d\d s, \d+/s of 2000/s planned$`, `(?m)^Accepted +60 +at \d+/s$`, `(?m)^Refused +240 +at`,
		`(?m)^  stock-not-enough +240`, `(?m)^  409 stock-not-enough +\d+`, `(?m)count +p50 +p95 +p99 +p99\.9 +max`,
		`(?m)accepted → row +60 +40\.0`, `(?m)^  A no oversell  ok  60/60 sold`, `(?m)^  B no leak      ok`, `(?m)^  C once         ok`,
		`(?m)^  D truthful     ok  0 unknown`, `(?m)^  E live         ok  drained in \d+\.\d\d s`,
	} {
		if !regexp.MustCompile(form).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", form, out.String())
		}
	}
}

func TestAThresholdIsMetMissedOrNotMeasured(t *testing.T) {
	t.Parallel()
	c := config(open(t, &shop{mute: true}))
	c.FailIf = thresholds(t, "p99>1h", "max >= 1ns", "refused.p50<1h", "unknown>0", "accepted<60", "accepted<61", "rate<=0", "confirmed.p99>1h", "drained>1h")
	r := run(t, c)
	met := []bool{true, false, false, true, true, false, true, false, true}
	for i, got := range r.Thresholds {
		if got.Met != met[i] || (got.Value == nil) != (got.Rule == "confirmed.p99>1h") {
			t.Errorf("%+v", got)
		}
	}
	if !r.Missed() || !r.Holds {
		t.Errorf("missed %v, holds %v", r.Missed(), r.Holds)
	}
	c.FailIf = thresholds(t, "p99>1h")
	if run(t, c).Missed() {
		t.Error("a threshold that was met counts as missed")
	}
}

func TestAThresholdThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{"", "p99", "p99>", "p99>250", "p98>1ms", "p99=1ms", "unknown>1ms", "sold.p99>1ms", "p99>250ms and p50>1ms"} {
		if _, err := rehearse.ParseThreshold(rule); err == nil {
			t.Errorf("%q was taken", rule)
		}
	}
}

func TestThePageStandsAloneAndSaysWhatTheReportSays(t *testing.T) {
	t.Parallel()
	c := config(open(t, &shop{loses: true}))
	c.HTMLPath, c.FailIf = filepath.Join(t.TempDir(), "report.html"), thresholds(t, "accepted<1000000")
	r := run(t, c)
	b, err := os.ReadFile(c.HTMLPath)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, says := range []string{"An invariant is broken", r.Run, "accepted&lt;1000000", "missed", "stock-not-enough", "accepted → row",
		"the order is none", `class="broken">broken`} {
		if !strings.Contains(text, says) {
			t.Errorf("the page does not say %q", says)
		}
	}
	for _, outside := range []string{"<script", "<link", "<img", "src=", "href=", "url(", "@import"} {
		if strings.Contains(text, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	c.HTMLPath = filepath.Join(t.TempDir(), "nowhere", "report.html")
	if _, err := rehearse.Run(t.Context(), c, new(bytes.Buffer), new(bytes.Buffer)); err == nil {
		t.Error("a page that could not be written is no error")
	}
}
