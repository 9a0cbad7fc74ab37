// Package items reads the items of content (docs/wire-format.md, sections 10.1 to 10.5), for
// joining and for packing.
package items

import (
	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
)

// Reader reads items (wire-format sections 10.1 and 10.2) and remembers its first failure.
type Reader struct {
	Seg  []byte
	At   int
	Bit  byte  // the byte bits are taken from, those taken shifted out
	Left uint8 // bits left in it
	Idle uint8 // bits of the last bit byte that are not used; 0 where the segment does not tell
	Err  error
}

// Reset begins to read a segment; all but the last of a part tell in their last byte how many bits
// of the last bit byte are used.
func (r *Reader) Reset(seg []byte, last bool) {
	*r = Reader{Seg: seg}
	if n := len(seg) - 1; !last && n >= 0 {
		r.Seg = seg[:n]
		if r.Idle = 8 - seg[n]; seg[n] > 8 {
			r.Fail("more than 8 bits in an octet")
		}
	}
}

// Has reports whether the segment has an item left that begins with a bit, or a byte.
func (r *Reader) Has(bit bool) bool {
	return r.At < len(r.Seg) || bit && r.Left > r.Idle
}

// End checks that nothing is left over.
func (r *Reader) End() error {
	if r.Err == nil && (r.At < len(r.Seg) || r.Left > 0 && r.Bit != 0) {
		r.Err = &shape.Error{Code: shape.Malformed, At: int64(r.At), What: "content is left over"}
	}
	return r.Err
}

func (r *Reader) Fail(what string) {
	if r.Err == nil {
		r.Err = &shape.Error{Code: shape.Malformed, At: int64(r.At), What: what}
	}
}

func (r *Reader) Octet() byte {
	if r.At == len(r.Seg) {
		r.Fail("content ends inside an item")
		return 0
	}
	r.At++
	return r.Seg[r.At-1]
}

func (r *Reader) Bits(n uint8) (v uint32) {
	if n <= r.Left {
		v = uint32(r.Bit) & (1<<n - 1)
		r.Bit >>= n
		r.Left -= n
		return v
	}
	for i := uint8(0); i < n; i++ {
		if r.Left == 0 {
			r.Bit, r.Left = r.Octet(), 8
		}
		v |= uint32(r.Bit&1) << i
		r.Bit >>= 1
		r.Left--
	}
	return v
}

func (r *Reader) Uvarint() uint64 {
	if r.At < len(r.Seg) && r.Seg[r.At] < 0x80 {
		r.At++
		return uint64(r.Seg[r.At-1])
	}
	if u, n := bin.UvarintAt(r.Seg, r.At); n > 0 {
		r.At += n
		return u
	}
	c := bin.NewCursor(r.Seg, 0)
	c.Take(r.At)
	v := c.Uvarint()
	if err := c.Err(); err != nil && r.Err == nil {
		r.Err = &shape.Error{Code: shape.Malformed, At: int64(r.At), What: "integer", Err: err}
	}
	r.At = len(r.Seg) - c.Len()
	if c.Err() != nil {
		r.At = len(r.Seg)
	}
	return v
}

func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.Seg)-r.At) {
		r.Fail("text longer than its segment")
		return nil
	}
	b := r.Seg[r.At : r.At+int(n)]
	r.At += int(n)
	return b
}

// Base64 and hexadecimal values travel as bytes, in pieces (wire-format section 10.3): so a value
// of any length passes through, and what is not in the regular form goes on as text.

const (
	PieceMore     = iota // bytes, more follows
	PieceLast            // bytes, the last
	PieceTextMore        // text, more follows
	PieceTextLast        // text, the last
)

// Group passes over a group of an array of numbers.
func (r *Reader) Group(scaled bool) (more, ok bool) {
	h := r.Uvarint()
	n := h >> 1
	more = h&1 == 1
	if n == 0 || n > MaxColumn {
		return more, n == 0 && !more && r.Err == nil
	}
	head := r.Octet()
	bits := uint64(head & 0x7f)
	if scaled {
		bits += uint64(r.Octet() >> 5)
	}
	if head > 0x7f {
		for rares := r.Uvarint(); rares > 0 && r.Err == nil; rares-- {
			r.Uvarint()
			r.Take(r.Uvarint() - 1)
		}
	}
	r.Take(uint64(bin.PackedLen(int(n), int(bits))))
	return more, r.Err == nil
}
