package main

import (
	"fmt"
	"strings"
)

// direction says on which side of its bound a figure is met.
type direction bool

const (
	atLeast direction = true
	atMost  direction = false
)

func (d direction) String() string {
	if d == atLeast {
		return "≥"
	}
	return "≤"
}

// figure is one target. Its value is a ratio inside one round, but where the unit says otherwise.
type figure struct {
	id    string // number in the table of targets, with a letter where that has several
	what  string
	how   string // it is measured
	dir   direction
	bound float64
	unit  string // × of what, or seconds, bytes
}

func (f figure) number() string { return strings.TrimRight(f.id, "abc") }

func (f figure) met(value float64) bool {
	if f.dir == atLeast {
		return value >= f.bound
	}
	return value <= f.bound
}

func (f figure) target() string { return fmt.Sprintf("%s %g %s", f.dir, f.bound, f.unit) }

// figures are all targets, one hot product and --connections connections unless it says otherwise.
var figures = []figure{
	{"1a", "purchases that are rows at the end of the load, per second", "closed loop; rows that the service had written when the load ended, over its time; beside bare Echo's answers per second in the same round", atLeast, 0.40, "× bare"},
	{"1b", "the same beside the literal design", "the literal service under the same load in the same round: its rows when the load ended, over its time", atLeast, 25, "× literal rows"},
	{"1c", "backlog when the load ends", "accepted and not yet rows at that moment, over those accepted in a second", atMost, 1, "s of purchases"},
	{"2a", "CPU of the service per accepted purchase", "/proc/PID/stat over the load of 1, over accepted; beside the bare server's per answer", atMost, 1.5, "× bare server"},
	{"2b", "CPU of service, Redis, broker, name server and database per accepted purchase", "the same, their sum; the drain after the load included", atMost, 2.6, "× bare server"},
	{"3", "refusals per second, sold out", "closed loop on a product without stock; the lane has no memory of refusals, each is the script's", atLeast, 0.85, "× bare"},
	{"4", "repeats per second", "closed loop of owners who ask again with their tokens, rows there", atLeast, 0.75, "× bare"},
	{"5a", "consumer alone, a backlog on one product", "service frozen while the gate and the topic are filled, then let go: rows over the time until the last; beside the literal consumer with 8 workers", atLeast, 50, "× literal, 8 workers"},
	{"5b", "the same beside one literal worker", "the literal consumer with one worker", atLeast, 15, "× literal, 1 worker"},
	{"5c", "the same beside raw SQL", "orders, flows, version, guarded update, commit by database/sql alone, one connection, groups as large as the consumer's mean", atLeast, 0.6, "× raw SQL"},
	{"6", "deduct stage through the port", "Gate.Deduct, one caller, batches as large as the lane's mean; beside the same script called by a bare client", atLeast, 0.7, "× raw script"},
	{"7a", "p99 of accepted at half the highest rate", "open loop, from the intended time of the request; beside the median of one raw half + commit of the same bytes, 20 of which are sent a second while that load runs", atMost, 3, "× raw half + commit"},
	{"7b", "p50 of one idle purchase", "one buyer after the other; beside the median of one script, one half, one look at the flow and the commit, all raw", atMost, 1.5, "× raw steps"},
	{"8a", "purchases that are rows at the end, many products on sale at once", "figure 1's load spread over --many products; beside one product", atLeast, 0.75, "× one product"},
	{"8b", "backlog when that load ends", "as 1c", atMost, 1, "s of purchases"},
	{"9a", "accepted per second with --filled flows already there", "figure 1's load on a product that has sold so many; beside a fresh one in the same round", atLeast, 0.9, "× empty gate"},
	{"9b", "refusals per second there", "figure 3's load on that product, sold out; beside a fresh one sold out", atLeast, 0.9, "× empty gate"},
	{"10", "Redis' memory per flow, 16-character ids", "used_memory after a backlog of --filled was filled and settled, less before, over the flows", atMost, 300, "bytes"},
	{"11a", "reconcile", "a dry run over a product with --filled settled flows and their rows, all of which it compares; rows over its time", atLeast, 50_000, "flows/s"},
	{"11b", "p99 of sales at half the highest rate while it runs", "open loop on another product, from the intended time, while one dry run follows the other; beside the same without", atMost, 1.5, "× without"},
	{"12", "embedded profile, purchases that are rows at the end, per second", "figure 1's load on a service with everything in one process", atLeast, 0.2, "× bare"},
	{"13a", "embedded start to the first answer", "from the process's start until /readyz answers 200", atMost, 1, "s"},
	{"13b", "stack start to ready, its servers up", "the same", atMost, 3, "s"},
	{"13c", "gate rebuilt from --filled orders", "POST …/rebuild: all the time that the product was closed, lease and drain included", atMost, 30, "s"},
	{"14a", "memory of the service after --filled purchases", "resident bytes when drained; beside those after --ground purchases", atMost, 1.2, "× after --ground"},
	{"14b", "goroutines of the service then", "the same with its goroutines", atMost, 1.1, "× after --ground"},
}

// figureByID panics for an id that is not there: ids are words of this code.
func figureByID(id string) figure {
	for _, f := range figures {
		if f.id == id {
			return f
		}
	}
	panic("bench: no figure " + id)
}
