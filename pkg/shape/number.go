package shape

import "math/bits"

// number is a decimal as it is written: m·10^-scale, with exactly scale digits after the point.
type number struct {
	m     int64
	scale uint8
}

// parseNumber reads a text that appendNumber would write again as it is; anything else is no number. Integer types have no point.
func parseNumber(b []byte, scaled bool) (n number, ok bool) {
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
		n.scale = uint8(len(digits) - 1 - point)
	}
	if digits[0] == '0' && whole > 1 || n.scale > maxScale || u == 0 && len(digits) < len(b) {
		return n, false
	}
	n.m = int64(u)
	if len(digits) < len(b) {
		n.m = -n.m
	}
	return n, true
}

var powers = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// digitsOf counts the decimal digits of u; 0 has one.
func digitsOf(u uint64) int {
	n := bits.Len64(u|1) * 1233 >> 12
	if n < len(powers) && u >= powers[n] {
		n++
	}
	return max(n, 1)
}

// textLen is the length of what append writes.
func (n number) textLen() int {
	size := max(digitsOf(n.abs()), int(n.scale)+1)
	if n.m < 0 {
		size++
	}
	if n.scale > 0 {
		size++
	}
	return size
}

func (n number) abs() uint64 {
	if n.m < 0 {
		return -uint64(n.m)
	}
	return uint64(n.m)
}

const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

// append writes the number's text (wire-format section 10.2).
func (n number) append(dst []byte) []byte {
	var buf [24]byte
	at := len(buf)
	u := n.abs()
	if n.scale == 0 {
		for u >= 100 {
			q := u / 100
			r := (u - q*100) * 2
			u = q
			at -= 2
			buf[at], buf[at+1] = pairs[r], pairs[r+1]
		}
		if u >= 10 {
			at -= 2
			buf[at], buf[at+1] = pairs[u*2], pairs[u*2+1]
		} else {
			at--
			buf[at] = byte(u) + '0'
		}
	} else {
		for i := 0; u > 0 || i <= int(n.scale); i++ {
			if i == int(n.scale) {
				at--
				buf[at] = '.'
			}
			q := u / 10
			at--
			buf[at] = byte(u-q*10) + '0'
			u = q
		}
	}
	if n.m < 0 {
		at--
		buf[at] = '-'
	}
	return append(dst, buf[at:]...)
}
