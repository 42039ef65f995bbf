//go:build stack

package fault

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/test/fault/campaign"
	"seckill/test/harness"
)

// F25: the product's slot moves to another master and back while it is sold. No buyer is told "sold out" while
// there is stock: the figures' D says so.
func TestL5ASlotMovesThereAndBack(t *testing.T) {
	t.Parallel()
	l := newLossyRedis(t, harness.Parts{Cluster: true}, t.TempDir())
	for range campaign.Size(t, 1, 10) {
		l.sell("cluster: the slot moves there and back", func() {
			home := l.owner()
			away := l.servers.Cluster[0].Addr
			if away == home {
				away = l.servers.Cluster[1].Addr
			}
			l.move(home, away)
			l.doors[0].For(t).WaitOpen(l.product)
			l.move(away, home)
		})
	}
}

// move carries the product's slot over, key by key.
func (l *lossyRedis) move(from, to string) {
	l.t.Helper()
	ctx, slot := context.Background(), l.slot()
	source, target := l.at(from), l.at(to)
	sourceID, targetID := l.nodeID(source), l.nodeID(target)
	l.must(target.Do(ctx, "cluster", "setslot", slot, "importing", sourceID).Err())
	l.must(source.Do(ctx, "cluster", "setslot", slot, "migrating", targetID).Err())
	host, port, err := net.SplitHostPort(to)
	l.must(err)
	for {
		keys, err := source.ClusterGetKeysInSlot(ctx, slot, 20).Result()
		l.must(err)
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", host, port, "", 0, 5000, "keys"}
		for _, key := range keys {
			args = append(args, key)
		}
		if err := source.Do(ctx, args...).Err(); err != nil {
			l.t.Fatal(fmt.Errorf("migrate %d keys: %w", len(keys), err))
		}
		time.Sleep(20 * time.Millisecond) // buyers meet every state of it
	}
	for _, server := range append([]*redis.Client{target, source}, l.rest(from, to)...) {
		l.must(server.Do(ctx, "cluster", "setslot", slot, "node", targetID).Err())
	}
}

func (l *lossyRedis) nodeID(c *redis.Client) string {
	l.t.Helper()
	id, err := c.Do(context.Background(), "cluster", "myid").Text()
	l.must(err)
	return id
}

func (l *lossyRedis) rest(not ...string) (clients []*redis.Client) {
	for _, server := range l.servers.Cluster {
		if server.Addr != not[0] && server.Addr != not[1] {
			clients = append(clients, l.at(server.Addr))
		}
	}
	return clients
}
