package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// Form is what a shape frame says about its number (section 4).
type Form uint8

// The forms of section 4.
const (
	Reference Form = 0
	Full      Form = 1
	Unknown   Form = 2
)

// Shape says what a number stands for (section 4). Fingerprint goes with [Reference]; Total, Offset
// and Piece with [Full].
type Shape struct {
	Number        uint64
	Form          Form
	Fingerprint   [32]byte
	Total, Offset uint64
	Piece         []byte
}

// ShapeOverhead is the most octets a full shape frame has beside its piece.
const ShapeOverhead = 1 + 3 + 1 + 3*binary.MaxVarintLen64

// Kind is [KindShape].
func (Shape) Kind() Kind { return KindShape }

// AppendTo appends the frame.
func (f Shape) AppendTo(b []byte) []byte {
	return appendFramed(b, []byte{byte(KindShape)}, func(b []byte) []byte {
		b = append(binary.AppendUvarint(b, f.Number), byte(f.Form))
		switch f.Form {
		case Reference:
			b = append(b, f.Fingerprint[:]...)
		case Full:
			b = binary.AppendUvarint(b, f.Total)
			b = binary.AppendUvarint(b, f.Offset)
			b = append(b, f.Piece...)
		}
		return b
	})
}

func parseShape(c *bin.Cursor) Frame {
	var f Shape
	at := c.At()
	c.Name("number", bin.Uint)
	f.Number = c.Uvarint()
	if c.Err() == nil && f.Number == 0 {
		c.Fail(fault(BadValue, at, "shape number 0"))
	}
	at = c.At()
	c.Name("form", bin.Byte)
	f.Form = Form(c.U8())
	switch f.Form {
	case Reference:
		c.Name("fingerprint", bin.Raw)
		copy(f.Fingerprint[:], c.Take(len(f.Fingerprint)))
	case Full:
		c.Name("total", bin.Uint)
		f.Total = c.Uvarint()
		c.Name("offset", bin.Uint)
		f.Offset = c.Uvarint()
		at = c.At()
		c.Name("piece", bin.Raw)
		f.Piece = c.Rest()
		if left := f.Total - f.Offset; c.Err() == nil && (f.Offset > f.Total || uint64(len(f.Piece)) > left ||
			len(f.Piece) == 0) {
			c.Fail(fault(BadValue, at, "piece of %d octets at %d of %d", len(f.Piece), f.Offset, f.Total))
		}
	case Unknown:
	default:
		c.Fail(fault(BadValue, at, "shape form %d", f.Form))
	}
	return f
}

// Pieces puts full shapes together. Both bounds are on what is not complete yet. The zero value
// refuses everything.
type Pieces struct {
	// MaxShapes bounds the number of shapes that are under way, MaxBytes the sum of their octets.
	MaxShapes uint64
	MaxBytes  uint64
	open      map[uint64][]byte
	total     map[uint64]uint64
	sum       uint64
	alone     uint64 // number of a shape whose pieces those of others do not come between; 0: none
}

// maxAlone is up to how many octets a packed shape comes without pieces of others in between, so
// that both ends agree on the order of those that others may stand on (section 4.1).
const maxAlone = 4096

// Add takes a frame of form [Full], whose first octet has the offset at, and returns the
// serialization when this was its last piece, else nil. What it returns is a copy. Memory grows
// with what has arrived, not with what was promised.
func (p *Pieces) Add(f Shape, at int64) ([]byte, error) {
	have, begun := p.open[f.Number]
	switch {
	case p.alone != 0 && p.alone != f.Number:
		return nil, fault(BadState, at, "shape %d: a piece of it between those of shape %d", f.Number, p.alone)
	case begun && f.Total != p.total[f.Number], f.Offset != uint64(len(have)):
		return nil, fault(BadState, at, "shape %d: piece at %d of %d, have %d of %d", f.Number, f.Offset, f.Total,
			len(have), p.total[f.Number])
	case !begun && (uint64(len(p.open)) >= p.MaxShapes || f.Total > p.MaxBytes || p.sum > p.MaxBytes-f.Total):
		return nil, fault(TooLarge, at, "shape %d of %d octets, %d under way", f.Number, f.Total, p.sum)
	}
	if !begun {
		if p.open == nil {
			p.open, p.total = map[uint64][]byte{}, map[uint64]uint64{}
		}
		p.total[f.Number] = f.Total
		p.sum += f.Total
		if f.Total <= maxAlone {
			p.alone = f.Number
		}
	}
	have = append(have, f.Piece...)
	if uint64(len(have)) < f.Total {
		p.open[f.Number] = have
		return nil, nil
	}
	p.Drop(f.Number)
	return have, nil
}

// Begun reports whether pieces of a number have arrived, and not all.
func (p *Pieces) Begun(number uint64) bool {
	_, begun := p.open[number]
	return begun
}

// Reset forgets what has arrived of all numbers.
func (p *Pieces) Reset() { p.open, p.total, p.sum, p.alone = nil, nil, 0, 0 }

// Drop forgets what has arrived of a number.
func (p *Pieces) Drop(number uint64) {
	p.sum -= p.total[number]
	if p.alone == number {
		p.alone = 0
	}
	delete(p.open, number)
	delete(p.total, number)
	if len(p.open) == 0 {
		p.open, p.total = nil, nil // shapes come when a stream begins, and seldom later
	}
}
