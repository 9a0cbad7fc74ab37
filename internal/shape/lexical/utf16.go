package lexical

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/shape"
)

// A message in UTF-16 is split and joined as what it is in UTF-8 (wire-format section 10.8), so
// that shape, content and programs know of one encoding only. Any bytes at all are something in
// that UTF-8, and come back from it: a surrogate without partner keeps its number, and the last
// byte of an odd number has a form of its own.

// loneOctet stands before the last byte of a message that has an odd number of them. It is no
// byte of UTF-8.
const loneOctet = 0xFF

// UTF16Of tells messages in UTF-16, with or without byte order mark, by their first four bytes:
// Text for others.
func UTF16Of(message []byte) shape.Kind {
	if len(message) < 4 || message[2] == 0 && message[3] == 0 {
		return shape.Text
	}
	switch [2]byte(message) {
	case [2]byte{0xFF, 0xFE}, [2]byte{'<', 0}:
		return shape.UTF16LE
	case [2]byte{0xFE, 0xFF}, [2]byte{0, '<'}:
		return shape.UTF16BE
	}
	return shape.Text
}

func orderOf(k shape.Kind) binary.ByteOrder {
	if k == shape.UTF16LE {
		return binary.LittleEndian
	}
	return binary.BigEndian
}

// Narrower turns UTF-16 that comes in chunks into UTF-8.
type Narrower struct {
	odd  []byte // a byte that waits for the other of its unit
	high uint16 // a surrogate that waits for its partner, 0: none
}

func (n *Narrower) Reset() { n.odd, n.high = n.odd[:0], 0 }

// Append appends the next chunk; final: nothing follows.
func (n *Narrower) Append(dst []byte, k shape.Kind, chunk []byte, final bool) []byte {
	order := orderOf(k)
	if len(n.odd) > 0 && len(chunk) > 0 {
		n.odd = append(n.odd, chunk[0])
		chunk = chunk[1:]
		dst = n.unit(dst, order.Uint16(n.odd))
		n.odd = n.odd[:0]
	}
	for len(chunk) >= 2 {
		if n.high == 0 && len(chunk) >= 8 {
			const other = 0xFF80FF80FF80FF80
			four := order.Uint64(chunk)
			if four&other == 0 { // ASCII, as nearly all markup
				if k == shape.UTF16LE {
					dst = append(dst, byte(four), byte(four>>16), byte(four>>32), byte(four>>48))
				} else {
					dst = append(dst, byte(four>>48), byte(four>>32), byte(four>>16), byte(four))
				}
				chunk = chunk[8:]
				continue
			}
		}
		dst = n.unit(dst, order.Uint16(chunk))
		chunk = chunk[2:]
	}
	n.odd = append(n.odd, chunk...)
	if final {
		if n.high != 0 {
			dst = appendSurrogate(dst, n.high)
		}
		if len(n.odd) > 0 {
			dst = append(dst, loneOctet, n.odd[0])
		}
		n.Reset()
	}
	return dst
}

func (n *Narrower) unit(dst []byte, u uint16) []byte {
	const high, low, end = 0xD800, 0xDC00, 0xE000
	if n.high != 0 {
		before := n.high
		n.high = 0
		if u >= low && u < end {
			return utf8.AppendRune(dst, utf16.DecodeRune(rune(before), rune(u)))
		}
		dst = appendSurrogate(dst, before)
	}
	switch {
	case u >= high && u < low:
		n.high = u
		return dst
	case u >= low && u < end:
		return appendSurrogate(dst, u)
	}
	return utf8.AppendRune(dst, rune(u))
}

// appendSurrogate appends a surrogate without partner, as UTF-8 would if that were a character.
func appendSurrogate(dst []byte, u uint16) []byte {
	return append(dst, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F)
}

// Widen is the other way: it appends text in UTF-16, and tells how much of it it took, which
// without final may be less by the beginning of a character. ok is false for bytes that are no
// such UTF-8.
func Widen(k shape.Kind, dst, text []byte, final bool) (wide []byte, taken int, ok bool) {
	const ascii = 0x8080808080808080
	put := binary.LittleEndian.AppendUint16
	if k == shape.UTF16BE {
		put = binary.BigEndian.AppendUint16
	}
	at := 0
	for at < len(text) {
		rest := text[at:]
		if len(rest) >= 8 && binary.LittleEndian.Uint64(rest)&ascii == 0 {
			dst = appendASCII(k, dst, [8]byte(rest))
			at += 8
			continue
		}
		r, n := utf8.DecodeRune(rest)
		switch {
		case r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			dst = put(put(dst, uint16(high)), uint16(low))
		case r != utf8.RuneError || n > 1:
			dst = put(dst, uint16(r))
		case rest[0] == loneOctet:
			if final && len(rest) == 2 {
				return append(dst, rest[1]), len(text), true
			}
			return dst, at, !final && len(rest) <= 2
		case isSurrogate(rest):
			if n = 3; len(rest) < n {
				return dst, at, !final
			}
			dst = put(dst, uint16(rest[0]&0xF)<<12|uint16(rest[1]&0x3F)<<6|uint16(rest[2]&0x3F))
		default:
			return dst, at, !final && !utf8.FullRune(rest)
		}
		at += n
	}
	return dst, at, true
}

func appendASCII(k shape.Kind, dst []byte, text [8]byte) []byte {
	var wide [16]byte
	first := 0
	if k == shape.UTF16BE {
		first = 1
	}
	for i, c := range text {
		wide[2*i+first] = c
	}
	return append(dst, wide[:]...)
}

// isSurrogate tells the three bytes of a surrogate, or what may begin them.
func isSurrogate(b []byte) bool {
	return b[0] == 0xED && (len(b) < 2 || b[1]&0xE0 == 0xA0) && (len(b) < 3 || b[2]&0xC0 == 0x80)
}
