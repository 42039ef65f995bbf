package contract

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"seckill/application/port"
	"seckill/domain"
)

// brokerScript is an application whose answers a case sets: the listener, the handler, the barrier log
// and the ids that a broker adapter needs. Barriers are answered as the application answers them.
type brokerScript struct {
	barriers *memoryBarriers

	mu       sync.Mutex
	confirm  map[string]domain.Verdict
	resolve  map[string][]domain.Verdict
	during   map[string]func(context.Context)
	resolves map[string]int
	attempts map[string]int
	finished map[string][]port.Delivery
	refused  func(port.Delivery) bool
	before   func(context.Context)
}

func newBrokerScript() *brokerScript {
	return &brokerScript{
		barriers: &memoryBarriers{places: map[string][]string{}},
		confirm:  map[string]domain.Verdict{}, resolve: map[string][]domain.Verdict{}, during: map[string]func(context.Context){},
		resolves: map[string]int{}, attempts: map[string]int{}, finished: map[string][]port.Delivery{},
	}
}

// onConfirm sets the local transaction's verdict; without one it is commit.
func (s *brokerScript) onConfirm(id string, verdict domain.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirm[id] = verdict
}

// onResolve sets the check-back's verdicts, one after another; the last one stays.
func (s *brokerScript) onResolve(id string, verdicts ...domain.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resolve[id] = verdicts
}

func (s *brokerScript) duringConfirm(id string, do func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.during["confirm "+id] = do
}

func (s *brokerScript) duringResolve(id string, do func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.during["resolve "+id] = do
}

func (s *brokerScript) beforeHandle(do func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = do
}

func (s *brokerScript) refuse(when func(port.Delivery) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = when
}

func (s *brokerScript) run(ctx context.Context, name string) {
	s.mu.Lock()
	do := s.during[name]
	s.mu.Unlock()
	if do != nil {
		do(ctx)
	}
}

// Confirm is port.TransactionListener's.
func (s *brokerScript) Confirm(ctx context.Context, batch domain.Batch) domain.Verdict {
	if batch.Kind == domain.BatchBarrier {
		return domain.VerdictUnknown
	}
	s.run(ctx, "confirm "+batch.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if verdict, set := s.confirm[batch.ID]; set {
		return verdict
	}
	return domain.VerdictCommit
}

// Resolve is port.TransactionListener's.
func (s *brokerScript) Resolve(ctx context.Context, batch domain.Batch) domain.Verdict {
	if batch.Kind == domain.BatchBarrier {
		if s.barriers.MarkBarrier(ctx, batch.ID, "check") != nil {
			return domain.VerdictUnknown
		}
		return domain.VerdictCommit
	}
	s.mu.Lock()
	s.resolves[batch.ID]++
	s.mu.Unlock()
	s.run(ctx, "resolve "+batch.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	verdicts := s.resolve[batch.ID]
	if len(verdicts) == 0 {
		return domain.VerdictCommit
	}
	if len(verdicts) > 1 {
		s.resolve[batch.ID] = verdicts[1:]
	}
	return verdicts[0]
}

// Handle is port.DeliveryHandler's: all of a group or nothing.
func (s *brokerScript) Handle(ctx context.Context, deliveries []port.Delivery) error {
	if d := deliveries[0]; len(deliveries) == 1 && d.Batch.Kind == domain.BatchBarrier {
		return s.barriers.MarkBarrier(ctx, d.Batch.ID, d.Origin.Queue)
	}
	s.mu.Lock()
	before, refused := s.before, s.refused
	for _, d := range deliveries {
		s.attempts[deliveryID(d)]++
	}
	s.mu.Unlock()
	if before != nil {
		before(ctx)
	}
	for _, d := range deliveries {
		if d.Batch.Kind == domain.BatchBarrier {
			panic("a barrier did not come alone")
		}
		if refused != nil && refused(d) {
			return errRefused
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range deliveries {
		s.finished[deliveryID(d)] = append(s.finished[deliveryID(d)], d)
	}
	return nil
}

func deliveryID(d port.Delivery) string {
	if d.Malformed != "" {
		return "malformed"
	}
	return d.Batch.ID
}

func (s *brokerScript) asked(id string) int { return s.count(func() int { return s.resolves[id] }) }
func (s *brokerScript) tried(id string) int { return s.count(func() int { return s.attempts[id] }) }
func (s *brokerScript) delivered(id string) int {
	return s.count(func() int { return len(s.finished[id]) })
}
func (s *brokerScript) malformed() int { return s.delivered("malformed") }

func (s *brokerScript) count(of func() int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return of()
}

func (s *brokerScript) deliveriesOf(id string) []port.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.finished[id])
}

// Attempt is port.IDs'.
func (s *brokerScript) Attempt() string { return rand.Text() }

// Unique is port.IDs'.
func (s *brokerScript) Unique() string { return rand.Text() }

// memoryBarriers is a port.BarrierLog.
type memoryBarriers struct {
	mu     sync.Mutex
	places map[string][]string
}

func (m *memoryBarriers) MarkBarrier(_ context.Context, id, place string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.places[id], place) {
		m.places[id] = append(m.places[id], place)
	}
	return nil
}

func (m *memoryBarriers) BarrierPlaces(_ context.Context, id string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.places[id]), nil
}

func (m *memoryBarriers) ForgetBarriers(context.Context, time.Duration) error { return nil }

func brokerItem(user string) domain.Deduction {
	key, err := domain.NewKey("product-1", user, "token-1")
	if err != nil {
		panic(err)
	}
	return domain.Deduction{Key: key, Quantity: 1, Epoch: 1, Sequence: 7, Attempt: "a1", At: time.UnixMilli(1764633600123).UTC()}
}

func brokerBatch(id string, items int) domain.Batch {
	batch := domain.Batch{ID: id, Kind: domain.BatchDeduct}
	for i := range items {
		batch.Items = append(batch.Items, brokerItem("user-"+string(rune('a'+i))))
	}
	return batch
}
