package columns

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/items"
)

// packWriter writes bytes and bits in one sequence (wire-format sections 10.1 and 11.1); begin
// makes it ready.
type packWriter struct {
	out  []byte
	at   int  // place of the bit byte in out, -1: none
	used uint // bits of it
}

func (w *packWriter) begin(dst []byte) { w.out, w.at, w.used = dst, -1, 8 }

// bits appends the n lowest bits of v, which has no others, n at most 64.
func (w *packWriter) bits(v uint64, n uint) {
	if w.used < 8 {
		w.out[w.at] |= byte(v << w.used)
		room := 8 - w.used
		if n <= room {
			w.used += n
			return
		}
		v >>= room
		n -= room
	}
	if n > 0 {
		more := (n - 1) / 8
		w.at, w.used = len(w.out)+int(more), n-8*more
		w.out = binary.LittleEndian.AppendUint64(w.out, v)[:w.at+1]
	}
}

// flag writes one bit and gives it back.
func (w *packWriter) flag(b bool) bool {
	if w.used == 8 {
		w.at, w.used = len(w.out), 0
		w.out = append(w.out, 0)
	}
	if b {
		w.out[w.at] |= 1 << w.used
	}
	w.used++
	return b
}

func (w *packWriter) uvarint(u uint64) { w.out = binary.AppendUvarint(w.out, u) }

func (w *packWriter) zigzag(v int64) { w.uvarint(bin.Zigzag(v)) }

// mark is a place to go back to.
type mark struct {
	size, at int
	used     uint
	octet    byte
}

func (w *packWriter) mark() mark {
	m := mark{size: len(w.out), at: w.at, used: w.used}
	if m.at >= 0 {
		m.octet = w.out[m.at]
	}
	return m
}

// size is how many bits were written since start, or a few less.
func (w *packWriter) size(start mark) int {
	n := 8*(len(w.out)-start.size) + int(w.used)
	if w.at != start.at {
		return n - 8
	}
	return n - int(start.used)
}

func (w *packWriter) back(m mark) {
	w.out, w.at, w.used = w.out[:m.size], m.at, m.used
	if m.at >= 0 {
		w.out[m.at] = m.octet
	}
}

// packReader reads what a packWriter wrote and remembers its first failure.
type packReader struct {
	items.Reader
}

// used is how many bits of the segment were read.
func (r *packReader) used() int64 { return 8*int64(r.At) - int64(r.Left) }

// wide reads n bits, n at most 64.
func (r *packReader) wide(n uint) (v uint64) {
	if n <= uint(r.Left) {
		v = uint64(r.Bit) & (1<<n - 1)
		r.Bit >>= n & 7
		r.Left -= uint8(n)
		return v
	}
	v = uint64(r.Bit)
	for have := uint(r.Left); have < n; have += 8 {
		r.Bit = r.Octet()
		v |= uint64(r.Bit) << have
		r.Left = uint8(have + 8 - n)
	}
	r.Bit >>= 8 - r.Left
	return v & (1<<n - 1)
}

func (r *packReader) flag() bool {
	if r.Left == 0 {
		r.Bit, r.Left = r.Octet(), 8
	}
	b := r.Bit&1 == 1
	r.Bit >>= 1
	r.Left--
	return b
}

func (r *packReader) zigzag() int64 { return bin.Unzigzag(r.Uvarint()) }

// count reads a number of things, at most most.
func (r *packReader) count(most int) int {
	u := r.Uvarint()
	if u > uint64(most) {
		r.Fail("count above its limit")
		return 0
	}
	return int(u)
}

// group reads a group of an array of numbers, which stands outside arrays as it is.
func (r *packReader) group(scaled bool) (octets []byte, more, ok bool) {
	at := r.At
	more, ok = r.Group(scaled)
	return r.Seg[at:r.At], more, ok
}

const noGroup = "group of an array of numbers"

// pen writes single bits between bytes, as a packWriter does. It is passed by value, so that a
// loop has it in registers.
type pen struct {
	at   int // place of the bit byte, which is written when it is full, and by lift
	acc  uint8
	used uint8 // bits in acc
}

func (w *packWriter) pen() (pen, []byte) {
	p := pen{at: w.at, used: uint8(w.used)}
	if p.at >= 0 {
		p.acc = w.out[p.at]
	}
	return p, w.out
}

func (w *packWriter) lift(p pen, out []byte) {
	if p.at >= 0 {
		out[p.at] = p.acc
	}
	w.out, w.at, w.used = out, p.at, uint(p.used)
}

// bit appends v, which is 0 or 1.
func (p pen) bit(out []byte, v uint8) (pen, []byte) {
	if p.used == 8 {
		if p.at >= 0 {
			out[p.at] = p.acc
		}
		return pen{at: len(out), acc: v, used: 1}, append(out, 0)
	}
	p.acc |= v << (p.used & 7)
	p.used++
	return p, out
}

// pair appends the two bits of a boolean.
func (p pen) pair(out []byte, v uint8) (pen, []byte) {
	if p.used <= 6 {
		p.acc |= v << p.used
		p.used += 2
		return p, out
	}
	p, out = p.bit(out, v)
	return p.bit(out, 0)
}

// eye reads single bits between bytes, as a packReader does. It is passed by value, so that a loop
// has it in registers.
type eye struct {
	octet uint8 // the bit byte, bits taken shifted out
	left  uint8 // bits left in it
}

func (r *packReader) eye() (eye, int) { return eye{r.Bit, r.Left}, r.At }

func (r *packReader) look(e eye, at int) {
	if r.Bit, r.Left, r.At = e.octet, e.left, at; at > len(r.Seg) {
		r.At = len(r.Seg)
		r.Fail("content ends inside an item")
	}
}

// flag takes a bit. Behind the end it gives 0, and a place that is beyond the end.
func (e eye) flag(seg []byte, at int) (eye, int, bool) {
	if e.left == 0 {
		if e.left = 8; at < len(seg) {
			e.octet = seg[at]
		}
		at++
	}
	v := e.octet & 1
	e.octet >>= 1
	e.left--
	return e, at, v == 1
}

// bitReader reads bits that follow each other, up to 56 at a look.
type bitReader struct {
	acc  uint64
	have int // bits of acc that are read ahead; below 0: more were taken than there are
	at   int
}

// fill has 32 bits at least, if there are as many.
func (b bitReader) fill(seg []byte) bitReader {
	if b.have >= 32 {
		return b
	}
	if b.at+8 <= len(seg) && b.have >= 0 {
		b.acc |= binary.LittleEndian.Uint64(seg[b.at:]) << uint(b.have)
		more := (63 - b.have) >> 3
		return bitReader{b.acc, b.have + 8*more, b.at + more}
	}
	for b.have >= 0 && b.have < 56 && b.at < len(seg) {
		b.acc |= uint64(seg[b.at]) << uint(b.have)
		b.have += 8
		b.at++
	}
	return b
}

func (b bitReader) drop(n uint) bitReader { return bitReader{b.acc >> n, b.have - int(n), b.at} }

// ahead begins to read bits that follow each other; behind ends it.
func (r *packReader) ahead() bitReader {
	return bitReader{uint64(r.Bit), int(r.Left), r.At}.fill(r.Seg)
}

func (r *packReader) behind(b bitReader) {
	if b.have < 0 {
		r.Fail("content ends inside an item")
		return
	}
	r.At, r.Left = b.at-b.have>>3, uint8(b.have&7)
	r.Bit = byte(b.acc) & (1<<r.Left - 1)
}
