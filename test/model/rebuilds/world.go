package rebuilds

import "seckill/test/model/explore"

type world struct {
	rules  Rules
	faults Faults
}

// World is two units of a product that Redis has just half forgotten, two instances that notice, and three buyers.
func World(rules Rules, faults Faults) explore.World[state] {
	w := world{rules, faults}
	s := state{stock: 2, version: 1, epoch: 1, server: 1, late: faults.Late, gate: gate{epoch: 1, sequence: 1, remaining: 1}}
	s.gate.flow[openBuyer] = deducted
	s.message[lostBuyer], s.message[openBuyer] = true, true
	s.flowEpoch[lostBuyer], s.flowEpoch[openBuyer] = 1, 1
	s.yes[lostBuyer], s.yes[openBuyer] = faults.Told, true
	return explore.World[state]{Start: s, Next: w.next, Always: w.always, Rest: w.rest}
}

func (w world) next(s state, m *explore.Moves[state]) {
	if s.endless() {
		return
	}
	w.buy(s, m)
	w.cancel(s, m)
	w.consume(s, m)
	for b := range buyers {
		w.receive(s, b, m)
		w.takeTell(s, b, m)
		w.relay(s, b, m)
	}
	w.fallback(s, m)
	w.tick(s, m)
	for i := range rebuilders {
		w.fail(s, i, m)
		w.rebuild(s, i, m)
	}
}

// elsewhere says that the record is of another server than the one that answers.
func (s *state) elsewhere() bool { return s.gate.server != s.server }

// takes says whether the gate takes tells and, if it is not shut, gives units.
func (w world) takes(s state) bool { return !s.elsewhere() && (s.gate.building == 0 || !w.rules.Mark) }

// buy is the next new buyer's purchase.
func (w world) buy(s state, m *explore.Moves[state]) {
	b := newBuyer + int(s.asked)
	if b == buyers || b == secondBuyer && !w.faults.Second || s.gate.shut || s.gate.epoch < 2 || !w.takes(s) {
		return
	}
	t := s
	t.asked++
	if s.gate.remaining > 0 {
		t.gate.remaining--
		t.gate.sequence++
		t.gate.flow[b] = deducted
		t.message[b], t.yes[b], t.flowEpoch[b] = true, true, s.gate.epoch
	}
	m.May(t, "b%d asks: accepted %v, %d left", b, t.yes[b], t.gate.remaining)
}

func (w world) cancel(s state, m *explore.Moves[state]) {
	if !w.faults.Cancel || s.wished {
		return
	}
	t := s
	t.wished, t.tell[openBuyer] = true, true
	switch r := s.row[openBuyer]; {
	case r == none:
		t.row[openBuyer], t.rowVersion[openBuyer] = cancelled, s.version
		m.May(t, "b1 cancels before the consumer")
	case r == confirmed && s.lock == 0:
		t.stock++
		t.version++
		t.row[openBuyer], t.rowVersion[openBuyer] = reversed, t.version
		m.May(t, "b1 cancels its order: stock %d, version %d", t.stock, t.version)
	}
}

// receive begins the consumer's transaction for a message.
func (w world) receive(s state, b int, m *explore.Moves[state]) {
	if !s.message[b] || s.consumer != (transaction{}) || b == openBuyer && w.faults.Parked {
		return
	}
	t := s
	t.consumer = transaction{int8(b) + 1, s.suspended, s.epoch, s.version}
	add := m.Must
	if b == lostBuyer && s.late {
		t.late, add = false, m.May
	}
	add(t, "the consumer reads for b%d: suspended %v, epoch %d, version %d", b, s.suspended, s.epoch, s.version)
}

// consume ends the consumer's transaction.
func (w world) consume(s state, m *explore.Moves[state]) {
	read := s.consumer
	if read.buyer == 0 {
		return
	}
	b := int(read.buyer) - 1
	t := s
	t.consumer = transaction{}
	straggler := w.rules.AdoptFirst && s.flowEpoch[b] < read.epoch && s.adopted[b] != read.epoch && (!read.suspended || !w.rules.DrainPast)
	switch {
	case s.row[b] != none:
		t.message[b], t.tell[b] = false, true
		m.Must(t, "b%d's row is met", b)
	case straggler:
		w.adopt(s, t, b, m)
	case s.lock != 0: // waits for it
	case s.version != read.version:
		m.Must(t, "b%d: the version moved, read again", b)
	default:
		t.rowVersion[b] = s.version
		t.row[b] = rejected
		if s.stock > 0 {
			t.stock--
			t.version++
			t.row[b], t.rowVersion[b] = confirmed, t.version
		} else { // the gate had too much
			t.suspended = true
		}
		t.message[b], t.tell[b] = false, true
		m.Must(t, "b%d applied: row %v, stock %d, version %d", b, t.row[b], t.stock, t.version)
	}
}

// adopt asks the gate for a straggler's units. t is the state in which the message comes again.
func (w world) adopt(s, t state, b int, m *explore.Moves[state]) {
	switch {
	case s.adopted[b] != 0: // by a gate that has been rebuilt since
		t.adopted[b] = 0
		m.Must(t, "b%d: adopted under an older epoch, once more", b)
	case s.gate.shut || !w.takes(s):
		m.Must(t, "b%d: the gate is not open, the message waits", b)
	case s.gate.flow[b].alive():
		t.adopted[b] = s.gate.epoch
		m.Must(t, "b%d: the gate holds its units", b)
	case s.gate.flow[b] == released || s.gate.remaining == 0:
		t.row[b], t.rowVersion[b] = rejected, s.version
		t.message[b], t.tell[b] = false, true
		m.Must(t, "b%d: no room, rejected", b)
	default:
		t.adopted[b] = s.gate.epoch
		t.gate.flow[b] = deducted
		t.gate.remaining--
		t.gate.sequence++
		m.Must(t, "b%d: adopted, %d left", b, t.gate.remaining)
	}
}

// takeTell is the settling table.
func (w world) takeTell(s state, b int, m *explore.Moves[state]) {
	if !s.tell[b] || !w.takes(s) {
		return
	}
	t := s
	t.tell[b] = false
	g := &t.gate
	newer := s.rowVersion[b] > g.base
	switch r, f := s.row[b], g.flow[b]; {
	case r == confirmed && f == deducted:
		g.flow[b] = settled
	case r == confirmed && f == absent:
		g.flow[b] = settled
		switch {
		case !newer:
		case g.remaining == 0:
			t.suspended, g.shut = true, true
		default:
			g.remaining--
		}
	case r == reversed && f == settled:
		g.flow[b] = released
		if newer {
			g.remaining++
		}
	case r != confirmed && f == deducted:
		g.flow[b] = released
		g.remaining++
	case r != confirmed && f == absent:
		g.flow[b] = released
	case r != confirmed && f == settled:
		t.suspended, g.shut = true, true
	}
	if t.gate != s.gate {
		g.sequence++
	}
	m.Must(t, "b%d told %v: flow %v, %d left", b, s.row[b], g.flow[b], g.remaining)
}

func (w world) relay(s state, b int, m *explore.Moves[state]) {
	if s.suspended || s.elsewhere() || s.gate.building > 0 || s.gate.flow[b] != deducted || s.message[b] || s.tell[b] {
		return
	}
	t := s
	if s.row[b] == none {
		t.message[b] = true
		m.Must(t, "the relay sends b%d", b)
		return
	}
	t.tell[b] = true
	m.Must(t, "the relay tells b%d's fate", b)
}

func (w world) fallback(s state, m *explore.Moves[state]) {
	if s.falls == w.faults.Falls {
		return
	}
	t := s
	if !s.copied {
		t.copied, t.replica = true, s.gate
		m.May(t, "a replica has a copy: epoch %d, sequence %d", s.gate.epoch, s.gate.sequence)
	} else if s.gate != s.replica {
		t.gate, t.copied, t.replica = s.replica, false, gate{}
		t.falls++
		t.server++
		m.May(t, "Redis falls back: epoch %d, sequence %d, %d left, shut %v", t.gate.epoch, t.gate.sequence, t.gate.remaining, t.gate.shut)
	}
}

// wrong is what any instance's watch sees of a product that the database calls open.
func (w world) wrong(s state) bool {
	return s.elsewhere() || s.gate.epoch < s.epoch || s.gate.building > 0
}

// tick opens a gate whose maker did not come to it.
func (w world) tick(s state, m *explore.Moves[state]) {
	if s.suspended || w.wrong(s) || !s.gate.shut || s.gate.epoch != s.epoch {
		return
	}
	t := s
	t.gate.shut = false
	m.Must(t, "a watch opens the gate of epoch %d", s.epoch)
}

func (w world) always(s state, report func(string)) {
	sold := int8(0)
	for b := range buyers {
		if s.row[b] == confirmed {
			sold++
		}
	}
	if s.stock < 0 || s.stock+sold != 2 {
		report(Oversold)
	}
	if s.gate.remaining < 0 {
		report(BelowZero)
	}
	for b := range buyers {
		switch {
		case !s.yes[b] || s.row[b] != rejected:
		case b < newBuyer:
			report(OldRejected)
		default:
			report(NewRejected)
		}
	}
	if s.endless() {
		report(EndlessRoad)
	}
}

func (w world) rest(s state, report func(string)) {
	if s.endless() {
		return
	}
	if s.suspended || s.gate.shut || !w.takes(s) {
		report(StaysShut)
		return
	}
	parked := int8(0)
	for b := range buyers {
		if s.yes[b] && s.row[b] == none && !s.message[b] {
			report(Vanished)
		}
		if s.gate.flow[b] == deducted && s.row[b] == none {
			parked++
		}
	}
	if s.late { // may still come
		return
	}
	if left := s.gate.remaining + parked; left > s.stock {
		report(Above)
	} else if left < s.stock {
		report(Below)
	}
}
