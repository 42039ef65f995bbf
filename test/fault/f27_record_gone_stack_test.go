//go:build stack

package fault

import (
	"context"
	"net/http"
	"testing"

	"seckill/domain"
	"seckill/test/harness"
)

// F27: the stock record is deleted while 100 messages wait to be applied. Missing is never zero and never
// unlimited: nobody is told "sold out", nothing is sold from a figure that ignores what is on its way.
func TestF27ARecordThatIsGoneWhileMessagesWait(t *testing.T) {
	t.Parallel()
	l := newLossyRedis(t, harness.Parts{Redis: true}, t.TempDir())
	s := l.doors[0]
	const total = 120
	l.product = onSale(t, s, total, 0)
	release := holdStock(t, database(t, s), l.product)
	crowd := crowdOf(l.product, "waits", 100)
	atOnce(s, crowd)
	l.must(l.at(l.servers.Redis.Addr).Del(context.Background(), "seckill:{"+l.product+"}:stock").Err())
	l.layer.Fault("redis: DEL of the stock record, messages waiting")
	later := crowdOf(l.product, "later", 40)
	atOnce(s, later)
	for _, p := range later {
		if p.answer.Status != http.StatusServiceUnavailable || p.answer.Code() != domain.CodeRebuilding {
			t.Errorf("without a record: %v", p.answer)
		}
	}
	release()
	for _, p := range append(crowd, later...) {
		converge(t, s, p)
	}
	if n := bought(crowd); n != 100 {
		t.Errorf("%d of 100 kept their units", n)
	}
	holds(t, s, l.product, total, total, append(crowd, later...)...)
}
