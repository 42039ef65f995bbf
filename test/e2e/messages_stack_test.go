//go:build stack

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/fx"

	"seckill/adapters/wire"
	"seckill/application/port"
	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// startReachable starts a service that the test can reach behind.
func startReachable(s *shop.Shop) {
	if s.Profile == shop.Embedded {
		s.StartHere()
		return
	}
	s.Start()
}

// take takes a unit for each of n buyers from the gate alone, as an instance that dies at once after.
func take(t *testing.T, s *shop.Shop, product string, n int) []domain.Deduction {
	t.Helper()
	items := make([]port.DeductItem, n)
	for i := range items {
		command, err := domain.NewDeductCommand(product, fmt.Sprintf("taker%d", i), "taken", 1)
		if err != nil {
			t.Fatal(err)
		}
		items[i] = port.DeductItem{Command: command, Attempt: harness.UniqueID(t)}
	}
	taken := make([]domain.Deduction, n)
	for i, reply := range s.Gate().Deduct(context.Background(), time.Now(), items) {
		if reply.Outcome != port.DeductAccepted {
			t.Fatalf("deduct: %v %v", reply.Outcome, reply.Err)
		}
		taken[i] = domain.DeductionOf(reply.Flow)
	}
	return taken
}

// bodyOf is a message with those deductions, as the service writes it.
func bodyOf(t *testing.T, items []domain.Deduction) []byte {
	t.Helper()
	body, err := wire.Encode(domain.Batch{ID: harness.UniqueID(t), Kind: domain.BatchDeduct, Items: items})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// waitOrders waits until each deduction is a confirmed order.
func waitOrders(s *shop.Shop, items []domain.Deduction) {
	for _, item := range items {
		s.WaitOrder(item.Key.Product(), item.Key.User(), item.Key.Token(), "confirmed")
	}
}

// wantOrders wants A to E, and so many orders of one unit.
func wantOrders(t *testing.T, s *shop.Shop, product string, n int64) {
	t.Helper()
	if v := s.HoldsEventually(product); v.Confirmed != n || v.Units != n {
		t.Errorf("%d orders of %d units, want %d", v.Confirmed, v.Units, n)
	}
}

// A process died between half and commit: the broker asks back, and the instance that lives says commit.
func TestACheckBackFinishesTheHalfOfADeadInstance(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack, relayOff)
	s.Start()
	product := onSale(t, s, 10)
	taken := take(t, s, product, 3)
	s.LeaveHalf(bodyOf(t, taken))
	waitOrders(s, taken)
	wantOrders(t, s, product, 3)
	s.Stop()
}

// undecided is a local transaction that never says anything.
type undecided struct{ port.TransactionListener }

func (undecided) Confirm(context.Context, domain.Batch) domain.Verdict { return domain.VerdictUnknown }

// The same in one process: what a kill between half and commit leaves is its folder as it is then.
func TestACheckBackFinishesTheHalfOfAKilledProcess(t *testing.T) {
	t.Parallel()
	before, after := t.TempDir(), filepath.Join(t.TempDir(), "left")
	dying := shop.New(t, shop.Embedded, relayOff, "SECKILL_DATA="+before)
	dying.StartHere(fx.Decorate(func(l port.TransactionListener) port.TransactionListener { return undecided{l} }))
	product := onSale(t, dying, 10)
	p := &purchase{user: "alice", token: "click"}
	if p.answer = dying.Buy(t.Context(), product, p.user, p.token, 1); p.answer.Code() != domain.CodeOutcomeUnknown {
		t.Fatalf("a half without a commit: %v", p.answer)
	}
	if err := os.CopyFS(after, os.DirFS(before)); err != nil {
		t.Fatal(err)
	}
	s := shop.New(t, shop.Embedded, relayOff, "SECKILL_DATA="+after)
	s.Start()
	s.WaitOpen(product)
	s.WaitOrder(product, p.user, p.token, "confirmed")
	wantOrders(t, s, product, 1)
	s.Stop()
}

// A message that comes three times is applied once, whether or not its orders were there before.
func TestAMessageDeliveredThreeTimesIsAppliedOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, profile string) {
		s := shop.New(t, profile, relayOff)
		startReachable(s)
		product := onSale(t, s, 100)
		var sold []domain.Key
		for i := range 10 {
			user := fmt.Sprintf("buyer%d", i)
			if a := s.Buy(t.Context(), product, user, "t", 1); !a.Accepted() {
				t.Fatalf("%s: %v", user, a)
			}
			sold = append(sold, keyOf(t, product, user, "t"))
			s.WaitOrder(product, user, "t", "confirmed")
		}
		replies, err := s.Gate().Check(t.Context(), sold)
		if err != nil {
			t.Fatal(err)
		}
		var known []domain.Deduction
		for _, r := range replies {
			known = append(known, domain.DeductionOf(r.Flow))
		}
		taken := take(t, s, product, 10)
		old, fresh := bodyOf(t, known), bodyOf(t, taken)
		s.Publish(old, fresh, old, fresh, fresh, old)
		waitOrders(s, taken)
		shop.Eventually(t, time.Minute, "every message is finished", func() (bool, string) {
			lag := s.Pipeline().LagMessages
			return lag != nil && *lag == 0, fmt.Sprintf("%+v", s.Pipeline())
		})
		wantOrders(t, s, product, 20)
		if v, a := s.Stock(product); v.Gate == nil || v.Gate.Remaining != 80 || v.Ledger == nil || v.Ledger.Stock != 80 {
			t.Errorf("both sides: %v", a)
		}
	})
}
