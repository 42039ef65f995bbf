//go:build stack

package fault

import (
	"context"
	"fmt"
	"testing"

	"seckill/test/fault/campaign"
)

// F21: 50 are accepted; a replica that has seen 20 of them is promoted. Every one is an order in the end, asking
// again makes no other, and the rest is sold once.
func TestF21AcceptedDeductsThatAFailoverForgot(t *testing.T) {
	t.Parallel()
	l := sentinels(t)
	s := l.doors[0]
	const total = 60
	l.product = onSale(t, s, total, 0)
	first, second := crowdOf(l.product, "first", 20), crowdOf(l.product, "second", 30)
	atOnce(s, first)
	l.eventually("the replica has them", func(ctx context.Context) error {
		master, replica := l.roles()
		for _, p := range first {
			if p.answer.Accepted() && l.at(replica.Addr).Exists(ctx, "seckill:{"+l.product+"}@"+p.user).Val() == 0 {
				return fmt.Errorf("%s of %s is missing", p.user, master.Addr)
			}
		}
		return nil
	})
	master, replica := l.roles()
	l.must(l.at(replica.Addr).Do(context.Background(), "replicaof", "127.0.0.1", "1").Err()) // its link is cut
	atOnce(s, second)
	l.must(master.Kill())
	l.promoted(replica, master)
	l.layer.Add(campaign.Figures{Faults: map[string]int64{"sentinel: a stale replica is promoted": 1}})
	everyone := append(first, second...)
	for _, p := range everyone {
		accepted := p.answer.Accepted()
		p.buy(l.doors[1]) // again, whatever was said before
		converge(t, s, p)
		if accepted && !p.answer.Accepted() {
			t.Errorf("%s was accepted, and then %v", p.user, p.answer)
		}
	}
	rest := crowdOf(l.product, "rest", 20)
	for _, p := range rest {
		converge(t, s, p)
	}
	if n := bought(everyone) + bought(rest); n != total {
		t.Errorf("%d of %d units were sold", n, total)
	}
	holds(t, s, l.product, total, total, append(everyone, rest...)...)
}
