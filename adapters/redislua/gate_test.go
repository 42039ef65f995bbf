package redislua

import (
	"context"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/application/port"
	"seckill/domain"
)

var saleTime = time.UnixMilli(1_700_000_000_123).UTC()

func newGate(tb testing.TB, client redis.UniversalClient, cfg Config) *Gate {
	tb.Helper()
	gate, err := New(client, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return gate
}

// sell opens a product with so many units at the next epoch.
func sell(tb testing.TB, gate *Gate, product string, units int64) {
	tb.Helper()
	ctx := tb.Context()
	view := viewOf(tb, gate, product)
	epoch := max(view.Epoch, view.Building) + 1
	done, err := gate.Prepare(ctx, product, epoch)
	must(tb, done, err)
	view = viewOf(tb, gate, product)
	done, err = gate.Rebuild(ctx, port.GatePlan{Product: product, Epoch: epoch, Remaining: units, Version: 1,
		Sequence: view.Sequence, Server: view.Server})
	must(tb, done, err)
	done, err = gate.Open(ctx, product, epoch)
	must(tb, done, err)
}

func must(tb testing.TB, done bool, err error) {
	tb.Helper()
	if !done || err != nil {
		tb.Fatalf("a step was refused: %v, %v", done, err)
	}
}

func viewOf(tb testing.TB, gate *Gate, product string) port.GateView {
	tb.Helper()
	views, err := gate.View(tb.Context(), []string{product})
	if err != nil {
		tb.Fatal(err)
	}
	return views[0]
}

func item(tb testing.TB, product, user, token string, quantity int64, attempt string) port.DeductItem {
	tb.Helper()
	command, err := domain.NewDeductCommand(product, user, token, quantity)
	if err != nil {
		tb.Fatal(err)
	}
	return port.DeductItem{Command: command, Attempt: attempt}
}

func deduct(tb testing.TB, gate *Gate, product, user, attempt string) port.DeductReply {
	tb.Helper()
	return gate.Deduct(tb.Context(), saleTime, []port.DeductItem{item(tb, product, user, "t", 1, attempt)})[0]
}

// flushedScripts sells while the server keeps losing its scripts.
func flushedScripts(t *testing.T, client redis.UniversalClient, cfg Config) {
	t.Helper()
	gate := newGate(t, client, cfg)
	products := []string{"noscript-1", "noscript-2", "noscript-3"}
	for _, p := range products {
		sell(t, gate, p, 1_000)
	}
	ctx, stop := context.WithCancel(t.Context())
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for ctx.Err() == nil {
			client.ScriptFlush(ctx)
		}
	})
	for i := range 200 {
		if i%10 == 0 {
			client.ScriptFlush(ctx)
		}
		items := make([]port.DeductItem, len(products))
		for n, p := range products {
			items[n] = item(t, p, fmt.Sprintf("u%d", i), "t", 1, "a")
		}
		for _, r := range gate.Deduct(ctx, saleTime, items) {
			if r.Outcome != port.DeductAccepted {
				t.Errorf("deduction %d: outcome %d, %v", i, r.Outcome, r.Err)
			}
		}
	}
	stop()
	flusher.Wait()
	for _, p := range products {
		if left := viewOf(t, gate, p).Remaining; left != 800 {
			t.Errorf("%s has %d left", p, left)
		}
	}
}

func TestLostScriptsAreNotSeenByCallers(t *testing.T) {
	t.Parallel()
	flushedScripts(t, miniClient(t), Config{Identity: "here"})
}

// lossyProxy forwards to a server, and can swallow replies that the server gave.
type lossyProxy struct {
	listener net.Listener
	upstream string
	swallow  atomic.Int32 // replies still to be lost; each takes its connection along
	lost     atomic.Int32
}

func newLossyProxy(t *testing.T, upstream string) *lossyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossyProxy{listener: listener, upstream: upstream}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return p
}

func (p *lossyProxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	var upstream sync.WaitGroup
	upstream.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			break
		}
		if p.swallow.Add(-1) >= 0 {
			p.lost.Add(1)
			break
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			break
		}
	}
	_ = client.Close()
	upstream.Wait()
}

// lostReplies loses the answer of a deduction that was carried out.
func lostReplies(t *testing.T, addr string, cfg Config) {
	t.Helper()
	proxy := newLossyProxy(t, addr)
	client := NewClient(ClientConfig{Addrs: []string{proxy.listener.Addr().String()}})
	defer client.Close()
	gate := newGate(t, client, cfg)
	sell(t, gate, "lost-reply", 10)
	deduct(t, gate, "lost-reply", "warm", "a")

	proxy.swallow.Store(1)
	reply := deduct(t, gate, "lost-reply", "alice", "a")
	if reply.Outcome != port.DeductAccepted || reply.Remaining != 8 || proxy.lost.Load() != 1 {
		t.Fatalf("%d replies lost: %+v", proxy.lost.Load(), reply)
	}
	proxy.swallow.Store(100) // the repeat is lost, too
	if reply = deduct(t, gate, "lost-reply", "bob", "a"); reply.Outcome != port.DeductUnknown || reply.Err == nil {
		t.Fatalf("%d replies lost: %+v", proxy.lost.Load(), reply)
	}
	proxy.swallow.Store(0)
	if reply = deduct(t, gate, "lost-reply", "bob", "a"); reply.Outcome != port.DeductAccepted || reply.Remaining != 7 {
		t.Fatalf("asked again: %+v", reply)
	}
	if reply = deduct(t, gate, "lost-reply", "bob", "b"); reply.Outcome != port.DeductRepeat || reply.Remaining != 7 {
		t.Fatalf("second click: %+v", reply)
	}
}

func TestALostReplyDeductsOnceAndIsAccepted(t *testing.T) {
	t.Parallel()
	lostReplies(t, miniredis.RunT(t).Addr(), Config{Identity: "here"})
}

func TestAServerThatIsNotReachedIsAwayAndAnInterruptedCallIsUnknown(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	proxy := newLossyProxy(t, server.Addr())
	client := NewClient(ClientConfig{Addrs: []string{proxy.listener.Addr().String()}})
	defer client.Close()
	gate := newGate(t, client, Config{Identity: "here"})
	sell(t, gate, "p", 10)
	proxy.swallow.Store(1) // the first try ends without an answer, the second meets a closed door
	_ = proxy.listener.Close()
	if r := deduct(t, gate, "p", "alice", "a"); r.Outcome != port.DeductUnknown || r.Err == nil {
		t.Fatalf("interrupted: %+v", r)
	}
	if r := deduct(t, gate, "p", "bob", "a"); r.Outcome != port.DeductAway || r.Err == nil {
		t.Fatalf("not reached: %+v", r)
	}
	if _, err := gate.Check(t.Context(), []domain.Key{item(t, "p", "bob", "t", 1, "a").Command.Key()}); domain.CodeOf(err) != domain.CodeUnavailable {
		t.Fatalf("check: %v", err)
	}
	if _, err := gate.Page(t.Context(), "p", 0, 10); domain.CodeOf(err) != domain.CodeUnavailable {
		t.Fatalf("page: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r := gate.Deduct(ended, saleTime, []port.DeductItem{item(t, "p", "bob", "t", 1, "a")})[0]; r.Outcome != port.DeductAway {
		t.Fatalf("a call whose time was up: %+v", r)
	}
}

// cutOnce breaks the first pipeline as a connection that ends does, before anything reached the server.
type cutOnce struct{ cut *atomic.Bool }

func (cutOnce) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (cutOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h cutOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() != "evalsha" || !h.cut.CompareAndSwap(true, false) {
			return next(ctx, commands)
		}
		for _, c := range commands {
			c.SetErr(io.ErrUnexpectedEOF)
		}
		return io.ErrUnexpectedEOF
	}
}

// The try whose reply was lost may still be in a server's hands: should units come back before it is
// carried out, it is accepted. So what the second try says against the buyer is not final.
func TestARefusalBesideATryThatMayStillRunIsNoRefusal(t *testing.T) {
	t.Parallel()
	client := miniClient(t)
	gate := newGate(t, client, Config{Identity: "here"})
	for name, terms := range map[string]domain.Terms{"sold-out": {Revision: 1}, "paused": {Paused: true, Revision: 1},
		"limit": {LimitPerBuyer: 1, Revision: 1}} {
		if done, err := gate.Prepare(t.Context(), name, 1); err != nil || !done {
			t.Fatal(done, err)
		}
		view, err := gate.View(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		plan := port.GatePlan{Product: name, Epoch: 1, Remaining: map[string]int64{"sold-out": 1, "paused": 9, "limit": 9}[name], Version: 1,
			Terms: terms, Sequence: view[0].Sequence, Server: view[0].Server}
		if done, err := gate.Rebuild(t.Context(), plan); err != nil || !done {
			t.Fatal(done, err)
		}
		if done, err := gate.Open(t.Context(), name, 1); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	cut := &atomic.Bool{}
	client.AddHook(cutOnce{cut})
	for product, refusal := range map[string]port.DeductOutcome{"sold-out": port.DeductNotEnough, "paused": port.DeductClosed,
		"limit": port.DeductLimit} {
		command, err := domain.NewDeductCommand(product, "u", "t", 3)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(attempt string) port.DeductOutcome {
			return gate.Deduct(t.Context(), time.Now(), []port.DeductItem{{Command: command, Attempt: attempt}})[0].Outcome
		}
		cut.Store(true)
		if got := ask("a1"); got != port.DeductUnknown {
			t.Errorf("%s, after a lost reply: outcome %d, want unknown", product, got)
		}
		if got := ask("a2"); got != refusal {
			t.Errorf("%s, asked again: outcome %d, want %d", product, got, refusal)
		}
	}
}

func TestAFlushedServerIsNotLoaded(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	client := NewClient(ClientConfig{Addrs: []string{server.Addr()}})
	defer client.Close()
	gate := newGate(t, client, Config{Identity: "here"})
	sell(t, gate, "p", 10)
	server.FlushAll()
	if r := deduct(t, gate, "p", "alice", "a"); r.Outcome != port.DeductNotLoaded {
		t.Fatalf("after a flush: %+v", r)
	}
	sell(t, gate, "p", 5) // epoch 1 again: the ledger would say 2
	_ = server.Set(keys{"seckill"}.stock("other"), "a string")
	if r := deduct(t, gate, "other", "alice", "a"); r.Outcome != port.DeductUnknown {
		t.Fatalf("a key of another type: %+v", r)
	}
}

func TestAServerWithoutIdentityAnswersNothing(t *testing.T) {
	t.Parallel()
	gate := newGate(t, miniClient(t), Config{}) // miniredis knows no INFO replication
	if r := deduct(t, gate, "p", "alice", "a"); r.Outcome != port.DeductAway || !strings.Contains(r.Err.Error(), "NOIDENTITY") {
		t.Fatalf("%+v", r)
	}
}

func TestARecordThatIsDamagedIsNotLoaded(t *testing.T) {
	t.Parallel()
	client := miniClient(t)
	gate := newGate(t, client, Config{Identity: "here"})
	for field, value := range map[string]string{"remaining": "nan", "seq": "-1", "epoch": "0x10", "limit": ""} {
		p := "damaged-" + field
		sell(t, gate, p, 10)
		client.HSet(t.Context(), gate.keys.stock(p), field, value)
		if r := deduct(t, gate, p, "alice", "a"); r.Outcome != port.DeductNotLoaded {
			t.Errorf("%s is %q: %+v", field, value, r)
		}
		if done, err := gate.Prepare(t.Context(), p, 2); !done || err != nil {
			t.Errorf("%s is %q: a rebuild was refused: %v", field, value, err)
		}
		if v := viewOf(t, gate, p); !v.Loaded || !v.Shut || v.Building != 2 {
			t.Errorf("%s is %q: %+v", field, value, v)
		}
	}
}

// badQuantities are what a script must refuse whoever asks.
var badQuantities = []string{"nan", "inf", "-inf", "0x10", " 5 ", "5 ", "5\n", "1.5", "1e2", "1e400", "", "0", "-0", "-1", "+1", "01",
	"-9223372036854775808", "9223372036854775807", "2147483648", "1000001", "1\x00", "5\x00nan"}

// refusedQuantities hands quantities straight to the scripts.
func refusedQuantities(t *testing.T, client redis.UniversalClient, cfg Config) {
	t.Helper()
	gate := newGate(t, client, cfg)
	const p = "quantities"
	sell(t, gate, p, 10)
	stock := gate.keys.stock(p)
	before := client.HGetAll(t.Context(), stock).Val()
	good := []any{"u0", "t", "1", "a"}
	for _, bad := range badQuantities {
		calls := map[*redis.Script][]any{
			deductScript:    append(append([]any{"1"}, good...), "u", "t", bad, "a"),
			adoptScript:     append(append([]any{"1"}, good...), "u", "t", bad, "a"),
			tellScript:      {"u0", "t", "1", "rejected", "1", "1", "1", "1", "u", "t", bad, "rejected", "1", "1", "1", "1"},
			writeBackScript: {"1", "u0", "t", "1", "S", "1", "1", "1", "a", "u", "t", bad, "S", "1", "1", "1", "a"},
		}
		for script, args := range calls {
			c := gate.newCall(script, p, 2, len(args))
			c.keys = append(c.keys, gate.keys.flows(p, "u0"), gate.keys.flows(p, "u"))
			c.args = append(c.args, args...)
			gate.run(t.Context(), []*call{c})
			if !redis.HasErrorPrefix(c.err, "INVALID") {
				t.Errorf("quantity %q: %q, %v", bad, c.reply, c.err)
			}
		}
	}
	if after := client.HGetAll(t.Context(), stock).Val(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the record changed from %v to %v", before, after)
	}
	if n := client.Exists(t.Context(), gate.keys.flows(p, "u0"), gate.keys.flows(p, "u"), gate.keys.open(p)).Val(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
}

func TestScriptsRefuseWhatIsNoQuantity(t *testing.T) {
	t.Parallel()
	refusedQuantities(t, miniClient(t), Config{Identity: "here"})
}

func TestAnAttemptThatIsNoIDSpoilsOnlyItself(t *testing.T) {
	t.Parallel()
	gate := newGate(t, miniClient(t), Config{Identity: "here"})
	sell(t, gate, "p", 10)
	replies := gate.Deduct(t.Context(), saleTime, []port.DeductItem{
		item(t, "p", "u1", "t", 1, "a|b"), item(t, "p", "u2", "t", 1, ""), item(t, "p", "u3", "t", 1, "a")})
	for i, want := range []port.DeductOutcome{port.DeductAway, port.DeductAway, port.DeductAccepted} {
		if replies[i].Outcome != want {
			t.Errorf("item %d: %+v", i, replies[i])
		}
	}
}

func TestMemoryNeverMovesBackwards(t *testing.T) {
	t.Parallel()
	m, err := newMemory(2)
	if err != nil {
		t.Fatal(err)
	}
	flow := func(epoch, sequence int64, user string) domain.Flow {
		key, _ := domain.NewKey("p", user, "t")
		f, err := domain.NewFlow(domain.FlowFields{Key: key, Quantity: 1, State: domain.FlowDeducted, Epoch: epoch, Sequence: sequence})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	m.note("p", 1, 10, flow(1, 10, "a"))
	m.note("p", 1, 8, flow(1, 8, "late"))
	if s := m.of("p"); s.sequence != 10 || s.own.User() != "a" {
		t.Fatalf("%+v", s)
	}
	m.note("p", 2, 3, flow(1, 11, "old")) // a flow of an epoch that is over
	m.note("p", 1, 99, domain.Flow{})
	if s := m.of("p"); s.epoch != 2 || s.sequence != 3 || !s.own.IsZero() {
		t.Fatalf("%+v", s)
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { m.note("p", 2, int64(i), flow(2, int64(i), fmt.Sprintf("u%d", i))) })
	}
	all.Wait()
	if s := m.of("p"); s.sequence != 99 || s.own.User() != "u99" {
		t.Fatalf("%+v", s)
	}
	for i := range 3 {
		m.note(fmt.Sprintf("q%d", i), 1, 1, domain.Flow{})
	}
	if m.lru.Len() != 2 {
		t.Fatalf("%d products are remembered", m.lru.Len())
	}
}

func TestBigNumbersStayWhole(t *testing.T) {
	t.Parallel()
	bigNumbers(t, miniClient(t), Config{Identity: "here"})
}

// bigNumbers sells where Lua would print an exponent.
func bigNumbers(t *testing.T, client redis.UniversalClient, cfg Config) {
	t.Helper()
	gate := newGate(t, client, cfg)
	const p = "big-numbers"
	sell(t, gate, p, domain.UnitsMax)
	client.HSet(t.Context(), gate.keys.stock(p), "seq", "100000000000000", "epoch", "100000000000000")
	now := time.UnixMilli(253_402_300_799_999) // the end of the year 9999
	r := gate.Deduct(t.Context(), now, []port.DeductItem{item(t, p, "u", "t", 1, "a")})[0]
	if r.Outcome != port.DeductAccepted || r.Flow.Sequence() != 100_000_000_000_001 || r.Flow.Epoch() != 100_000_000_000_000 ||
		!r.Flow.At().Equal(now) || r.Flow.From() != domain.UnitsMax {
		t.Fatalf("%+v", r)
	}
	if v := viewOf(t, gate, p); v.Sequence != 100_000_000_000_001 || v.Remaining != domain.UnitsMax-1 {
		t.Fatalf("%+v", v)
	}
	flows, err := gate.Page(t.Context(), p, 100_000_000_000_000, 10)
	if err != nil || len(flows) != 1 || flows[0] != r.Flow {
		t.Fatalf("%v, %v", flows, err)
	}
}

func TestFlowsThatAreNoFlowsAreAnError(t *testing.T) {
	t.Parallel()
	key, _ := domain.NewKey("p", "u", "t")
	for _, packed := range []string{"", "D", "D|1|2|3|4|5", "X|1|2|3|4|5|a", "D|nan|2|3|4|5|a", "D|0|2|3|4|5|a", "D|3|2|3|4|5|a", "D|1|2|3|4|5|a|b"} {
		if f, err := parseFlow(key, packed); err == nil {
			t.Errorf("%q became %+v", packed, f)
		}
	}
}

func TestPartsBetweenBarsAreThoseOfStringsSplit(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "|", "a", "a|", "|a", "a|b", "a|b|", "|a|b", "||", "a||b", "a|b|c", "a|b|c|d"} {
		for wanted := 1; wanted <= 4; wanted++ {
			parts, want := make([]string, wanted), strings.Split(s, "|")
			if ok := split(s, parts); ok != (len(want) == wanted) || ok && !slices.Equal(parts, want) {
				t.Errorf("%q in %d: %q, %v", s, wanted, parts, ok)
			}
		}
	}
}

func TestABatchIsSharedOutInOrder(t *testing.T) {
	t.Parallel()
	products := []string{"b", "a", "b", "c", "a", "b"}
	got := share(len(products), func(i int) string { return products[i] })
	if want := []shared{{"b", 3, []int{0, 2, 5}}, {"a", 2, []int{1, 4}}, {"c", 1, []int{3}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := share(0, nil); len(got) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}
