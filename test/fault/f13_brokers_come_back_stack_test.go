//go:build stack

package fault

import (
	"context"
	"strings"
	"testing"

	"seckill/test/fault/campaign"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F13: the name server, and then the broker with it, are restarted under load, while routes and
// connections of the old ones are still cached; the service comes back by itself.
func f13BrokersComeBack(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	layer := campaign.Open(t, "L6", l6)
	names, broker := servers.NameServer, servers.Broker
	for _, again := range [][]*harness.Server{{names}, {names, broker}} {
		sellThrough(t, s, layer, func() {
			var kind []string
			for _, server := range again {
				kind = append(kind, server.Name)
				must(t, server.Kill())
			}
			layer.Fault("restarted: " + strings.Join(kind, ", then "))
			for _, server := range again {
				must(t, server.Launch())
			}
			ctx, cancel := context.WithTimeout(context.Background(), startsWithin)
			defer cancel()
			must(t, harness.WaitTopic(ctx, names.Addr, s.Topic))
		})
	}
}
