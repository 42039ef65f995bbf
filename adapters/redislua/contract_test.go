package redislua

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"seckill/test/contract"
	"seckill/test/contract/gatemodel"
)

// miniClient is a client of a miniredis of its own.
func miniClient(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	server := miniredis.RunT(tb)
	client := NewClient(ClientConfig{Addrs: []string{server.Addr()}})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// fixtureOn makes gates on a client, and breaks their store.
func fixtureOn(client redis.UniversalClient, cfg Config) contract.GateFixture {
	if cfg.Prefix == "" {
		cfg.Prefix = "seckill"
	}
	k := keys{cfg.Prefix}
	return contract.GateFixture{
		New: func(tb testing.TB) contract.GatePorts {
			gate, err := New(client, cfg)
			if err != nil {
				tb.Fatal(err)
			}
			return gate
		},
		Forget:  func(tb testing.TB, product string) { forget(tb, client, k, product) },
		Picture: func(tb testing.TB, product string) func() { return picture(tb, client, k, product) },
		MoveServer: func(tb testing.TB, product string) {
			if client.Exists(tb.Context(), k.stock(product)).Val() == 1 {
				client.HSet(tb.Context(), k.stock(product), "server", "elsewhere")
			}
		},
	}
}

// productKeys finds all keys of a product; only tests scan.
func productKeys(tb testing.TB, client redis.UniversalClient, k keys, product string) []string {
	tb.Helper()
	keys := []string{k.stock(product), k.open(product)}
	pattern := k.flows(product, "*")
	scan := func(node redis.UniversalClient) {
		iterator := node.Scan(tb.Context(), 0, pattern, 1000).Iterator()
		for iterator.Next(tb.Context()) {
			keys = append(keys, iterator.Val())
		}
		if err := iterator.Err(); err != nil {
			tb.Fatal(err)
		}
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		node, err := cluster.MasterForKey(tb.Context(), k.stock(product))
		if err != nil {
			tb.Fatal(err)
		}
		scan(node)
		return keys
	}
	scan(client)
	return keys
}

func forget(tb testing.TB, client redis.UniversalClient, k keys, product string) {
	tb.Helper()
	if err := client.Del(tb.Context(), productKeys(tb, client, k, product)...).Err(); err != nil {
		tb.Fatal(err)
	}
}

// picture reads everything about a product; calling the result goes back to it.
func picture(tb testing.TB, client redis.UniversalClient, k keys, product string) func() {
	tb.Helper()
	ctx := tb.Context()
	open, err := client.ZRangeWithScores(ctx, k.open(product), 0, -1).Result()
	if err != nil {
		tb.Fatal(err)
	}
	hashes := map[string]map[string]string{}
	for _, key := range productKeys(tb, client, k, product) {
		if key == k.open(product) {
			continue
		}
		if hashes[key], err = client.HGetAll(ctx, key).Result(); err != nil {
			tb.Fatal(err)
		}
	}
	return func() {
		forget(tb, client, k, product)
		pipe := client.Pipeline()
		for key, fields := range hashes {
			if len(fields) > 0 {
				pipe.HSet(ctx, key, fields)
			}
		}
		if len(open) > 0 {
			pipe.ZAdd(ctx, k.open(product), open...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			tb.Fatal(err)
		}
	}
}

// modelFixture makes model gates.
func modelFixture() contract.GateFixture {
	store := gatemodel.NewStore("here")
	return contract.GateFixture{
		New:        func(testing.TB) contract.GatePorts { return gatemodel.New(store) },
		Forget:     func(_ testing.TB, product string) { store.Forget(product) },
		Picture:    func(_ testing.TB, product string) func() { return store.Picture(product) },
		MoveServer: func(_ testing.TB, product string) { store.MoveServer(product) },
	}
}

func TestContractOnMiniredis(t *testing.T) {
	t.Parallel()
	contract.RunGate(t, fixtureOn(miniClient(t), Config{Identity: "here"}))
}

func TestContractOnModel(t *testing.T) {
	t.Parallel()
	contract.RunGate(t, modelFixture())
}
