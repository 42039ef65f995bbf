package main

import (
	"slices"
	"strconv"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

func TestTheBareClientCallsTheGatesOwnScript(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	r := &round{bench: &bench{servers: &servers{redis: server.Addr()}}}
	g, err := r.newRawGateNamed(t.Context(), "here")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.close(t.Context()); err != nil || len(server.Keys()) > 0 {
			t.Error(err, server.Keys())
		}
	}()
	if err := g.script(t.Context(), 1); err == nil {
		t.Error("a call was made of nothing")
	}
	if flows, err := g.deduct(t.Context(), 3); err != nil || len(flows) != 3 {
		t.Fatal(len(flows), err)
	}
	for _, batch := range []int{1, 5} {
		if err := g.script(t.Context(), batch); err != nil {
			t.Error(batch, err)
		}
	}
	views, err := g.gate.View(t.Context(), []string{g.product})
	if err != nil || views[0].OpenFlows != 9 {
		t.Error(views, err)
	}
}

func TestARawCallIsTheSeenOneWithOtherBuyers(t *testing.T) {
	t.Parallel()
	seen := []any{"evalsha", "sha", 4, "stock", "open", "own", "flow:u1", "id", "1", "2", "", "max", "now", "u1", "t1", "1", "a1"}
	serial := 0
	got, err := rawCall(seen, &serial, 2)
	if err != nil || serial != 2 || len(got) != 3+5+6+8 || got[2] != 5 || !slices.Equal(got[3:6], seen[3:6]) ||
		got[6] != "flow:user-00000000001" || got[14] != "user-00000000001" {
		t.Error(got, err)
	}
	for n := range seen {
		if _, err := rawCall(seen[:n], &serial, 1); err == nil {
			t.Error("took " + strconv.Itoa(n) + " words")
		}
	}
}
