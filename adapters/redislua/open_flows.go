package redislua

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
)

// Page implements port.OpenFlows. It needs no script: what was settled between the two reads is left out, and so
// is what has no flow any more; it reads on until the page is full or the set ends.
func (g *Gate) Page(ctx context.Context, product string, after int64, limit int) ([]domain.Flow, error) {
	if limit < 1 {
		return nil, nil
	}
	var flows []domain.Flow
	for {
		var page *redis.ZSliceCmd
		err := g.read(ctx, func(pipe redis.Pipeliner) {
			page = pipe.ZRangeByScoreWithScores(ctx, g.keys.open(product),
				&redis.ZRangeBy{Min: "(" + number(after), Max: "+inf", Count: int64(limit)})
		})
		if err != nil {
			return nil, unavailable(err)
		}
		members := page.Val()
		more, err := g.openFlows(ctx, product, members)
		if err != nil {
			return nil, unavailable(err)
		}
		if flows = append(flows, more...); len(flows) >= limit || len(members) < limit {
			return flows[:min(len(flows), limit)], nil
		}
		after = int64(members[len(members)-1].Score)
	}
}

// openFlows reads the flows of open members; those that are not open any more are left out.
func (g *Gate) openFlows(ctx context.Context, product string, members []redis.Z) ([]domain.Flow, error) {
	if len(members) == 0 {
		return nil, nil
	}
	keys := make([]domain.Key, len(members))
	for i, m := range members {
		key, err := memberKey(product, m.Member.(string))
		if err != nil {
			return nil, err
		}
		keys[i] = key
	}
	packed, err := g.readFlows(ctx, keys)
	if err != nil {
		return nil, err
	}
	flows := make([]domain.Flow, 0, len(members))
	for i, p := range packed {
		if p == "" {
			continue
		}
		flow, err := parseFlow(keys[i], p)
		if err != nil {
			return nil, err
		}
		if flow.State().Open() {
			flows = append(flows, flow)
		}
	}
	return flows, nil
}

// readFlows gives the packed flows of keys, empty where there is none.
func (g *Gate) readFlows(ctx context.Context, keys []domain.Key) ([]string, error) {
	commands := make([]*redis.StringCmd, len(keys))
	err := g.read(ctx, func(pipe redis.Pipeliner) {
		for i, k := range keys {
			commands[i] = pipe.HGet(ctx, g.keys.flows(k.Product(), k.User()), k.Token())
		}
	})
	if err != nil {
		return nil, err
	}
	packed := make([]string, len(keys))
	for i, c := range commands {
		if packed[i], err = c.Result(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
	}
	return packed, nil
}

func memberKey(product, member string) (domain.Key, error) {
	user, token, ok := strings.Cut(member, "|")
	if !ok {
		return domain.Key{}, fmt.Errorf("redislua: the open set of %s holds a member without a token", product)
	}
	return domain.StoredKey(product, user, token)
}

// read runs commands that change nothing in one pipeline, twice if need be: the driver does not retry.
func (g *Gate) read(ctx context.Context, queue func(redis.Pipeliner)) error {
	var err error
	for range 2 {
		pipe := g.client.Pipeline()
		queue(pipe)
		if _, err = pipe.Exec(ctx); err == nil || errors.Is(err, redis.Nil) {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return err
}

// Claim implements port.OpenFlows.
func (g *Gate) Claim(ctx context.Context, product, holder string, ttl time.Duration) (bool, error) {
	c := &call{script: claimScript, keys: []string{g.keys.claim(product)},
		args: []any{holder, number(max(1, ttl.Milliseconds()))}}
	g.run(ctx, []*call{c})
	if c.err != nil {
		return false, unavailable(c.err)
	}
	return c.reply == "1", nil
}
