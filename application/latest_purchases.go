package application

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	latestMax   = 20
	latestEvery = 100 * time.Millisecond
)

// AcceptedPurchase is a purchase whose buyer was told that it is accepted; how its order stands is not said here.
type AcceptedPurchase struct {
	Product  string    `json:"productId"`
	User     string    `json:"uid"`
	Token    string    `json:"token"`
	Quantity int64     `json:"quantity"`
	At       time.Time `json:"at"` // of the deduct
}

// latestPurchases are the last of those accepted; of many at once one in latestEvery, so that all others pay one look at
// a number.
type latestPurchases struct {
	due atomic.Int64 // Unix nanoseconds, from which another one is kept

	mu   sync.Mutex
	kept []AcceptedPurchase // newest first
}

func (l *latestPurchases) note(now time.Time, order OrderView) {
	due := l.due.Load()
	wait := due - now.UnixNano()
	if 0 < wait && wait <= int64(latestEvery) { // with more the clock was put back
		return
	}
	if !l.due.CompareAndSwap(due, now.Add(latestEvery).UnixNano()) {
		return
	}
	p := AcceptedPurchase{Product: order.Key.Product(), User: order.Key.User(), Token: order.Key.Token(), Quantity: order.Quantity, At: order.CreatedAt}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) < latestMax {
		l.kept = append(l.kept, p)
	}
	copy(l.kept[1:], l.kept)
	l.kept[0] = p
}

// all are copied, newest first.
func (l *latestPurchases) all() []AcceptedPurchase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]AcceptedPurchase{}, l.kept...)
}
