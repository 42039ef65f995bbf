package fates

import "seckill/test/model/explore"

type world struct {
	rules  Rules
	faults Faults
	buyers int
}

// World is two or three buyers and one unit; an addition makes it two.
func World(rules Rules, faults Faults, buyers int) explore.World[state] {
	w := world{rules, faults, buyers}
	return explore.World[state]{
		Start:  state{stock: 1, total: 1, gate: gate{remaining: 1}},
		Next:   w.next,
		Always: w.always,
		Rest:   w.rest,
		Alike:  w.inOrder,
	}
}

// inOrder sorts the buyers: they are alike in everything but their state.
func (w world) inOrder(s state) state {
	for i := 1; i < w.buyers; i++ {
		for j := i; j > 0 && s.buyer(j) < s.buyer(j-1); j-- {
			s.swap(j, j-1)
		}
	}
	return s
}

func (w world) next(s state, m *explore.Moves[state]) {
	for b := range w.buyers {
		w.ask(s, b, m)
		w.deliver(s, b, m)
		w.takeTells(s, b, m)
		w.relay(s, b, m)
		w.tellAgain(s, b, m)
		w.cancel(s, b, m)
		w.expire(s, b, m)
	}
	w.batch(s, m)
	w.add(s, m)
	w.fallback(s, m)
	w.rebuild(s, m)
}

// wrote is the end of a script that changed something.
func (w world) wrote(s *state, deduct bool) {
	if w.rules.Identity {
		return
	}
	if w.rules.EveryWrite || deduct {
		s.gate.sequence++
	}
	if !s.rewound {
		s.seen = max(s.seen, s.gate.sequence)
	}
}

// ask is a purchase, or the same token again.
func (w world) ask(s state, b int, m *explore.Moves[state]) {
	if s.asked[b] > w.faults.Again || s.rewound {
		return
	}
	t := s
	t.asked[b]++
	switch {
	case s.gate.flow[b] == deducted || s.gate.flow[b] == settled:
		t.yes[b], t.no[b] = true, false
		m.May(t, "b%d asks again: it has its order", b)
	case s.gate.flow[b] == released:
		t.no[b] = true
		m.May(t, "b%d asks again: over for good", b)
	case s.suspected: // shut: ask again
	case s.gate.remaining <= 0:
		t.no[b], t.lied[b] = true, s.yes[b]
		m.May(t, "b%d asks: not enough", b)
	default:
		w.deduct(t, b, m)
	}
}

func (w world) deduct(t state, b int, m *explore.Moves[state]) {
	t.gate.remaining--
	t.deductions[b]++
	t.gate.flow[b], t.gate.deduction[b] = deducted, t.deductions[b]
	w.wrote(&t, true)
	if t.deaths < w.faults.Deaths {
		u := t
		u.deaths++
		u.no[b] = false // no answer came
		m.May(u, "b%d: deduction %d, and the instance dies before the send", b, t.deductions[b])
	}
	t.messages[b] |= bit(t.deductions[b])
	t.yes[b], t.no[b] = true, false
	t.lied[b] = t.lied[b] || t.row[b].final()
	m.May(t, "b%d: deduction %d, sent, accepted", b, t.deductions[b])
}

// apply is the consumer's transaction for one flow.
func (w world) apply(s *state, b int, deduction int8) {
	switch {
	case s.row[b] != none:
		if w.rules.MeetTells {
			s.say(b)
		}
		return
	case s.stock > 0:
		s.stock--
		s.version++
		s.row[b] = confirmed
	default: // the guard: the gate had too much
		s.row[b], s.suspected = rejected, true
	}
	s.rowVersion[b], s.rowDeduction[b], s.untold[b] = s.version, deduction, true
	s.say(b)
}

// say puts the row's fate on its way.
func (s *state) say(b int) {
	if t := (tell{s.row[b], s.rowVersion[b]}); t.row == confirmed {
		s.confirming[b] = t
	} else {
		s.ending[b] = t
	}
}

func (w world) deliver(s state, b int, m *explore.Moves[state]) {
	if s.together {
		return
	}
	for d := int8(1); d <= s.deductions[b]; d++ {
		if s.messages[b]&bit(d) == 0 {
			continue
		}
		t := s
		t.messages[b] &^= bit(d)
		w.apply(&t, b, d)
		m.Must(t, "deduction %d of b%d applied: row %v, stock %d, version %d", d, b, t.row[b], t.stock, t.version)
		if s.duplicates < w.faults.Duplicates {
			t.duplicates++
			t.messages[b] |= bit(d)
			m.May(t, "deduction %d of b%d applied, and comes again: row %v, stock %d, version %d", d, b, t.row[b], t.stock, t.version)
		}
	}
}

func (w world) batch(s state, m *explore.Moves[state]) {
	t := s
	if !s.together {
		if w.faults.Batch && s.messages[0] != 0 && s.messages[1] != 0 { // of two buyers
			t.together = true
			m.May(t, "both flows travel in one message")
		}
		return
	}
	t.together = false
	for b := range w.buyers {
		for d := int8(1); d <= s.deductions[b]; d++ {
			if s.messages[b]&bit(d) != 0 {
				w.apply(&t, b, d)
			}
		}
		t.messages[b] = 0
	}
	m.Must(t, "the batch is applied: rows %v, stock %d, version %d", t.row, t.stock, t.version)
}

// move is the settling table.
func (w world) move(s *state, b int, t tell) {
	g := &s.gate
	newer := !w.rules.Base || t.version > g.base
	switch f := g.flow[b]; {
	case t.row == confirmed && f == deducted:
		g.flow[b] = settled
	case t.row == confirmed && f == absent:
		g.flow[b], g.deduction[b] = settled, s.rowDeduction[b]
		if !newer { // the rebuild has counted it
			break
		}
		if g.remaining == 0 { // units sold that were not there
			s.suspected = true
			break
		}
		g.remaining--
	case t.row.final() && f == deducted:
		g.flow[b] = released
		g.remaining++
	case t.row == reversed && f == settled && w.rules.Reverse:
		g.flow[b] = released
		if newer {
			g.remaining++
		}
	case (t.row == cancelled || t.row == rejected) && f == settled:
		s.suspected = true
	case t.row.final() && f == absent:
		g.flow[b] = released
	default:
		return
	}
	w.wrote(s, false)
}

// takeTells lets the gate take what is on its way, in any order, or lets it get lost. A gate that has fallen
// back takes nothing: the tell comes late, or again.
func (w world) takeTells(s state, b int, m *explore.Moves[state]) {
	take := func(on *tell, t *state) {
		tell := *on
		if tell.row == none {
			return
		}
		*on = fateless
		if s.losses < w.faults.Losses {
			u := *t
			u.losses++
			m.May(u, "b%d: tell %v is lost", b, tell.row)
		}
		if s.rewound {
			return
		}
		w.move(t, b, tell)
		if tell.row == s.row[b] { // acknowledged, unless the fate has changed since
			t.untold[b] = false
		}
		m.Must(*t, "b%d: told %v of version %d, flow %v, %d left", b, tell.row, tell.version, t.gate.flow[b], t.gate.remaining)
	}
	t, u := s, s
	take(&t.confirming[b], &t)
	take(&u.ending[b], &u)
}

var fateless tell

// relay finishes open flows of products on sale: by their row, or by sending them again.
func (w world) relay(s state, b int, m *explore.Moves[state]) {
	if s.suspended() || s.gate.flow[b] != deducted || s.messages[b] != 0 {
		return
	}
	t := s
	if s.row[b] == none {
		t.messages[b] |= bit(s.gate.deduction[b])
		m.Must(t, "the relay sends deduction %d of b%d", s.gate.deduction[b], b)
	} else if w.rules.MeetTells {
		t.say(b)
		m.Must(t, "the relay tells b%d's fate", b)
	}
}

func (w world) tellAgain(s state, b int, m *explore.Moves[state]) {
	if !w.rules.Outbox || !s.untold[b] || s.rewound {
		return
	}
	t := s
	t.say(b)
	m.Must(t, "b%d's fate is told again", b)
}

// cancel writes its row first: cancelled from birth, or the confirmed order turned.
func (w world) cancel(s state, b int, m *explore.Moves[state]) {
	if !w.faults.Cancel || s.wished[b] {
		return
	}
	t := s
	t.wished[b], t.untold[b] = true, true
	switch {
	case s.row[b] == none && s.gate.flow[b] == deducted && !s.rewound:
		t.row[b], t.rowVersion[b] = cancelled, s.version
	case s.row[b] == confirmed:
		t.stock++
		t.version++
		t.row[b], t.rowVersion[b] = reversed, t.version
	default:
		return
	}
	t.say(b)
	m.May(t, "b%d cancels: row %v, stock %d, version %d", b, t.row[b], t.stock, t.version)
}

func (w world) expire(s state, b int, m *explore.Moves[state]) {
	if w.rules.Keep || !w.faults.Expiry || s.gate.flow[b] != settled || s.messages[b] != 0 || s.confirming[b] != fateless {
		return
	}
	t := s
	t.gate.flow[b] = absent
	m.May(t, "b%d's flow expires", b)
}

// add is an addition: its row and the stock first, then the tell, known to the gate by its id.
func (w world) add(s state, m *explore.Moves[state]) {
	t := s
	if w.faults.Addition && s.addition == 0 {
		t.stock++
		t.total++
		t.version++
		t.addition, t.additionUntold, t.tellAddition = t.version, true, true
		m.May(t, "a unit is added: stock %d, version %d", t.stock, t.version)
		return
	}
	if s.tellAddition && s.losses < w.faults.Losses {
		u := s
		u.losses++
		u.tellAddition = false
		m.May(u, "the tell of the addition is lost")
	}
	if s.tellAddition && !s.rewound {
		t.tellAddition, t.additionUntold = false, false
		if !s.gate.added {
			t.gate.added = true
			if !w.rules.Base || s.addition > s.gate.base {
				t.gate.remaining++
			}
			w.wrote(&t, false)
		}
		m.Must(t, "told of the addition, %d left", t.gate.remaining)
	}
	if w.rules.Outbox && s.additionUntold && !s.tellAddition && !s.rewound {
		t = s
		t.tellAddition = true
		m.Must(t, "the addition is told again")
	}
}

// fallback is noticed by identity, or by a sequence below one that was seen.
func (w world) fallback(s state, m *explore.Moves[state]) {
	if s.falls == w.faults.Fallbacks {
		return
	}
	t := s
	if !s.copied {
		t.copied, t.replica = true, s.gate
		m.May(t, "a replica has a copy: flows %v, %d left", s.gate.flow, s.gate.remaining)
	} else if s.gate != s.replica {
		t.gate, t.copied, t.replica = s.replica, false, gate{}
		t.falls++
		t.rewound = s.rewound || w.rules.Identity || t.gate.sequence < s.seen
		m.May(t, "Redis falls back: flows %v, %d left, noticed %v", t.gate.flow, t.gate.remaining, t.rewound)
	}
}

// rebuild comes when no message is left. Tells and cancels may be on their way, and open flows without a
// row stay open: their units are not for sale.
func (w world) rebuild(s state, m *explore.Moves[state]) {
	if !s.suspended() || s.together || s.messages != [buyersMax]int8{} {
		return
	}
	t := s
	g := &t.gate
	g.remaining, g.base = s.stock, s.version
	for b := range w.buyers {
		switch f := s.gate.flow[b]; {
		case s.row[b] == none:
			if f == deducted {
				g.remaining = max(0, g.remaining-1)
			}
			continue
		case !w.rules.WriteBack && (f == absent || f == deducted):
			continue
		case s.row[b] == confirmed:
			g.flow[b], g.deduction[b] = settled, s.rowDeduction[b]
		default:
			g.flow[b] = released
		}
		t.untold[b] = false // what is written back is told
	}
	if s.addition != 0 && w.rules.Base {
		g.added, t.additionUntold = true, false
	}
	if !w.rules.Identity {
		g.sequence = max(s.seen, g.sequence) + 1
		t.seen = g.sequence
	}
	t.version++ // of the reopening
	t.rewound, t.suspected = false, false
	m.Must(t, "rebuilt: flows %v, %d left, base version %d", g.flow, g.remaining, g.base)
}

func (w world) always(s state, report func(string)) {
	sold := int8(0)
	for b := range w.buyers {
		if s.row[b] == confirmed {
			sold++
		}
		if s.lied[b] {
			report(Contradiction)
		}
	}
	if s.stock < 0 || s.stock+sold != s.total {
		report(Oversold)
	}
	if s.gate.remaining < 0 {
		report(BelowZero)
	}
}

func (w world) rest(s state, report func(string)) {
	for b := range w.buyers {
		if s.gate.flow[b] == deducted {
			report(StaysOpen)
		}
		if s.yes[b] && s.row[b] == none {
			report(Vanished)
		}
		if s.yes[b] && s.row[b] == rejected {
			report(Rejected)
		}
		if s.no[b] && s.row[b] == confirmed {
			report(Ghost)
		}
	}
	switch {
	case s.suspended():
		report(StaysShut)
	case s.gate.remaining > s.stock:
		report(Above)
	case s.gate.remaining < s.stock:
		report(Below)
	}
}
