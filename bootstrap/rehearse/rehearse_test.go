package rehearse_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/application"
	"seckill/bootstrap/rehearse"
	"seckill/domain"
)

func config(door string) rehearse.Config {
	return rehearse.Config{Target: door, Admin: door, OperatorToken: "operator",
		BuyerToken: func(sub string) (string, error) { return sub, nil },
		Buyers:     300, Units: 20, Products: 3, Repeats: 0.2, Connections: 16, Settle: 30 * time.Second, LateMax: time.Minute}
}

func run(t *testing.T, c rehearse.Config) rehearse.Report {
	t.Helper()
	report, err := rehearse.Run(t.Context(), c, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func verdict(r rehearse.Report, name string) application.InvariantResult {
	for _, i := range r.Invariants {
		if i.Name == name {
			return i
		}
	}
	return application.InvariantResult{}
}

func TestAnHonestShopPasses(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*shop{"calm": {}, "shaky": {shaky: true}} {
		for loop, rate := range map[string]float64{"closed": 0, "open": 2000} {
			t.Run(name+" "+loop, func(t *testing.T) {
				t.Parallel()
				own := &shop{shaky: s.shaky}
				c := config(open(t, own))
				if rate > 0 {
					c.Rate, c.Connections = rate, 0
				}
				r := run(t, c)
				if r.Violations() || !r.Holds {
					t.Errorf("holds %v: %+v", r.Holds, r.Invariants)
				}
				if r.Accepted != 60 || r.Refused != 240 || r.Unknown != 0 || r.Confirmed != 60 {
					t.Errorf("accepted %d refused %d unknown %d confirmed %d", r.Accepted, r.Refused, r.Unknown, r.Confirmed)
				}
				if r.RefusedBy["stock-not-enough"] != 240 || r.Repeats == 0 || r.SecondsToRows == nil {
					t.Errorf("%+v", r)
				}
				if d := verdict(r, "D"); d.Checked != 300 || d.Verdict != "holds" {
					t.Errorf("D: %+v", d)
				}
			})
		}
	}
}

func TestADishonestShopIsCaught(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		shop   *shop
		broken string
	}{
		"oversells":                     {&shop{oversells: true}, "A"},
		"loses an accepted order":       {&shop{loses: true}, "D"},
		"confirms what it refused":      {&shop{confirmsRefused: true}, "D"},
		"sells a repeat again":          {&shop{sellsTwice: true}, "C"},
		"refuses a repeat of a sale":    {&shop{takesBack: true}, "D"},
		"answers with another's order":  {&shop{mixesUp: true}, "D"},
		"never drains":                  {&shop{neverDrains: true}, "E"},
		"says itself that units leaked": {&shop{admits: "B"}, "B"},
		"says itself that it lied":      {&shop{admits: "D"}, "D"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config(open(t, one.shop))
			c.Repeats = 0.5
			if one.shop.neverDrains {
				c.Settle = 300 * time.Millisecond
			}
			r := run(t, c)
			v := verdict(r, one.broken)
			if !r.Violations() || r.Holds || v.Verdict != "broken" || v.Broken == 0 || len(v.Findings) == 0 || len(v.Findings) > 5 {
				t.Fatalf("%s not caught: %+v", one.broken, r.Invariants)
			}
			var text bytes.Buffer
			if err := r.Write(&text, rehearse.OutputText, nil); err != nil || !strings.Contains(text.String(), v.Findings[0].Detail) {
				t.Errorf("the counter-example is not shown (%v):\n%s", err, &text)
			}
		})
	}
}

func TestTimeToRowsDoesNotWaitForTheLastRefusal(t *testing.T) {
	t.Parallel()
	s := &shop{}
	s.reply = func(n int64) {
		if n != 250 { // all 60 units have long been sold
			return
		}
		seen := s.looks.Load()
		for end := time.Now().Add(20 * time.Second); s.looks.Load() < seen+3 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
	}
	r := run(t, config(open(t, s)))
	if r.SecondsToRows == nil || *r.SecondsToRows > r.LoadSeconds-1 {
		t.Errorf("rows after %v s of a load of %.1f s", r.SecondsToRows, r.LoadSeconds)
	}
}

func TestOpenLoopLatencyCountsFromThePlannedTime(t *testing.T) {
	t.Parallel()
	s := &shop{stalls: 600 * time.Millisecond}
	c := config(open(t, s))
	c.Buyers, c.Repeats, c.Rate, c.Connections = 1000, 0, 1000, 0
	r := run(t, c)
	// 600 ms of 1 s stood still: more than half of the buyers waited, the first of them for all of it.
	if l := r.Latency["refused"]; l.P50 < 50 || l.Max < 400 {
		t.Errorf("the stall does not show: %+v", l)
	}
	if !r.Holds {
		t.Errorf("%+v", r.Invariants)
	}
}

func TestAGeneratorThatCannotKeepItsPlanSaysSo(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	s := &shop{reply: func(int64) { <-gate }}
	c := config(open(t, s))
	c.Rate, c.Connections, c.InFlightMax = 10_000, 0, 20
	time.AfterFunc(200*time.Millisecond, func() { close(gate) })
	r, err := rehearse.Run(t.Context(), c, io.Discard, io.Discard)
	if !errors.Is(err, rehearse.ErrGeneratorLate) || r.Stopped == "" {
		t.Fatalf("%v, stopped %q", err, r.Stopped)
	}
	if r.Asked != 20 || !r.Holds {
		t.Errorf("asked %d, %+v", r.Asked, r.Invariants)
	}
}

func TestASilentShopEndsTheLoad(t *testing.T) {
	t.Parallel()
	c := config(open(t, &shop{silent: true}))
	c.Settle = time.Second
	r, err := rehearse.Run(t.Context(), c, io.Discard, io.Discard)
	if !errors.Is(err, rehearse.ErrSilent) {
		t.Fatal(err)
	}
	if r.Asked == int64(c.Buyers) || r.Unknown != r.Asked || !r.Violations() {
		t.Errorf("asked %d unknown %d violations %v", r.Asked, r.Unknown, r.Violations())
	}
	if r.Answers["503 rebuilding"] == 0 {
		t.Errorf("answers: %v", r.Answers)
	}
}

func TestTheJournalTellsWhatEachBuyerWasTold(t *testing.T) {
	t.Parallel()
	c := config(open(t, &shop{shaky: true}))
	c.JournalPath = filepath.Join(t.TempDir(), "journal")
	run(t, c)
	f, err := os.Open(c.JournalPath)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	told := map[application.Answer]int{}
	users := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e application.JournalEntry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		told[e.Answer]++
		users[e.User] = true
		if _, err := domain.NewKey(e.Product, e.User, e.Token); err != nil {
			t.Fatal(err)
		}
	}
	if told[application.AnswerAccepted] != 60 || told[application.AnswerRefused] != 240 || len(users) != 300 {
		t.Errorf("told %v, %d users", told, len(users))
	}
}

func TestAnInterruptedRehearsalKeepsItsJournal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := config(open(t, &shop{reply: func(n int64) {
		if n == 60 {
			cancel()
		}
	}}))
	c.JournalPath = filepath.Join(t.TempDir(), "journal")
	if _, err := rehearse.Run(ctx, c, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b, err := os.ReadFile(c.JournalPath)
	if n := bytes.Count(b, []byte("\n")); err != nil || n < 20 || n > 120 {
		t.Errorf("%d lines, %v", n, err)
	}
}

func TestTheResultIsJSONOnRequestAndProgressIsPlainLines(t *testing.T) {
	t.Parallel()
	c := config(open(t, &shop{}))
	c.Output = rehearse.OutputJSON
	var out, progress bytes.Buffer
	want, err := rehearse.Run(t.Context(), c, &out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	var got rehearse.Report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != rehearse.ReportSchema || got.Accepted != want.Accepted || len(got.Invariants) != 5 {
		t.Errorf("%s", out.String())
	}
	for _, word := range []string{"opening", "buying", "settling", "checking"} {
		if !strings.Contains(progress.String(), word) {
			t.Errorf("no %q in:\n%s", word, progress.String())
		}
	}
}

func TestBadSettingsAreListedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := rehearse.Run(t.Context(), rehearse.Config{Repeats: 2, Rate: 5, Connections: 5, Output: "xml"}, io.Discard, io.Discard)
	if !errors.Is(err, domain.ErrInvalidRequest) {
		t.Fatal(err)
	}
	for _, word := range []string{"buyers", "units", "products", "repeats", "not both", "xml", "target", "admin"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not named in %v", word, err)
		}
	}
}

func TestADoorThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	c := config("http://127.0.0.1:1")
	_, err := rehearse.Run(t.Context(), c, io.Discard, io.Discard)
	if !errors.Is(err, domain.ErrUnavailable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Fatal(err)
	}
}
