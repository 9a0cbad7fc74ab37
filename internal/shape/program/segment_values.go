package program

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

func (g *segmenter) uuid(b []byte) {
	g.ensure(1 + 16)
	form, octets := lexical.ParseUUID(b)
	if g.seg = append(g.seg, form); form == 0 {
		g.rare++
		g.textItem(b)
		return
	}
	g.seg = append(g.seg, octets[:]...)
}

func (g *segmenter) dateTime(b []byte) {
	g.ensure(1 + 2*binary.MaxVarintLen64)
	in, ok := lexical.ParseDateTime(b)
	if !ok {
		g.rare++
		g.seg = append(g.seg, 0)
		g.textItem(b)
		return
	}
	g.seg = append(g.seg, in.Form())
	g.uvarint(bin.Zigzag(in.Units))
	if in.Zone == lexical.ZoneOffset {
		g.uvarint(bin.Zigzag(in.Offset))
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
func (g *segmenter) number(b []byte, t shape.Type) {
	n, ok := lexical.ParseNumber(b, t.Scaled())
	if !ok || n.M >= lexical.MaxMantissa || n.M <= -lexical.MaxMantissa {
		if t.Scaled() && g.float(b) {
			return
		}
		g.ensure(2*binary.MaxVarintLen64 + 4)
		g.rare++
		g.uvarint(0)
		g.textItem(b)
		return
	}
	g.decimal(bin.Zigzag(n.M), n.Scale, t)
}

// decimal appends the item of a number that is in canonical form.
func (g *segmenter) decimal(zigzag uint64, scale uint8, t shape.Type) {
	g.ensure(2*binary.MaxVarintLen64 + 4)
	switch {
	case !t.Scaled():
		g.seg = binary.AppendUvarint(g.seg, zigzag+1)
	case scale < 7:
		g.seg = binary.AppendUvarint(g.seg, zigzag<<3+uint64(scale)+1)
	default:
		g.seg = append(binary.AppendUvarint(g.seg, zigzag<<3+7+1), scale)
	}
}

// float appends the item of a float that is no plain decimal; it reports whether it is one.
func (g *segmenter) float(b []byte) bool {
	for i, word := range lexical.FloatWords {
		if string(b) == word {
			g.ensure(2)
			g.seg = append(g.seg, 7+1, byte(lexical.FirstWord+i))
			return true
		}
	}
	n, e, ok := lexical.ParseFloat(b)
	if !ok {
		return false
	}
	const longest = 10 + 1 + 1 + 2
	g.ensure(longest)
	g.uvarint(bin.Zigzag(n.M)<<3 + 7 + 1)
	g.seg = append(g.seg, lexical.WithExponent+n.Scale, e.Form)
	g.uvarint(bin.Zigzag(e.X))
	return true
}
