// Package lexical reads and writes the texts of values: numbers, dates and times, UUIDs, base64 and
// hexadecimal lines, generated prefixes, UTF-16 (docs/wire-format.md, sections 10.2 to 10.4 and
// 10.8). What it reads it writes again byte for byte; whatever it could not it refuses.
package lexical

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

// Number is a decimal as it is written: m·10^-scale, with exactly scale digits after the point.
type Number struct {
	M     int64
	Scale uint8
}

// ParseNumber reads a text that appendNumber would write again as it is; anything else is no
// number. Integer types have no point.
func ParseNumber(b []byte, scaled bool) (n Number, ok bool) {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 20 {
		return n, false
	}
	var u uint64
	point := -1
	for i, c := range digits {
		if d := c - '0'; d <= 9 {
			if u > (1<<63-1-9)/10 {
				return n, false
			}
			u = u*10 + uint64(d)
			continue
		}
		if c != '.' || point >= 0 || !scaled || i == 0 || i == len(digits)-1 {
			return n, false
		}
		point = i
	}
	whole := len(digits)
	if point >= 0 {
		whole = point
		n.Scale = uint8(len(digits) - 1 - point)
	}
	if digits[0] == '0' && whole > 1 || n.Scale > MaxScale || u == 0 && len(digits) < len(b) {
		return n, false
	}
	n.M = int64(u)
	if len(digits) < len(b) {
		n.M = -n.M
	}
	return n, true
}

var Powers = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// DigitsOf counts the decimal digits of u; 0 has one.
func DigitsOf(u uint64) int {
	n := bits.Len64(u|1) * 1233 >> 12
	if n < len(Powers) && u >= Powers[n] {
		n++
	}
	return max(n, 1)
}

func (n Number) Abs() uint64 {
	if n.M < 0 {
		return -uint64(n.M)
	}
	return uint64(n.M)
}

// Eight decimal digits are worked on at a time, as the bytes of a word, the first in the lowest.

const (
	// ScanRoom is how many bytes ScanNumber looks at.
	ScanRoom = 1 + 8 + 1 + 8 + 8
	// NumberRoom is how many bytes PutNumber may write, its text included.
	NumberRoom = 1 + 8 + 8 + 1 + 16
)

// notDigits marks, with the highest bit of its byte, what is no digit in a word of text whose
// digits were turned into their values.
func notDigits(w uint64) uint64 { return (w&(0x7f*bin.Ones) + 0x76*bin.Ones | w) & (0x80 * bin.Ones) }

// eight gives the number that the values of n digits make, those first in w; n is from 1 to 8.
func eight(w uint64, n int) uint64 {
	w <<= uint(64-8*n) & 63 // which it is; said, the shift takes one instruction
	w = w * (10<<8 + 1) >> 8 & 0x00ff00ff00ff00ff
	w = w * (100<<16 + 1) >> 16 & 0x0000ffff0000ffff
	return w * (10000<<32 + 1) >> 32
}

// digitsAt reads the word of text at b[at:], with the values of digits, and what notDigits marks in
// it; n is how many digits it begins with.
func digitsAt(b []byte, at int) (w, others uint64, n int) {
	w = binary.LittleEndian.Uint64(b[at:at+8:at+8]) ^ '0'*bin.Ones
	others = notDigits(w)
	return w, others, bits.TrailingZeros64(others) >> 3
}

// ScanNumber reads the number that b begins with, which has at least ScanRoom bytes: its zigzag
// mantissa, its scale and how many bytes of b it takes. If a value ends there, ParseNumber reads
// the same. n is 0 for what is none, and for what has more digits than can be read this way. What
// differs from number to number, as signs do, decides about no branch where that can be had.
func ScanNumber(b []byte, scaled bool) (z uint64, scale uint8, n int) {
	_ = b[ScanRoom-1]
	negative := 0
	if b[0] == '-' {
		negative = 1
	}
	w, others, whole := digitsAt(b, negative)
	if whole == 0 || w&0xff|others&0x8000 == 0 { // the second of them is that of a digit behind 0
		return 0, 0, 0
	}
	u := eight(w, whole)
	if whole == 8 {
		w, _, more := digitsAt(b, negative+8)
		if more == 8 {
			return 0, 0, 0
		}
		if more > 0 {
			u = u*Powers[more] + eight(w, more)
		}
		whole += more
	}
	n = negative + whole
	if b[n] == '.' {
		if !scaled || whole > 8 {
			return 0, 0, 0
		}
		w, _, places := digitsAt(b, n+1)
		if places == 0 {
			return 0, 0, 0
		}
		u = u*Powers[places] + eight(w, places)
		if places == 8 {
			w, _, more := digitsAt(b, n+9)
			if whole+8+more > 17 {
				return 0, 0, 0
			}
			if more > 0 {
				u = u*Powers[more] + eight(w, more)
			}
			places += more
		}
		n += 1 + places
		scale = uint8(places)
	}
	if u == 0 && negative > 0 {
		return 0, 0, 0
	}
	return u<<1 - uint64(negative), scale, n
}

// digitWord gives the digits of u, below 10^8, as values, the first in the lowest byte, with zeros
// in front.
func digitWord(u uint64) uint64 {
	u = u/10000 | u%10000<<32
	q := u * 10486 >> 20 & 0x0000007f0000007f
	u = q | (u-q*100)<<16
	q = u * 103 >> 10 & 0x000f000f000f000f
	return q | (u-q*10)<<8
}

// Append writes the number's text (wire-format section 10.2).
func (n Number) Append(dst []byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, NumberRoom)[:at+NumberRoom]
	return dst[:at+PutNumber(dst[at:], n.M, int(n.Scale))]
}

// PutNumber writes the text of m·10^-scale at the start of dst, which has at least NumberRoom
// bytes, and gives its length. What stands behind the text may be overwritten.
func PutNumber(dst []byte, m int64, scale int) int {
	_ = dst[NumberRoom-1]
	dst[0] = '-'
	negative := int(uint64(m) >> 63)
	u := uint64(m>>63^m) + uint64(negative)
	to := dst[negative:]
	n := 0
	switch {
	case u < 1e8 && scale < 8:
		w := digitWord(u)
		zeros := min(bits.TrailingZeros64(w)>>3, 7-scale)
		binary.LittleEndian.PutUint64(to, (w+'0'*bin.Ones)>>uint(8*zeros))
		n = 8 - zeros
	case u < 1e16 && scale < 16:
		high := u / 1e8
		w := digitWord(high)
		zeros := min(bits.TrailingZeros64(w)>>3, 8, 15-scale)
		binary.LittleEndian.PutUint64(to, (w+'0'*bin.Ones)>>uint(8*zeros))
		n = 8 - zeros
		binary.LittleEndian.PutUint64(to[n:], digitWord(u-high*1e8)+'0'*bin.Ones)
		n += 8
	default:
		n = max(DigitsOf(u), scale+1)
		for i := n - 1; i >= 0; i-- {
			q := u / 10
			to[i] = byte(u-q*10) + '0'
			u = q
		}
	}
	if scale > 0 {
		at := n - scale
		if scale <= 8 {
			binary.LittleEndian.PutUint64(to[at+1:], binary.LittleEndian.Uint64(to[at:]))
		} else {
			copy(to[at+1:n+1], to[at:n])
		}
		to[at] = '.'
		n++
	}
	return negative + n
}
