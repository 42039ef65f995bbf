package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/embedded"
	"seckill/application/port"
	"seckill/domain"
)

type verdict domain.Verdict

func (v verdict) Confirm(context.Context, domain.Batch) domain.Verdict { return domain.Verdict(v) }
func (v verdict) Resolve(context.Context, domain.Batch) domain.Verdict { return domain.Verdict(v) }

type handle func([]port.Delivery) error

func (h handle) Handle(_ context.Context, deliveries []port.Delivery) error { return h(deliveries) }

func refuseAll([]port.Delivery) error { return errors.New("refused") }

func start(t testing.TB, dir string, cfg embedded.BrokerConfig, listener port.TransactionListener, handler port.DeliveryHandler) *embedded.Broker {
	t.Helper()
	broker, err := embedded.NewBroker(dir, cfg, listener, handler, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := broker.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return broker
}

func batch(t testing.TB, id string, items int) domain.Batch {
	t.Helper()
	b := domain.Batch{ID: id, Kind: domain.BatchDeduct}
	for i := range items {
		key, err := domain.NewKey("product-00000001", fmt.Sprintf("user-%011d", i), fmt.Sprintf("token-%010d", i))
		if err != nil {
			t.Fatal(err)
		}
		b.Items = append(b.Items, domain.Deduction{Key: key, Quantity: 1, Epoch: 1, Sequence: int64(i), Attempt: fmt.Sprintf("attempt-%08d", i), At: time.UnixMilli(1764633600123)})
	}
	return b
}

func TestATornTailIsDroppedAndWhatIsBeforeItKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broker := start(t, dir, quick(), verdict(domain.VerdictCommit), handle(refuseAll))
	for i := range 3 {
		if result, err := broker.Send(t.Context(), batch(t, fmt.Sprint("b", i), 1)); result != port.SendCommitted {
			t.Fatal(result, err)
		}
	}
	whole, err := os.ReadFile(filepath.Join(dir, "broker.journal"))
	if err != nil {
		t.Fatal(err)
	}
	kept := int64(3)
	for cut := len(whole); ; cut = max(0, cut-9) {
		torn := t.TempDir()
		body := append([]byte(nil), whole[:cut]...)
		if cut > 0 && cut%2 == 0 {
			body[cut-1] ^= 0x55 // a page that was not written is torn, too
		}
		if err := os.WriteFile(filepath.Join(torn, "broker.journal"), body, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := embedded.NewBroker(torn, quick(), verdict(domain.VerdictCommit), handle(refuseAll), quiet())
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		got := again.Backlog(t.Context()).Messages
		if got > 3 || got < kept-1 {
			t.Fatalf("cut at %d: %d messages after %d", cut, got, kept)
		}
		kept = min(kept, got)
		if err := again.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if cut == 0 {
			break
		}
	}
	if kept != 0 {
		t.Fatalf("an empty journal holds %d messages", kept)
	}
}

func TestTheJournalStaysSmallAndNumbersAreNeverUsedTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := quick()
	cfg.JournalBytesMax = 64 << 10
	var newest atomic.Int64
	count := handle(func(deliveries []port.Delivery) error {
		for _, d := range deliveries {
			if d.Origin.Offset <= newest.Load() {
				t.Errorf("offset %d came after %d", d.Origin.Offset, newest.Load())
			}
			newest.Store(d.Origin.Offset)
		}
		return nil
	})
	cfg.GroupsMax = 1
	for range 3 {
		broker := start(t, dir, cfg, verdict(domain.VerdictCommit), count)
		for i := range 100 {
			if result, err := broker.Send(t.Context(), batch(t, fmt.Sprint("b", i), 100)); result != port.SendCommitted {
				t.Fatal(result, err)
			}
		}
		if err := broker.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := broker.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "broker.journal"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 4*cfg.JournalBytesMax {
			t.Fatalf("the journal has %d bytes", info.Size())
		}
	}
	if newest.Load() < 300 {
		t.Fatalf("the newest offset is %d", newest.Load())
	}
}

func TestAFullBrokerRefusesToTakeMore(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.MessagesMax = 3
	broker := start(t, t.TempDir(), cfg, verdict(domain.VerdictCommit), handle(refuseAll))
	for range cfg.MessagesMax {
		if result, err := broker.Send(t.Context(), batch(t, "b", 1)); result != port.SendCommitted {
			t.Fatal(result, err)
		}
	}
	if result, err := broker.Send(t.Context(), batch(t, "b", 1)); result != port.SendUnknown || !errors.Is(err, domain.ErrBusy) {
		t.Fatal(result, err)
	}
	if err := broker.Publish([]byte("x"), 1); !errors.Is(err, domain.ErrBusy) {
		t.Fatal(err)
	}
}

func TestHalvesOfARestartAreCheckedByDrainAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := quick()
	cfg.CheckTimeout, cfg.CheckInterval = time.Hour, time.Hour
	first := start(t, dir, cfg, verdict(domain.VerdictUnknown), handle(refuseAll))
	if result, _ := first.Send(t.Context(), batch(t, "b", 1)); result != port.SendUnknown {
		t.Fatal(result)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	var delivered atomic.Int32
	second := start(t, dir, cfg, verdict(domain.VerdictCommit), handle(func(d []port.Delivery) error {
		delivered.Add(int32(len(d)))
		return nil
	}))
	if err := second.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if delivered.Load() != 1 {
		t.Fatalf("%d deliveries", delivered.Load())
	}
}

func TestABarrierComesAloneAfterEverythingBeforeIt(t *testing.T) {
	t.Parallel()
	var before, during atomic.Int32
	broker, err := embedded.NewBroker(t.TempDir(), quick(), verdict(domain.VerdictCommit), handle(func(d []port.Delivery) error {
		during.Add(1)
		defer during.Add(-1)
		if d[0].Batch.Kind != domain.BatchBarrier {
			time.Sleep(time.Millisecond)
			before.Add(int32(len(d)))
			return nil
		}
		if len(d) != 1 || before.Load() < 100 {
			t.Errorf("%d messages in the barrier's call, %d finished before it", len(d), before.Load())
		}
		return nil
	}), quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Publish([]byte("x"), 100); err != nil {
		t.Fatal(err)
	}
	if err := broker.Publish([]byte(`{"v":1,"kind":"barrier","id":"b"}`), 1); err != nil {
		t.Fatal(err)
	}
	if err := broker.Publish([]byte("x"), 10); err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := broker.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := broker.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if before.Load() != 110 {
		t.Fatalf("%d messages", before.Load())
	}
}

func TestAJournalThatFailsPromisesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := quick()
	cfg.JournalBytesMax = 1
	broker, err := embedded.NewBroker(dir, cfg, verdict(domain.VerdictCommit), handle(refuseAll), quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := broker.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for broker.Check(t.Context()) == nil { // the first write that makes the journal anew fails
		if time.Now().After(deadline) {
			t.Fatal("the journal did not fail")
		}
		if _, err := broker.Send(t.Context(), batch(t, "b", 10)); err != nil {
			break
		}
	}
	if result, err := broker.Send(t.Context(), batch(t, "b", 1)); result != port.SendUnknown || err == nil {
		t.Fatal(result, err)
	}
	if err := broker.Check(t.Context()); !errors.Is(err, domain.ErrUnavailable) {
		t.Fatal(err)
	}
	if err := broker.Stop(t.Context()); err == nil {
		t.Fatal("stopped as if nothing had happened")
	}
	if err := broker.Stop(t.Context()); err == nil {
		t.Fatal("a second stop forgot the failure")
	}
}

func TestOneFolderHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	release, err := embedded.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.LockFolder(dir); !errors.Is(err, domain.ErrUnavailable) {
		t.Fatalf("locked twice: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	again, err := embedded.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
}

func TestTheEmbeddedRedisAnswersOnLoopbackUnderANewIdentityEachTime(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 2 {
		server, err := embedded.StartRedis()
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if seen[server.Identity()] || len(server.Identity()) != 40 {
			t.Fatalf("identity %q", server.Identity())
		}
		seen[server.Identity()] = true
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		server.Close()
	}
}

func BenchmarkSend(b *testing.B) {
	for _, items := range []int{1, 150} {
		for _, senders := range []int{1, 16} {
			b.Run(fmt.Sprintf("items=%d/senders=%d", items, senders), func(b *testing.B) {
				cfg := embedded.DefaultBrokerConfig()
				var calls, messages atomic.Int64
				broker := start(b, b.TempDir(), cfg, verdict(domain.VerdictCommit), handle(func(d []port.Delivery) error {
					calls.Add(1)
					messages.Add(int64(len(d)))
					return nil
				}))
				m := batch(b, "b", items)
				b.SetParallelism(senders)
				b.ResetTimer()
				if senders == 1 {
					for range b.N {
						_, _ = broker.Send(context.Background(), m)
					}
				} else {
					b.RunParallel(func(p *testing.PB) {
						for p.Next() {
							_, _ = broker.Send(context.Background(), m)
						}
					})
				}
				if err := broker.Drain(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N*items)/b.Elapsed().Seconds(), "purchases/s")
				b.ReportMetric(float64(messages.Load())/float64(max(calls.Load(), 1)), "messages/group")
			})
		}
	}
}
