package domain_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"seckill/domain"
	"seckill/test/scale"
)

const (
	sequenceOps    = 50
	sequenceTokens = 6
	sequenceUnits  = 9
)

// sides is a gate and a ledger in the domain's own words: what is left, and a flow and a row for each token.
type sides struct {
	stock     domain.Stock
	remaining int64
	base      int64
	flows     [sequenceTokens]domain.FlowState
	rows      [sequenceTokens]domain.Fate
	told      []domain.Fate // every fate that was ever on its way
}

func (s *sides) quantity(i int) int64 { return int64(1 + i%3) }

func (s *sides) decide(t *rapid.T, i int, status domain.OrderStatus, fromBirth bool) {
	key, err := domain.NewKey("p", "u", fmt.Sprint("t", i))
	if err != nil {
		t.Fatal(err)
	}
	s.rows[i] = domain.Fate{Key: key, Quantity: s.quantity(i), Status: status, FromBirth: fromBirth, StockVersion: s.stock.Version()}
	s.told = append(s.told, s.rows[i])
}

func (s *sides) buy(i int) {
	if s.flows[i] == domain.FlowAbsent && s.rows[i].Status == domain.OrderAbsent && s.remaining >= s.quantity(i) {
		s.flows[i] = domain.FlowDeducted
		s.remaining -= s.quantity(i)
	}
}

func (s *sides) apply(t *rapid.T, i int) {
	if s.flows[i] != domain.FlowDeducted || s.rows[i].Status != domain.OrderAbsent {
		return
	}
	stock, err := s.stock.Deduct(s.quantity(i))
	if err != nil {
		t.Fatalf("the ledger has no room for what the gate gave: %v", err)
	}
	s.stock = stock
	s.decide(t, i, domain.OrderConfirmed, true)
}

func (s *sides) cancel(t *rapid.T, i int) {
	switch {
	case s.rows[i].Status == domain.OrderConfirmed:
		stock, err := s.stock.GiveBack(s.quantity(i))
		if err != nil {
			t.Fatal(err)
		}
		s.stock = stock
		s.decide(t, i, domain.OrderCancelled, false)
	case s.rows[i].Status == domain.OrderAbsent && s.flows[i] == domain.FlowDeducted:
		s.decide(t, i, domain.OrderCancelled, true)
	}
}

func (s *sides) tell(t *rapid.T, fate domain.Fate) {
	var i int
	if _, err := fmt.Sscanf(fate.Key.Token(), "t%d", &i); err != nil {
		t.Fatal(err)
	}
	move := fate.Move(s.flows[i], s.base, s.remaining)
	s.flows[i] = move.To
	s.remaining += move.Units
	if s.remaining < 0 || move.Suspect {
		t.Fatalf("%+v moved %+v, %d left", fate, move, s.remaining)
	}
}

// rebuild is what a gate is made of that forgot some flows: whatever has a row, and open flows that survived.
// Of those that have no row and are lost, the messages are through: they have one.
func (s *sides) rebuild(t *rapid.T, lost func() bool) {
	s.remaining, s.base = s.stock.Remaining(), s.stock.Version()
	for i := range s.flows {
		if s.rows[i].Status == domain.OrderAbsent && s.flows[i] == domain.FlowDeducted && lost() {
			s.apply(t, i)
			s.remaining, s.base = s.stock.Remaining(), s.stock.Version()
		}
	}
	for i := range s.flows {
		if s.rows[i].Status != domain.OrderAbsent {
			s.flows[i] = s.rows[i].Status.FlowState()
		} else if s.flows[i] == domain.FlowDeducted {
			s.remaining -= s.quantity(i)
		}
	}
}

// L1: after any sequence of purchases, rows, cancels, rebuilds and tells, in any order and as often as one
// likes, both sides come to the same count once the last fates have been told.
func TestBothSidesAgreeAfterAnySequence(t *testing.T) {
	t.Parallel()
	const each = 100 // what one rapid.Check tries
	full := mustStock(t, domain.StockFields{Product: "p", Total: sequenceUnits, Stock: sequenceUnits, State: domain.SaleOpen})
	for range scale.Count(t, 1_000, 100_000) / each {
		rapid.Check(t, func(t *rapid.T) {
			s := &sides{remaining: sequenceUnits, stock: full}
			for range sequenceOps {
				i := rapid.IntRange(0, sequenceTokens-1).Draw(t, "token")
				switch op := rapid.IntRange(0, 9).Draw(t, "operation"); {
				case op < 3:
					s.buy(i)
				case op < 5:
					s.apply(t, i)
				case op == 5:
					s.cancel(t, i)
				case op < 9 && len(s.told) > 0:
					s.tell(t, s.told[rapid.IntRange(0, len(s.told)-1).Draw(t, "fate")])
				case op == 9:
					s.rebuild(t, func() bool { return rapid.Bool().Draw(t, "lost") })
				}
			}
			for i := range s.flows {
				s.apply(t, i)
				if s.rows[i].Status != domain.OrderAbsent {
					s.tell(t, s.rows[i])
				}
			}
			if s.remaining != s.stock.Remaining() {
				t.Fatalf("the gate has %d left, the ledger %d", s.remaining, s.stock.Remaining())
			}
		})
	}
}
