package application_test

import (
	"context"
	"testing"
	"time"

	"github.com/golang/mock/gomock"

	"seckill/application"
	"seckill/application/port"
	"seckill/application/port/portmock"
	"seckill/domain"
)

type resolveParts struct {
	gate     *portmock.MockGate
	ledger   *portmock.MockLedger
	barriers *portmock.MockBarrierLog
	suspects *suspectList
	resolve  *application.ResolveDeductions
}

func resolveWith(t *testing.T) resolveParts {
	ctrl := gomock.NewController(t)
	p := resolveParts{gate: portmock.NewMockGate(ctrl), ledger: portmock.NewMockLedger(ctrl),
		barriers: portmock.NewMockBarrierLog(ctrl), suspects: &suspectList{}}
	p.resolve = application.NewResolveDeductions(p.gate, p.ledger, p.barriers, p.suspects, wallClock{}, quietLog)
	return p
}

// refuses expects the gate to be asked for a tombstone.
func (p resolveParts) refuses(t *testing.T, k domain.Key, outcome port.AdoptOutcome) *gomock.Call {
	return p.gate.EXPECT().Adopt(gomock.Any(), gomock.Any(), gomock.Any()).DoAndReturn(
		func(_ context.Context, _ time.Time, items []port.AdoptItem) []port.AdoptReply {
			if len(items) != 1 || items[0].Key != k || items[0].Otherwise != port.RefuseAlone {
				t.Errorf("adopted %+v", items)
			}
			return []port.AdoptReply{{Outcome: outcome}}
		})
}

func (p resolveParts) checks(reply port.CheckReply, err error) {
	p.gate.EXPECT().Check(gomock.Any(), gomock.Any()).Return([]port.CheckReply{reply}, err)
}

func TestCheckBackOfTheOwnFormCommitsUnlessEveryFlowIsDead(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t") // the message says epoch 3
	for name, c := range map[string]struct {
		reply   port.CheckReply
		err     error
		want    domain.Verdict
		suspect bool
	}{
		"deducted":                {port.CheckReply{Flow: flowIn(k, domain.FlowDeducted, 7), Readable: true, Epoch: 3}, nil, domain.VerdictCommit, false},
		"settled":                 {port.CheckReply{Flow: flowIn(k, domain.FlowSettled, 7), Readable: true, Epoch: 3}, nil, domain.VerdictCommit, false},
		"released":                {port.CheckReply{Flow: flowIn(k, domain.FlowReleased, 7), Readable: true, Epoch: 3}, nil, domain.VerdictRollback, false},
		"refused":                 {port.CheckReply{Flow: flowIn(k, domain.FlowRefused, 7), Readable: true, Epoch: 3}, nil, domain.VerdictRollback, false},
		"absent at its epoch":     {port.CheckReply{Readable: true, Epoch: 3}, nil, domain.VerdictCommit, true},
		"absent after a rebuild":  {port.CheckReply{Readable: true, Epoch: 4}, nil, domain.VerdictCommit, false},
		"absent, gate rewound":    {port.CheckReply{Epoch: 3}, nil, domain.VerdictCommit, false},
		"gate out of reach":       {port.CheckReply{}, domain.ErrUnavailable, domain.VerdictUnknown, false},
		"alive in a rewound gate": {port.CheckReply{Flow: flowIn(k, domain.FlowDeducted, 7)}, nil, domain.VerdictCommit, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := resolveWith(t)
			p.checks(c.reply, c.err)
			if got := p.resolve.Resolve(t.Context(), batchOf(itemOf(k))); got != c.want {
				t.Errorf("verdict %s, want %s", got, c.want)
			}
			if p.suspects.has("p") != c.suspect {
				t.Errorf("suspected %v, want %v", p.suspects.products(), c.suspect)
			}
		})
	}
}

func TestCheckBackOfThePlainFormWritesATombstoneAtTheGateFirst(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	for name, c := range map[string]struct {
		stands  domain.OrderStatus
		want    domain.Verdict
		suspect bool
	}{
		"rejected now":      {domain.OrderRejected, domain.VerdictRollback, false},
		"confirmed already": {domain.OrderConfirmed, domain.VerdictCommit, true},
		"cancelled already": {domain.OrderCancelled, domain.VerdictRollback, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := resolveWith(t)
			p.checks(port.CheckReply{Readable: true, Epoch: 3}, nil)
			row := orderIn(k, c.stands)
			decide := p.ledger.EXPECT().Decide(gomock.Any(), gomock.Any()).DoAndReturn(func(_ context.Context, claims []port.FateClaim) ([]domain.Order, error) {
				if len(claims) != 1 || claims[0].Key != k || claims[0].Status != domain.OrderRejected || claims[0].Epoch != 0 {
					t.Errorf("claims %+v", claims)
				}
				return []domain.Order{row}, nil
			}).After(p.refuses(t, k, port.AdoptRefused))
			p.gate.EXPECT().Tell(gomock.Any(), []domain.Fate{row.Fate()}).Return([]port.TellOutcome{port.TellDone}).After(decide)
			if got := p.resolve.Resolve(t.Context(), plainOf(k)); got != c.want {
				t.Errorf("verdict %s, want %s", got, c.want)
			}
			if p.suspects.has("p") != c.suspect {
				t.Errorf("suspected %v, want %v", p.suspects.products(), c.suspect)
			}
		})
	}
}

// Between the look and the tombstone a buyer may have bought with the token, and been told so.
func TestCheckBackOfThePlainFormLeavesAPurchaseAlone(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	for outcome, want := range map[port.AdoptOutcome]domain.Verdict{port.AdoptHeld: domain.VerdictCommit,
		port.AdoptWait: domain.VerdictUnknown, port.AdoptUnknown: domain.VerdictUnknown} {
		p := resolveWith(t)
		p.checks(port.CheckReply{Readable: true, Epoch: 3}, nil)
		p.refuses(t, k, outcome)
		if got := p.resolve.Resolve(t.Context(), plainOf(k)); got != want {
			t.Errorf("outcome %d: verdict %s, want %s", outcome, got, want)
		}
	}
}

func TestCheckBackOfThePlainFormWithoutATombstone(t *testing.T) {
	t.Parallel()
	k := keyIn("p", "t")
	for name, c := range map[string]struct {
		reply port.CheckReply
		err   error
		want  domain.Verdict
	}{
		"alive":             {port.CheckReply{Flow: flowIn(k, domain.FlowDeducted, 7), Readable: true}, nil, domain.VerdictCommit},
		"dead":              {port.CheckReply{Flow: flowIn(k, domain.FlowRefused, 7), Readable: true}, nil, domain.VerdictRollback},
		"gate has no word":  {port.CheckReply{}, nil, domain.VerdictUnknown},
		"gate out of reach": {port.CheckReply{}, domain.ErrUnavailable, domain.VerdictUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := resolveWith(t)
			p.checks(c.reply, c.err)
			if got := p.resolve.Resolve(t.Context(), plainOf(k)); got != c.want {
				t.Errorf("verdict %s, want %s", got, c.want)
			}
		})
	}
}

func TestCheckBackTellsNothingWhenTheTombstonesRowFailed(t *testing.T) {
	t.Parallel()
	p := resolveWith(t)
	p.checks(port.CheckReply{Readable: true, Epoch: 3}, nil)
	p.refuses(t, keyIn("p", "t"), port.AdoptRefused)
	p.ledger.EXPECT().Decide(gomock.Any(), gomock.Any()).Return(nil, domain.ErrUnavailable)
	if got := p.resolve.Resolve(t.Context(), plainOf(keyIn("p", "t"))); got != domain.VerdictUnknown {
		t.Errorf("verdict %s", got)
	}
}

func TestCheckBackOfOtherKinds(t *testing.T) {
	t.Parallel()
	p := resolveWith(t)
	first := p.barriers.EXPECT().BarrierPlaces(gomock.Any(), "b-1").Return(nil, nil)
	p.barriers.EXPECT().MarkBarrier(gomock.Any(), "b-1", "check-first").Return(nil)
	p.barriers.EXPECT().BarrierPlaces(gomock.Any(), "b-1").Return([]string{"check-first"}, nil).After(first)
	p.barriers.EXPECT().MarkBarrier(gomock.Any(), "b-1", "check").Return(nil)
	p.barriers.EXPECT().BarrierPlaces(gomock.Any(), "b-2").Return([]string{"check-first"}, nil)
	p.barriers.EXPECT().MarkBarrier(gomock.Any(), "b-2", "check").Return(domain.ErrUnavailable)
	p.barriers.EXPECT().BarrierPlaces(gomock.Any(), "b-5").Return(nil, domain.ErrUnavailable)
	for _, c := range []struct {
		batch domain.Batch
		want  domain.Verdict
	}{
		{domain.Batch{ID: "b-1", Kind: domain.BatchBarrier}, domain.VerdictUnknown}, // asked about twice
		{domain.Batch{ID: "b-1", Kind: domain.BatchBarrier}, domain.VerdictCommit},
		{domain.Batch{ID: "b-5", Kind: domain.BatchBarrier}, domain.VerdictUnknown},
		{domain.Batch{ID: "b-2", Kind: domain.BatchBarrier}, domain.VerdictUnknown},
		{domain.Batch{ID: "b-3", Kind: domain.BatchWarmup}, domain.VerdictRollback},
		{domain.Batch{ID: "b-4"}, domain.VerdictUnknown},
	} {
		if got := p.resolve.Resolve(t.Context(), c.batch); got != c.want {
			t.Errorf("%s of %s: verdict %s, want %s", c.batch.ID, c.batch.Kind, got, c.want)
		}
	}
}
