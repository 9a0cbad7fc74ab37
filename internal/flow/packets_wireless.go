package flow

import "encoding/binary"

// radiotap skips what an adapter says of a frame of 802.11 before it. Its fields are in the order of
// bits of a mask; that of flags tells what is behind the frame, which does not matter here.
func (w *walk) radiotap() bool {
	b := w.data
	if len(b) < 8 {
		return w.stop(ReasonShort)
	}
	if n := int(binary.LittleEndian.Uint16(b[2:])); b[0] != 0 || n < 8 {
		return w.stop(ReasonHeader)
	} else if !w.skip(n) {
		return w.stop(ReasonShort)
	}
	const flagsPresent, padded = 1 << 1, 1 << 5
	// Of the fields before flags only the time may be there: 8 bytes, aligned to 8.
	present := binary.LittleEndian.Uint32(b[4:])
	at := 8
	for more := present; more&(1<<31) != 0 && at+4 <= len(b); at += 4 {
		more = binary.LittleEndian.Uint32(b[at:])
	}
	if present&1 != 0 {
		at = (at+7)&^7 + 8
	}
	return w.frame80211(present&flagsPresent != 0 && at < len(b) && b[at]&padded != 0)
}

func (w *walk) wireless() bool { return w.frame80211(false) }

// frame80211 reads a data frame of 802.11 that is not encrypted (IEEE 802.11-2020, section 9.3.2).
// padded: its header is filled up to a multiple of 4 bytes.
func (w *walk) frame80211(padded bool) bool {
	b := w.data
	if len(b) < 24 {
		return w.stop(ReasonShort)
	}
	const (
		data, noData, withQoS = 2, 4, 8
		bothSystems           = 3
		encrypted, ordered    = 0x40, 0x80
		aggregated            = 0x80
	)
	kind, subtype, flags := b[0]>>2&3, b[0]>>4, b[1]
	if kind != data || subtype&noData != 0 || flags&encrypted != 0 {
		return w.stop(ReasonNotIP)
	}
	n := 24
	if flags&bothSystems == bothSystems {
		n += 6 // a fourth address
	}
	if subtype&withQoS != 0 {
		if len(b) < n+2 {
			return w.stop(ReasonShort)
		}
		if b[n]&aggregated != 0 {
			return w.stop(ReasonAggregate)
		}
		if n += 2; flags&ordered != 0 {
			n += 4
		}
	}
	if padded {
		n = (n + 3) &^ 3
	}
	if !w.skip(n) {
		return w.stop(ReasonShort)
	}
	return w.etherType(0) // LLC
}
