package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// reachAge is how long an answer counts.
const reachAge = 2 * time.Second

// reach says whether brokers answer. The library does not: a pull that fails is tried again in silence, and one that finds
// nothing calls nobody, so that the books of a consumer whose broker is away look like those of one with nothing to do.
type reach struct {
	ask  func(ctx context.Context, brokers []string) error
	slot chan struct{} // held by the question under way, which alone may touch at
	at   time.Time
	yes  atomic.Bool
}

func newReach(cfg Config) *reach {
	return &reach{slot: make(chan struct{}, 1), ask: func(ctx context.Context, brokers []string) error { return askBrokers(ctx, cfg, brokers) }}
}

// all asks, unless somebody has just done so, or is doing so: then the last answer counts.
func (r *reach) all(ctx context.Context, brokers []string) bool {
	select {
	case r.slot <- struct{}{}:
		defer func() { <-r.slot }()
	default:
		return r.yes.Load()
	}
	if time.Since(r.at) > reachAge {
		r.yes.Store(r.ask(ctx, brokers) == nil)
		r.at = time.Now()
	}
	return r.yes.Load()
}

// askBrokers has each broker that the name servers announce under one of the names say how far its first queue goes.
func askBrokers(ctx context.Context, cfg Config, brokers []string) error {
	r, err := routeNow(ctx, cfg)
	if err != nil {
		return err
	}
	addresses := make(map[string]string, len(r.Brokers))
	for _, b := range r.Brokers {
		addresses[b.Name] = b.Addrs["0"]
	}
	answers := make(chan error, len(brokers))
	for _, name := range brokers {
		go func() {
			if addresses[name] == "" {
				answers <- fmt.Errorf("no name server announces the broker %s", name)
				return
			}
			_, err := askServer(ctx, cfg, addresses[name], askMaxOffset, map[string]string{"topic": cfg.Topic, "queueId": "0"})
			answers <- err
		}()
	}
	for range brokers {
		err = errors.Join(err, <-answers)
	}
	return err
}

// routeNow is where the topic's queues are, as the first name server that answers knows it.
func routeNow(ctx context.Context, cfg Config) (r route, err error) {
	for _, server := range newResolver(cfg.NameServers, cfg.DirectoryTimeout).Resolve() {
		body, fault := askServer(ctx, cfg, server, askRoute, map[string]string{"topic": cfg.Topic, "acceptStandardJsonOnly": "true"})
		if fault == nil {
			return r, decodeLoose(body, &r)
		}
		err = errors.Join(err, fault)
	}
	return r, errors.Join(errors.New("no name server says where the topic is"), err)
}
