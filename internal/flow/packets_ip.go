package flow

import (
	"encoding/binary"
	"net/netip"
)

// IP protocols that are followed.
const (
	protoIPv4 = 4
	protoTCP  = 6
	protoUDP  = 17
	protoIPv6 = 41
	protoGRE  = 47
)

// UDP ports of tunnels.
const (
	portVXLAN = 4789
	portGRE   = 4754
)

func (w *walk) ip() bool {
	if len(w.data) == 0 {
		return w.stop(ReasonShort)
	}
	switch w.data[0] >> 4 {
	case 4:
		return w.ip4()
	case 6:
		return w.ip6()
	}
	return w.stop(ReasonNotIP)
}

// ip4 reads an IPv4 header. Bytes after the packet's length are padding; checksums are not checked.
func (w *walk) ip4() bool {
	b := w.data
	if len(b) < 20 {
		return w.stop(ReasonShort)
	}
	head, length := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if length == 0 { // left to the network card (TCP segmentation offload)
		length = len(b)
	}
	switch {
	case head < 20, length < head:
		return w.stop(ReasonHeader)
	case len(b) < head:
		return w.stop(ReasonShort)
	}
	w.cut(b, head, length)
	w.src, w.dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	proto, frag := b[9], binary.BigEndian.Uint16(b[6:])
	if frag&0x3FFF != 0 {
		key := fragmentKey{w.src, w.dst, proto, uint32(binary.BigEndian.Uint16(b[4:])), w.seg.encap}
		if !w.fragment(key, int(frag&0x1FFF)*8, frag&0x2000 != 0) {
			return true
		}
	}
	return w.proto(proto)
}

// cut leaves the payload of an IP packet of length bytes in data, and records what was not
// captured.
func (w *walk) cut(b []byte, head, length int) {
	w.short = 0
	if length > len(b) {
		w.short = length - len(b)
		length = len(b)
	}
	w.data = b[head:length]
}

// fragment passes a fragment to the defragmenter; true if data is now the whole payload.
func (w *walk) fragment(key fragmentKey, offset int, more bool) bool {
	if w.short > 0 {
		w.reason = ReasonFragment
		return false
	}
	whole := w.frags.add(key, offset, more, w.data, w.seg.time)
	if whole == nil {
		w.waits = true
		return false
	}
	w.data = whole
	return true
}

func (w *walk) ip6() bool {
	b := w.data
	if len(b) < 40 {
		return w.stop(ReasonShort)
	}
	length := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if length == 40 { // a jumbogram, or left to the network card
		length = len(b)
	}
	w.cut(b, 40, length)
	w.src, w.dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	proto := b[6]
	for range maxExtensions {
		e := w.data
		n := 0
		switch proto {
		case 0, 43, 60, 135, 139, 140: // options, routing, mobility, HIP, Shim6 (RFC 6564 form)
			if len(e) >= 2 {
				n = (int(e[1]) + 1) * 8
			}
		case 51: // authentication
			if len(e) >= 2 {
				n = (int(e[1]) + 2) * 4
			}
		case 44:
			if len(e) < 8 {
				return w.stop(ReasonShort)
			}
			field := binary.BigEndian.Uint16(e[2:])
			w.skip(8)
			proto = e[0]
			if field&^6 == 0 { // an atomic fragment (RFC 6946)
				continue
			}
			key := fragmentKey{w.src, w.dst, 44, binary.BigEndian.Uint32(e[4:]), w.seg.encap}
			if !w.fragment(key, int(field&^7), field&1 != 0) {
				return true
			}
			continue
		default:
			return w.proto(proto)
		}
		if n == 0 || !w.skip(n) {
			return w.stop(ReasonShort)
		}
		proto = e[0]
	}
	return w.stop(ReasonNested)
}

func (w *walk) proto(proto byte) bool {
	switch proto {
	case protoTCP:
		return w.tcp()
	case protoUDP:
		return w.udp()
	case protoIPv4, protoIPv6:
		w.next = kindIP
		return false
	case protoGRE:
		return w.gre()
	}
	return w.stop(ReasonNotTCP)
}

func (w *walk) tcp() bool {
	b := w.data
	if len(b) < 20 {
		return w.stop(ReasonShort)
	}
	head := int(b[12]>>4) * 4
	switch {
	case head < 20, head > len(b) && w.short == 0:
		return w.stop(ReasonHeader)
	case head > len(b):
		return w.stop(ReasonShort)
	}
	w.ports(b)
	w.seg.seq, w.seg.ack, w.seg.flags = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]), b[13]
	w.seg.payload, w.seg.short = b[head:], w.short
	return true
}

func (w *walk) ports(b []byte) {
	w.seg.src = netip.AddrPortFrom(w.src, binary.BigEndian.Uint16(b))
	w.seg.dst = netip.AddrPortFrom(w.dst, binary.BigEndian.Uint16(b[2:]))
}

func (w *walk) udp() bool {
	b := w.data
	if len(b) < 8 {
		return w.stop(ReasonShort)
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length >= 8 && length < len(b) {
		b = b[:length]
	}
	w.ports(b)
	switch to := w.seg.dst.Port(); {
	case to == portVXLAN && len(b) >= 16 && b[8]&0xF7 == 0 && b[8]&8 != 0: // RFC 7348, section 5
		w.seg.encap = w.seg.encap<<24 ^ w.seg.encap>>40 ^ uint64(binary.BigEndian.Uint32(b[12:])>>8)
		w.data = b[16:]
		w.next = kindEther
		return false
	case to == portGRE:
		w.data = b[8:]
		return w.gre()
	}
	w.seg.udp, w.seg.payload, w.seg.short = true, b[8:], w.short
	return true
}

// gre reads a GRE header (RFC 2784, 2890), version 0.
func (w *walk) gre() bool {
	b := w.data
	if len(b) < 4 || b[1]&7 != 0 || b[0]&0x40 != 0 {
		return w.stop(ReasonNotTCP)
	}
	n := 4
	for _, bit := range []byte{0x80, 0x20, 0x10} {
		if b[0]&bit != 0 {
			n += 4
		}
	}
	if !w.skip(n) {
		return w.stop(ReasonShort)
	}
	t := binary.BigEndian.Uint16(b[2:])
	if t < 0x600 {
		return w.stop(ReasonNotIP)
	}
	return w.etherType(t)
}
