package losses

import "seckill/test/model/explore"

const (
	buyers      = 3
	instances   = 2
	rebuildsMax = 4 // more than any number of faults here should need
)

// flow is what the gate knows of a buyer's token.
type flow int8

const (
	absent flow = iota
	deducted
	settled
	released
)

// row is the database's verdict.
type row int8

const (
	none row = iota
	confirmed
	rejected
)

// gate is the part of Redis that a replica copies.
type gate struct {
	epoch, sequence, remaining, base int8
	flow                             [buyers]flow
	server                           int8 // that the record was opened on
	shut                             bool
}

// memory is what an instance has seen; own is its newest flow's buyer + 1.
type memory struct{ epoch, sequence, own int8 }

type state struct {
	gate, replica   gate
	copied          bool
	falls, restarts int8
	server          int8 // that answers now
	memory          [instances]memory

	suspended             bool
	stock, version, epoch int8
	row                   [buyers]row
	rowVersion            [buyers]int8
	message, tell         [buyers]bool
	asked, yes            [buyers]bool
	rebuilds              int8
}

type world struct {
	rules  Rules
	faults Faults
	stock  int8
}

// World is three buyers, two instances and so many units.
func World(rules Rules, faults Faults, stock int8) explore.World[state] {
	w := world{rules, faults, stock}
	return explore.World[state]{
		Start:  state{stock: stock, version: 1, epoch: 1, gate: gate{epoch: 1, remaining: stock}},
		Next:   w.next,
		Always: w.always,
		Rest:   w.rest,
	}
}

func (w world) next(s state, m *explore.Moves[state]) {
	if s.rebuilds == rebuildsMax {
		return
	}
	for b := range buyers {
		for i := range instances {
			w.ask(s, b, i, m)
		}
		w.apply(s, b, m)
		w.tell(s, b, m)
		w.relay(s, b, m)
	}
	for i := range instances {
		w.tick(s, i, m)
		w.restart(s, i, m)
	}
	w.fallback(s, m)
	w.rebuild(s, m)
}

// rewound is the script's comparison of the record with its server and with the caller's memory.
func (w world) rewound(s state, i int) bool {
	g, seen := s.gate, s.memory[i]
	switch {
	case w.rules.Identity && g.server != s.server, g.epoch < seen.epoch:
		return true
	case g.epoch > seen.epoch && w.rules.EpochEnds:
		return false
	}
	return w.rules.Sequence && g.sequence < seen.sequence || w.rules.Own && seen.own > 0 && g.flow[seen.own-1] == absent
}

// ask is a purchase through one instance. Buyers are alike: they come in order.
func (w world) ask(s state, b, i int, m *explore.Moves[state]) {
	if s.asked[b] || b > 0 && !s.asked[b-1] || s.suspended {
		return
	}
	t := s
	g, seen := &t.gate, &t.memory[i]
	switch {
	case w.rewound(s, i):
		t.suspended, g.shut = true, true
		m.May(t, "b%d at i%d: rewound, suspended", b, i)
		return
	case s.gate.shut:
		return
	case s.gate.remaining <= 0:
		t.asked[b] = true
		w.remember(seen, *g)
		m.May(t, "b%d at i%d: not enough, which has seen sequence %d", b, i, seen.sequence)
		return
	}
	t.asked[b], t.yes[b], t.message[b] = true, true, true
	g.sequence++
	g.remaining--
	g.flow[b] = deducted
	w.remember(seen, *g)
	seen.own = int8(b) + 1
	m.May(t, "b%d at i%d: accepted at epoch %d, sequence %d, %d left", b, i, g.epoch, g.sequence, g.remaining)
}

func (w world) remember(seen *memory, g gate) {
	if g.epoch > seen.epoch && w.rules.EpochEnds {
		*seen = memory{}
	}
	seen.epoch, seen.sequence = g.epoch, max(seen.sequence, g.sequence)
}

func (w world) apply(s state, b int, m *explore.Moves[state]) {
	if !s.message[b] {
		return
	}
	t := s
	t.message[b], t.tell[b] = false, true
	switch {
	case s.row[b] != none:
	case s.stock > 0:
		t.stock--
		t.version++
		t.row[b], t.rowVersion[b] = confirmed, t.version
	default: // the guard: the gate had too much
		t.row[b], t.rowVersion[b] = rejected, s.version
		t.suspended = true
	}
	m.Must(t, "b%d applied: row %v, stock %d", b, t.row[b], t.stock)
}

// tell is the settling table. A record of another server takes nothing.
func (w world) tell(s state, b int, m *explore.Moves[state]) {
	if !s.tell[b] || w.rules.Identity && s.gate.server != s.server {
		return
	}
	t := s
	t.tell[b] = false
	g := &t.gate
	switch r, f := s.row[b], g.flow[b]; {
	case r == confirmed && f == deducted:
		g.flow[b] = settled
	case r == confirmed && f == absent:
		g.flow[b] = settled
		switch {
		case s.rowVersion[b] <= g.base:
		case w.rules.Floor && g.remaining == 0:
			t.suspended, g.shut = true, true
		default:
			g.remaining--
		}
	case r == rejected && f == deducted:
		g.flow[b] = released
		g.remaining++
	case r == rejected && f == absent:
		g.flow[b] = released
	case r == rejected && f == settled:
		t.suspended, g.shut = true, true
	}
	if w.rules.EveryWrite && *g != s.gate {
		g.sequence++
	}
	m.Must(t, "b%d told: flow %v, %d left", b, g.flow[b], g.remaining)
}

func (w world) relay(s state, b int, m *explore.Moves[state]) {
	if s.suspended || s.gate.flow[b] != deducted || s.message[b] || s.row[b] != none {
		return
	}
	t := s
	t.message[b] = true
	m.Must(t, "the relay sends b%d", b)
}

func (w world) tick(s state, i int, m *explore.Moves[state]) {
	if !w.rules.Tick || s.suspended || !w.rewound(s, i) {
		return
	}
	t := s
	t.suspended, t.gate.shut = true, true
	m.Must(t, "tick of i%d: rewound, suspended", i)
}

func (w world) restart(s state, i int, m *explore.Moves[state]) {
	if s.restarts == w.faults.Restarts {
		return
	}
	t := s
	t.restarts++
	t.memory[i] = memory{}
	m.May(t, "i%d restarts and remembers nothing", i)
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
		m.May(t, "Redis falls back to epoch %d, sequence %d, %d left, flows %v", t.gate.epoch, t.gate.sequence, t.gate.remaining, t.gate.flow)
	}
}

// rebuild comes when no message is left. Open flows without a row keep their units.
func (w world) rebuild(s state, m *explore.Moves[state]) {
	if !s.suspended || s.message != [buyers]bool{} {
		return
	}
	t := s
	t.rebuilds++
	t.suspended = false
	t.epoch++
	g := &t.gate
	*g = gate{epoch: t.epoch, sequence: g.sequence + 1, remaining: s.stock, base: s.version, flow: g.flow, server: s.server}
	for b := range buyers {
		switch {
		case s.row[b] == confirmed:
			g.flow[b] = settled
		case s.row[b] == rejected:
			g.flow[b] = released
		case g.flow[b] == deducted:
			g.remaining = max(0, g.remaining-1)
		}
	}
	t.version++ // of the reopening
	m.Must(t, "rebuilt: epoch %d, sequence %d, %d left, flows %v", g.epoch, g.sequence, g.remaining, g.flow)
}

func (w world) always(s state, report func(string)) {
	sold := int8(0)
	for b := range buyers {
		if s.row[b] == confirmed {
			sold++
		}
	}
	if s.stock < 0 || s.stock+sold != w.stock {
		report(Oversold)
	}
	if s.gate.remaining < 0 {
		report(BelowZero)
	}
	if s.rebuilds == rebuildsMax {
		report(EndlessRoad)
	}
}

func (w world) rest(s state, report func(string)) {
	if s.rebuilds == rebuildsMax {
		return
	}
	for b := range buyers {
		if s.yes[b] && s.row[b] == none {
			report(Vanished)
		}
		if s.yes[b] && s.row[b] == rejected {
			report(Rejected)
		}
	}
	switch {
	case s.suspended || s.gate.shut:
		report(StaysShut)
	case s.gate.remaining > s.stock:
		report(Above)
	case s.gate.remaining < s.stock:
		report(Below)
	}
}
