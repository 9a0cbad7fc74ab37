package program

import (
	"bytes"
	"encoding/hex"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

const (
	// pieceChars is the most characters looked at for one piece, a multiple of 4.
	pieceChars = 8192
	// pieceRoom is how much room a piece wants in its segment, in bytes, before it goes to the
	// next.
	pieceRoom = 96
)

// pieceSplitter takes the bytes out of one value.
type pieceSplitter struct {
	begun, text bool
	lines       lexical.Lines
	column      int
	upper       bool
	chars       []byte
	octets      []byte
}

func (s *pieceSplitter) reset() { s.begun, s.text, s.column = false, false, 0 }

// pieces splits b, the next part of a value; last: it ends there. It tells how much of b it took:
// all of it if last.
func (g *segmenter) pieces(s *pieceSplitter, t shape.Type, b []byte, last bool) (taken int) {
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
			kind := items.PieceTextMore
			if last && n == len(rest) {
				kind = items.PieceTextLast
			}
			g.piece(kind, rest[:n])
			if taken += n; kind == items.PieceTextLast || taken == len(b) && !last {
				return taken
			}
			continue
		}
		n, done, more := s.next(t, rest, last, g.max-len(g.seg)-4)
		switch {
		case done:
			g.piece(items.PieceLast, s.octets)
			return len(b)
		case n > 0:
			g.piece(items.PieceMore, s.octets)
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

func (s *pieceSplitter) begin(g *segmenter, t shape.Type, b []byte) {
	s.begun = true
	g.ensure(1)
	if t == shape.TypeBase64 {
		s.lines = lexical.GuessLines(b, lexical.LongestLine)
		g.seg = append(g.seg, s.lines.Form())
		return
	}
	i := bytes.IndexFunc(b, func(r rune) bool { return r > '9' })
	s.upper = i >= 0 && b[i] <= 'F'
	s.lines = lexical.GuessLines(b, lexical.LongestHexLine)
	g.seg = append(g.seg, s.lines.HexForm(s.upper))
}

// next decodes the next piece of b into s.bytes, at most room bytes, and gives the length of its
// text. done: that is the whole rest of the value. more: b is too short to tell.
func (s *pieceSplitter) next(t shape.Type, b []byte, last bool, room int) (n int, done, more bool) {
	if t == shape.TypeHex {
		return s.nextHex(b, last, room)
	}
	column := s.column
	chars, n := s.lines.Take(s.chars[:0], b, &column, min(pieceChars, room/3*4))
	s.chars = chars
	if last && n == len(b) && len(chars)%4 == 0 {
		if out, err := lexical.AppendFromBase64(s.octets[:0], chars); err == nil {
			s.octets = out
			return n, true, false
		}
	}
	good := len(chars)
	if i := bytes.IndexByte(chars, '='); i >= 0 {
		good = i
	}
	good -= good % 4
	out, err := lexical.AppendFromBase64(s.octets[:0], chars[:good])
	if err != nil {
		good = len(out) / 3 * 4
		out = out[:good/4*3]
	}
	s.octets = out
	if good == 0 {
		const longest = 16 // characters and line ends that may be needed to tell
		return 0, false, !last && len(b) < longest && err == nil
	}
	_, n = s.lines.Take(s.chars[:0], b, &s.column, good)
	return n, false, false
}

func (s *pieceSplitter) nextHex(b []byte, last bool, room int) (n int, done, more bool) {
	column := s.column
	chars, n := s.lines.Take(s.chars[:0], b, &column, min(2*room&^1, pieceChars))
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
	_, n = s.lines.Take(s.chars[:0], b, &s.column, good)
	return n, false, false
}
