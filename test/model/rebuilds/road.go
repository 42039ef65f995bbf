package rebuilds

import "seckill/test/model/explore"

// fail lets a rebuilder die, lose its connection, or be overtaken by the clock.
func (w world) fail(s state, i int, m *explore.Moves[state]) {
	me, name := s.rebuilder[i], int8(i)+1
	if me.stage != idle && s.deaths < w.faults.Deaths {
		t := s
		t.deaths++
		t.end(i)
		m.May(t, "rebuilder %d dies at stage %v", i, me.stage)
	}
	if s.lock == name && s.cuts < w.faults.Cuts {
		t := s
		t.cuts++
		t.lock = 0
		m.May(t, "rebuilder %d is paused: its connection and its lock are gone", i)
	}
	if s.lease != name {
		return
	}
	t := s
	t.lease = 0
	if me.stage < taken { // its holder has died, or is somewhere else by now
		m.Must(t, "the lease of rebuilder %d runs out", i)
	} else if s.expiries < w.faults.Expiries {
		t.expiries++
		m.May(t, "the lease of rebuilder %d runs out under it", i)
	}
}

// end takes a rebuilder off the road; its lease has to run out.
func (s *state) end(i int) {
	s.rebuilder[i] = rebuilder{}
	s.unlock(i)
}

func (s *state) unlock(i int) {
	if s.lock == int8(i)+1 {
		s.lock = 0
	}
}

// again begins an attempt of its own under another epoch, without another drain.
func (s *state) again(i int) {
	s.rebuilder[i] = rebuilder{stage: drained, drainedUnder: s.rebuilder[i].drainedUnder}
	s.unlock(i)
}

// rebuild is a rebuilder's next step.
func (w world) rebuild(s state, i int, m *explore.Moves[state]) {
	t := s
	me := &t.rebuilder[i]
	switch s.rebuilder[i].stage {
	case idle:
		if !s.suspended && !w.wrong(s) {
			return
		}
		t.suspended, t.gate.shut = true, true
		*me = rebuilder{stage: draining, drainedUnder: s.epoch}
		m.Must(t, "rebuilder %d suspends, epoch %d", i, s.epoch)
	case draining:
		w.drain(s, i, m)
	case drained:
		w.take(s, i, m)
	case taken:
		w.prepare(s, i, m)
	case prepared:
		me.rows, me.stage = s.row, paged
		m.Must(t, "rebuilder %d reads rows %v", i, s.row)
	case paged:
		w.writePage(s, i, m)
	case unlocked:
		w.lock(s, i, m)
	case locked:
		w.count(s, i, m)
	case counted:
		w.write(s, i, m)
	case written:
		w.commit(s, i, m)
	case committed:
		w.reopen(s, i, m)
	case reopened:
		if s.gate.epoch == me.epoch && s.gate.building == 0 && !s.elsewhere() {
			t.gate.shut = false
		}
		t.end(i)
		m.Must(t, "rebuilder %d opens the gate: shut %v", i, t.gate.shut)
	}
}

// drain is perfect but for a message that is late, and one that is parked.
func (w world) drain(s state, i int, m *explore.Moves[state]) {
	for b, onItsWay := range s.message {
		waitedFor := (b != lostBuyer || !s.late) && (b != openBuyer || !w.faults.Parked)
		if onItsWay && waitedFor {
			return
		}
	}
	t := s
	t.rebuilder[i].stage = drained
	m.Must(t, "rebuilder %d: drained", i)
}

// take raises the epoch in the database and takes the lease.
func (w world) take(s state, i int, m *explore.Moves[state]) {
	t := s
	me := &t.rebuilder[i]
	switch {
	case !s.suspended || w.rules.Lease && s.lease != 0 && s.lease != int8(i)+1:
		t.end(i)
		m.Must(t, "rebuilder %d: another one's turn", i)
		return
	case !w.rules.OwnEpoch:
		me.stage = taken
		m.Must(t, "rebuilder %d begins", i)
		return
	}
	other := w.rules.SameSuspension && me.drainedUnder != s.epoch
	if !other || !w.rules.CompareFirst {
		t.epoch++
		t.lease = int8(i) + 1
	}
	if other {
		t.end(i)
		m.Must(t, "rebuilder %d: epoch %d, another attempt came between", i, t.epoch)
		return
	}
	me.stage, me.epoch, me.drainedUnder = taken, t.epoch, t.epoch
	m.Must(t, "rebuilder %d takes epoch %d", i, t.epoch)
}

// prepare shuts and marks the gate, and takes it over to the server that answers.
func (w world) prepare(s state, i int, m *explore.Moves[state]) {
	t := s
	me := &t.rebuilder[i]
	if w.rules.OwnEpoch && (s.gate.epoch >= me.epoch || s.gate.building > me.epoch) {
		t.again(i)
		m.Must(t, "rebuilder %d: the gate is another attempt's", i)
		return
	}
	t.gate.shut, t.gate.server = true, s.server
	t.gate.building = max(me.epoch, 1)
	t.gate.sequence++
	me.stage = prepared
	m.Must(t, "rebuilder %d prepares the gate", i)
}

// mine says whether the gate is still what the attempt made of it.
func (w world) mine(s state, i int) bool {
	me := s.rebuilder[i]
	return !s.elsewhere() && (!w.rules.OwnEpoch || s.gate.building == me.epoch && s.gate.epoch < me.epoch)
}

func (w world) writeBack(s *state, rows [buyers]row) {
	if !w.rules.WriteBack {
		return
	}
	for b, r := range rows {
		if r != none {
			s.gate.flow[b] = r.flow()
		}
	}
	s.gate.sequence++
}

func (w world) writePage(s state, i int, m *explore.Moves[state]) {
	t := s
	me := &t.rebuilder[i]
	if !w.mine(s, i) {
		t.again(i)
		m.Must(t, "rebuilder %d: the gate moved", i)
		return
	}
	if me.rows != ([buyers]row{}) {
		w.writeBack(&t, me.rows)
	}
	me.rows, me.stage = [buyers]row{}, unlocked
	m.Must(t, "rebuilder %d writes the rows back: flows %v", i, t.gate.flow)
}

// lock locks and reads the stock row.
func (w world) lock(s state, i int, m *explore.Moves[state]) {
	t := s
	me := &t.rebuilder[i]
	switch {
	case s.lock != 0:
		return
	case w.rules.OwnEpoch && (s.epoch != me.epoch || !s.suspended):
		t.again(i)
		m.Must(t, "rebuilder %d: the database is at another epoch", i)
		return
	case w.rules.LockHeld:
		t.lock = int8(i) + 1
	}
	me.stage, me.stock, me.version = locked, s.stock, s.version
	m.Must(t, "rebuilder %d locks: stock %d, version %d", i, s.stock, s.version)
}

// count writes late rows back and counts what is open without one.
func (w world) count(s state, i int, m *explore.Moves[state]) {
	t := s
	me := &t.rebuilder[i]
	if !w.mine(s, i) {
		t.again(i)
		m.Must(t, "rebuilder %d: the gate moved", i)
		return
	}
	if s.row != ([buyers]row{}) {
		w.writeBack(&t, s.row)
	}
	for b, f := range t.gate.flow {
		if f == deducted && s.row[b] == none {
			me.open++
		}
	}
	me.stage, me.sequence = counted, t.gate.sequence
	m.Must(t, "rebuilder %d: flows %v, %d open, sequence %d", i, t.gate.flow, me.open, me.sequence)
}

// write is the script with the numbers.
func (w world) write(s state, i int, m *explore.Moves[state]) {
	t := s
	me := &t.rebuilder[i]
	if !w.mine(s, i) || w.rules.Unmoved && s.gate.sequence != me.sequence {
		t.again(i)
		m.Must(t, "rebuilder %d: the gate moved", i)
		return
	}
	g := &t.gate
	g.remaining, g.base, g.building = max(0, me.stock-me.open), me.version, 0
	g.shut = w.rules.OpenLast
	if g.epoch++; w.rules.OwnEpoch {
		g.epoch = me.epoch
	}
	g.sequence++
	me.stage = written
	m.Must(t, "rebuilder %d writes: epoch %d, %d left, base version %d, shut %v", i, g.epoch, g.remaining, g.base, g.shut)
}

// commit ends the transaction of the lock.
func (w world) commit(s state, i int, m *explore.Moves[state]) {
	t := s
	t.unlock(i)
	switch {
	case w.rules.LockHeld && s.lock != int8(i)+1: // the connection is gone, and with it the commit
		t.again(i)
		m.Must(t, "rebuilder %d: nothing is committed", i)
	case w.rules.OneCommit:
		w.reopen(t, i, m)
	default:
		t.rebuilder[i].stage = committed
		m.Must(t, "rebuilder %d commits", i)
	}
}

// reopen is the database's word.
func (w world) reopen(s state, i int, m *explore.Moves[state]) {
	t := s
	me := &t.rebuilder[i]
	switch {
	case !w.rules.OwnEpoch:
		t.epoch = max(s.epoch, s.gate.epoch)
		me.epoch = s.gate.epoch
	case s.epoch != me.epoch || !s.suspended:
		t.again(i)
		m.Must(t, "rebuilder %d: not its epoch any more", i)
		return
	case s.lock != 0:
		return
	}
	t.suspended = false
	if t.lease == int8(i)+1 {
		t.lease = 0
	}
	if w.rules.RaiseVersion {
		t.version++
	}
	me.stage = reopened
	m.Must(t, "rebuilder %d reopens epoch %d, version %d", i, t.epoch, t.version)
}
