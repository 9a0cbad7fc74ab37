package bin

import (
	"encoding/binary"
	"slices"
)

// PackedLen is the number of bytes of n values of w bits.
func PackedLen(n, w int) int { return (n*w + 7) / 8 }

// BitWriter appends integers of any width, lowest bits first, to a buffer. The zero value is not
// ready: use [NewPacker].
type BitWriter struct {
	dst  []byte
	acc  uint64
	have uint
}

// NewPacker appends to dst.
func NewPacker(dst []byte) BitWriter { return BitWriter{dst: dst} }

// Put appends the lowest w bits of v, w at most 64.
func (p *BitWriter) Put(v uint64, w uint) {
	if w < 64 {
		v &= 1<<w - 1
	}
	p.acc |= v << p.have
	if p.have+w < 64 {
		p.have += w
	} else {
		p.dst = binary.LittleEndian.AppendUint64(p.dst, p.acc)
		used := 64 - p.have
		p.acc = 0
		if used < 64 {
			p.acc = v >> used
		}
		p.have = w - used
	}
}

// wordWidth is the widest integer that fits a word after up to seven other bits, with a bit left,
// so that shifts stay below 64.
const wordWidth = 64 - 8

// PutAbove appends the lowest w bits of the difference between each value and base; the other bits
// of it are 0.
func PutAbove[T int64 | uint64 | uint16 | uint8](p *BitWriter, values []T, base T, w uint) {
	if w > wordWidth {
		for _, v := range values {
			p.Put(uint64(v-base), w)
		}
		return
	}
	at := len(p.dst)
	n := at + int(p.have+w*uint(len(values)))/8
	p.dst = slices.Grow(p.dst, n-at+8)
	dst := p.dst[:n+8]
	acc, have := p.acc, p.have
	for _, v := range values {
		if have+w >= 64 { // what is there makes room: at most seven bits stay
			binary.LittleEndian.PutUint64(dst[at:], acc)
			at += int(have >> 3)
			acc >>= have &^ 7
			have &= 7
		}
		acc |= uint64(v-base) << have
		have += w
	}
	p.dst, p.acc, p.have = dst[:at], acc, have
}

// Finish appends what is left, unused bits 0, and returns the buffer.
func (p *BitWriter) Finish() []byte {
	n := len(p.dst) + int(p.have+7)/8
	p.dst, p.acc, p.have = binary.LittleEndian.AppendUint64(p.dst, p.acc)[:n], 0, 0
	return p.dst
}

// BitReader reads integers of any width, lowest bits first. The caller has checked that the buffer
// is long enough ([PackedLen]); beyond it zeros are read.
type BitReader struct {
	src []byte
	bit uint64
}

// NewUnpacker reads from src.
func NewUnpacker(src []byte) BitReader { return BitReader{src: src} }

// Skip skips n bits.
func (u *BitReader) Skip(n uint64) { u.bit += n }

// Take reads w bits, w at most 64.
func (u *BitReader) Take(w uint) uint64 {
	if w == 0 {
		return 0
	}
	at, shift := u.bit>>3, uint(u.bit&7)
	u.bit += uint64(w)
	var lo, hi uint64
	if at+9 <= uint64(len(u.src)) {
		lo, hi = binary.LittleEndian.Uint64(u.src[at:]), uint64(u.src[at+8])
	} else {
		var pad [9]byte
		if at < uint64(len(u.src)) {
			copy(pad[:], u.src[at:])
		}
		lo, hi = binary.LittleEndian.Uint64(pad[:]), uint64(pad[8])
	}
	v := lo >> shift
	if shift > 0 {
		v |= hi << (64 - shift)
	}
	if w < 64 {
		v &= 1<<w - 1
	}
	return v
}

// TakeAbove reads w bits for each of dst, w at most 64, and adds base.
func TakeAbove[T int64 | uint64 | uint16](u *BitReader, dst []T, base T, w uint) {
	if w > wordWidth {
		for i := range dst {
			dst[i] = base + T(u.Take(w))
		}
		return
	}
	last, end := uint64(0), uint64(0) // the last bytes, with zeros after them, and where they begin, in bits
	if n := len(u.src) - 8; n >= 0 {
		last, end = binary.LittleEndian.Uint64(u.src[n:]), uint64(n)*8
	} else {
		var pad [8]byte
		copy(pad[:], u.src)
		last = binary.LittleEndian.Uint64(pad[:])
	}
	mask, bit, i := uint64(1)<<w-1, u.bit, 0
	for ; i < len(dst) && bit < end; i++ {
		dst[i] = base + T(binary.LittleEndian.Uint64(u.src[bit>>3:])>>(bit&7)&mask)
		bit += uint64(w)
	}
	for ; i < len(dst); i++ {
		dst[i] = base + T(last>>(bit-end)&mask)
		bit += uint64(w)
	}
	u.bit = bit
}
