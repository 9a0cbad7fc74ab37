package shape

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
)

// Base64 and hexadecimal values travel as octets, in pieces (wire-format section 10.3): so a value of any length passes through, and what is not in the regular form goes on as text.

const (
	pieceMore     = iota // octets, more follows
	pieceLast            // octets, the last
	pieceTextMore        // text, more follows
	pieceTextLast        // text, the last
)

var strict = base64.StdEncoding.Strict()

// lines is how base64 or hexadecimal text is broken: into lines of width characters, with an end between two. Width 0: not at all.
type lines struct {
	width int
	crlf  bool
}

func (l lines) form() byte {
	f := byte(l.width / 4)
	if l.crlf {
		f |= 0x80
	}
	return f
}

func linesOf(form byte) lines { return lines{width: int(form&0x7f) * 4, crlf: form > 0x7f} }

// hexForm is the form of hexadecimal digits in lines of at most 252.
func (l lines) hexForm(upper bool) byte {
	f := byte(l.width / 4 << 1)
	if upper {
		f |= 1
	}
	if l.crlf {
		f |= 0x80
	}
	return f
}

func hexLinesOf(form byte) lines { return lines{width: int(form>>1&0x3f) * 4, crlf: form > 0x7f} }

func (l lines) end() string {
	if l.crlf {
		return "\r\n"
	}
	return "\n"
}

const (
	longestLine    = 0x7f * 4 // of base64
	longestHexLine = 0x3f * 4
)

// guessLines looks at the beginning of a value for its first line end.
func guessLines(b []byte, longest int) lines {
	n := bytes.IndexByte(b[:min(len(b), longest+2)], '\n')
	if n < 1 {
		return lines{}
	}
	l := lines{width: n, crlf: b[n-1] == '\r'}
	if l.crlf {
		l.width--
	}
	if l.width == 0 || l.width%4 != 0 || l.width > longest {
		return lines{}
	}
	return l
}

// take copies up to most characters from b to dst, without the line ends where they must stand, and stops at one that stands elsewhere. column is the place in the line of the next
// character. It returns how much of b it took.
func (l lines) take(dst, b []byte, column *int, most int) ([]byte, int) {
	at := 0
	for at < len(b) && most > 0 {
		if l.width > 0 && *column == l.width {
			end := l.end()
			if len(b)-at <= len(end) || string(b[at:at+len(end)]) != end {
				return dst, at // a line end with nothing behind it is not one of these
			}
			at += len(end)
			*column = 0
		}
		n := min(len(b)-at, most)
		if l.width > 0 {
			n = min(n, l.width-*column)
		}
		run := b[at : at+n]
		if i := bytes.IndexByte(run, '\n'); i >= 0 {
			run = run[:i]
		}
		if i := bytes.IndexByte(run, '\r'); i >= 0 {
			run = run[:i]
		}
		dst = append(dst, run...)
		at, most = at+len(run), most-len(run)
		*column += len(run)
		if len(run) < n {
			return dst, at
		}
	}
	return dst, at
}

// put appends characters with line ends between lines.
func (l lines) put(dst, chars []byte, column *int) []byte {
	for len(chars) > 0 {
		if *column == l.width {
			dst = append(dst, l.end()...)
			*column = 0
		}
		n := min(len(chars), l.width-*column)
		dst = append(dst, chars[:n]...)
		chars = chars[n:]
		*column += n
	}
	return dst
}

const (
	// pieceChars is the most characters looked at for one piece, a multiple of 4.
	pieceChars = 8192
	// pieceRoom is how much room a piece wants in its segment, in octets, before it goes to the next.
	pieceRoom = 96
)

// pieceSplitter takes the octets out of one value.
type pieceSplitter struct {
	begun, text bool
	lines       lines
	column      int
	upper       bool
	chars       []byte
	octets      []byte
}

func (s *pieceSplitter) reset() { s.begun, s.text, s.column = false, false, 0 }

// pieces splits b, the next part of a value; last: it ends there. It tells how much of b it took: all of it if last.
func (g *segmenter) pieces(s *pieceSplitter, t Type, b []byte, last bool) (taken int) {
	if !s.begun {
		s.begin(g, t, b)
	}
	for g.err == nil {
		if len(g.seg)+pieceRoom > g.max {
			g.flush()
		}
		rest := b[taken:]
		if s.text {
			if len(rest) == 0 && !last {
				return taken
			}
			n := min(len(rest), g.max-len(g.seg)-4)
			kind := pieceTextMore
			if last && n == len(rest) {
				kind = pieceTextLast
			}
			g.piece(kind, rest[:n])
			if taken += n; kind == pieceTextLast || taken == len(b) && !last {
				return taken
			}
			continue
		}
		n, done, more := s.next(t, rest, last, g.max-len(g.seg)-4)
		switch {
		case done:
			g.piece(pieceLast, s.octets)
			return len(b)
		case n > 0:
			g.piece(pieceMore, s.octets)
			taken += n
		case more:
			return taken
		default:
			s.text = true
			g.rare++
		}
	}
	return taken
}

func (g *segmenter) piece(kind int, octets []byte) {
	g.uvarint(uint64(len(octets))<<2 | uint64(kind))
	g.seg = append(g.seg, octets...)
}

func (s *pieceSplitter) begin(g *segmenter, t Type, b []byte) {
	s.begun = true
	g.ensure(1)
	if t == TypeBase64 {
		s.lines = guessLines(b, longestLine)
		g.seg = append(g.seg, s.lines.form())
		return
	}
	i := bytes.IndexFunc(b, func(r rune) bool { return r > '9' })
	s.upper = i >= 0 && b[i] <= 'F'
	s.lines = guessLines(b, longestHexLine)
	g.seg = append(g.seg, s.lines.hexForm(s.upper))
}

// next decodes the next piece of b into s.octets, at most room octets, and gives the length of its text. done: that is the whole rest of the value. more: b is too short to tell.
func (s *pieceSplitter) next(t Type, b []byte, last bool, room int) (n int, done, more bool) {
	if t == TypeHex {
		return s.nextHex(b, last, room)
	}
	column := s.column
	chars, n := s.lines.take(s.chars[:0], b, &column, min(pieceChars, room/3*4))
	s.chars = chars
	if last && n == len(b) && len(chars)%4 == 0 {
		if out, err := strict.AppendDecode(s.octets[:0], chars); err == nil {
			s.octets = out
			return n, true, false
		}
	}
	good := len(chars)
	if i := bytes.IndexByte(chars, '='); i >= 0 {
		good = i
	}
	good -= good % 4
	out, err := strict.AppendDecode(s.octets[:0], chars[:good])
	if err != nil {
		good = len(out) / 3 * 4
		out = out[:good/4*3]
	}
	s.octets = out
	if good == 0 {
		const longest = 16 // characters and line ends that may be needed to tell
		return 0, false, !last && len(b) < longest && err == nil
	}
	_, n = s.lines.take(s.chars[:0], b, &s.column, good)
	return n, false, false
}

func (s *pieceSplitter) nextHex(b []byte, last bool, room int) (n int, done, more bool) {
	column := s.column
	chars, n := s.lines.take(s.chars[:0], b, &column, min(2*room&^1, pieceChars))
	s.chars = chars
	good := len(chars)
	for i, c := range chars {
		if c >= '0' && c <= '9' || !s.upper && c >= 'a' && c <= 'f' || s.upper && c >= 'A' && c <= 'F' {
			continue
		}
		good = i
		break
	}
	whole := good == len(chars)
	good &^= 1
	s.octets, _ = hex.AppendDecode(s.octets[:0], chars[:good])
	switch {
	case last && n == len(b) && good == len(chars):
		return n, true, false
	case good == 0:
		const longest = 4 // characters and line ends that may be needed to tell
		return 0, false, whole && !last && len(b) < longest
	}
	_, n = s.lines.take(s.chars[:0], b, &s.column, good)
	return n, false, false
}

// pieceJoiner is what a joiner knows of a value in pieces.
type pieceJoiner struct {
	begun, text bool
	form        byte
	column      int
}
