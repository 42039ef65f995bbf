package application_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

// ordersOver looks orders up in a ledger that gives the row of each look.
func ordersOver(t *testing.T, row func(look int) (domain.Order, error)) *application.ShowOrder {
	t.Helper()
	ctrl := gomock.NewController(t)
	ledger, gate := portmock.NewMockLedger(ctrl), portmock.NewMockGate(ctrl)
	var looks atomic.Int64
	ledger.EXPECT().Fates(gomock.Any(), gomock.Any()).DoAndReturn(func(context.Context, []domain.Key) ([]domain.Order, error) {
		order, err := row(int(looks.Add(1)))
		return []domain.Order{order}, err
	}).AnyTimes()
	gate.EXPECT().Check(gomock.Any(), gomock.Any()).DoAndReturn(func(ctx context.Context, keys []domain.Key) ([]port.CheckReply, error) {
		return []port.CheckReply{{Flow: flowIn(keys[0], domain.FlowDeducted, 7), Readable: true}}, ctx.Err()
	}).AnyTimes()
	return application.NewShowOrder(ledger, gate, portmock.NewMockCatalog(ctrl))
}

func TestAnOrderIsAwaitedUntilItIsDecided(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	decidedAt := func(n int) func(int) (domain.Order, error) {
		return func(look int) (domain.Order, error) {
			if look < n {
				return domain.Order{}, nil
			}
			return orderIn(k, domain.OrderConfirmed), nil
		}
	}
	for name, c := range map[string]struct {
		look         int
		wait, waited time.Duration
		status       string
	}{
		"decided at once":         {1, time.Minute, 0, "confirmed"},
		"decided at a later look": {4, time.Minute, 210 * time.Millisecond, "confirmed"},
		"never":                   {1000, 10 * time.Second, 10 * time.Second, "pending"},
		"decided at the last one": {3, 70 * time.Millisecond, 70 * time.Millisecond, "confirmed"},
		"no wait":                 {2, 0, 0, "pending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				await := application.NewAwaitOrder(ordersOver(t, decidedAt(c.look)), application.DefaultAwaitConfig())
				order, err := await.Await(t.Context(), k, c.wait)
				if err != nil || order.Status != c.status || time.Since(begun) != c.waited {
					t.Errorf("%+v, %v after %v", order, err, time.Since(begun))
				}
			})
		})
	}
}

// A gate that forgot the order in the meantime is not answered with what was seen before.
func TestAnOrderThatIsGoneAtALaterLookIsNotPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctrl := gomock.NewController(t)
		ledger, gate := portmock.NewMockLedger(ctrl), portmock.NewMockGate(ctrl)
		ledger.EXPECT().Fates(gomock.Any(), gomock.Any()).Return([]domain.Order{{}}, nil).Times(2)
		gomock.InOrder(
			gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return([]port.CheckReply{{Flow: flowIn(keyIn("p", "t"), domain.FlowDeducted, 7), Readable: true}}, nil),
			gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return([]port.CheckReply{{Readable: true}}, nil))
		orders := application.NewShowOrder(ledger, gate, portmock.NewMockCatalog(ctrl))
		_, err := application.NewAwaitOrder(orders, application.DefaultAwaitConfig()).Await(t.Context(), keyIn("p", "t"), time.Minute)
		wantCode(t, err, domain.CodeOrderNotFound)
	})
}

func TestAWaitThatIsCutOffGivesTheOrderAsItWasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		never := ordersOver(t, func(int) (domain.Order, error) { return domain.Order{}, nil })
		order, err := application.NewAwaitOrder(never, application.DefaultAwaitConfig()).Await(ctx, keyIn("p", "t"), time.Hour)
		if err != nil || order.Status != application.OrderPending {
			t.Errorf("%+v %v", order, err)
		}
	})
}

// So many wait, and no more: whoever comes then is answered at once.
func TestTheNumberOfWaitersIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := ordersOver(t, func(int) (domain.Order, error) { return domain.Order{}, nil })
		cfg := application.DefaultAwaitConfig()
		cfg.WaitersMax = 2
		await := application.NewAwaitOrder(never, cfg)
		ask := func(wait time.Duration) time.Duration {
			begun := time.Now()
			if order, err := await.Await(t.Context(), keyIn("p", "t"), wait); err != nil || order.Status != application.OrderPending {
				t.Errorf("%+v %v", order, err)
			}
			return time.Since(begun)
		}
		for range 2 {
			go ask(time.Minute)
		}
		synctest.Wait()
		if waited := ask(time.Minute); waited != 0 {
			t.Errorf("a third one waited %v", waited)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if waited := ask(time.Second); waited != time.Second {
			t.Errorf("with places free again: waited %v", waited)
		}
	})
}
