package purchase

import "seckill/test/model/explore"

// buyersMax is how many buyers a state has room for.
const buyersMax = 3

// flow is what the gate knows of a buyer's purchase.
type flow int8

const (
	absent flow = iota
	deducted
	settled
	released // also: a tombstone
)

// half is what the broker knows of a half message.
type half int8

const (
	never half = iota
	pending
	ended // committed or rolled back: the broker keeps no outcome, so a late commit is delivered
	lost
)

// row is the database's verdict.
type row int8

const (
	none row = iota
	confirmed
	cancelled // by its buyer
	rejected  // by the stock guard
)

// step is where the instance that serves a buyer stands.
type step int8

const (
	asks       step = iota
	sends           // deducted, and the half comes next
	verifies        // half stored, and the local transaction comes next
	commits         // the local transaction said commit
	rollsBack       // it said rollback
	sendFailed      // the send came back without a good status
	answers         // the buyer is told
	gone            // answered, or dead
)

func (s step) underWay() bool { return s > asks && s < gone }

// answer is what a buyer knows.
type answer int8

const (
	unknown answer = iota
	accepted
	refused
)

// repair is how far the repair that gives back has come with a flow.
type repair int8

const (
	notLooked repair = iota
	foundNoRow
	finished
)

// gate is the part of Redis that a replica copies.
type gate struct {
	remaining int8
	flow      [buyersMax]flow
}

type state struct {
	gate, replica gate
	copied, shut  bool
	fell          int8

	half     [buyersMax]half
	messages [buyersMax]int8 // on their way to the consumer
	at       [buyersMax]step
	told     [buyersMax]answer

	stock  int8
	row    [buyersMax]row
	tell   [buyersMax]bool // the consumer's tell is on its way
	repair [buyersMax]repair

	crash, duplicate, loss, tellLoss bool // already happened
}

type world struct {
	rules  Rules
	faults Faults
	buyers int
	stock  int8
}

// World is two or three buyers who ask once each for one of so many units.
func World(rules Rules, faults Faults, buyers int, stock int8) explore.World[state] {
	w := world{rules, faults, buyers, stock}
	return explore.World[state]{
		Start:  state{gate: gate{remaining: stock}, stock: stock},
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

// buyer packs all that a state says of one buyer.
func (s *state) buyer(b int) (packed int32) {
	for _, part := range [...]int8{int8(s.gate.flow[b]), int8(s.replica.flow[b]), int8(s.half[b]), s.messages[b],
		int8(s.at[b]), int8(s.told[b]), int8(s.row[b]), int8(s.repair[b])} {
		packed = packed<<3 | int32(part)
	}
	if s.tell[b] {
		packed = -packed - 1
	}
	return packed
}

func (s *state) swap(a, b int) {
	s.gate.flow[a], s.gate.flow[b] = s.gate.flow[b], s.gate.flow[a]
	s.replica.flow[a], s.replica.flow[b] = s.replica.flow[b], s.replica.flow[a]
	s.half[a], s.half[b] = s.half[b], s.half[a]
	s.messages[a], s.messages[b] = s.messages[b], s.messages[a]
	s.at[a], s.at[b] = s.at[b], s.at[a]
	s.told[a], s.told[b] = s.told[b], s.told[a]
	s.row[a], s.row[b] = s.row[b], s.row[a]
	s.tell[a], s.tell[b] = s.tell[b], s.tell[a]
	s.repair[a], s.repair[b] = s.repair[b], s.repair[a]
}

func (w world) next(s state, m *explore.Moves[state]) {
	for b := range w.buyers {
		w.serve(s, b, m)
		w.broker(s, b, m)
		w.consume(s, b, m)
		w.tell(s, b, m)
		w.relay(s, b, m)
		w.cancel(s, b, m)
		w.giveBack(s, b, m)
	}
	w.fallback(s, m)
	w.rebuild(s, m)
}

// serve is the instance's next step for a buyer.
func (w world) serve(s state, b int, m *explore.Moves[state]) {
	if w.faults.Crash && !s.crash && s.at[b].underWay() {
		t := s
		t.at[b], t.crash = gone, true
		m.May(t, "b%d: the instance dies", b)
	}
	switch s.at[b] {
	case asks:
		if w.rules.HalfFirst {
			w.sendHalf(s, b, m, gone, refused)
		} else {
			w.deduct(s, b, m, sends, gone)
		}
	case sends:
		w.sendHalf(s, b, m, sendFailed, unknown)
	case verifies:
		if w.rules.HalfFirst {
			w.deduct(s, b, m, commits, rollsBack)
		} else {
			w.verify(s, b, m)
		}
	case commits:
		w.commit(s, b, m)
	case rollsBack:
		t := s
		if t.half[b] == pending {
			t.half[b] = ended
		}
		t.at[b], t.told[b] = gone, refused
		m.Must(t, "b%d: rolled back, refused", b)
	case sendFailed:
		w.failed(s, b, m)
	case answers:
		t := s
		t.at[b], t.told[b] = gone, accepted
		m.Must(t, "b%d: told accepted", b)
	case gone:
	}
}

// deduct is the script. A gate that has fallen back answers nothing but "ask again".
func (w world) deduct(s state, b int, m *explore.Moves[state], taken, not step) {
	t := s
	if w.rules.Suspend && s.shut || s.gate.flow[b] == released || s.gate.remaining <= 0 {
		t.at[b], t.told[b] = not, refused
		m.Must(t, "b%d: not deducted", b)
		return
	}
	t.gate.remaining--
	t.gate.flow[b], t.at[b] = deducted, taken
	m.Must(t, "b%d: deducted, %d left", b, t.gate.remaining)
	if w.faults.Crash && !s.crash {
		t.at[b], t.crash = gone, true
		m.May(t, "b%d: deducted, and the reply is lost", b)
	}
}

// sendHalf stores the half; where the network fails, it is stored or not, and the sender cannot tell.
func (w world) sendHalf(s state, b int, m *explore.Moves[state], failed step, told answer) {
	t := s
	t.half[b], t.at[b] = pending, verifies
	m.Must(t, "b%d: half stored", b)
	if !w.faults.Network {
		return
	}
	t.at[b], t.told[b] = failed, told
	m.May(t, "b%d: half stored, and the acknowledgement is lost", b)
	t.half[b] = s.half[b]
	m.May(t, "b%d: half lost on its way", b)
}

// verify is the local transaction. What the gate does not have, it may have lost: unknown, and the check-back
// decides. The plain protocol rolls back.
func (w world) verify(s state, b int, m *explore.Moves[state]) {
	t := s
	switch f := s.gate.flow[b]; {
	case f == deducted || f == settled:
		t.at[b] = commits
	case f == absent && w.rules.Forward:
		t.at[b] = gone
	default:
		t.at[b] = rollsBack
	}
	m.Must(t, "b%d: local transaction, flow %v", b, s.gate.flow[b])
}

// commit is one-way: nobody learns that it was lost.
func (w world) commit(s state, b int, m *explore.Moves[state]) {
	t := s
	t.at[b] = answers
	if w.faults.Network {
		m.May(t, "b%d: commit lost", b)
	}
	late := t
	if s.half[b] == pending {
		t.half[b] = ended
		t.messages[b]++
	}
	m.Must(t, "b%d: committed", b)
	if s.half[b] == ended && s.messages[b] < 2 { // a check-back was faster
		late.messages[b]++
		m.Must(late, "b%d: committed once more", b)
	}
}

// failed answers after a send without a good status: the plain protocol undoes the deduct and refuses.
func (w world) failed(s state, b int, m *explore.Moves[state]) {
	t := s
	t.at[b] = gone
	if !w.rules.Arbiter {
		if t.gate.flow[b] == deducted {
			t.gate.flow[b] = released
			t.gate.remaining++
		}
		t.told[b] = refused
	}
	m.Must(t, "b%d: the send failed, told %v", b, t.told[b])
}

// broker checks back on halves that nobody ended, and may lose one.
func (w world) broker(s state, b int, m *explore.Moves[state]) {
	if s.half[b] != pending {
		return
	}
	if w.rules.Forward || !w.rules.Suspend || !s.shut {
		t := s
		t.half[b] = ended
		switch f := s.gate.flow[b]; {
		case f == deducted || f == settled || f == absent && w.rules.Forward:
			t.messages[b]++
		case f == absent && w.rules.Fence:
			t.gate.flow[b] = released
		}
		if t.messages[b] <= 2 {
			m.Must(t, "b%d: check-back finds flow %v, %d messages", b, s.gate.flow[b], t.messages[b])
		}
	}
	if w.faults.HalfLost && !s.loss {
		t := s
		t.half[b], t.loss = lost, true
		m.May(t, "b%d: the broker loses the half", b)
	}
}

// consume applies one message: the first row stands.
func (w world) consume(s state, b int, m *explore.Moves[state]) {
	if s.messages[b] == 0 {
		return
	}
	t := s
	t.messages[b]--
	t.tell[b] = true
	if t.row[b] == none {
		t.row[b] = rejected
		if t.stock > 0 {
			t.stock--
			t.row[b] = confirmed
		}
	}
	m.Must(t, "b%d: applied, row %v, stock %d", b, t.row[b], t.stock)
	if w.faults.Duplicate && !s.duplicate {
		t.messages[b]++
		t.duplicate = true
		m.May(t, "b%d: applied, row %v, stock %d, and delivered again", b, t.row[b], t.stock)
	}
}

// settle is the gate told a row's fate.
func (w world) settle(g gate, b int, r row) gate {
	switch f := g.flow[b]; {
	case r == confirmed && f == deducted:
		g.flow[b] = settled
	case r == confirmed && f == absent && w.rules.Adopt:
		g.flow[b] = settled
		g.remaining--
	case (r == cancelled || r == rejected) && f == deducted:
		g.flow[b] = released
		g.remaining++
	case (r == cancelled || r == rejected) && f == absent:
		g.flow[b] = released
	}
	return g
}

// tell is the consumer's tell, and the outbox that repeats one which was lost. A gate that has fallen back
// takes none; what was not taken is told after the rebuild.
func (w world) tell(s state, b int, m *explore.Moves[state]) {
	if w.rules.Suspend && s.shut {
		return
	}
	t := s
	t.gate, t.tell[b] = w.settle(s.gate, b, s.row[b]), false
	outbox := (w.rules.Relay || w.rules.Arbiter || w.rules.GiveBack) && s.row[b] != none && t.gate != s.gate
	if !s.tell[b] && !outbox {
		return
	}
	m.Must(t, "b%d: gate told, flow %v, %d left", b, t.gate.flow[b], t.gate.remaining)
	if s.tell[b] && w.faults.Crash && !s.tellLoss {
		t = s
		t.tell[b], t.tellLoss = false, true
		m.May(t, "b%d: the tell is lost", b)
	}
}

func (w world) relay(s state, b int, m *explore.Moves[state]) {
	if !w.rules.Relay || s.gate.flow[b] != deducted || s.row[b] != none || s.messages[b] > 0 {
		return
	}
	t := s
	t.messages[b]++
	m.Must(t, "b%d: the relay sends", b)
}

// cancel writes the row first, where there is none.
func (w world) cancel(s state, b int, m *explore.Moves[state]) {
	if !w.rules.Arbiter || s.repair[b] != notLooked || s.gate.flow[b] != deducted || s.row[b] != none {
		return
	}
	t := s
	t.repair[b], t.row[b], t.tell[b] = finished, cancelled, true
	m.May(t, "b%d: cancels before the consumer", b)
}

// giveBack looks for the row, finds none, and a moment later gives the units back.
func (w world) giveBack(s state, b int, m *explore.Moves[state]) {
	if !w.rules.GiveBack {
		return
	}
	t := s
	switch {
	case s.repair[b] == notLooked && s.gate.flow[b] == deducted && s.row[b] == none:
		t.repair[b] = foundNoRow
		m.Must(t, "b%d: the repair finds no row", b)
	case s.repair[b] == foundNoRow:
		t.repair[b] = finished
		if t.gate.flow[b] == deducted {
			t.gate.flow[b] = released
			t.gate.remaining++
		}
		m.Must(t, "b%d: the repair gives back, %d left", b, t.gate.remaining)
	}
}

// fallback is noticed at once here.
func (w world) fallback(s state, m *explore.Moves[state]) {
	if s.fell == w.faults.Fallbacks {
		return
	}
	if t := s; !s.copied {
		t.copied, t.replica = true, s.gate
		m.May(t, "a replica has a copy: %d left", s.gate.remaining)
	} else if s.gate != s.replica {
		t.copied, t.replica, t.gate = false, gate{}, s.replica
		t.fell++
		t.shut = true
		m.May(t, "Redis falls back: flows %v, %d left", t.gate.flow, t.gate.remaining)
	}
}

// rebuild waits until nothing is in flight that the rows do not show. Tells may be: what they tell is in the rows.
func (w world) rebuild(s state, m *explore.Moves[state]) {
	if !w.rules.Rebuild || !s.shut {
		return
	}
	for b := range w.buyers {
		if s.messages[b] > 0 || s.at[b].underWay() || w.rules.Drain && s.half[b] == pending {
			return
		}
	}
	t := s
	t.shut, t.gate.remaining = false, s.stock
	for b := range w.buyers {
		switch {
		case s.row[b] == confirmed:
			t.gate.flow[b] = settled
		case s.row[b] != none:
			t.gate.flow[b] = released
		case s.gate.flow[b] == deducted:
			t.gate.remaining--
		}
	}
	m.Must(t, "rebuilt: flows %v, %d left", t.gate.flow, t.gate.remaining)
}

func (w world) always(s state, report func(string)) {
	orders := int8(0)
	for b := range w.buyers {
		if s.row[b] == confirmed {
			orders++
		}
	}
	if s.stock < 0 || s.stock+orders != w.stock {
		report(Oversold)
	}
}

func (w world) rest(s state, report func(string)) {
	open := false
	for b := range w.buyers {
		open = open || s.gate.flow[b] == deducted
		if s.told[b] == accepted && s.row[b] == none {
			report(Vanished)
		}
		if s.told[b] == accepted && s.row[b] == rejected {
			report(Refused)
		}
		if s.told[b] == refused && s.row[b] == confirmed {
			report(Ghost)
		}
	}
	switch {
	case open:
		report(Leaked)
	case w.rules.Suspend && s.shut:
		report(StaysShut)
	case s.gate.remaining != s.stock:
		report(Differs)
	}
}
