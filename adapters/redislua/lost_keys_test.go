package redislua

import (
	"fmt"
	"strings"
	"testing"

	"seckill/application/port"
	"seckill/domain"
)

// buyOne takes one unit with the token t.
func buyOne(t *testing.T, gate *Gate, product, user string) domain.Flow {
	t.Helper()
	r := deduct(t, gate, product, user, "a-"+user)
	if r.Outcome != port.DeductAccepted {
		t.Fatalf("%s of %s: %+v", user, product, r)
	}
	return r.Flow
}

func TestAnOpenSetWithHolesIsPagedToItsEnd(t *testing.T) {
	t.Parallel()
	client := miniClient(t)
	gate := newGate(t, client, Config{Identity: "here"})
	sell(t, gate, "p", 100)
	for i := range 9 {
		buyOne(t, gate, "p", fmt.Sprint("u", i))
	}
	for _, gone := range []string{"u0", "u2", "u3", "u7"} {
		client.Del(t.Context(), gate.keys.flows("p", gone))
	}
	var users []string
	for after := int64(0); ; {
		flows, err := gate.Page(t.Context(), "p", after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range flows {
			users, after = append(users, f.Key().User()), f.Sequence()
		}
		if len(flows) < 2 { // what every walk takes for the end
			break
		}
	}
	if got := strings.Join(users, " "); got != "u1 u4 u5 u6 u8" {
		t.Errorf("paged %s", got)
	}
}

func TestAnOpenSetThatIsGoneIsNoticed(t *testing.T) {
	t.Parallel()
	client := miniClient(t)
	gate := newGate(t, client, Config{Identity: "here"})
	sell(t, gate, "p", 10)
	lost := buyOne(t, gate, "p", "u")
	client.Del(t.Context(), gate.keys.open("p"))
	fresh := newGate(t, client, Config{Identity: "here"}) // a process that has seen nothing
	if v := viewOf(t, fresh, "p"); !v.Rewound {
		t.Fatalf("not noticed: %+v", v)
	}
	if r := fresh.Deduct(t.Context(), saleTime, []port.DeductItem{item(t, "p", "v", "t", 1, "a")})[0]; r.Outcome != port.DeductRewound {
		t.Fatalf("%+v", r)
	}
	sell(t, fresh, "p", 10) // rebuilt without the unit of the flow that is in no open set
	if r := fresh.Deduct(t.Context(), saleTime, []port.DeductItem{item(t, "p", "u", "t", 1, "again")})[0]; r.Outcome != port.DeductAccepted || r.Remaining != 9 {
		t.Fatalf("asked again: %+v", r)
	}
	fate := domain.Fate{Key: lost.Key(), Quantity: 1, Status: domain.OrderConfirmed, Epoch: lost.Epoch(), Sequence: lost.Sequence(), StockVersion: 2}
	if o := fresh.Tell(t.Context(), []domain.Fate{fate}); o[0] != port.TellDone || viewOf(t, fresh, "p").Remaining != 9 || viewOf(t, fresh, "p").OpenFlows != 0 {
		t.Fatalf("%v, %+v", o, viewOf(t, fresh, "p"))
	}
}

func TestAFlowThatIsGoneIsNoticedWhenItsOrderIsTold(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"absent": false, "taken anew": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := miniClient(t)
			gate := newGate(t, client, Config{Identity: "here"})
			sell(t, gate, "p", 10)
			f := buyOne(t, gate, "p", "u")
			buyOne(t, gate, "p", "other") // the newest flow is not the one that is lost
			client.Del(t.Context(), gate.keys.flows("p", "u"))
			if again {
				buyOne(t, gate, "p", "u")
			}
			fate := domain.Fate{Key: f.Key(), Quantity: 1, Status: domain.OrderConfirmed, Epoch: f.Epoch(), Sequence: f.Sequence(), StockVersion: 2}
			o := gate.Tell(t.Context(), []domain.Fate{fate})[0]
			if v := viewOf(t, gate, "p"); o != port.TellSuspect || v.OpenFlows != 1 || v.Remaining != 7 {
				t.Errorf("%v, %+v", o, v)
			}
		})
	}
}

func TestOneProductThatCannotBeReadBlindsNoOther(t *testing.T) {
	t.Parallel()
	client := miniClient(t)
	gate := newGate(t, client, Config{Identity: "here"})
	for _, p := range []string{"p1", "bad", "p2"} {
		sell(t, gate, p, 10)
		buyOne(t, gate, p, "u")
	}
	client.Del(t.Context(), gate.keys.stock("bad"))
	client.Set(t.Context(), gate.keys.stock("bad"), "no record", 0)
	views, err := gate.View(t.Context(), []string{"p1", "bad", "p2"})
	if err != nil || domain.CodeOf(views[1].Err) != domain.CodeUnavailable || views[1].Product != "bad" {
		t.Fatalf("%+v, %v", views, err)
	}
	if views[0].Remaining != 9 || views[2].Remaining != 9 || views[0].OldestOpenAt.IsZero() || views[0].Err != nil {
		t.Errorf("%+v", views)
	}
	if err := gate.Shut(t.Context(), []string{"p1", "bad", "p2"}); err == nil || !viewOf(t, gate, "p2").Shut {
		t.Errorf("shut: %v", err)
	}
	if _, err := gate.View(t.Context(), []string{"bad"}); domain.CodeOf(err) != domain.CodeUnavailable {
		t.Errorf("alone: %v", err)
	}
}
