package program

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/shape"
)

// scanner looks for the end of a value in a message that arrives in chunks, and never looks at an
// byte twice.
type scanner struct {
	at    int // how far it has looked, counted from the value's first byte that is still there
	hide  hiding
	depth int // UntilElement: open elements inside the value
	quote byte
}

// hiding is what a `<` may stand in without beginning a tag, or an inner tag.
type hiding uint8

const (
	nothing hiding = iota
	comment
	instruction
	cdata
	innerTag
	innerEnd
)

var hidings = []struct {
	open, end string
	hide      hiding
}{{"<!--", "-->", comment}, {"<![CDATA[", "]]>", cdata}, {"<?", "?>", instruction}}

// find gives the length of the value at the start of b. ok is false when its end is not in b; then
// n bytes surely belong to it. final: nothing comes after b, so that the value ends with it at the
// latest.
func (s *scanner) find(b []byte, until shape.Until, final bool) (n int, ok bool) {
	switch until {
	case shape.UntilQuote:
		n, ok = s.octet(b, '"')
	case shape.UntilApostrophe:
		n, ok = s.octet(b, '\'')
	case shape.UntilTag:
		n, ok = s.tag(b, final)
	case shape.UntilElement:
		n, ok = s.element(b, final)
	case shape.UntilLine:
		n, ok = s.line(b)
	case shape.UntilSpace:
		n, ok = s.space(b)
	default:
		n = len(b)
	}
	if !ok && final {
		return len(b), true
	}
	return n, ok
}

// drop tells the scanner that n bytes of the value were taken away in front.
func (s *scanner) drop(n int) { s.at -= n }

func (s *scanner) octet(b []byte, c byte) (int, bool) {
	if n := bytes.IndexByte(b[s.at:], c); n >= 0 {
		return s.at + n, true
	}
	s.at = len(b)
	return s.at, false
}

func (s *scanner) space(b []byte) (int, bool) {
	for ; s.at < len(b); s.at++ {
		if c := b[s.at]; c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			return s.at, true
		}
	}
	return s.at, false
}

func (s *scanner) line(b []byte) (int, bool) {
	n := bytes.IndexByte(b[s.at:], '\n')
	if n >= 0 {
		end := s.at + n
		if end > 0 && b[end-1] == '\r' {
			end--
		}
		return end, true
	}
	s.at = len(b)
	if s.at > 0 && b[s.at-1] == '\r' {
		return s.at - 1, false
	}
	return s.at, false
}

// tag looks for the next `<` that begins a tag.
func (s *scanner) tag(b []byte, final bool) (int, bool) {
	for {
		if s.hide != nothing {
			if !s.leave(b) {
				return s.at, false
			}
			continue
		}
		n := bytes.IndexByte(b[s.at:], '<')
		if n < 0 {
			s.at = len(b)
			return s.at, false
		}
		s.at += n
		entered, enough := s.enter(b)
		if !enough && !final {
			return s.at, false
		}
		if !entered {
			return s.at, true
		}
	}
}

// enter passes over the opening of a comment, instruction or CDATA section at s.at. enough is false
// when b ends too early to tell.
func (s *scanner) enter(b []byte) (entered, enough bool) {
	rest := b[s.at:]
	if len(rest) >= 2 && rest[1] != '!' && rest[1] != '?' {
		return false, true
	}
	for _, h := range hidings {
		if len(rest) >= len(h.open) {
			if string(rest[:len(h.open)]) == h.open {
				s.hide = h.hide
				s.at += len(h.open)
				return true, true
			}
		} else if string(rest) == h.open[:len(rest)] {
			return false, false
		}
	}
	return false, true
}

// leave looks for the end of what hides tags. If it is not there yet, s.at stays where it could
// begin.
func (s *scanner) leave(b []byte) bool {
	end := hidings[0].end
	for _, h := range hidings {
		if h.hide == s.hide {
			end = h.end
		}
	}
	if n := bytes.Index(b[s.at:], []byte(end)); n >= 0 {
		s.at += n + len(end)
		s.hide = nothing
		return true
	}
	s.at = max(s.at, len(b)-len(end)+1)
	return false
}

// element looks for the end tag that closes the element around the value.
func (s *scanner) element(b []byte, final bool) (int, bool) {
	for {
		if s.hide == innerTag || s.hide == innerEnd {
			if !s.leaveTag(b) {
				return max(s.at-1, 0), false // the byte before s.at may be the / of an empty tag
			}
			continue
		}
		at, ok := s.tag(b, final)
		if !ok {
			return at, false
		}
		if at+1 >= len(b) {
			return at, final
		}
		s.hide = innerTag
		if b[at+1] == '/' {
			if s.depth == 0 {
				s.hide = nothing
				return at, true
			}
			s.hide = innerEnd
		}
		s.at = at + 1
	}
}

// leaveTag passes over the rest of a tag inside the value and keeps count of depth.
func (s *scanner) leaveTag(b []byte) bool {
	for ; s.at < len(b); s.at++ {
		c := b[s.at]
		switch {
		case s.quote != 0:
			if c == s.quote {
				s.quote = 0
			}
		case c == '"' || c == '\'':
			s.quote = c
		case c == '>':
			switch {
			case s.hide == innerEnd:
				s.depth--
			case s.at == 0 || b[s.at-1] != '/':
				s.depth++
			}
			s.hide = nothing
			s.at++
			return true
		}
	}
	return false
}
