package redislua

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/application/port"
	"seckill/domain"
)

// walkSeesEveryFlow has more users and more tokens of one user than a step or a page holds, and a
// neighbour whose name begins alike.
func walkSeesEveryFlow(t *testing.T, client redis.UniversalClient, cfg Config) {
	gate := newGate(t, client, cfg)
	const users, tokens = 300, 600
	want := map[string]bool{}
	var items []port.DeductItem
	add := func(product, user, token string) {
		command, err := domain.NewDeductCommand(product, user, token, 1)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, port.DeductItem{Command: command, Attempt: "a"})
		if product == "p" {
			want[user+"|"+token] = true
		}
	}
	for i := range users {
		add("p", fmt.Sprint("u", i), "t")
	}
	for i := range tokens {
		add("p", "busy", fmt.Sprint("t", i))
	}
	add("pp", "u0", "t")
	for _, product := range []string{"p", "pp"} {
		openForWalk(t, gate, product)
	}
	for _, r := range gate.Deduct(t.Context(), time.Now(), items) {
		if r.Outcome != port.DeductAccepted {
			t.Fatalf("%v %v", r.Outcome, r.Err)
		}
	}
	seen := map[string]bool{}
	err := gate.Walk(t.Context(), "p", func(flows []domain.Flow) error {
		if len(flows) == 0 || len(flows) > 1000 {
			t.Errorf("a page of %d", len(flows))
		}
		for _, f := range flows {
			seen[f.Key().User()+"|"+f.Key().Token()] = f.Key().Product() == "p"
		}
		return nil
	})
	if err != nil || len(seen) != len(want) {
		t.Errorf("saw %d of %d: %v", len(seen), len(want), err)
	}
	for key := range want {
		if !seen[key] {
			t.Errorf("%s was not seen", key)
		}
	}
	stop := errors.New("enough")
	if err := gate.Walk(t.Context(), "p", func([]domain.Flow) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if err := gate.Walk(t.Context(), "nobody", func([]domain.Flow) error { return stop }); err != nil {
		t.Errorf("a product without flows: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := gate.Walk(ended, "p", func([]domain.Flow) error { return nil }); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("after its time: %v", err)
	}
}

// openForWalk builds a gate with room for everybody.
func openForWalk(t *testing.T, gate *Gate, product string) {
	t.Helper()
	ctx := t.Context()
	if done, err := gate.Prepare(ctx, product, 1); err != nil || !done {
		t.Fatal(done, err)
	}
	views, err := gate.View(ctx, []string{product})
	if err != nil {
		t.Fatal(err)
	}
	plan := port.GatePlan{Product: product, Epoch: 1, Remaining: 10_000, Version: 1, Terms: domain.Terms{Revision: 1},
		Sequence: views[0].Sequence, Server: views[0].Server}
	if done, err := gate.Rebuild(ctx, plan); err != nil || !done {
		t.Fatal(done, err)
	}
	if done, err := gate.Open(ctx, product, 1); err != nil || !done {
		t.Fatal(done, err)
	}
}

func TestWalkSeesEveryFlow(t *testing.T) {
	t.Parallel()
	walkSeesEveryFlow(t, miniClient(t), Config{Identity: "me"})
}
