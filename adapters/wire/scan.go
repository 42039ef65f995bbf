package wire

import "strings"

// scan reads a batch letter by letter as Encode writes it, which takes a fraction of what a parser needs. It understands
// nothing else: whatever is spelled in another way, or is wrong, is left to the parser, which says what is wrong.
func scan(body string) (message, bool) {
	s := scanner{rest: body}
	var m message
	s.expect(`{"v":`)
	m.Version = new(s.number())
	s.expect(`,"kind":"`)
	m.Kind = s.text()
	s.expect(`,"id":"`)
	m.ID = s.text()
	if s.next(`,"sections":[`) {
		for again := true; again; again = s.next(`,`) {
			m.Sections = append(m.Sections, s.section())
		}
		s.expect(`]`)
	}
	s.expect(`}`)
	return m, !s.failed && s.rest == ""
}

type scanner struct {
	rest   string
	failed bool
}

func (s *scanner) section() (of section) {
	s.expect(`{"product":"`)
	of.Product = s.text()
	s.expect(`,"epoch":`)
	of.Epoch = s.number()
	s.expect(`,"flows":[`)
	if end := strings.IndexByte(s.rest, ']'); end >= 0 { // a first look, to make room once
		of.Flows = make([]flow, 0, strings.Count(s.rest[:end], "{"))
	}
	for again := true; again; again = s.next(`,`) {
		of.Flows = append(of.Flows, s.flow())
	}
	s.expect(`]}`)
	return of
}

func (s *scanner) flow() (f flow) {
	s.expect(`{`)
	if s.next(`"u":"`) {
		f.User = s.text()
		s.expect(`,`)
	}
	s.expect(`"t":"`)
	f.Token = s.text()
	s.expect(`,"q":`)
	f.Quantity = s.number()
	if s.next(`,"a":"`) {
		f.Attempt = s.text()
	}
	s.expect(`,"s":`)
	f.Sequence = s.number()
	s.expect(`,"m":`)
	f.Millis = s.number()
	s.expect(`}`)
	return f
}

// next passes what comes next, if it is that; after a failure nothing is, so that every loop ends.
func (s *scanner) next(what string) bool {
	rest, there := strings.CutPrefix(s.rest, what)
	if there && !s.failed {
		s.rest = rest
		return true
	}
	return false
}

func (s *scanner) expect(what string) {
	if !s.next(what) {
		s.failed = true
	}
}

// text is a string without escapes up to its closing quote, which is passed.
func (s *scanner) text() string {
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text
		case c < ' ' || c > '~' || c == '\\':
			s.failed = true
			return ""
		}
	}
	s.failed = true
	return ""
}

// number is a whole one from zero up, in its shortest form.
func (s *scanner) number() int64 {
	const digitsMax = 18 // more may be too large
	n, i := int64(0), 0
	for ; i < len(s.rest) && i < digitsMax && s.rest[i] >= '0' && s.rest[i] <= '9'; i++ {
		n = 10*n + int64(s.rest[i]-'0')
	}
	if i == 0 || i > 1 && s.rest[0] == '0' {
		s.failed = true
		return 0
	}
	s.rest = s.rest[i:]
	return n
}
