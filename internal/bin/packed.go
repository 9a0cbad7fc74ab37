package bin

import "encoding/binary"

// PackedLen is the number of octets that n values of w bits take.
func PackedLen(n, w int) int { return (n*w + 7) / 8 }

// Packer appends integers of any width, lowest bits first, to a buffer. The zero value is not ready: use [NewPacker].
type Packer struct {
	dst  []byte
	acc  uint64
	have uint
}

// NewPacker appends to dst.
func NewPacker(dst []byte) Packer { return Packer{dst: dst} }

// Put appends the lowest w bits of v, w at most 64.
func (p *Packer) Put(v uint64, w uint) {
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

// Finish appends what is left, unused bits 0, and returns the buffer.
func (p *Packer) Finish() []byte {
	for n := (p.have + 7) / 8; n > 0; n-- {
		p.dst = append(p.dst, byte(p.acc))
		p.acc >>= 8
	}
	p.have = 0
	return p.dst
}

// Unpacker reads integers of any width, lowest bits first. The caller has checked that the buffer is long enough ([PackedLen]); beyond it zeros are read.
type Unpacker struct {
	src []byte
	bit uint64
}

// NewUnpacker reads from src.
func NewUnpacker(src []byte) Unpacker { return Unpacker{src: src} }

// Skip passes over n bits.
func (u *Unpacker) Skip(n uint64) { u.bit += n }

// Take reads w bits, w at most 64.
func (u *Unpacker) Take(w uint) uint64 {
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
