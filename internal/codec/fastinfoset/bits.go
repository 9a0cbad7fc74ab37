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
	return r.take(r.length2(b))
}

// more reads a number of n bytes.
func (r *Reader) more(n int) uint64 {
	var buf [8]byte
	copy(buf[8-n:], r.take(uint64(n)))
	return binary.BigEndian.Uint64(buf[:])
}

// length2 is the length of a string at bit 2 of b (X.891 C.22).
func (r *Reader) length2(b byte) uint64 {
	switch {
	case b&0x40 == 0:
		return uint64(b&0x3F) + 1
	case b&0x7F == 0x40:
		return r.more(1) + 65
	case b&0x7F == 0x60:
		return r.more(4) + 321
	}
	return r.noLength(b)
}

// length5 is the length of a string at bit 5 of b (X.891 C.23).
func (r *Reader) length5(b byte) uint64 {
	switch {
	case b&0x08 == 0:
		return uint64(b&0x07) + 1
	case b&0x0F == 0x08:
		return r.more(1) + 9
	case b&0x0F == 0x0C:
		return r.more(4) + 265
	}
	return r.noLength(b)
}

// length7 is the length of a string at bit 7 of b (X.891 C.24).
func (r *Reader) length7(b byte) uint64 {
	switch b & 3 {
	case 2:
		return r.more(1) + 3
	case 3:
		return r.more(4) + 259
	}
	return uint64(b&1) + 1
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

// integer3 is an index at bit 3 of b (X.891 C.27).
func (r *Reader) integer3(b byte) int {
	switch {
	case b&0x20 == 0:
		return int(b & 0x1F)
	case b&0x38 == 0x20:
		return r.place(b, (uint64(b&0x07)<<8|r.more(1))+32)
	case b&0x38 == 0x28:
		return r.place(b, (uint64(b&0x07)<<16|r.more(2))+2080)
	case b&0x3F == 0x30:
		return r.place(b, r.more(3)+526368)
	}
	return r.noIndex(b)
}

// integer4 is an index at bit 4 of b (X.891 C.28).
func (r *Reader) integer4(b byte) int {
	switch {
	case b&0x10 == 0:
		return int(b & 0x0F)
	case b&0x1C == 0x10:
		return r.place(b, (uint64(b&0x03)<<8|r.more(1))+16)
	case b&0x1C == 0x14:
		return r.place(b, (uint64(b&0x03)<<16|r.more(2))+1040)
	case b&0x1F == 0x18:
		return r.place(b, r.more(3)+263184)
	}
	return r.noIndex(b)
}

func (r *Reader) noIndex(b byte) int {
	r.fail(Malformed, r.at-1, "byte %#02x begins no index", b)
	return 0
}

// appendLength2 appends a length n from bit 2 on; first has the bits before.
func appendLength2(dst []byte, first byte, n int) []byte {
	switch {
	case n <= 64:
		return append(dst, first|byte(n-1))
	case n <= 320:
		return append(dst, first|0x40, byte(n-65))
	}
	return binary.BigEndian.AppendUint32(append(dst, first|0x60), uint32(n-321))
}

// appendLength5 is appendLength2 from bit 5 on.
func appendLength5(dst []byte, first byte, n int) []byte {
	switch {
	case n <= 8:
		return append(dst, first|byte(n-1))
	case n <= 264:
		return append(dst, first|0x08, byte(n-9))
	}
	return binary.BigEndian.AppendUint32(append(dst, first|0x0C), uint32(n-265))
}

// appendLength7 is appendLength2 from bit 7 on.
func appendLength7(dst []byte, first byte, n int) []byte {
	switch {
	case n <= 2:
		return append(dst, first|byte(n-1))
	case n <= 258:
		return append(dst, first|0x02, byte(n-3))
	}
	return binary.BigEndian.AppendUint32(append(dst, first|0x03), uint32(n-259))
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

// appendInteger3 is appendInteger2 from bit 3 on.
func appendInteger3(dst []byte, first byte, v int) []byte {
	switch {
	case v < 32:
		return append(dst, first|byte(v))
	case v < 2080:
		v -= 32
		return append(dst, first|0x20|byte(v>>8), byte(v))
	case v < 526368:
		v -= 2080
		return append(dst, first|0x28|byte(v>>16), byte(v>>8), byte(v))
	}
	v -= 526368
	return append(dst, first|0x30, byte(v>>16), byte(v>>8), byte(v))
}

// appendInteger4 is appendInteger2 from bit 4 on.
func appendInteger4(dst []byte, first byte, v int) []byte {
	switch {
	case v < 16:
		return append(dst, first|byte(v))
	case v < 1040:
		v -= 16
		return append(dst, first|0x10|byte(v>>8), byte(v))
	case v < 263184:
		v -= 1040
		return append(dst, first|0x14|byte(v>>16), byte(v>>8), byte(v))
	}
	v -= 263184
	return append(dst, first|0x18, byte(v>>16), byte(v>>8), byte(v))
}
