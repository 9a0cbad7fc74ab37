package learn

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// typeOf guesses the narrowest type of a value from its text. A guess that is wrong for other
// messages costs an exception each time, until the shape is widened.
func typeOf(text []byte) shape.Type {
	if n, ok := lexical.ParseNumber(text, true); ok {
		if n.Scale == 0 && n.M == int64(int32(n.M)) {
			return shape.TypeInt
		}
		return shape.TypeDecimal
	}
	if lexical.LooksFloat(text) {
		if bytes.ContainsAny(text, "eE") {
			return shape.TypeScientific
		}
		return shape.TypeFloat
	}
	if string(text) == "true" || string(text) == "false" {
		return shape.TypeBoolean
	}
	if form, _ := lexical.ParseUUID(text); form != 0 {
		return shape.TypeUUID
	}
	if _, ok := lexical.ParseDateTime(text); ok {
		return shape.TypeDateTime
	}
	switch {
	case looksHex(text):
		return shape.TypeHex
	case looksBase64(text):
		return shape.TypeBase64
	}
	return shape.TypeText
}

// looksHex tells long runs of hexadecimal digits of one case, an even number of them or in lines.
func looksHex(b []byte) bool {
	const least = 16
	if len(b) < least {
		return false
	}
	if !bytes.ContainsAny(b[:min(len(b), lexical.LongestHexLine+2)], "\r\n") && len(b)%2 != 0 {
		return false
	}
	b = b[:min(len(b), guessWindow)]
	digit, lower, upper := false, false, false
	inLines := lexical.GuessLines(b, lexical.LongestHexLine).Width > 0
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'f':
			lower = true
		case c >= 'A' && c <= 'F':
			upper = true
		case inLines && (c == '\n' || c == '\r'):
		default:
			return false
		}
	}
	return digit && lower != upper
}

// base64Octets are the characters of base64, and those of line ends.
var base64Octets = func() (set [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n" {
		set[c] = true
	}
	return set
}()

// looksBase64 tells text that decodes as base64 and has more than words in it: digits and letters
// of both cases, or padding.
func looksBase64(b []byte) bool {
	const least = 16
	if len(b) < least {
		return false
	}
	head := b[:min(len(b), guessWindow)]
	for _, c := range head {
		if !base64Octets[c] {
			return false
		}
	}
	l := lexical.GuessLines(head, lexical.LongestLine)
	column := 0
	var buf [guessWindow]byte
	chars, n := l.Take(buf[:0], head, &column, len(head))
	whole := len(head) == len(b)
	if whole && (n < len(b) || len(chars)%4 != 0) {
		return false
	}
	if !whole {
		chars = chars[:len(chars)/4*4]
	}
	if len(chars) < least {
		return false
	}
	var octets [guessWindow]byte
	if _, err := lexical.StrictBase64.Decode(octets[:], chars); err != nil {
		return false
	}
	digit, lower, upper := chars[len(chars)-1] == '=', false, false
	for _, c := range chars {
		digit = digit || c >= '0' && c <= '9' || c == '+' || c == '/'
		lower = lower || c >= 'a' && c <= 'z'
		upper = upper || c >= 'A' && c <= 'Z'
	}
	return digit && lower && upper
}

func mergeGaps(a, b gap) gap {
	if a.value || b.value || a.text != b.text {
		return gap{value: true}
	}
	return a
}

// mergeTypes widens the types of two leaves; an empty one fits any, at the price of an exception.
func mergeTypes(a, b *draft) shape.Type {
	switch {
	case a.leafType == b.leafType, b.isBlank && b.blank == "":
		return a.leafType
	case a.isBlank && a.blank == "":
		return b.leafType
	}
	return widen(a.leafType, b.leafType)
}

func widen(a, b shape.Type) shape.Type {
	switch {
	case a == b:
		return a
	case a.Numeric() && b.Numeric():
		return max(a, b, shape.TypeDecimal) // TypeScientific if one is
	}
	return shape.TypeText
}
