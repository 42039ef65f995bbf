package redislua

import (
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"seckill/application/port"
	"seckill/domain"
)

// itemMax is the most items of one product that one script call carries: it bounds how long
// the server does nothing else.
const itemMax = 512

// Config is how a gate works. The zero value of a field stands for its default.
type Config struct {
	Prefix      string // of every key; "seckill"
	Identity    string // the server's; empty: each script reads the server's replication history itself
	QuantityMax int64  // most units of one command; domain.QuantityMax
	MemoryMax   int    // products remembered; 65,536
}

// Gate is the gate on Redis. It is safe for concurrent use.
type Gate struct {
	client    redis.UniversalClient
	cfg       Config
	keys      keys
	memory    *memory
	redirects bool // a cluster client repeats commands by itself
}

var (
	_ port.Gate      = (*Gate)(nil)
	_ port.OpenFlows = (*Gate)(nil)
	_ port.GateAdmin = (*Gate)(nil)
)

// New makes a gate on client, best one from NewClient: a client that retries by itself may
// report "not reached" for a script that ran. The error is a mistake in cfg.
func New(client redis.UniversalClient, cfg Config) (*Gate, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = "seckill"
	}
	if cfg.QuantityMax == 0 {
		cfg.QuantityMax = domain.QuantityMax
	}
	if cfg.MemoryMax == 0 {
		cfg.MemoryMax = 65_536
	}
	if cfg.QuantityMax < 1 || cfg.QuantityMax > domain.QuantityMax {
		return nil, errors.New("redislua: QuantityMax is out of range")
	}
	memory, err := newMemory(cfg.MemoryMax)
	if err != nil {
		return nil, err
	}
	_, cluster := client.(*redis.ClusterClient)
	return &Gate{client: client, cfg: cfg, keys: keys{cfg.Prefix}, memory: memory, redirects: cluster}, nil
}

// group makes the calls for n items: those of one product together, in order, itemMax a call.
// first are arguments that stand before the items', each of which takes argsEach.
func (g *Gate) group(script *redis.Script, n, argsEach int, product func(int) string, first ...any) []*call {
	shares := share(n, product)
	calls := make([]*call, 0, len(shares))
	for _, s := range shares {
		for part := range slices.Chunk(s.items, itemMax) {
			c := g.newCall(script, s.product, len(part), len(first)+argsEach*len(part))
			c.args = append(c.args, first...)
			c.items = part
			calls = append(calls, c)
		}
	}
	return calls
}

// shared are the items of one product.
type shared struct {
	product string
	count   int
	items   []int
}

// share sorts n items by product, in order of appearance. The lists share one piece of memory, however many they are.
func share(n int, product func(int) string) []shared {
	var shares []shared
	at := make(map[string]int)
	of := make([]int, n)
	for i := range n {
		p := product(i)
		s, known := at[p]
		if !known {
			s = len(shares)
			at[p] = s
			shares = append(shares, shared{product: p})
		}
		of[i] = s
		shares[s].count++
	}
	room := make([]int, n)
	for s := range shares {
		count := shares[s].count
		shares[s].items, room = room[:0:count], room[count:]
	}
	for i, s := range of {
		shares[s].items = append(shares[s].items, i)
	}
	return shares
}

// parse takes a reply apart; an answer that nobody understands leaves open what was done.
func (g *Gate) parse(c *call) (head, []string, error) {
	if c.err != nil {
		return head{}, nil, c.err
	}
	h, fields, err := parseReply(c.reply)
	if err != nil {
		c.maybe = true
	}
	return h, fields, err
}

func (g *Gate) note(product string, h head, own domain.Flow) {
	if h.sound() {
		g.memory.note(product, h.epoch, h.sequence, own)
	}
}

func unavailable(err error) error {
	return domain.NewError(domain.CodeUnavailable, "the gate could not be asked", err)
}
