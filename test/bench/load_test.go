package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/application"
)

func TestASteadyRateSaysWhenEachRequestIsDue(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	turn := newTurns(crowd{rate: 4, window: time.Second}, began)
	for n, want := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond} {
		i, intended, more := turn.take(began.Add(10 * time.Second)) // late by much: still due then
		if i != int64(n) || !more || intended.Sub(began) != want {
			t.Errorf("%d: %d at %v, %v", n, i, intended.Sub(began), more)
		}
	}
	if _, _, more := turn.take(began); more {
		t.Error("the fifth of four is past the window")
	}
}

func TestAClosedLoopEndsByTimeOrCount(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	byTime := newTurns(crowd{window: time.Second}, began)
	if _, at, more := byTime.take(began.Add(999 * time.Millisecond)); !more || at != began.Add(999*time.Millisecond) {
		t.Error("within the window")
	}
	if _, _, more := byTime.take(began.Add(time.Second)); more {
		t.Error("after the window")
	}
	byCount := newTurns(crowd{count: 3, distinct: 2}, began)
	for _, want := range []int64{0, 1, 0} {
		if n, _, more := byCount.take(began.Add(time.Hour)); n != want || !more {
			t.Error(n, more)
		}
	}
	if _, _, more := byCount.take(began); more {
		t.Error("a fourth of three")
	}
}

func TestConnectionsAreCountedTogether(t *testing.T) {
	t.Parallel()
	a, b := loaded{latency: newLatency()}, loaded{latency: newLatency()}
	for _, status := range []int{202, 200, 409, 503, 429, 0} {
		a.count(status)
	}
	b.count(202)
	a.took(10 * time.Millisecond)
	b.took(30 * time.Millisecond)
	all := together([]loaded{a, b, {}}, 2*time.Second)
	if all.accepted != 3 || all.refused != 1 || all.unknown != 3 || all.perSecond() != 1.5 {
		t.Errorf("%+v", all)
	}
	if all.p50() < 9.9 || all.p50() > 10.1 || all.p99() < 29.9 || all.p99() > 30.1 {
		t.Error(all.p50(), all.p99())
	}
}

func TestASteadyLoadEndsWithItsFirstError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	if _, err := steadily(t.Context(), 1000, 4, time.Hour, func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	seen, err := steadily(t.Context(), 1000, 4, 50*time.Millisecond, func(context.Context) error { return nil })
	if err != nil || seen.TotalCount() != 50 {
		t.Error(seen.TotalCount(), err)
	}
}

func TestASaleIsWorkedOutOfCounters(t *testing.T) {
	t.Parallel()
	before := application.PipelineView{AppliedRows: 100, AppliedGroups: 1, Batches: 1, BatchedCommands: 10, SentBatches: 1, SentFlows: 10}
	after := application.PipelineView{AppliedRows: 900, AppliedGroups: 5, Batches: 11, BatchedCommands: 1010, SentBatches: 6, SentFlows: 1010}
	got := soldBetween(loaded{accepted: 1000, seconds: 2}, before, after, 2*time.Second)
	if got.accepted != 500 || got.rows != 400 || got.backlog != 0.4 || got.deductMean != 100 || got.sentBatch != 200 || got.sentRate != 2.5 || got.group != 200 {
		t.Errorf("%+v", got)
	}
	after.AppliedRows = 2000 // also what was on its way before
	if got := soldBetween(loaded{accepted: 1000, seconds: 2}, before, after, 2*time.Second); got.backlog != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAnInsertionHoldsEveryRow(t *testing.T) {
	t.Parallel()
	statement, values := insertion("t (a,b)", [][]any{{1, 2}, {3, 4}, {5, 6}})
	if statement != "INSERT INTO t (a,b) VALUES (?,?),(?,?),(?,?)" || len(values) != 6 || values[5] != 6 {
		t.Error(statement, values)
	}
	orders, flows := (&rawWriter{product: "p", group: 3}).rows()
	if len(orders) != 3 || len(flows) != 3 || len(orders[0]) != 15 || len(flows[0]) != 8 {
		t.Error(len(orders), len(flows))
	}
}

func TestUsedMemoryIsReadFromRedisWords(t *testing.T) {
	t.Parallel()
	if n, err := parseUsedMemory("# Memory\r\nused_memory_human:1M\r\nused_memory:1048576\r\n"); n != 1<<20 || err != nil {
		t.Error(n, err)
	}
	if _, err := parseUsedMemory("# Memory\r\n"); err == nil {
		t.Error("nothing was read as a number")
	}
}
