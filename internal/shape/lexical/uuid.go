package lexical

import (
	"encoding/binary"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

const (
	uuidURN = "urn:uuid:"
	uuidLen = 36
	// UUIDForms is the largest form byte: 1 + bit 0 for upper-case digits + bit 1 for urn:uuid: in
	// front.
	UUIDForms = 4
)

// Eight hexadecimal digits are worked on at a time, as the bytes of a word, the first in the
// lowest.
const (
	nibbles = 0x0f * bin.Ones
	// lowerGap and upperGap are how far the first letter stands behind where a digit ten would.
	lowerGap = 'a' - '9' - 1
	upperGap = 'A' - '9' - 1
)

// hexDigits writes the digits of eight values, each in a byte of v.
func hexDigits(v, gap uint64) uint64 { return v + '0'*bin.Ones + (v+6*bin.Ones)>>4&bin.Ones*gap }

// hexOctets reads eight digits. lower and upper tell whether they are digits of that case; digits 0
// to 9 are of both.
func hexOctets(w uint64) (octets uint32, lower, upper bool) {
	v := w&nibbles + w>>6&bin.Ones*9
	small := v&^nibbles == 0
	lower, upper = small && w == hexDigits(v, lowerGap), small && w == hexDigits(v, upperGap)
	v = (v<<4 | v>>8) & 0x00ff00ff00ff00ff
	v = (v | v>>8) & 0x0000ffff0000ffff
	return uint32(v | v>>16), lower, upper
}

// hexWord is the inverse of hexOctets.
func hexWord(octets uint32, gap uint64) uint64 {
	v := uint64(octets)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	return hexDigits(v>>4&0x000f000f000f000f|v<<8&0x0f000f000f000f00, gap)
}

// ParseUUID reads a UUID in its usual text, all digits of one case; form 0: it is none.
func ParseUUID(b []byte) (form byte, octets [16]byte) {
	if len(b) == len(uuidURN)+uuidLen && string(b[:len(uuidURN)]) == uuidURN {
		form = 2
		b = b[len(uuidURN):]
	}
	if len(b) != uuidLen || b[8] != '-' || b[13] != '-' || b[18] != '-' || b[23] != '-' {
		return 0, octets
	}
	le := binary.LittleEndian
	o0, l0, u0 := hexOctets(le.Uint64(b))
	o1, l1, u1 := hexOctets(uint64(le.Uint32(b[9:])) | uint64(le.Uint32(b[14:]))<<32)
	o2, l2, u2 := hexOctets(uint64(le.Uint32(b[19:])) | uint64(le.Uint32(b[24:]))<<32)
	o3, l3, u3 := hexOctets(le.Uint64(b[28:]))
	switch {
	case l0 && l1 && l2 && l3:
	case u0 && u1 && u2 && u3:
		form++
	default:
		return 0, octets
	}
	le.PutUint32(octets[0:], o0)
	le.PutUint32(octets[4:], o1)
	le.PutUint32(octets[8:], o2)
	le.PutUint32(octets[12:], o3)
	return form + 1, octets
}

// AppendUUID writes the text again; bytes are 16.
func AppendUUID(dst []byte, form byte, octets []byte) []byte {
	if (form-1)&2 != 0 {
		dst = append(dst, uuidURN...)
	}
	gap := uint64(lowerGap)
	if (form-1)&1 != 0 {
		gap = upperGap
	}
	le := binary.LittleEndian
	at := len(dst)
	dst = slices.Grow(dst, uuidLen)[:at+uuidLen]
	text := dst[at:]
	middle, node := hexWord(le.Uint32(octets[4:]), gap), hexWord(le.Uint32(octets[8:]), gap)
	le.PutUint64(text[0:], hexWord(le.Uint32(octets), gap))
	text[8] = '-'
	le.PutUint32(text[9:], uint32(middle))
	text[13] = '-'
	le.PutUint32(text[14:], uint32(middle>>32))
	text[18] = '-'
	le.PutUint32(text[19:], uint32(node))
	text[23] = '-'
	le.PutUint32(text[24:], uint32(node>>32))
	le.PutUint64(text[28:], hexWord(le.Uint32(octets[12:]), gap))
	return dst
}
