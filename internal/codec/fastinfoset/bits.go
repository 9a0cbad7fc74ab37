package fastinfoset

import "encoding/binary"

// next8 reads a byte; 0 after an error.
func (r *Reader) next8() byte {
	if r.err != nil {
		return 0
	}
	if r.at >= len(r.src) {
		r.err = problem(Truncated, r.at, "")
		return 0
	}
	b := r.src[r.at]
	r.at++
	return b
}

// take reads so many bytes, which stay part of the document.
func (r *Reader) take(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.src)-r.at) {
		r.fail(Truncated, r.at, "a string of %d bytes, and %d are left", n, len(r.src)-r.at)
		return nil
	}
	from := r.at
	r.at += int(n)
	return r.src[from:r.at:r.at]
}

// first reads a string that begins at bit 2 of a byte whose bit 1 is 0.
func (r *Reader) first() []byte {
	b := r.next8()
	if b&0x80 != 0 {
		r.fail(Malformed, r.at-1, "byte %#02x begins no string", b)
	}
	return r.take(r.length(b, 2))
}

// more reads a number of n bytes.
func (r *Reader) more(n int) uint64 {
	var buf [8]byte
	copy(buf[8-n:], r.take(uint64(n)))
	return binary.BigEndian.Uint64(buf[:])
}

// length is that of a string which begins at bit 2, 5 or 7 of b (X.891 C.22 to C.24): a bit 0 and
// the length less one in the rest of the byte; or 10 and zeros, with it in a byte behind; or 11 and
// zeros, with it in four. Each form begins where the one before ends.
func (r *Reader) length(b byte, bit int) uint64 {
	flag := byte(1) << (8 - bit)
	switch b & (flag<<1 - 1) {
	case flag:
		return r.more(1) + uint64(flag) + 1
	case flag | flag>>1:
		return r.more(4) + uint64(flag) + 257
	}
	if b&flag != 0 {
		return r.noLength(b)
	}
	return uint64(b&(flag-1)) + 1
}

func (r *Reader) noLength(b byte) uint64 {
	r.fail(Malformed, r.at-1, "byte %#02x begins no length", b)
	return 0
}

// place is an index less one, as it is on the wire.
func (r *Reader) place(b byte, v uint64) int {
	if v >= maxIndex {
		r.fail(Malformed, r.at, "index %d of a table, which has at most %d entries, at byte %#02x", v+1, maxIndex, b)
		return 0
	}
	return int(v)
}

// integer2 is an index at bit 2 of b (X.891 C.25).
func (r *Reader) integer2(b byte) int {
	switch {
	case b&0x40 == 0:
		return int(b & 0x3F)
	case b&0x60 == 0x40:
		return r.place(b, (uint64(b&0x1F)<<8|r.more(1))+64)
	case b&0x70 == 0x60:
		return r.place(b, (uint64(b&0x0F)<<16|r.more(2))+8256)
	}
	return r.noIndex(b)
}

// integer is an index at bit 3 or 4 of b (X.891 C.27, C.28): a bit 0 and the index less one in the
// rest of the byte; or 100 or 101, with its first bits in the rest and the others in one or two
// bytes behind; or 110 and zeros, with it in three. Each form begins where the one before ends.
func (r *Reader) integer(b byte, bit int) int {
	flag := byte(1) << (8 - bit)
	rest, first := uint64(b&(flag>>2-1)), uint64(flag)
	switch b & (flag<<1 - 1) &^ (flag>>2 - 1) {
	case flag:
		return r.place(b, (rest<<8|r.more(1))+first)
	case flag | flag>>2:
		return r.place(b, (rest<<16|r.more(2))+first+first<<6)
	case flag | flag>>1:
		if rest == 0 {
			return r.place(b, r.more(3)+first+first<<6+first<<14)
		}
	}
	if b&flag != 0 {
		return r.noIndex(b)
	}
	return int(b & (flag - 1))
}

func (r *Reader) noIndex(b byte) int {
	r.fail(Malformed, r.at-1, "byte %#02x begins no index", b)
	return 0
}

// appendLength appends a length n from a bit on, as [Reader.length] reads it; first has the bits
// before.
func appendLength(dst []byte, first byte, bit, n int) []byte {
	flag := byte(1) << (8 - bit)
	short := int(flag)
	switch {
	case n <= short:
		return append(dst, first|byte(n-1))
	case n <= short+256:
		return append(dst, first|flag, byte(n-short-1))
	}
	return binary.BigEndian.AppendUint32(append(dst, first|flag|flag>>1), uint32(n-short-257))
}

// appendInteger2 appends an index less one from bit 2 on; first has the bits before.
func appendInteger2(dst []byte, first byte, v int) []byte {
	switch {
	case v < 64:
		return append(dst, first|byte(v))
	case v < 8256:
		v -= 64
		return append(dst, first|0x40|byte(v>>8), byte(v))
	}
	v -= 8256
	return append(dst, first|0x60|byte(v>>16), byte(v>>8), byte(v))
}

// appendInteger appends an index less one from bit 3 or 4 on, as [Reader.integer] reads it; first
// has the bits before.
func appendInteger(dst []byte, first byte, bit, v int) []byte {
	flag := byte(1) << (8 - bit)
	second := int(flag)
	third := second + second<<6
	fourth := third + second<<14
	switch {
	case v < second:
		return append(dst, first|byte(v))
	case v < third:
		v -= second
		return append(dst, first|flag|byte(v>>8), byte(v))
	case v < fourth:
		v -= third
		return append(dst, first|flag|flag>>2|byte(v>>16), byte(v>>8), byte(v))
	}
	v -= fourth
	return append(dst, first|flag|flag>>1, byte(v>>16), byte(v>>8), byte(v))
}
