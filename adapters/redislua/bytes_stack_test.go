//go:build stack

package redislua

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/system"
	"seckill/application/port"
	"seckill/domain"
)

// settledBytesMax is what the server may keep for a buyer's one settled flow with ids of 16 characters.
const settledBytesMax = 300

// The server is the test's own, since it is asked for its memory as a whole.
func TestStackASettledFlowIsSmall(t *testing.T) {
	t.Parallel()
	client := realClient(t, ownRedis(t).Addr)
	gate := newGate(t, client, Config{})
	const product, flows, step = "product-00000001", 20_000, 250
	sell(t, gate, product, 1_000_000)
	ids := system.NewIDs()
	made := takeAndSettle(t, gate, product, ids, 0, step) // scripts are loaded, buffers have their size
	before := usedMemory(t, client)
	for first := step; first < step+flows; first += step {
		made = takeAndSettle(t, gate, product, ids, first, step)
	}
	each := (usedMemory(t, client) - before) / flows
	t.Logf("%d bytes a settled flow", each)
	if each > settledBytesMax {
		t.Errorf("a settled flow takes %d bytes, want at most %d", each, settledBytesMax)
	}
	replies, err := gate.Check(t.Context(), []domain.Key{made.Key()})
	if err != nil {
		t.Fatal(err)
	}
	f := replies[0].Flow
	if f.State() != domain.FlowSettled || f.Action() != domain.ActionDeduct || f.Key() != made.Key() ||
		f.From() != made.From() || f.To() != made.To() || f.Change() != -1 || !f.At().Equal(saleTime) {
		t.Errorf("of %+v this is left: %+v", made, f)
	}
}

// takeAndSettle sells a unit each to n buyers, settles the flows, and gives the last.
func takeAndSettle(t *testing.T, gate *Gate, product string, ids port.IDs, first, n int) domain.Flow {
	t.Helper()
	items := make([]port.DeductItem, n)
	for i := range items {
		items[i] = item(t, product, fmt.Sprintf("user-%011d", first+i), fmt.Sprintf("token-%010d", first+i), 1, ids.Attempt())
	}
	fates := make([]domain.Fate, n)
	replies := gate.Deduct(t.Context(), saleTime, items)
	for i, r := range replies {
		if r.Outcome != port.DeductAccepted {
			t.Fatalf("%+v", r)
		}
		fates[i] = domain.Fate{Key: r.Flow.Key(), Quantity: 1, Status: domain.OrderConfirmed, StockVersion: 2,
			Epoch: r.Flow.Epoch(), Sequence: r.Flow.Sequence(), At: saleTime}
	}
	for i, o := range gate.Tell(t.Context(), fates) {
		if o != port.TellDone {
			t.Fatalf("fate %d: outcome %d", i, o)
		}
	}
	return replies[n-1].Flow
}

func usedMemory(t *testing.T, client redis.UniversalClient) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscan(client.InfoMap(t.Context(), "memory").Item("Memory", "used_memory"), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
