package fates

// buyersMax is how many buyers a state has room for.
const buyersMax = 3

// flow is what the gate knows of a buyer's token.
type flow int8

const (
	absent flow = iota
	deducted
	settled
	released // also: refused for good
)

// row is the database's verdict.
type row int8

const (
	none row = iota
	confirmed
	cancelled // from birth
	rejected
	reversed // confirmed first, then cancelled
)

func (r row) final() bool { return r > confirmed }

// gate is the part of Redis that a replica copies.
type gate struct {
	remaining int8
	base      int8 // stock version that it was built from
	sequence  int8 // counted only where it is what notices a fallback
	flow      [buyersMax]flow
	deduction [buyersMax]int8 // which deduction the flow stands for
	added     bool            // it has the addition
}

// tell is a fate on its way to the gate. The zero value is none.
type tell struct {
	row     row
	version int8
}

type state struct {
	gate, replica gate
	copied        bool
	falls         int8
	rewound       bool // noticed: answers and takes nothing
	suspected     bool // proved wrong: sells nothing, and is told all the same
	seen          int8 // highest sequence that any caller has seen

	stock, total, version    int8
	row                      [buyersMax]row
	rowVersion, rowDeduction [buyersMax]int8
	untold                   [buyersMax]bool
	addition                 int8 // the addition's stock version, 0 before it
	additionUntold           bool

	messages     [buyersMax]int8 // bit n: a message of deduction n is on its way
	together     bool            // ... both buyers' in one
	confirming   [buyersMax]tell // tells overtake each other: one of a confirmed row
	ending       [buyersMax]tell // ... and one of any other
	tellAddition bool

	asked, deductions [buyersMax]int8
	yes, no, lied     [buyersMax]bool // told accepted, told no last, told what cannot both be true
	wished            [buyersMax]bool // to cancel

	losses, duplicates, deaths int8
}

func (s *state) suspended() bool { return s.rewound || s.suspected }

// buyer packs all that a state says of one buyer.
func (s *state) buyer(b int) (packed uint64) {
	for _, part := range [...]int8{int8(s.gate.flow[b]), s.gate.deduction[b], int8(s.replica.flow[b]), s.replica.deduction[b],
		int8(s.row[b]), s.rowVersion[b], s.rowDeduction[b], s.messages[b], int8(s.confirming[b].row), s.confirming[b].version,
		int8(s.ending[b].row), s.ending[b].version, s.asked[b], s.deductions[b]} {
		packed = packed<<4 | uint64(part)
	}
	for _, part := range [...]bool{s.untold[b], s.yes[b], s.no[b], s.lied[b], s.wished[b]} {
		packed <<= 1
		if part {
			packed |= 1
		}
	}
	return packed
}

func (s *state) swap(a, b int) {
	for _, part := range [...]*[buyersMax]int8{&s.gate.deduction, &s.replica.deduction, &s.rowVersion, &s.rowDeduction,
		&s.messages, &s.asked, &s.deductions} {
		part[a], part[b] = part[b], part[a]
	}
	for _, part := range [...]*[buyersMax]bool{&s.untold, &s.yes, &s.no, &s.lied, &s.wished} {
		part[a], part[b] = part[b], part[a]
	}
	for _, part := range [...]*[buyersMax]flow{&s.gate.flow, &s.replica.flow} {
		part[a], part[b] = part[b], part[a]
	}
	s.row[a], s.row[b] = s.row[b], s.row[a]
	s.confirming[a], s.confirming[b] = s.confirming[b], s.confirming[a]
	s.ending[a], s.ending[b] = s.ending[b], s.ending[a]
}

func bit(deduction int8) int8 { return 1 << deduction }
