package application_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

func checked(states ...domain.FlowState) []port.CheckReply {
	replies := make([]port.CheckReply, len(states))
	for i, s := range states {
		replies[i] = port.CheckReply{Readable: true, Epoch: 3}
		if s != domain.FlowAbsent {
			replies[i].Flow = flowIn(keyIn("p", "t"), s, 7)
		}
	}
	return replies
}

func TestConfirmFollowsTheFlows(t *testing.T) {
	t.Parallel()
	const deducted, settled, released, refused, absent = domain.FlowDeducted, domain.FlowSettled, domain.FlowReleased, domain.FlowRefused, domain.FlowAbsent
	for name, c := range map[string]struct {
		states []domain.FlowState
		err    error
		want   domain.Verdict
	}{
		"deducted":                   {[]domain.FlowState{deducted}, nil, domain.VerdictCommit},
		"settled already":            {[]domain.FlowState{settled}, nil, domain.VerdictCommit},
		"one alive is enough":        {[]domain.FlowState{absent, released, deducted}, nil, domain.VerdictCommit},
		"all dead":                   {[]domain.FlowState{released, refused}, nil, domain.VerdictRollback},
		"absent is not dead":         {[]domain.FlowState{released, absent}, nil, domain.VerdictUnknown},
		"gate away":                  {nil, domain.ErrUnavailable, domain.VerdictUnknown},
		"a fault of any other kind":  {nil, errors.New("torn"), domain.VerdictUnknown},
		"released beside a live one": {[]domain.FlowState{released, settled}, nil, domain.VerdictCommit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := portmock.NewMockGate(gomock.NewController(t))
			gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return(checked(c.states...), c.err)
			items := make([]domain.Deduction, max(len(c.states), 1))
			for i := range items {
				items[i] = itemOf(keyIn("p", "t"))
			}
			if got := application.NewConfirmDeductions(gate).Confirm(t.Context(), batchOf(items...)); got != c.want {
				t.Fatalf("verdict %s, want %s", got, c.want)
			}
		})
	}
}

func TestConfirmOfOtherKindsAsksNobody(t *testing.T) {
	t.Parallel()
	confirm := application.NewConfirmDeductions(portmock.NewMockGate(gomock.NewController(t)))
	for kind, want := range map[domain.BatchKind]domain.Verdict{
		domain.BatchWarmup: domain.VerdictRollback, domain.BatchBarrier: domain.VerdictUnknown,
		0: domain.VerdictUnknown,
	} {
		if got := confirm.Confirm(t.Context(), domain.Batch{ID: "b", Kind: kind}); got != want {
			t.Errorf("%s: verdict %s, want %s", kind, got, want)
		}
	}
}

func listenerOn(t *testing.T) (*application.TransactionListener, *portmock.MockGate) {
	ctrl := gomock.NewController(t)
	gate := portmock.NewMockGate(ctrl)
	resolve := application.NewResolveDeductions(gate, portmock.NewMockLedger(ctrl), portmock.NewMockBarrierLog(ctrl), &suspectList{}, wallClock{}, quietLog)
	return application.NewTransactionListener(application.NewConfirmDeductions(gate), resolve), gate
}

func TestListenerAnswersUnknownAfterAPanic(t *testing.T) {
	t.Parallel()
	listener, gate := listenerOn(t)
	gate.EXPECT().Check(gomock.Any(), gomock.Any()).Do(func(context.Context, []domain.Key) { panic("boom") }).Times(2)
	batch := batchOf(itemOf(keyIn("p", "t")))
	if v := listener.Confirm(t.Context(), batch); v != domain.VerdictUnknown {
		t.Errorf("confirm says %s", v)
	}
	if v := listener.Resolve(t.Context(), batch); v != domain.VerdictUnknown {
		t.Errorf("resolve says %s", v)
	}
}

func TestListenerAnswersWithinASecondWhateverAPortDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		listener, gate := listenerOn(t)
		release := make(chan struct{})
		gate.EXPECT().Check(gomock.Any(), gomock.Any()).DoAndReturn(func(context.Context, []domain.Key) ([]port.CheckReply, error) {
			<-release // deaf to its deadline
			return checked(domain.FlowDeducted), nil
		})
		if v := listener.Resolve(t.Context(), batchOf(itemOf(keyIn("p", "t")))); v != domain.VerdictUnknown {
			t.Errorf("resolve says %s", v)
		}
		close(release)
		synctest.Wait()
	})
}
