//go:build stack

package fault

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"seckill/test/harness"
	"seckill/test/shop"
)

// F09: two instances with the same process id and the same host are two members of their group: each has
// its own queues, and each message is applied by one of them.
func TestF09InstancesOfOneProcessID(t *testing.T) {
	t.Parallel()
	s := shop.New(t, shop.Stack)
	under := []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if out, err := exec.Command(under[0], append(under[1:], "true")...).CombinedOutput(); err != nil {
		t.Fatalf("two processes of one id need process namespaces, so root: %v: %s", err, out)
	}
	s.Under(under...) // both are process 1
	s.Start()
	product := onSale(t, s, 100_000, 0)
	other := s.Another()
	other.Start()
	shop.Eventually(t, time.Minute, "two members of the group", func() (bool, string) {
		ids, err := harness.ConsumerIDs(t.Context(), os.Getenv(harness.EnvBroker), s.Group+"_consumer")
		return len(ids) == 2 && ids[0] != ids[1], fmt.Sprint(ids, err)
	})
	bought := 0
	var mine, others int64
	shop.Eventually(t, 2*time.Minute, "both consume", func() (bool, string) {
		a := s.Buy(context.Background(), product, fmt.Sprintf("u%d", bought), "t", 1)
		if !a.Accepted() {
			return false, a.String()
		}
		bought++
		mine, others = s.Pipeline().AppliedRows, other.Pipeline().AppliedRows
		return mine > 0 && others > 0, fmt.Sprintf("%d and %d of %d", mine, others, bought)
	})
	if v := s.HoldsEventually(product); v.Confirmed != int64(bought) {
		t.Errorf("%d orders, %d bought", v.Confirmed, bought)
	}
	if mine, others = s.Pipeline().AppliedRows, other.Pipeline().AppliedRows; mine+others != int64(bought) {
		t.Errorf("%d and %d rows applied, %d bought", mine, others, bought)
	}
}
