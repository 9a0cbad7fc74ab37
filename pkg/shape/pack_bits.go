package shape

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// packWriter writes octets and bits in one sequence (wire-format sections 10.1 and 11.1); begin makes it ready.
type packWriter struct {
	out  []byte
	at   int  // place of the bit octet in out, -1: none
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
	segmentReader
}

// wide reads n bits, n at most 64.
func (r *packReader) wide(n uint) (v uint64) {
	if n <= uint(r.left) {
		v = uint64(r.bit) & (1<<n - 1)
		r.bit >>= n & 7
		r.left -= uint8(n)
		return v
	}
	v = uint64(r.bit)
	for have := uint(r.left); have < n; have += 8 {
		r.bit = r.octet()
		v |= uint64(r.bit) << have
		r.left = uint8(have + 8 - n)
	}
	r.bit >>= 8 - r.left
	return v & (1<<n - 1)
}

func (r *packReader) flag() bool {
	if r.left == 0 {
		r.bit, r.left = r.octet(), 8
	}
	b := r.bit&1 == 1
	r.bit >>= 1
	r.left--
	return b
}

func (r *packReader) zigzag() int64 { return bin.Unzigzag(r.uvarint()) }

// count reads a number of things, at most most.
func (r *packReader) count(most int) int {
	u := r.uvarint()
	if u > uint64(most) {
		r.fail("count above its limit")
		return 0
	}
	return int(u)
}
