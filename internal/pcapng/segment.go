package pcapng

import (
	"encoding/binary"
	"net/netip"
)

type tcpFlags byte

// Flags of TCP (RFC 9293, section 3.1).
const (
	flagFIN tcpFlags = 1 << iota
	flagSYN
	flagRST
	flagPSH
	flagACK
)

const (
	protoTCP = 6
	// windowShift with a window of 65,535 makes a window that no recording fills.
	windowShift = 14
)

// synOptions are the options of segments that open a connection: its longest segment, and its
// window scale.
var synOptions = []byte{2, 4, maxSegment >> 8, maxSegment & 0xFF, 1, 3, 3, windowShift}

// tcpSegment is an IP packet with a segment of TCP.
type tcpSegment struct {
	src, dst netip.AddrPort
	v6       bool
	id       uint16 // of IPv4
	flags    tcpFlags
	seq, ack uint32
	payload  []byte
}

// append appends the packet to b, which is empty.
func (s *tcpSegment) append(b []byte) []byte {
	const head = 20
	be, flags := binary.BigEndian, s.flags
	var options []byte
	if flags&flagSYN != 0 {
		options = synOptions
	}
	if len(s.payload) > 0 {
		flags |= flagPSH
	}
	n := head + len(options) + len(s.payload)
	var pseudo uint32
	if s.v6 {
		b, pseudo = s.appendIPv6(b, n)
	} else {
		b, pseudo = s.appendIPv4(b, n)
	}
	tcp := len(b)
	b = be.AppendUint16(b, s.src.Port())
	b = be.AppendUint16(b, s.dst.Port())
	b = be.AppendUint32(b, s.seq)
	b = be.AppendUint32(b, s.ack)
	b = append(b, byte(head+len(options))/4<<4, byte(flags), 0xFF, 0xFF, 0, 0, 0, 0)
	b = append(append(b, options...), s.payload...)
	be.PutUint16(b[tcp+16:], checksum(b[tcp:], pseudo+protoTCP+uint32(n)))
	return b
}

// appendIPv4 appends the header of a packet with n bytes of TCP, and returns the sum of its
// addresses.
func (s *tcpSegment) appendIPv4(b []byte, n int) (with []byte, addresses uint32) {
	const head, hops, doNotFragment = 20, 64, 0x40
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(head+n))
	b = binary.BigEndian.AppendUint16(b, s.id)
	b = append(b, doNotFragment, 0, hops, protoTCP, 0, 0)
	src, dst := s.src.Addr().As4(), s.dst.Addr().As4()
	b = append(append(b, src[:]...), dst[:]...)
	binary.BigEndian.PutUint16(b[10:], checksum(b, 0))
	return b, sum(b[12:])
}

// appendIPv6 is appendIPv4 for IPv6.
func (s *tcpSegment) appendIPv6(b []byte, n int) (with []byte, addresses uint32) {
	const hops = 64
	b = append(b, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, protoTCP, hops)
	src, dst := s.src.Addr().As16(), s.dst.Addr().As16()
	b = append(append(b, src[:]...), dst[:]...)
	return b, sum(b[8:])
}

// checksum is that of b and of a sum of what does not stand in it (RFC 1071).
func checksum(b []byte, with uint32) uint16 {
	s := with + sum(b)
	for s>>16 != 0 {
		s = s>>16 + s&0xFFFF
	}
	return ^uint16(s)
}

// sum adds up the 16-bit words of b, at most 64 KiB, so that it does not overflow.
func sum(b []byte) (s uint32) {
	for len(b) >= 2 {
		s += uint32(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}
