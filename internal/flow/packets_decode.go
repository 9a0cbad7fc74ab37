package flow

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// The headers around TCP and UDP are parsed by hand: a header is a few bytes at fixed offsets,
// options do not matter here and are often odd in the wild, and defragmentation happens in the
// middle of it.

// maxLayers bounds nested headers of one packet.
const maxLayers = 32

// maxExtensions bounds the extension headers of one IPv6 packet.
const maxExtensions = 16

// payloadPart is what a packet carries for a TCP connection, or a UDP datagram.
type payloadPart struct {
	time     time.Time
	no       int
	comments []string
	encap    uint64 // VLANs and tunnels around it
	src, dst netip.AddrPort
	udp      bool
	seq, ack uint32
	flags    byte
	payload  []byte
	short    int // bytes of payload that were not captured
}

// TCP flags.
const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	_
	flagACK
)

// decoder finds the segment in a packet.
type decoder struct {
	frags fragments
	seg   payloadPart
}

// decode returns the reason why there is no segment, "" if there is one in d.seg; waits reports
// that a fragment waits for others.
func (d *decoder) decode(p CapturedPacket) (reason string, waits bool) {
	d.seg = payloadPart{time: p.Time, no: p.No, comments: p.Comments}
	w := &walk{decoder: d, data: p.Data, link: true, next: p.Link}
	for range maxLayers {
		if done := w.step(); done {
			return w.reason, w.waits
		}
	}
	return ReasonNested, false
}

// walk is the state of decoding one packet: data begins with a header of kind next.
type walk struct {
	*decoder
	data     []byte
	link     bool // next is a link type, else one of the kinds below
	next     int
	src, dst netip.Addr
	short    int
	reason   string
	waits    bool
}

// Kinds of headers.
const (
	kindEther = iota
	kindEtherType
	kindIP
	kindMPLS
	kindProto // an IP protocol, in proto
)

func (w *walk) stop(reason string) bool { w.reason = reason; return true }

// skip drops n bytes from the front; false if there are not that many.
func (w *walk) skip(n int) bool {
	if n > len(w.data) {
		return false
	}
	w.data = w.data[n:]
	return true
}

func (w *walk) step() (done bool) {
	if w.link {
		w.link = false
		return w.linkLayer(w.next)
	}
	switch w.next {
	case kindEther:
		return w.ethernet()
	case kindMPLS:
		return w.mpls()
	default:
		return w.ip()
	}
}

// Link types that are decoded (https://www.tcpdump.org/linktypes.html).
func (w *walk) linkLayer(link int) bool {
	b := w.data
	switch link {
	case 1:
		return w.ethernet()
	case 12, 14, 101, 228, 229: // raw IP
		w.next = kindIP
		return false
	case 0, 108: // null: the family in the byte order of the machine; loop: in network order
		if !w.skip(4) {
			return w.stop(ReasonShort)
		}
		w.next = kindIP
		return false
	case 113: // Linux cooked, version 1
		if len(b) < 16 {
			return w.stop(ReasonShort)
		}
		w.data = b[16:]
		return w.etherType(binary.BigEndian.Uint16(b[14:]))
	case 276: // version 2
		if len(b) < 20 {
			return w.stop(ReasonShort)
		}
		w.data = b[20:]
		return w.etherType(binary.BigEndian.Uint16(b))
	case 239:
		return w.nflog()
	case 104: // HDLC as Cisco has it
		if len(b) < 4 {
			return w.stop(ReasonShort)
		}
		w.data = b[4:]
		return w.etherType(binary.BigEndian.Uint16(b[2:]))
	case 105, 127: // 802.11, with radiotap
		frame, reason := data80211(b, link == 127)
		if reason != "" {
			return w.stop(reason)
		}
		w.data = frame
		return w.etherType(0) // LLC
	case 9, 50, 51: // PPP, PPP in HDLC, PPPoE
		if link == 51 {
			return w.pppoe()
		}
		return w.ppp()
	}
	return w.stop(fmt.Sprintf("link type %d", link))
}

func (w *walk) ethernet() bool {
	if len(w.data) < 14 {
		return w.stop(ReasonShort)
	}
	t := binary.BigEndian.Uint16(w.data[12:])
	w.skip(14)
	return w.etherType(t)
}

func (w *walk) etherType(t uint16) bool {
	for range maxLayers {
		b := w.data
		switch {
		case t == 0x0800, t == 0x86DD:
			w.next = kindIP
			return false
		case t == 0x8100, t == 0x88A8, t == 0x9100, t == 0x9200: // VLANs; tag 0 is only a priority
			if len(b) < 4 {
				return w.stop(ReasonShort)
			}
			if vlan := binary.BigEndian.Uint16(b) & 0xFFF; vlan != 0 {
				w.seg.encap = w.seg.encap<<12 ^ w.seg.encap>>52 ^ uint64(vlan)
			}
			t = binary.BigEndian.Uint16(b[2:])
			w.data = b[4:]
			continue
		case t == 0x8847, t == 0x8848:
			w.next = kindMPLS
			return false
		case t == 0x8864:
			return w.pppoe()
		case t == 0x6558: // Ethernet in GRE
			w.next = kindEther
			return false
		case t < 0x600: // a length: LLC, relevant with SNAP only
			if len(b) < 8 || string(b[:6]) != "\xAA\xAA\x03\x00\x00\x00" {
				return w.stop(ReasonNotIP)
			}
			t = binary.BigEndian.Uint16(b[6:])
			w.data = b[8:]
			continue
		}
		return w.stop(ReasonNotIP)
	}
	return w.stop(ReasonNested)
}

func (w *walk) mpls() bool {
	for len(w.data) >= 4 {
		bottom := w.data[2]&1 != 0
		w.skip(4)
		if !bottom {
			continue
		}
		w.next = kindIP
		if len(w.data) > 4 && w.data[0]>>4 == 0 { // a control word: Ethernet follows (RFC 4448)
			w.skip(4)
			w.next = kindEther
		}
		return false
	}
	return w.stop(ReasonShort)
}

func (w *walk) pppoe() bool {
	if !w.skip(6) {
		return w.stop(ReasonShort)
	}
	return w.ppp()
}

func (w *walk) ppp() bool {
	if len(w.data) >= 2 && w.data[0] == 0xFF && w.data[1] == 3 { // address and control of HDLC
		w.skip(2)
	}
	if len(w.data) < 2 {
		return w.stop(ReasonShort)
	}
	proto, n := int(binary.BigEndian.Uint16(w.data)), 2
	if w.data[0]&1 != 0 { // compressed protocol field
		proto, n = int(w.data[0]), 1
	}
	w.skip(n)
	switch proto {
	case 0x21, 0x57:
		w.next = kindIP
	case 0x281, 0x283:
		w.next = kindMPLS
	default:
		return w.stop(ReasonNotIP)
	}
	return false
}

// nflog finds the payload attribute.
func (w *walk) nflog() bool {
	if !w.skip(4) {
		return w.stop(ReasonShort)
	}
	for len(w.data) >= 4 {
		// In the byte order of the machine that captured.
		n, kind := int(binary.LittleEndian.Uint16(w.data)), binary.LittleEndian.Uint16(w.data[2:])
		if n < 4 || n > len(w.data) {
			n, kind = int(binary.BigEndian.Uint16(w.data)), binary.BigEndian.Uint16(w.data[2:])
		}
		if n < 4 || n > len(w.data) {
			return w.stop(ReasonHeader)
		}
		if kind&0x3FFF == 9 {
			w.data = w.data[4:n]
			w.next = kindIP
			return false
		}
		w.skip(min((n+3)&^3, len(w.data)))
	}
	return w.stop(ReasonShort)
}
