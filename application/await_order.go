package application

import (
	"context"
	"time"

	"seckill/domain"
)

// AwaitConfig bounds how many buyers wait for their orders, and how often each is looked up.
type AwaitConfig struct {
	WaitersMax int           // one more is answered as the order now is
	PauseMin   time.Duration // before the second look; each pause after it is twice as long
	PauseMax   time.Duration
}

// DefaultAwaitConfig fits orders that have their row within some tens of milliseconds, so most waits end with the second look
// or the third.
func DefaultAwaitConfig() AwaitConfig {
	return AwaitConfig{WaitersMax: 1024, PauseMin: 30 * time.Millisecond, PauseMax: time.Second}
}

// AwaitOrder shows a buyer an order once it is decided.
type AwaitOrder struct {
	show   func(context.Context, domain.Key) (OrderView, error)
	places chan struct{}
	cfg    AwaitConfig
}

// NewAwaitOrder wires the use case.
func NewAwaitOrder(orders *ShowOrder, cfg AwaitConfig) *AwaitOrder {
	return &AwaitOrder{orders.Show, make(chan struct{}, cfg.WaitersMax), cfg}
}

// Await is ShowOrder's Show, which looks at a pending order again until it is decided, wait is over or ctx ends; then
// the order is given as it was last seen. Codes as there.
func (a *AwaitOrder) Await(ctx context.Context, key domain.Key, wait time.Duration) (OrderView, error) {
	select {
	case a.places <- struct{}{}:
		defer func() { <-a.places }()
	default:
		wait = 0
	}
	until := time.Now().Add(wait)
	order, err := a.show(ctx, key)
	for pause := a.cfg.PauseMin; err == nil && order.Status == OrderPending; pause = min(2*pause, a.cfg.PauseMax) {
		left := time.Until(until)
		if left <= 0 || !rest(ctx, min(pause, left)) {
			break
		}
		var now OrderView
		if now, err = a.show(ctx, key); err == nil {
			order = now
		} else if ctx.Err() != nil {
			return order, nil // the look was cut off, the order was there
		}
	}
	return order, err
}

// rest pauses, and says whether it did to the end.
func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
