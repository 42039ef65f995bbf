//go:build stack

package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/domain"
	"seckill/test/harness"
	"seckill/test/shop"
)

// suspicious is a service with a broker of its own, in which one thing after another goes wrong.
type suspicious struct {
	*testing.T
	*shop.Shop
	servers *harness.Stack
	db      *sql.DB
	gate    *redis.Client
}

// Each alert's condition (bootstrap/deploy/prometheus/alerts.yaml) as the real service makes it true. How high and for how long is
// what promtool's tests of the rules play.
func TestTheServiceMakesTheConditionsOfItsAlertsTrue(t *testing.T) {
	t.Parallel()
	servers, err := harness.Start(t.Context(), harness.Parts{RocketMQ: true}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = servers.Close() })
	s := suspicious{T: t, servers: servers, Shop: shop.New(t, shop.Stack,
		"SECKILL_ROCKETMQ__NAME_SERVERS="+servers.NameServer.Addr, "SECKILL_ROCKETMQ__BROKER="+servers.Broker.Addr)}
	s.NameServers = servers.NameServer.Addr
	if s.db, err = sql.Open("mysql", s.DSN); err != nil {
		t.Fatal(err)
	}
	s.gate = redis.NewClient(&redis.Options{Addr: s.Redis})
	t.Cleanup(func() { _, _ = s.db.Close(), s.gate.Close() })
	s.Start()
	s.oversold()
	s.staleReconcile()
	s.consumerBehind()
	s.planted()
	s.brokerAway()
}

// sold is a product of which two units are sold and confirmed.
func (s suspicious) sold() string {
	product := onSale(s.T, s.Shop, 10)
	for _, user := range []string{"a", "b"} {
		s.Buy(s.Context(), product, user, "t", 1)
		s.WaitOrder(product, user, "t", "confirmed")
	}
	return product
}

func (s suspicious) change(statement string, args ...any) {
	s.Helper()
	if _, err := s.db.ExecContext(s.T.Context(), statement, args...); err != nil {
		s.Fatal(err)
	}
}

// reaches waits until a metric is at least so much.
func (s suspicious) reaches(name string, least float64) {
	s.Helper()
	shop.Eventually(s.T, time.Minute, name, func() (bool, string) {
		got, there := scrape(s.T, s.Shop)[name]
		return there && got >= least, fmt.Sprintf("%v (there: %v), want %v or more", got, there, least)
	})
}

// oversold is a row that somebody changed while the service was down: a survey sums the orders of a product after its start.
func (s suspicious) oversold() {
	product := s.sold()
	s.Stop()
	s.change("UPDATE orders SET quantity = 12 WHERE product_id = ? AND uid = 'a'", product) // beside one unit of b, of ten
	s.Start()
	waitSamples(s.T, s.Shop, map[string]float64{fmt.Sprintf("seckill_oversold_units{product=%q}", product): 3})
}

func (s suspicious) staleReconcile() {
	const name = "seckill_reconcile_last_success_timestamp_seconds"
	s.reaches(name, float64(time.Now().Add(-time.Minute).Unix()))
	if last := scrape(s.T, s.Shop)[name]; last > float64(time.Now().Unix()+1) {
		s.Errorf("%s is %v, in the time to come", name, last)
	}
}

// consumerBehind holds the row that the consumer has to change: SeckillConsumerBehind, SeckillFlowsStuck.
func (s suspicious) consumerBehind() {
	product := onSale(s.T, s.Shop, 10)
	tx, err := s.db.BeginTx(s.T.Context(), nil)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := tx.Exec("SELECT stock FROM product_stock WHERE product_id = ? FOR UPDATE", product); err != nil {
		s.Fatal(err)
	}
	for i := range 3 {
		s.Buy(s.T.Context(), product, fmt.Sprintf("u%d", i), "t", 1)
	}
	s.reaches("seckill_consumer_lag_messages", 1)
	s.reaches("seckill_oldest_open_flow_age_seconds", 3)
	if err := tx.Rollback(); err != nil {
		s.Error(err)
	}
	waitSamples(s.T, s.Shop, map[string]float64{"seckill_consumer_lag_messages": 0, "seckill_open_flows": 0})
}

// planted are three faults at once: SeckillParked, SeckillStockDrift, and SeckillProductSuspended by a database that went
// back behind its gate.
func (s suspicious) planted() {
	drifting, damaged := s.sold(), s.sold()
	s.Publish([]byte("nothing that anyone could apply"))
	if err := s.gate.HIncrBy(s.T.Context(), "seckill:{"+drifting+"}:stock", "remaining", 3).Err(); err != nil {
		s.Fatal(err)
	}
	s.change("UPDATE product_stock SET version = 1 WHERE product_id = ?", damaged)
	of := func(metric, product string) string { return fmt.Sprintf("%s{product=%q}", metric, product) }
	waitSamples(s.T, s.Shop, map[string]float64{
		"seckill_parked_messages": 1, of("seckill_stock_drift_units", drifting): 3,
		of("seckill_product_suspended", damaged): 1,
	})
}

// brokerAway is last: SeckillUnknownAnswers, SeckillSlow, SeckillLagUnreadable.
func (s suspicious) brokerAway() {
	product := s.sold()
	if err := s.servers.Broker.Stop(); err != nil { // it hangs
		s.Fatal(err)
	}
	if a := s.Buy(context.Background(), product, "late", "t", 1); a.Code() != domain.CodeOutcomeUnknown {
		s.Errorf("without a broker: %v", a)
	}
	s.reaches(`seckill_deductions_total{result="unknown"}`, 1)
	of := func(part string) float64 {
		return scrape(s.T, s.Shop)[fmt.Sprintf(`http_server_request_duration_seconds_%s{http_request_method="POST", http_response_status_code="%d", http_route="/api/v1/products/{productId}/orders"%s}`,
			map[bool]string{true: "bucket", false: "count"}[part != ""], http.StatusServiceUnavailable, part)]
	}
	if quick, all := of(`, le="0.25"`), of(""); all < 1 || quick >= all {
		s.Errorf("%v of %v answers took at most 0.25 s", quick, all)
	}
	waitSamples(s.T, s.Shop, map[string]float64{"seckill_consumer_lag_readable": 0})
	if lag, there := scrape(s.T, s.Shop)["seckill_consumer_lag_messages"]; there {
		s.Errorf("a lag that nobody could read is %v", lag)
	}
	if err := s.servers.Broker.Cont(); err != nil {
		s.Error(err)
	}
	waitSamples(s.T, s.Shop, map[string]float64{"seckill_consumer_lag_readable": 1, "seckill_open_flows": 0})
}
