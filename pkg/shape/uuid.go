package shape

import "encoding/hex"

const (
	uuidURN = "urn:uuid:"
	uuidLen = 36
	// uuidForms is the largest form octet: 1 + bit 0 for upper-case digits + bit 1 for urn:uuid: in front.
	uuidForms = 4
)

// uuidGroups are the places of the five groups of digits in a UUID's text.
var uuidGroups = [...][2]int{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, 36}}

// parseUUID reads a UUID in its usual text, all digits of one case; form 0: it is none.
func parseUUID(b []byte) (form byte, octets [16]byte) {
	if len(b) == len(uuidURN)+uuidLen && string(b[:len(uuidURN)]) == uuidURN {
		form = 2
		b = b[len(uuidURN):]
	}
	if len(b) != uuidLen || b[8] != '-' || b[13] != '-' || b[18] != '-' || b[23] != '-' {
		return 0, octets
	}
	lower, upper := false, false
	for _, c := range b {
		lower = lower || c >= 'a'
		upper = upper || c >= 'A' && c <= 'F'
	}
	if lower && upper {
		return 0, octets
	}
	at := 0
	for _, g := range uuidGroups {
		n, err := hex.Decode(octets[at:], b[g[0]:g[1]])
		if err != nil {
			return 0, octets
		}
		at += n
	}
	if upper {
		form++
	}
	return form + 1, octets
}

// appendUUID writes the text again.
func appendUUID(dst []byte, form byte, octets []byte) []byte {
	if (form-1)&2 != 0 {
		dst = append(dst, uuidURN...)
	}
	from := len(dst)
	for i, o := range octets {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		const digits = "0123456789abcdef"
		dst = append(dst, digits[o>>4], digits[o&15])
	}
	if (form-1)&1 != 0 {
		for i, c := range dst[from:] {
			if c >= 'a' {
				dst[from+i] = c - 'a' + 'A'
			}
		}
	}
	return dst
}
