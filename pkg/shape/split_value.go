package shape

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/xmltext"
)

func endsName(c byte) bool { return xmltext.IsNameEnd(c) }

// value splits a value outside columns.
func (s *Splitter) value(o *op) state {
	rest := s.in[s.at:]
	n, ok := s.scan.find(rest, o.until, s.final)
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
func (s *Splitter) whole(o *op, b []byte) {
	switch {
	case o.typ.numeric():
		s.out.number(b, o.typ)
	case o.typ == TypeBoolean:
		s.out.boolean(b)
	case o.typ == TypeUUID:
		s.out.uuid(b)
	case o.typ == TypeDateTime:
		s.out.instant(b)
	case o.typ.pieces():
		s.out.pieces(&s.piece, o.typ, b, true)
		s.piece.reset()
	default:
		s.out.textItem(b)
	}
}

// pieces tells the types that travel in pieces.
func (t Type) pieces() bool { return t == TypeBase64 || t == TypeHex }

// longValue hands out what is there of a value whose end is not in sight, n octets, once that is worth it.
func (s *Splitter) longValue(o *op, n int) state {
	if n < maxLeaf {
		return starved
	}
	if o.typ.pieces() {
		s.takePieces(o, n)
	} else {
		s.takeText(o, n)
	}
	return starved
}

// takePieces hands out the first n octets of a value that travels in pieces, but for the last few.
func (s *Splitter) takePieces(o *op, n int) {
	for k := 1; n > 0 && k > 0 && s.out.err == nil; n -= k {
		k = s.out.pieces(&s.piece, o.typ, s.in[s.at:s.at+min(n, 4*pieceChars)], false)
		s.at += k
		s.scan.drop(k)
		s.item() // also where the form alone was handed out
	}
}

// takeText hands out the first n octets of a value as text.
func (s *Splitter) takeText(o *op, n int) {
	if !s.inText {
		s.out.ensure(16)
		if o.typ != TypeText && o.typ != TypeString && o.typ != TypeOpen {
			s.out.rare++
		}
		switch {
		case o.typ.numeric(), o.typ == TypeUUID, o.typ == TypeDateTime:
			s.out.uvarint(0)
		case o.typ == TypeBoolean:
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

func (g *segmenter) uuid(b []byte) {
	g.ensure(1 + 16)
	form, octets := parseUUID(b)
	if g.seg = append(g.seg, form); form == 0 {
		g.rare++
		g.textItem(b)
		return
	}
	g.seg = append(g.seg, octets[:]...)
}

func (g *segmenter) instant(b []byte) {
	g.ensure(1 + 2*binary.MaxVarintLen64)
	in, ok := parseInstant(b)
	if !ok {
		g.rare++
		g.seg = append(g.seg, 0)
		g.textItem(b)
		return
	}
	g.seg = append(g.seg, in.form())
	g.uvarint(bin.Zigzag(in.units))
	if in.zone == zoneOffset {
		g.uvarint(bin.Zigzag(in.offset))
	}
}

func (g *segmenter) boolean(b []byte) {
	g.ensure(10)
	switch string(b) {
	case "false":
		g.bits(0, 2)
	case "true":
		g.bits(1, 2)
	default:
		g.rare++
		g.bits(2, 2)
		g.textItem(b)
	}
}

// number appends the item of a number, or of the text that is none.
func (g *segmenter) number(b []byte, t Type) {
	n, ok := parseNumber(b, t.scaled())
	if !ok || n.m >= maxMantissa || n.m <= -maxMantissa {
		if t.scaled() && g.float(b) {
			return
		}
		g.ensure(2*binary.MaxVarintLen64 + 4)
		g.rare++
		g.uvarint(0)
		g.textItem(b)
		return
	}
	g.decimal(bin.Zigzag(n.m), n.scale, t)
}

// decimal appends the item of a number that is in canonical form.
func (g *segmenter) decimal(zigzag uint64, scale uint8, t Type) {
	g.ensure(2*binary.MaxVarintLen64 + 4)
	switch {
	case !t.scaled():
		g.seg = binary.AppendUvarint(g.seg, zigzag+1)
	case scale < 7:
		g.seg = binary.AppendUvarint(g.seg, zigzag<<3+uint64(scale)+1)
	default:
		g.seg = append(binary.AppendUvarint(g.seg, zigzag<<3+7+1), scale)
	}
}
