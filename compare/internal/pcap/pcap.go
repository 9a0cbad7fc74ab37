// Package pcap writes captures of TCP connections, as tcpdump would at one end of them.
package pcap

import (
	"encoding/binary"
	"io"
	"net/netip"
	"sync"
	"time"
)

// Capture is one being written. It is safe for concurrent use.
type Capture struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

const (
	// nanoseconds is the magic number of captures with times in nanoseconds.
	nanoseconds = 0xa1b23c4d
	// rawIP says that packets begin with their IP header.
	rawIP = 101
	// segment is the most that a packet carries, in bytes.
	segment = 1460
	header  = 20 // of IP, and of TCP
)

// Flags of TCP.
const (
	fin = 1 << iota
	syn
	_
	push
	ack
)

// New writes the head of a capture of IPv4 packets.
func New(out io.Writer) *Capture {
	c := &Capture{out: out}
	b := binary.LittleEndian.AppendUint32(nil, nanoseconds)
	for _, v := range []uint16{2, 4} { // the version
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	for _, v := range []uint32{0, 0, 1 << 18, rawIP} { // zone, accuracy, longest packet, kind of link
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	c.write(b)
	return c
}

// Err is why the capture is not whole.
func (c *Capture) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Capture) write(b []byte) {
	if c.err == nil {
		_, c.err = c.out.Write(b)
	}
}

// Conn is a connection in a capture: of two ends, of which the first is the one that opened it.
type Conn struct {
	capture *Capture
	ends    [2]netip.AddrPort
	next    [2]uint32 // numbers of the bytes that come next
}

// Open adds the packets that open a connection from client to server.
func (c *Capture) Open(at time.Time, client, server netip.AddrPort) *Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &Conn{capture: c, ends: [2]netip.AddrPort{client, server}}
	n.packet(at, 0, syn, nil)
	n.packet(at, 1, syn|ack, nil)
	n.packet(at, 0, ack, nil)
	return n
}

// Said adds the packets with what one end said.
func (n *Conn) Said(at time.Time, end int, said []byte) {
	n.capture.mu.Lock()
	defer n.capture.mu.Unlock()
	for len(said) > 0 {
		p := said[:min(len(said), segment)]
		n.packet(at, end, push|ack, p)
		said = said[len(p):]
	}
}

// End adds the packets with which one end says nothing more.
func (n *Conn) End(at time.Time, end int) {
	n.capture.mu.Lock()
	defer n.capture.mu.Unlock()
	n.packet(at, end, fin|ack, nil)
	n.packet(at, 1-end, ack, nil)
}

// packet adds one. The capture is locked.
func (n *Conn) packet(at time.Time, end int, flags byte, content []byte) {
	length := 2*header + len(content)
	b := binary.LittleEndian.AppendUint32(nil, uint32(at.Unix()))
	for _, v := range []int{at.Nanosecond(), length, length} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	from, to := n.ends[end], n.ends[1-end]
	b = append(b, 0x45, 0) // IPv4, with a header of five words
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = append(b, 0, 0, 0x40, 0, 64, 6, 0, 0) // not in fragments, hops, TCP, no checksum
	b = append(append(b, from.Addr().AsSlice()...), to.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, from.Port()), to.Port())
	b = binary.BigEndian.AppendUint32(b, n.next[end])
	known := uint32(0)
	if flags&ack != 0 {
		known = n.next[1-end]
	}
	b = binary.BigEndian.AppendUint32(b, known)
	b = append(b, header/4<<4, flags, 0xff, 0xff, 0, 0, 0, 0) // the window, no checksum
	n.capture.write(append(b, content...))
	n.next[end] += uint32(len(content))
	if flags&(syn|fin) != 0 {
		n.next[end]++
	}
}
