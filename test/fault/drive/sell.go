package drive

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/application"
	"seckill/test/fault/campaign"
	"seckill/test/harness"
	"seckill/test/shop"
)

// Sale is one sale under a fault. Doors, Requests and Figures have to be set.
type Sale struct {
	Doors    []*shop.Shop    // the instances: buyers take turns at them, operators ask the first that answers
	Requests int             // buyers, one purchase of one unit each
	Figures  *campaign.Layer // where the figures go

	Product string // empty: a new one
	Total   int64  // units of a new product; 0: nine tenths of the requests, so that some are refused
	Rate    int    // arrivals a second; 0: 200

	// Fault is called, in the test's goroutine, when the share At of the buyers (0: four tenths) has come.
	// It breaks something, counts it by Figures.Fault, and has ended it when it returns. nil: none.
	Fault func()
	At    float64

	// Within is how long A to E may take to come back; 0: 90 s. After a loss of Redis that is the
	// check window and 30 s.
	Within time.Duration

	// MayEndRejected is asked at the end how many accepted purchases Redis and the broker have both lost:
	// so many may have no order, and count as residual. nil: none.
	MayEndRejected func() int64

	// CancelEvery is of how many buyers one cancels as soon as it has bought; 0: nobody does.
	CancelEvery int

	// Strangers is how many confirmed orders of the product are not of this sale's buyers.
	Strangers int64
}

// Result is what a sale showed. Everything in it is in the figures already.
type Result struct {
	Product      string
	Settled      time.Duration
	Verification application.Verification
	Journal      []application.JournalEntry
	campaign.Figures
}

const (
	defaultRate   = 200
	defaultAt     = 0.4
	defaultWithin = 90 * time.Second
	look          = 200 * time.Millisecond
)

// Sell plays the sale. A violation fails the test, which goes on.
func Sell(t *testing.T, sale Sale) Result {
	t.Helper()
	r := newRun(t, sale)
	ctx, cancel := context.WithCancel(context.Background())
	defer r.home.Wait()
	defer cancel()
	r.letIn(ctx)
	var faultEnd time.Time
	if sale.Fault != nil {
		<-r.half
		sale.Fault()
		faultEnd = time.Now()
	}
	<-r.allCame
	from := r.lastCame
	if faultEnd.After(from) {
		from = faultEnd
	}
	v, settled := r.settle(from)
	cancel()
	r.home.Wait()
	return r.judge(from, v, settled)
}

// run is a sale under way.
type run struct {
	t        *testing.T
	sale     Sale
	begun    []int // reopenings of each door before the sale
	half     chan struct{}
	allCame  chan struct{}
	lastCame time.Time // once allCame is closed
	home     sync.WaitGroup

	slots chan struct{} // of repeats under way

	mu     sync.Mutex
	buyers []*buyer
	counts campaign.Figures
}

func newRun(t *testing.T, sale Sale) *run {
	t.Helper()
	if sale.Rate == 0 {
		sale.Rate = defaultRate
	}
	if sale.At == 0 {
		sale.At = defaultAt
	}
	if sale.Within == 0 {
		sale.Within = defaultWithin
	}
	if sale.Total == 0 {
		sale.Total = max(1, int64(sale.Requests)*9/10)
	}
	if sale.Product == "" {
		sale.Product = harness.UniqueID(t)
		sale.Doors[0].For(t).OpenSale(sale.Product, sale.Total, 0)
	}
	r := &run{t: t, sale: sale, half: make(chan struct{}), allCame: make(chan struct{}), slots: make(chan struct{}, slots),
		counts: campaign.Figures{Unknown: map[string]int64{}, Ended: map[string]int64{}, Violations: map[string]int64{}, Seen: map[string]int64{}}}
	for _, s := range sale.Doors {
		r.begun = append(r.begun, len(s.Reopenings()))
	}
	for i := range sale.Requests {
		r.buyers = append(r.buyers, &buyer{number: i, user: fmt.Sprintf("u%d", i), token: fmt.Sprintf("t%d", i)})
	}
	return r
}

// letIn has the buyers come at their times, each at its own, whatever became of those before.
func (r *run) letIn(ctx context.Context) {
	r.home.Go(func() {
		defer close(r.allCame)
		start, fault := time.Now(), min(int(r.sale.At*float64(len(r.buyers))), len(r.buyers)-1)
		for i, b := range r.buyers {
			if i == fault {
				close(r.half)
			}
			time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(r.sale.Rate)))) // the load's own pace
			r.home.Go(func() { r.buy(ctx, b) })
		}
		r.lastCame = time.Now()
	})
}

// settle waits until each answer stands and A to E hold; false says that they did not in time.
func (r *run) settle(from time.Time) (application.Verification, time.Duration) {
	r.t.Helper()
	deadline := from.Add(r.sale.Within)
	for {
		waiting, example := r.waiting()
		v, a := r.verify()
		now := time.Now()
		if waiting == 0 && v.Holds {
			return v, max(0, now.Sub(from))
		}
		if now.After(deadline) {
			r.violation("E", 1, "not settled %v after the fault: %d buyers still ask, such as %s; %v", r.sale.Within, waiting, example, a)
			return v, 0
		}
		time.Sleep(look)
	}
}

// verify asks the first instance that answers.
func (r *run) verify() (v application.Verification, a shop.Answer) {
	for _, s := range r.sale.Doors {
		if v, a = s.Verify(r.sale.Product); a.Err == nil && a.Status == 200 {
			return v, a
		}
	}
	return v, a
}

func (r *run) violation(invariant string, n int64, format string, args ...any) {
	r.t.Helper()
	r.mu.Lock()
	r.counts.Violations[invariant] += n
	r.mu.Unlock()
	r.t.Errorf("%s of %s is broken: %s", invariant, r.sale.Product, fmt.Sprintf(format, args...))
}
