//go:build stack

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seckill/application"
	"seckill/test/shop"
)

// Each command does what its help says and ends with the documented exit code, beside a running service
// and without one.
func TestCommandsEndWithTheirExitCode(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile, relayOff, "SECKILL_RECONCILE__SAFE_AGE=1s", "SECKILL_RECONCILE__POLICY=report-only")
		s.Start()
		product := onSale(t, s, 10)
		if a := s.Buy(t.Context(), product, "alice", "t", 1); !a.Accepted() {
			t.Fatal(a)
		}
		s.WaitOrder(product, "alice", "t", "confirmed")
		wantOrders(t, s, product, 1)
		healthy := []command{
			{0, `"holds": true`, "verify --product " + product + " -o json"},
			{0, "found: nothing", "reconcile --product " + product},
		}
		expect(t, s, healthy...)
		s.Stop()
		expect(t, s, healthy...)
		expect(t, s,
			command{0, "seckill ", "version"},
			command{0, "", "migrate status"},
			command{0, ".", "token --sub alice"},
			command{2, "sub", "token"},
			command{2, "--scope", "token --sub alice --scope everything"},
			command{2, "--nope", "verify --nope"},
			command{2, "stray", "serve stray"},
			command{2, "stray", "stray"},
			command{2, "stray", "migrate stray"},
			command{2, "output", "verify -o xml"},
		)
		lost := application.JournalEntry{Product: product, User: "bob", Token: "t", Quantity: 1, Answer: application.AnswerAccepted}
		if v := s.VerifyJournal([]application.JournalEntry{lost}); v.Holds {
			t.Errorf("an accepted purchase without an order: %+v", v)
		}
		line, err := json.Marshal(lost)
		journal := filepath.Join(t.TempDir(), "journal.jsonl")
		if err = errors.Join(err, os.WriteFile(journal, line, 0o600)); err != nil {
			t.Fatal(err)
		}
		expect(t, s, command{4, `"broken"`, "verify --journal " + journal + " -o json"})
		bad := s.For(t)
		bad.Set("SECKILL_REDIS__ADRS=x", "SECKILL_STOP__GRACE=-1s")
		expect(t, bad, command{2, "redis.addrs", "serve"}, command{2, "redis.adrs", "verify"})
	})
}

// A difference is exit code 4 for a dry run, and 0 once it is repaired.
func TestTheReconcileCommandSaysWhetherItFoundADifference(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack, relayOff, "SECKILL_RECONCILE__SAFE_AGE=1ms", "SECKILL_RECONCILE__POLICY=report-only")
	s.Start()
	product := onSale(t, s, 10)
	taken := take(t, s, product, 2)
	expect(t, s, command{4, "open-flow-without-order 2", "reconcile"},
		command{2, "--yes", "reconcile --apply"},
		command{0, "sent-again", "reconcile --apply --yes"}) // it may find them in the database already, and tell the gate, too
	waitOrders(s, taken)
	wantOrders(t, s, product, 2)
	s.Stop()
}

// A server that is away is exit code 3 for every command that asks it.
func TestCommandsNameAServerThatIsAway(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	s.Set("SECKILL_DATABASE__DSN=u:p@tcp(" + nowhere + ")/nothing")
	expect(t, s, command{3, nowhere, "migrate status"}, command{3, nowhere, "verify"}, command{3, nowhere, "reconcile"})
}

// command is what is to come of a command line.
type command struct {
	code int
	says string
	line string
}

func expect(t *testing.T, s *shop.Shop, commands ...command) {
	t.Helper()
	for _, c := range commands {
		out, err := s.Run(strings.Fields(c.line)...)
		if code := shop.ExitCode(err); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("seckill %s: exit code %d, want %d and %q:\n%s", c.line, code, c.code, c.says, fmt.Sprintf("%.2000s", out))
		}
	}
}
