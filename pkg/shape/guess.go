package shape

import "bytes"

// typeOf guesses the narrowest type of a value from its text. A guess that is wrong for other messages costs an exception each time, until the shape is widened.
func typeOf(text []byte) Type {
	if n, ok := parseNumber(text, true); ok {
		if n.scale == 0 && n.m == int64(int32(n.m)) {
			return TypeInt
		}
		return TypeDecimal
	}
	if looksFloat(text) {
		if bytes.ContainsAny(text, "eE") {
			return TypeScientific
		}
		return TypeFloat
	}
	if string(text) == "true" || string(text) == "false" {
		return TypeBoolean
	}
	if form, _ := parseUUID(text); form != 0 {
		return TypeUUID
	}
	if _, ok := parseInstant(text); ok {
		return TypeDateTime
	}
	switch {
	case looksHex(text):
		return TypeHex
	case looksBase64(text):
		return TypeBase64
	}
	return TypeText
}

// guessWindow is how much of a long value is looked at, in octets.
const guessWindow = 4096

// looksHex tells long runs of hexadecimal digits of one case, an even number of them or in lines.
func looksHex(b []byte) bool {
	const least = 16
	if len(b) < least {
		return false
	}
	if !bytes.ContainsAny(b[:min(len(b), longestHexLine+2)], "\r\n") && len(b)%2 != 0 {
		return false
	}
	b = b[:min(len(b), guessWindow)]
	digit, lower, upper := false, false, false
	inLines := guessLines(b, longestHexLine).width > 0
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

// looksBase64 tells text that decodes as base64 and has more than words in it: digits and letters of both cases, or padding.
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
	l := guessLines(head, longestLine)
	column := 0
	var buf [guessWindow]byte
	chars, n := l.take(buf[:0], head, &column, len(head))
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
	if _, err := strict.Decode(octets[:], chars); err != nil {
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
