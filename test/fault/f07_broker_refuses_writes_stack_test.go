//go:build stack

package fault

import (
	"context"
	"testing"
	"time"

	"seckill/application"
	"seckill/application/port"
	"seckill/test/harness"
	"seckill/test/shop"
)

// F07: the database is down, so that the consumer can finish nothing, and the broker refuses writes, so that
// nothing could be sent back. The consumer keeps what it has and tries in place; the relay, which would
// finish the purchases as well, is switched off.
func f07BrokerRefusesWrites(t *testing.T, s *shop.Shop, servers *harness.Stack) {
	s.Stop()
	s.Set("SECKILL_RELAY__OPEN_AGE=1h")
	s.Start()
	n := tenth(t, 100)
	product := onSale(t, s, int64(n), 0)
	crowd := crowdOf(product, "u", n)
	if err := servers.MySQL.Kill(); err != nil {
		t.Fatal(err)
	}
	atOnce(s, crowd) // within the lease, nobody needs the database
	if got := bought(crowd); got != int64(n) {
		t.Fatalf("%d of %d bought while the database was down: %v", got, n, crowd[0].answer)
	}
	setBroker(t, servers, "brokerPermission", "4")
	waitLog(t, s, "delivery_retry", 5)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := servers.MySQL.Start(ctx); err != nil {
		t.Fatal(err)
	}
	for _, p := range crowd {
		s.WaitOrder(product, p.user, p.token, "confirmed") // the broker still refuses
	}
	setBroker(t, servers, "brokerPermission", "6")
	holds(t, s, product, int64(n), int64(n), crowd...)
	changesNothing(t, s, product, func() {
		if report, a := reconcileOnce(s, product, application.ReconcileApply); len(report.Found) > 0 {
			t.Errorf("a reconciliation found something: %v", a)
		}
	})
	if letters := parkedAs(t, s, port.ParkDeadLetter); len(letters) > 0 {
		t.Errorf("%d messages were sent back", len(letters))
	}
}
