package application_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port/portmock"
	"seckill/domain"
)

func leaseOn(t *testing.T) (*application.Lease, *portmock.MockEpochs) {
	epochs := portmock.NewMockEpochs(gomock.NewController(t))
	return application.NewLease(epochs, application.DefaultLeaseConfig(), quietLog), epochs
}

func TestLeaseSellsNothingBeforeTheFirstRead(t *testing.T) {
	t.Parallel()
	lease, epochs := leaseOn(t)
	if lease.MaySell("p") {
		t.Error("sells before it has read anything")
	}
	epochs.EXPECT().Suspended(gomock.Any()).Return(nil, domain.ErrUnavailable)
	wantCode(t, lease.Start(t.Context()), domain.CodeUnavailable)
}

func TestLeaseSellsWhatIsOpenAndNothingElse(t *testing.T) {
	t.Parallel()
	lease, epochs := leaseOn(t)
	epochs.EXPECT().Suspended(gomock.Any()).Return([]domain.Stock{stockIn("s", domain.SaleSuspended), stockIn("d", domain.SaleDamaged)}, nil)
	if err := lease.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for product, want := range map[string]bool{"p": true, "s": false, "d": false} {
		if lease.MaySell(product) != want {
			t.Errorf("may sell %s: %v", product, !want)
		}
	}
}

func TestLeaseCountsFromTheStartOfItsLastRead(t *testing.T) {
	t.Parallel()
	inBubble(t, "a slow read", func(t *testing.T) {
		lease, epochs := leaseOn(t)
		epochs.EXPECT().Suspended(gomock.Any()).DoAndReturn(func(context.Context) ([]domain.Stock, error) {
			time.Sleep(2 * time.Second)
			return nil, nil
		})
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second - time.Millisecond)
		if !lease.MaySell("p") {
			t.Error("void before 3 s have passed since the start")
		}
		time.Sleep(time.Millisecond)
		if lease.MaySell("p") {
			t.Error("valid 3 s after the start of the read")
		}
	})
	inBubble(t, "an older read that ends later", func(t *testing.T) {
		lease, epochs := leaseOn(t)
		gomock.InOrder(
			epochs.EXPECT().Suspended(gomock.Any()).DoAndReturn(func(context.Context) ([]domain.Stock, error) {
				time.Sleep(time.Second)
				return nil, nil
			}),
			epochs.EXPECT().Suspended(gomock.Any()).Return([]domain.Stock{stockIn("p", domain.SaleSuspended)}, nil),
		)
		go func() { _ = lease.Refresh(context.Background()) }()
		synctest.Wait()
		time.Sleep(time.Millisecond)
		if err := lease.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if lease.MaySell("p") {
			t.Error("the older read won")
		}
	})
}

func TestLeaseIsRenewedEachSecondAndEndsWithTheLedger(t *testing.T) {
	t.Parallel()
	inBubble(t, "renewed", func(t *testing.T) {
		lease, epochs := leaseOn(t)
		var away atomic.Bool
		epochs.EXPECT().Suspended(gomock.Any()).DoAndReturn(func(context.Context) ([]domain.Stock, error) {
			if away.Load() {
				return nil, domain.ErrUnavailable
			}
			return nil, nil
		}).AnyTimes()
		startRunner(t, lease)
		time.Sleep(10*time.Second + time.Millisecond)
		if !lease.MaySell("p") {
			t.Fatal("not renewed")
		}
		synctest.Wait()
		away.Store(true)
		time.Sleep(3 * time.Second)
		if lease.MaySell("p") {
			t.Error("sells without a ledger")
		}
		synctest.Wait()
		away.Store(false)
		time.Sleep(time.Second + time.Millisecond)
		if !lease.MaySell("p") {
			t.Error("does not sell again")
		}
	})
}
