package rocketmq

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// resolver turns the names of the name servers into addresses, since the client takes nothing
// else. It keeps the last good answer for each: a name that cannot be resolved now may be again.
type resolver struct {
	servers []string
	timeout time.Duration

	mu   sync.Mutex
	last map[string][]string
}

var _ primitive.NsResolver = (*resolver)(nil)

func newResolver(servers []string, timeout time.Duration) *resolver {
	return &resolver{servers: servers, timeout: timeout, last: make(map[string][]string)}
}

// Resolve gives a fresh slice: the client sorts it in place.
func (r *resolver) Resolve() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	var addrs []string
	for _, server := range r.servers {
		addrs = append(addrs, r.resolve(ctx, server)...)
	}
	return addrs
}

func (r *resolver) resolve(ctx context.Context, server string) []string {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil
	}
	if net.ParseIP(host) != nil {
		return []string{server}
	}
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip4", host)
	if err != nil || len(ips) == 0 {
		return r.last[server]
	}
	found := make([]string, len(ips))
	for i, ip := range ips {
		found[i] = net.JoinHostPort(ip.String(), port)
	}
	r.last[server] = found
	return found
}

// Description is for the client's log.
func (r *resolver) Description() string { return "names " + strings.Join(r.servers, ",") }
