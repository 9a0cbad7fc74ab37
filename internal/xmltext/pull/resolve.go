package pull

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// wherein is where text stands, which says how it is read.
type wherein uint8

const (
	content   wherein = iota
	attribute         // ]]> may stand there
	verbatim          // CDATA, in which references are none
)

// plain are bytes that stand for themselves everywhere.
var plain = func() (table [256]bool) {
	for c := range table {
		table[c] = c >= ' ' && c < utf8.RuneSelf && c != '&' && c != '>' || c == '\t' || c == '\n'
	}
	return table
}()

// resolve is text without references, and with line ends that are one line feed (XML 1.0, section
// 2.11). at is where raw stands.
func (p *Parser) resolve(raw []byte, at int, where wherein) ([]byte, error) {
	i := 0
	for i < len(raw) && plain[raw[i]] {
		i++
	}
	if i == len(raw) {
		return raw, nil
	}
	from := len(p.resolved) // of the result, if it is not raw
	done := 0               // of raw, which the result has
	for i < len(raw) {
		c, n := raw[i], 1
		switch {
		case plain[c]:
		case c == '>':
			if where == content && i >= 2 && raw[i-1] == ']' && raw[i-2] == ']' {
				return nil, p.fail(at+i, "]]> in text")
			}
		case c == '&' && where != verbatim:
			r, length := reference(raw[i:])
			if length == 0 {
				return nil, p.fail(at+i, "%.20q is no reference", raw[i:])
			}
			p.resolved = utf8.AppendRune(append(p.resolved, raw[done:i]...), r)
			n, done = length, i+length
		case c == '\r':
			p.resolved = append(p.resolved, raw[done:i]...)
			if i+1 == len(raw) || raw[i+1] != '\n' {
				p.resolved = append(p.resolved, '\n')
			}
			done = i + 1
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 || !IsChar(r) {
				return nil, p.fail(at+i, "byte %#02x begins no character", c)
			}
			n = size
		case c != '&':
			return nil, p.fail(at+i, "character %#02x cannot stand in XML", c)
		}
		i += n
	}
	if done == 0 {
		return raw, nil
	}
	p.resolved = append(p.resolved, raw[done:]...)
	return p.resolved[from:len(p.resolved):len(p.resolved)], nil
}

// normalized is the value of an attribute with each line end, and each other white space, as one
// space. What references stand for stays.
func normalized(raw []byte) []byte {
	if !bytes.ContainsAny(raw, "\t\n\r") {
		return raw
	}
	to := make([]byte, 0, len(raw))
	for i, c := range raw {
		switch {
		case c == '\n' && i > 0 && raw[i-1] == '\r':
		case c == '\t' || c == '\n' || c == '\r':
			to = append(to, ' ')
		default:
			to = append(to, c)
		}
	}
	return to
}

// IsChar reports whether XML can hold a character (XML 1.0, section 2.2).
func IsChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD ||
		r >= 0x10000 && r <= utf8.MaxRune
}

// maxReference is the length of the longest reference that is read, in bytes.
const maxReference = 16

// reference reads one that raw begins with; length 0: it is none that is declared.
func reference(raw []byte) (r rune, length int) {
	end := 1
	for end < len(raw) && end < maxReference && raw[end] != ';' {
		end++
	}
	if end == len(raw) || raw[end] != ';' {
		return 0, 0
	}
	switch name := string(raw[1:end]); name {
	case "lt":
		return '<', end + 1
	case "gt":
		return '>', end + 1
	case "amp":
		return '&', end + 1
	case "apos":
		return '\'', end + 1
	case "quot":
		return '"', end + 1
	default:
		if len(name) < 2 || name[0] != '#' {
			return 0, 0
		}
		digits, radix := name[1:], 10
		if digits[0] == 'x' {
			digits, radix = digits[1:], 16
		}
		n, err := strconv.ParseUint(digits, radix, 32)
		if err != nil || n > utf8.MaxRune || !IsChar(rune(n)) {
			return 0, 0
		}
		return rune(n), end + 1
	}
}
