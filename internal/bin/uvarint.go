package bin

import (
	"encoding/binary"
	"math/bits"
)

// Ones has 1 in each byte of a word.
const Ones = 0x0101010101010101

// Squeeze gives the integer that is written in the lowest bytes of w, up to bit end, which is the
// highest of its last byte.
func Squeeze(w uint64, end int) uint64 {
	w &= 0x7f * Ones & (2<<uint(end) - 1)
	w = w&0x007f007f007f007f | w&0x7f007f007f007f00>>1
	w = w&0x00003fff00003fff | w&0x3fff00003fff0000>>2
	return w&0x0fffffff | w>>32<<28
}

// Stretch gives the bytes of an integer below 2^56, the first as the lowest, and how many they
// are.
func Stretch(u uint64) (w uint64, n int) {
	n = (9*bits.Len64(u|1) + 64) >> 6 // a seventh of the bits, rounded up
	w = u&0x0fffffff | u>>28<<32
	w = w&0x00003fff00003fff | w&0x0fffc0000fffc000<<2
	w = w&0x007f007f007f007f | w&0x3f803f803f803f80<<1
	return w | 0x80*Ones&(1<<uint(8*n-8)-1), n
}

// UvarintAt reads an unsigned integer; n is 0 where there is none in its shortest form. at is not
// negative.
func UvarintAt(b []byte, at int) (u uint64, n int) {
	have := len(b) - at
	if have <= 0 {
		return 0, 0
	}
	if len(b) >= 8 {
		var w uint64
		if have >= 8 {
			w = binary.LittleEndian.Uint64(b[at:])
		} else {
			w = binary.LittleEndian.Uint64(b[len(b)-8:]) >> uint(64-8*have) // zeros behind the end
		}
		if end := bits.TrailingZeros64(^w & (0x80 * Ones)); end < 64 {
			if end>>3 >= have || end > 7 && w>>(end-7)&0x7f == 0 {
				return 0, 0
			}
			return Squeeze(w, end), end>>3 + 1
		}
	}
	u, n = binary.Uvarint(b[at:])
	if n <= 0 || n > 1 && b[at+n-1] == 0 {
		return 0, 0
	}
	return u, n
}

func AppendUvarint(out []byte, u uint64) []byte {
	if u < 0x80 {
		return append(out, byte(u))
	}
	return appendLong(out, u)
}

// appendLong appends an unsigned integer, most of them by one store.
func appendLong(out []byte, u uint64) []byte {
	if u >= 1<<56 {
		return binary.AppendUvarint(out, u)
	}
	w, n := Stretch(u)
	return binary.LittleEndian.AppendUint64(out, w)[:len(out)+n]
}
