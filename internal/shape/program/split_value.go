package program

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
)

// value splits a value outside columns.
func (s *Splitter) value(o *code.Op) state {
	rest := s.in[s.at:]
	n, ok := s.scan.find(rest, o.Until, s.final)
	if !ok {
		return s.longValue(o, n)
	}
	if s.inText {
		s.out.textItem(rest[:n])
	} else {
		s.whole(o, rest[:n])
	}
	s.at += n
	s.scan, s.inText = scanner{}, false
	s.pc++
	return s.item()
}

// whole splits the text of a value.
func (s *Splitter) whole(o *code.Op, b []byte) {
	switch {
	case o.Type.Numeric():
		s.out.number(b, o.Type)
	case o.Type == shape.TypeBoolean:
		s.out.boolean(b)
	case o.Type == shape.TypeUUID:
		s.out.uuid(b)
	case o.Type == shape.TypeDateTime:
		s.out.dateTime(b)
	case o.Type.Pieces():
		s.out.pieces(&s.piece, o.Type, b, true)
		s.piece.reset()
	default:
		s.out.textItem(b)
	}
}

// longValue hands out what is there of a value whose end is not in sight, n bytes, once that is
// worth it.
func (s *Splitter) longValue(o *code.Op, n int) state {
	if n < maxLeaf {
		return starved
	}
	if o.Type.Pieces() {
		s.takePieces(o, n)
	} else {
		s.takeText(o, n)
	}
	return starved
}

// takePieces hands out the first n bytes of a value that travels in pieces, but for the last few.
func (s *Splitter) takePieces(o *code.Op, n int) {
	for k := 1; n > 0 && k > 0 && s.out.err == nil; n -= k {
		k = s.out.pieces(&s.piece, o.Type, s.in[s.at:s.at+min(n, 4*pieceChars)], false)
		s.at += k
		s.scan.drop(k)
		s.item() // also where the form alone was handed out
	}
}

// takeText hands out the first n bytes of a value as text.
func (s *Splitter) takeText(o *code.Op, n int) {
	if !s.inText {
		s.out.ensure(16)
		if o.Type != shape.TypeText && o.Type != shape.TypeString && o.Type != shape.TypeOpen {
			s.out.rare++
		}
		switch {
		case o.Type.Numeric(), o.Type == shape.TypeUUID, o.Type == shape.TypeDateTime:
			s.out.uvarint(0)
		case o.Type == shape.TypeBoolean:
			s.out.bits(2, 2)
		}
		s.inText = true
	}
	for n > 0 && s.out.err == nil {
		k := s.out.textPiece(s.in[s.at : s.at+n])
		s.at += k
		s.scan.drop(k)
		n -= k
		s.item()
	}
}
