package redislua

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"seckill/application/port"
	"seckill/domain"
)

var _ port.AllFlows = (*Gate)(nil)

// scanStep is how many keys the server looks at in one step.
const scanStep = 1000

// Walk implements port.AllFlows: no index has the flows that are not open, so the server's keys are scanned.
func (g *Gate) Walk(ctx context.Context, product string, visit func([]domain.Flow) error) error {
	var server redis.Cmdable = g.client
	if cluster, ok := g.client.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, g.keys.stock(product))
		if err != nil {
			return unavailable(err)
		}
		server = master
	}
	prefix := g.keys.flows(product, "")
	for cursor := uint64(0); ; {
		found, next, err := server.Scan(ctx, cursor, prefix+"*", scanStep).Result()
		if err != nil {
			return unavailable(err)
		}
		if err := g.visitUsers(ctx, product, prefix, found, visit); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (g *Gate) visitUsers(ctx context.Context, product, prefix string, found []string, visit func([]domain.Flow) error) error {
	if len(found) == 0 {
		return nil
	}
	hashes := make([]*redis.MapStringStringCmd, len(found))
	err := g.read(ctx, func(pipe redis.Pipeliner) {
		for i, key := range found {
			hashes[i] = pipe.HGetAll(ctx, key)
		}
	})
	if err != nil {
		return unavailable(err)
	}
	var flows []domain.Flow
	for i, hash := range hashes {
		for token, packed := range hash.Val() {
			key, err := domain.StoredKey(product, strings.TrimPrefix(found[i], prefix), token)
			if err != nil {
				return unavailable(err)
			}
			flow, err := parseFlow(key, packed)
			if err != nil {
				return unavailable(err)
			}
			if flows = append(flows, flow); len(flows) == itemMax {
				if err := visit(flows); err != nil {
					return err
				}
				flows = nil
			}
		}
	}
	if len(flows) == 0 {
		return nil
	}
	return visit(flows)
}
