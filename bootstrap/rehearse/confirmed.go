package rehearse

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill/application"
)

// traceSample is how many accepted purchases are traced after the load.
const traceSample = 200

// traceSome reads from the service's own books how long accepted purchases waited for their row: a sample, evenly
// spread, after the load, so that looking costs the sale nothing. nil where no trace could be read.
func (r *rehearsal) traceSome(ctx context.Context) *Percentiles {
	step := uint64(max(1, (r.tally.accepted.Load()+traceSample-1)/traceSample))
	waits := hdrhistogram.New(1, time.Hour.Microseconds(), 3)
	var mu sync.Mutex
	r.parallel(ctx, r.cfg.readers(), len(r.held), func(i int) {
		if r.held[i] != accepted || r.crowd.dice(i)%step != 0 {
			return
		}
		wait, err := r.doors.confirmedAfter(ctx, r.crowd, i)
		if err != nil || wait < 0 {
			return // a sample: what cannot be read is left out
		}
		mu.Lock()
		defer mu.Unlock()
		_ = waits.RecordValue(min(max(wait.Microseconds(), 1), time.Hour.Microseconds()))
	})
	if waits.TotalCount() == 0 {
		return nil
	}
	p := percentiles(waits)
	return &p
}

// confirmedAfter is the time from buyer i's deduction to its row; negative where the service does not know it.
func (d *doors) confirmedAfter(ctx context.Context, w *crowd, i int) (time.Duration, error) {
	var v application.TraceView
	query := url.Values{"productId": {w.product(i)}, "uid": {w.user(i)}, "token": {w.token(i)}}
	err := d.ask(ctx, http.MethodGet, "/admin/v1/trace?"+query.Encode(), nil, &v)
	if err != nil || v.Flow == nil || v.Order == nil || v.Flow.At.IsZero() || v.Order.CreatedAt.IsZero() {
		return -1, err
	}
	return v.Order.CreatedAt.Sub(v.Flow.At), nil
}
