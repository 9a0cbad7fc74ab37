package shape

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// packWriter writes octets and bits in one sequence (wire-format sections 10.1 and 11.1); newPackWriter makes one.
type packWriter struct {
	out  []byte
	at   int  // place of the bit octet in out, -1: none
	used uint // bits of it
}

func newPackWriter(dst []byte) packWriter { return packWriter{out: dst, at: -1, used: 8} }

func (w *packWriter) bits(v uint64, n uint) {
	for n > 0 {
		if w.used == 8 {
			w.at, w.used = len(w.out), 0
			w.out = append(w.out, 0)
		}
		w.out[w.at] |= byte(v << w.used)
		k := min(8-w.used, n)
		w.used += k
		n -= k
		v >>= k
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

func (r *packReader) wide(n uint) (v uint64) {
	for have := uint(0); have < n; {
		if r.left == 0 {
			r.bit, r.left = r.octet(), 8
		}
		k := min(uint(r.left), n-have)
		v |= uint64(r.bit&(1<<k-1)) << have
		r.bit >>= k
		r.left -= uint8(k)
		have += k
	}
	return v
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
