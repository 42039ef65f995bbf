//go:build stack

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/adapters/faultpoint"
	"seckill/test/fault/campaign"
	"seckill/test/fault/drive"
	"seckill/test/harness"
	"seckill/test/shop"
)

const l4 = "the service killed between two steps"

// killPoint is a point at which the service is killed, and what brings it there.
type killPoint struct {
	name     string
	within   int      // the kill is at one of so many hits
	with     []string // other points that bring it there
	settings []string
	forgets  bool                                 // the gate has to be rebuilt for it
	provoke  func(*testing.T, *shop.Shop, string) // what buyers alone do not do; nil: nothing
	not      string                               // the profile that does not pass it
}

var killPoints = []killPoint{
	{name: "deduct.before", within: 10},                                            // P1→P2
	{name: "deduct.after", within: 10},                                             // P2→P3
	{name: "confirm.before", within: 5},                                            // P3→P4
	{name: "confirm.after", within: 5},                                             // P4→P5
	{name: "send.after", within: 5},                                                // P5→P6
	{name: "apply.before", within: 5},                                              // P7, nothing written
	{name: "apply.after", within: 5},                                               // P7→P8
	{name: "tell.after", within: 5},                                                // P8, not marked as told
	{name: "told.after", within: 5},                                                // P8→ack
	{name: "decide.after", within: 1, provoke: leavePlainHalf, not: shop.Embedded}, // a tombstone's row, the gate not told
	{name: "cancel.after", within: 3},                                              // P9
	{name: "claim.after", within: 1, with: []string{"confirm.before=fail"}, settings: []string{"SECKILL_RELAY__OPEN_AGE=300ms"}}, // P10
	{name: "prepare.after", within: 1, forgets: true}, // P11, all four
	{name: "write-back.after", within: 1, forgets: true},
	{name: "rebuild.after", within: 1, forgets: true},
	{name: "reopen.after", within: 1, forgets: true},
}

// L4: killed at any named point between two steps, and started again, the service loses nothing.
func TestL4KilledAtAPoint(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		for _, k := range killPoints {
			if k.not == profile {
				continue
			}
			t.Run(profile+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				k.play(t, profile, false)
			})
		}
	}
}

// L4: the same with a second instance that goes on selling.
func TestL4KilledBesideAnother(t *testing.T) {
	t.Parallel()
	for _, k := range killPoints {
		switch k.name {
		case "deduct.after", "confirm.after", "apply.after", "write-back.after":
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				k.play(t, shop.Stack, true)
			})
		}
	}
}

// play kills a shop at the point, several times over.
func (k killPoint) play(t *testing.T, profile string, two bool) {
	layer := campaign.Open(t, "L4", l4)
	s, forget := k.open(t, profile)
	s.Start()
	doors := []*shop.Shop{s}
	if two {
		other := s.Another()
		other.Start()
		doors = append(doors, other)
	}
	side := onSale(t, s, 1_000_000, 0)
	for round := range campaign.Size(t, 1, 20/len(doors)) {
		const buyers = 200
		product := onSale(t, s, buyers*9/10, 0)
		armed := append([]string{fmt.Sprintf("%s=kill@%d", k.name, 1+rand.IntN(k.within))}, k.with...)
		s.Stop()
		if !k.atStart(profile) {
			arm(s, armed...)
		}
		s.Start()
		if two && k.forgets { // it would rebuild in the other's place; so it takes over from the dead one
			doors[1].Stop()
		}
		drive.Sell(t, drive.Sale{Doors: doors, Product: product, Requests: buyers, CancelEvery: 5, Figures: layer, Fault: func() {
			switch {
			case k.atStart(profile):
				dieAtStart(t, s, armed)
			case k.forgets:
				forget()
				s.WaitDead(2 * time.Minute)
			default:
				if k.provoke != nil {
					k.provoke(t, s, product)
				}
				buyUntilDead(t, s, side, round)
			}
			layer.Fault("kill at " + k.name)
			if two && k.forgets {
				doors[1].Start()
			}
			arm(s)
			s.Start()
		}})
		s.HoldsEventually(side)
	}
}

// atStart says that the point is met at a start, and only there: the embedded gate is rebuilt at each one.
func (k killPoint) atStart(profile string) bool { return k.forgets && profile == shop.Embedded }

func dieAtStart(t *testing.T, s *shop.Shop, armed []string) {
	t.Helper()
	s.Kill()
	arm(s, armed...)
	if err := s.TryStart(); err == nil {
		t.Fatalf("%v was not met at the start", armed)
	} else if !strings.Contains(err.Error(), `"fault_point"`) {
		t.Fatal(err)
	}
}

// open prepares the shop, and what makes its Redis forget.
func (k killPoint) open(t *testing.T, profile string) (s *shop.Shop, forget func()) {
	settings := append([]string{"SECKILL_FAULT__ALLOWED=true"}, k.settings...)
	if !k.forgets || profile == shop.Embedded {
		return shop.New(t, profile, settings...), nil
	}
	servers, err := harness.Start(t.Context(), harness.Parts{Redis: true}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	s = shop.New(t, profile, append(settings, "SECKILL_REDIS__ADDRS="+servers.Redis.Addr)...)
	s.Redis = servers.Redis.Addr
	client := redis.NewClient(&redis.Options{Addr: servers.Redis.Addr})
	t.Cleanup(func() { _ = client.Close() })
	return s, func() {
		if err := client.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// arm arms the points, from the next start on; none: no point.
func arm(s *shop.Shop, points ...string) { s.Set("SECKILL_FAULT__POINTS=" + strings.Join(points, ",")) }

// buyUntilDead buys one unit after another of a product of its own, so that the point is met however few
// batches the crowd made.
func buyUntilDead(t *testing.T, s *shop.Shop, side string, round int) {
	t.Helper()
	n := 0
	shop.Eventually(t, 2*time.Minute, "the service meets its point", func() (bool, string) {
		n++
		user := fmt.Sprintf("u%d-%d", round, n)
		a := s.Buy(context.Background(), side, user, "t", 1)
		if n%3 == 0 {
			s.Cancel(side, user, "t")
		}
		return s.Dead(), a.String()
	})
	s.WaitDead(time.Minute)
}

// leavePlainHalf has the broker ask about a message of another producer whose units nobody took.
func leavePlainHalf(t *testing.T, s *shop.Shop, product string) {
	leaveHalves(t, s, plainMessage(product, "half", "plain", "1"))
}

// L4: replies lost and steps that fail or take long, at all points of one run, change nothing.
func TestL4LostReplies(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{shop.Embedded, shop.Stack} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			layer := campaign.Open(t, "L4", l4)
			s := shop.New(t, profile, "SECKILL_FAULT__ALLOWED=true")
			for range campaign.Size(t, 1, 20) {
				points := faultsEverywhere()
				arm(s, points...)
				s.Start()
				drive.Sell(t, drive.Sale{Doors: []*shop.Shop{s}, Requests: 200, CancelEvery: 5, Figures: layer})
				layer.Add(campaign.Figures{Faults: map[string]int64{"a step failed, slow, or its reply lost": int64(strings.Count(s.Log(), `"fault_point"`))}})
				s.Stop()
			}
		})
	}
}

// faultsEverywhere arms each point with a failure and a pause at hits by chance.
func faultsEverywhere() (points []string) {
	for _, point := range faultpoint.Names() {
		points = append(points, fmt.Sprintf("%s=fail@%d", point, 1+rand.IntN(6)),
			fmt.Sprintf("%s=sleep:%dms@%d", point, 1+rand.IntN(400), 1+rand.IntN(6)))
	}
	return points
}
