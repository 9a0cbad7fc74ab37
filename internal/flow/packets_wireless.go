package flow

import "encoding/binary"

// data80211 returns what a data frame of 802.11 carries, from LLC on, or why there is nothing.
// tapped: it is behind a header of radiotap.
func data80211(b []byte, tapped bool) (data []byte, reason string) {
	padded := false
	if tapped {
		if b, padded, reason = radiotap(b); reason != "" {
			return nil, reason
		}
	}
	n, reason := header80211(b)
	if padded {
		n = (n + 3) &^ 3
	}
	if reason == "" && len(b) < n {
		reason = ReasonShort
	}
	if reason != "" {
		return nil, reason
	}
	return b[n:], ""
}

// radiotap skips what an adapter says of a frame before it (https://www.radiotap.org). Its fields
// are in the order of bits of a mask; that of flags says whether the header of the frame is padded.
func radiotap(b []byte) (frame []byte, padded bool, reason string) {
	if len(b) < 8 {
		return nil, false, ReasonShort
	}
	n, present := int(binary.LittleEndian.Uint16(b[2:])), binary.LittleEndian.Uint32(b[4:])
	switch {
	case b[0] != 0 || n < 8:
		return nil, false, ReasonHeader
	case n > len(b):
		return nil, false, ReasonShort
	}
	const time, flags, more, pad = 1, 1 << 1, 1 << 31, 1 << 5
	at := 8
	for mask := present; mask&more != 0 && at+4 <= n; at += 4 { // further masks
		mask = binary.LittleEndian.Uint32(b[at:])
	}
	if present&time != 0 { // 8 bytes at a multiple of 8: all that may be before flags
		at = (at+7)&^7 + 8
	}
	return b[n:], present&flags != 0 && at < n && b[at]&pad != 0, ""
}

// header80211 returns the length of the header of a data frame that is not encrypted (IEEE
// 802.11-2020, section 9.3.2), or why that is none.
func header80211(b []byte) (n int, reason string) {
	if n = 24; len(b) < n {
		return 0, ReasonShort
	}
	const (
		isData, noData, withQoS = 2, 4, 8
		bothSystems             = 3 // there is a fourth address
		encrypted, ordered      = 0x40, 0x80
		aggregated              = 0x80
	)
	kind, subtype, flags := b[0]>>2&3, b[0]>>4, b[1]
	if kind != isData || subtype&noData != 0 || flags&encrypted != 0 {
		return 0, ReasonNotIP
	}
	if flags&bothSystems == bothSystems {
		n += 6
	}
	if subtype&withQoS == 0 {
		return n, ""
	}
	switch {
	case len(b) < n+2:
		return 0, ReasonShort
	case b[n]&aggregated != 0:
		return 0, ReasonAggregate
	case flags&ordered != 0:
		return n + 6, ""
	}
	return n + 2, ""
}
