package shape

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/bin"
)

// Floats as toolkits write them beside plain decimals: with an exponent (Java 1.0E-5, .NET 1E-05, C 1e+10), and the three words of xs:double. The octet that tells a large scale tells these too (wire-format section 10.2).
const (
	withExponent = 32
	firstWord    = 64
)

var floatWords = [...]string{"NaN", "INF", "-INF"}

// exponent is what stands behind a mantissa.
type exponent struct {
	form byte // bit 0: e, not E; bit 1: + before one that is not negative; bits 2 and 3: least digits, less 1
	x    int64
}

const (
	maxExponent = 1000 // exclusive
	lowerE      = 1
	plusSign    = 2
	leastDigits = 3 // more than these are never zeros in front
)

// parseFloat reads a decimal with an exponent that append would write again as it is.
func parseFloat(b []byte) (n number, e exponent, ok bool) {
	at := bytes.IndexAny(b, "eE")
	if at < 0 {
		return n, e, false
	}
	if n, ok = parseNumber(b[:at], true); !ok || n.abs() >= maxMantissa {
		return n, e, false
	}
	if b[at] == 'e' {
		e.form = lowerE
	}
	rest := b[at+1:]
	negative := false
	if len(rest) > 0 && (rest[0] == '+' || rest[0] == '-') {
		if negative = rest[0] == '-'; !negative {
			e.form |= plusSign
		}
		rest = rest[1:]
	}
	if len(rest) == 0 || len(rest) > leastDigits || digits(rest, 0) < len(rest) {
		return n, e, false
	}
	for _, c := range rest {
		e.x = e.x*10 + int64(c-'0')
	}
	if rest[0] == '0' {
		e.form |= byte(len(rest)-1) << 2
	}
	if negative {
		e.x = -e.x
	}
	return n, e, !negative || e.x != 0
}

// valid tells what append can write.
func (e exponent) valid() bool {
	return e.form < leastDigits<<2 && e.x > -maxExponent && e.x < maxExponent
}

func (e exponent) append(dst []byte) []byte {
	letter, x := byte('E'), e.x
	if e.form&lowerE != 0 {
		letter = 'e'
	}
	dst = append(dst, letter)
	switch {
	case x < 0:
		dst = append(dst, '-')
		x = -x
	case e.form&plusSign != 0:
		dst = append(dst, '+')
	}
	for n := digitsOf(uint64(x)); n < 1+int(e.form>>2); n++ {
		dst = append(dst, '0')
	}
	return number{m: x}.append(dst)
}

// float appends the item of a float that is no plain decimal; it tells whether it is one.
func (g *segmenter) float(b []byte) bool {
	for i, word := range floatWords {
		if string(b) == word {
			g.ensure(2)
			g.seg = append(g.seg, 7+1, byte(firstWord+i))
			return true
		}
	}
	n, e, ok := parseFloat(b)
	if !ok {
		return false
	}
	const longest = 10 + 1 + 1 + 2
	g.ensure(longest)
	g.uvarint(bin.Zigzag(n.m)<<3 + 7 + 1)
	g.seg = append(g.seg, withExponent+n.scale, e.form)
	g.uvarint(bin.Zigzag(e.x))
	return true
}

// float reads what follows the mantissa of such an item: how says which it is.
func (j *Joiner) float(n number, how byte) error {
	if word := int(how) - firstWord; word >= 0 && word < len(floatWords) && n.m == 0 {
		j.dst = append(j.dst, floatWords[word]...)
		return nil
	}
	n.scale = how - withExponent
	e := exponent{form: j.seg.octet()}
	if e.x = bin.Unzigzag(j.seg.uvarint()); how < withExponent || n.scale > maxScale || !e.valid() {
		return j.fail("number of form %d", how)
	}
	j.dst = e.append(n.append(j.dst))
	return nil
}

// looksFloat tells the words, and numbers with an exponent that no code or name is likely to look like: with a point in the mantissa, or a sign before the exponent.
func looksFloat(b []byte) bool {
	for _, word := range floatWords {
		if string(b) == word {
			return true
		}
	}
	n, e, ok := parseFloat(b)
	return ok && (n.scale > 0 || e.x < 0 || e.form&plusSign != 0)
}
