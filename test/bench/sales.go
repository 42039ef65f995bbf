package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	"seckill/application"
)

// bareSeen is the yardstick.
type bareSeen struct {
	perSecond    float64
	cpuPerAnswer float64 // seconds; NaN where /proc cannot be read
}

// beside does something between two half windows of bare Echo under the usual load, and gives the mean of both: where
// the machine's speed changes within seconds, both sides of the ratio change.
func (r *round) beside(ctx context.Context, do func() error) (bareSeen, error) {
	before, err := r.bareEcho(ctx)
	if err != nil {
		return bareSeen{}, err
	}
	if err := do(); err != nil {
		return bareSeen{}, err
	}
	after, err := r.bareEcho(ctx)
	return bareSeen{(before.perSecond + after.perSecond) / 2, (before.cpuPerAnswer + after.cpuPerAnswer) / 2}, err
}

func (r *round) bareEcho(ctx context.Context) (bareSeen, error) {
	_, products := r.names(1)
	before := r.meter.read()
	c := r.crowd(r.bare.buyers, products)
	c.window /= 2
	l, err := r.let(ctx, c)
	if err != nil {
		return bareSeen{}, err
	}
	spent := r.meter.since(before)
	seen := bareSeen{perSecond: l.perSecond(), cpuPerAnswer: math.NaN()}
	if seconds, ok := sum(spent, "bare"); ok {
		seen.cpuPerAnswer = over(seconds, float64(l.accepted))
	}
	r.note("bare", detail(l, spent))
	return seen, nil
}

// detail is what is kept of a load beside the figures.
func detail(l loaded, spent map[string]float64) map[string]float64 {
	values := map[string]float64{"acceptedPerSecond": l.perSecond(), "refusedPerSecond": over(float64(l.refused), l.seconds),
		"unknownAnswers": float64(l.unknown), "p50Millis": l.p50(), "p99Millis": l.p99()}
	for name, seconds := range spent {
		values["cpuSecondsPer100k "+name] = over(seconds, float64(l.accepted+l.refused)) * 100_000
	}
	return values
}

// salesSeen is what a sale was.
type salesSeen struct {
	accepted   float64            // per second
	rows       float64            // per second, when the load ended
	backlog    float64            // then, in seconds of purchases
	spent      map[string]float64 // CPU seconds of the load, by process
	spentAll   map[string]float64 // and of the drain after it
	count      float64            // accepted
	sentBatch  float64            // mean flows of a message
	deductMean float64            // mean commands of a batch
	group      float64            // mean rows of a transaction
	sentRate   float64            // messages per second
	bare       bareSeen           // beside it, where it was measured
}

// sales is figure 1's load on one fresh product beside bare Echo, once in a round.
func (r *round) sales(ctx context.Context) (salesSeen, error) {
	if r.salesSeen != nil {
		return *r.salesSeen, nil
	}
	var seen salesSeen
	bare, err := r.beside(ctx, func() (err error) {
		seen, err = r.sale(ctx)
		return err
	})
	if err == nil {
		seen.bare = bare
		r.salesSeen = &seen
	}
	return seen, err
}

// sale is figure 1's load on one fresh product.
func (r *round) sale(ctx context.Context) (salesSeen, error) {
	_, products := r.names(1)
	if err := r.open(ctx, r.s.admin, products, plenty); err != nil {
		return salesSeen{}, err
	}
	return r.sell(ctx, "sales", doors{r.s.target, r.s.admin}, products, 0)
}

// doors are where a service is found.
type doors struct{ buyers, operators string }

// sell lets the usual crowd buy products that are open, follows the rows until all are there, and has the books
// verified. sold is what they had sold before.
func (r *round) sell(ctx context.Context, scenario string, at doors, products []string, sold int64) (salesSeen, error) {
	before, err := r.pipeline(ctx, at.operators)
	if err != nil {
		return salesSeen{}, err
	}
	cpu, began := r.meter.read(), time.Now()
	l, err := r.let(ctx, r.crowd(at.buyers, products))
	if err != nil {
		return salesSeen{}, err
	}
	after, err := r.pipeline(ctx, at.operators)
	if err != nil {
		return salesSeen{}, err
	}
	end := time.Now()
	seen := soldBetween(l, before, after, end.Sub(began))
	seen.spent = r.meter.since(cpu)
	if err := r.drainAt(ctx, at.operators); err != nil {
		return salesSeen{}, err
	}
	seen.spentAll = r.meter.since(cpu)
	values := detail(l, seen.spent)
	maps.Copy(values, map[string]float64{"rowsPerSecond": seen.rows, "backlogSeconds": seen.backlog,
		"drainSeconds": time.Since(end).Seconds(), "meanDeductBatch": seen.deductMean, "meanSentBatch": seen.sentBatch,
		"meanAppliedGroup": seen.group})
	r.note(scenario, values)
	return seen, r.verify(ctx, at.operators, products, sold+l.accepted)
}

// soldBetween works a load out of the counters before it and when it ended.
func soldBetween(l loaded, before, after application.PipelineView, took time.Duration) salesSeen {
	rows := float64(after.AppliedRows - before.AppliedRows)
	return salesSeen{
		accepted: l.perSecond(), count: float64(l.accepted),
		rows:       over(rows, took.Seconds()),
		backlog:    over(max(0, float64(l.accepted)-rows), l.perSecond()),
		deductMean: ratio(after.BatchedCommands-before.BatchedCommands, after.Batches-before.Batches),
		sentBatch:  ratio(after.SentFlows-before.SentFlows, after.SentBatches-before.SentBatches),
		sentRate:   over(float64(after.SentBatches-before.SentBatches), took.Seconds()),
		group:      ratio(after.AppliedRows-before.AppliedRows, after.AppliedGroups-before.AppliedGroups),
	}
}

// playRows is figure 1.
func playRows(ctx context.Context, r *round) error {
	seen, err := r.sales(ctx)
	if err != nil {
		return err
	}
	r.result.record("1a", seen.rows/seen.bare.perSecond)
	r.result.record("1c", seen.backlog)
	literal, err := r.literalRows(ctx)
	if err != nil {
		return err
	}
	r.result.record("1b", seen.rows/literal)
	return nil
}

// everyServer are the processes of figure 2 that are not the service.
var everyServer = []string{"redis", "broker", "names", "mariadb"}

// playCPU is figure 2.
func playCPU(ctx context.Context, r *round) error {
	seen, err := r.sales(ctx)
	if err != nil {
		return err
	}
	service, ok := sum(seen.spent, "service")
	if !ok || math.IsNaN(seen.bare.cpuPerAnswer) {
		return fmt.Errorf("%w: the service's process is not known, or has no /proc", errNeeds)
	}
	r.result.record("2a", service/seen.count/seen.bare.cpuPerAnswer)
	all, ok := sum(seen.spentAll, append([]string{"service"}, everyServer...)...)
	if !ok {
		return fmt.Errorf("%w: a server is not on this machine", errNeeds)
	}
	r.result.record("2b", all/seen.count/seen.bare.cpuPerAnswer)
	return nil
}

// soldOut is a product with no unit left.
func (r *round) soldOut(ctx context.Context) (string, error) {
	_, products := r.names(1)
	if err := r.open(ctx, r.s.admin, products, 1); err != nil {
		return "", err
	}
	c := r.crowd(r.s.target, products)
	c.window, c.count, c.connections = 0, 1, 1
	_, err := r.let(ctx, c)
	return products[0], err
}

// refusals are those per second of a product without stock.
func (r *round) refusals(ctx context.Context) (float64, error) {
	product, err := r.soldOut(ctx)
	if err != nil {
		return 0, err
	}
	return r.refuse(ctx, "refusals", product)
}

func (r *round) refuse(ctx context.Context, scenario, product string) (float64, error) {
	before := r.meter.read()
	l, err := r.let(ctx, r.crowd(r.s.target, []string{product}))
	if err != nil {
		return 0, err
	}
	r.note(scenario, detail(l, r.meter.since(before)))
	if err := r.drain(ctx); err != nil {
		return 0, err
	}
	return over(float64(l.refused), l.seconds), r.verify(ctx, r.s.admin, []string{product}, 0)
}

// playRefusals is figure 3.
func playRefusals(ctx context.Context, r *round) error {
	var refused float64
	bare, err := r.beside(ctx, func() (err error) {
		refused, err = r.refusals(ctx)
		return err
	})
	if err == nil {
		r.result.record("3", refused/bare.perSecond)
	}
	return err
}

// repeated is how many purchases are asked for again and again.
const repeated = 20_000

// playRepeats is figure 4.
func playRepeats(ctx context.Context, r *round) error {
	_, products := r.names(1)
	if err := r.open(ctx, r.s.admin, products, plenty); err != nil {
		return err
	}
	c := r.crowd(r.s.target, products)
	window := c.window
	c.window, c.count = 0, repeated
	bought, err := r.let(ctx, c)
	if err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	c.window, c.count, c.distinct = window, 0, repeated
	var l loaded
	bare, err := r.beside(ctx, func() (err error) {
		before := r.meter.read()
		l, err = r.let(ctx, c)
		r.note("repeats", detail(l, r.meter.since(before)))
		return err
	})
	if err != nil {
		return err
	}
	r.result.record("4", l.perSecond()/bare.perSecond)
	return r.verify(ctx, r.s.admin, products, bought.accepted)
}
