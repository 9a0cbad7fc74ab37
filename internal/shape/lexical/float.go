package lexical

import "bytes"

// Floats as toolkits write them beside plain decimals: with an exponent (Java 1.0E-5, .NET 1E-05, C
// 1e+10), and the three words of xs:double. The byte that tells a large scale tells these too
// (wire-format section 10.2).
const (
	WithExponent = 32
	FirstWord    = 64
)

var FloatWords = [...]string{"NaN", "INF", "-INF"}

// Exponent is what stands behind a mantissa.
type Exponent struct {
	Form byte // bit 0: e, not E; bit 1: + before one that is not negative; bits 2 and 3: least digits, less 1
	X    int64
}

const (
	maxExponent = 1000 // exclusive
	lowerE      = 1
	plusSign    = 2
	leastDigits = 3 // more than these are never zeros in front
)

// ParseFloat reads a decimal with an exponent that append would write again as it is.
func ParseFloat(b []byte) (n Number, e Exponent, ok bool) {
	at := bytes.IndexAny(b, "eE")
	if at < 0 {
		return n, e, false
	}
	if n, ok = ParseNumber(b[:at], true); !ok || n.Abs() >= MaxMantissa {
		return n, e, false
	}
	if b[at] == 'e' {
		e.Form = lowerE
	}
	rest := b[at+1:]
	negative := false
	if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
		if negative = rest[0] == '-'; !negative {
			e.Form |= plusSign
		}
		rest = rest[1:]
	}
	if len(rest) == 0 || len(rest) > leastDigits || digits(rest, 0) < len(rest) {
		return n, e, false
	}
	for _, c := range rest {
		e.X = e.X*10 + int64(c-'0')
	}
	if rest[0] == '0' {
		e.Form |= byte(len(rest)-1) << 2
	}
	if negative {
		e.X = -e.X
	}
	return n, e, !negative || e.X != 0
}

// Valid tells what append can write.
func (e Exponent) Valid() bool {
	return e.Form < leastDigits<<2 && e.X > -maxExponent && e.X < maxExponent
}

func (e Exponent) Append(dst []byte) []byte {
	letter, x := byte('E'), e.X
	if e.Form&lowerE != 0 {
		letter = 'e'
	}
	dst = append(dst, letter)
	switch {
	case x < 0:
		dst = append(dst, '-')
		x = -x
	case e.Form&plusSign != 0:
		dst = append(dst, '+')
	}
	for n := DigitsOf(uint64(x)); n < 1+int(e.Form>>2); n++ {
		dst = append(dst, '0')
	}
	return Number{M: x}.Append(dst)
}

// LooksFloat tells the words, and numbers with an exponent that no code or name is likely to look
// like: with a point in the mantissa, or a sign before the exponent.
func LooksFloat(b []byte) bool {
	for _, word := range FloatWords {
		if string(b) == word {
			return true
		}
	}
	n, e, ok := ParseFloat(b)
	return ok && (n.Scale > 0 || e.X < 0 || e.Form&plusSign != 0)
}
