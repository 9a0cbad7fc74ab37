// Package live captures the packets of an interface as they pass, as a pcap stream. It is there on
// Linux; elsewhere [Open] says what else captures.
package live

import (
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// Any is the name of all interfaces together.
const Any = "any"

var (
	// ErrSystem reports that this system has no such capture.
	ErrSystem = errors.New("capturing from an interface is there on Linux only")
	// ErrRight reports that the process may not capture.
	ErrRight = errors.New("capturing needs the right CAP_NET_RAW")
	// ErrInterface reports that there is no such interface.
	ErrInterface = errors.New("no such interface")
	// ErrLink reports that packets of an interface are of a kind that is not read.
	ErrLink = errors.New("its packets are of a kind that is not read")
)

// Link types of pcap (https://www.tcpdump.org/linktypes.html).
const (
	linkEthernet = 1
	linkRaw      = 101
	linkRadiotap = 127
)

// snap is the most that is captured of a packet, in bytes: segments that a network card cuts later
// may be that long.
const snap = 256 << 10

// InterfaceReader is a capture in progress. It is not safe for concurrent use.
type InterfaceReader struct {
	packets packetSource
	stopped func() bool
	rest    []byte // of the stream, not read yet
	buf     []byte
}

// packetSource is where packets come from.
type packetSource interface {
	// next returns the next packet, valid until it is called again, and its length on the wire; nil
	// if none came for some time.
	next() (data []byte, length int, at time.Time, err error)
	// drops returns how many packets were lost since nobody took them in time.
	drops() int
	close()
}

// Open begins a capture from an interface by its name; [Any]: from all. It ends when stopped
// returns true, which is asked about ten times a second. Of loopback, where each packet is seen
// twice, it is captured once. Errors are [ErrSystem], [ErrRight], [ErrInterface], [ErrLink], or
// another one of the system's.
func Open(name string, stopped func() bool) (*InterfaceReader, error) {
	packets, link, err := open(name)
	if err != nil {
		return nil, err
	}
	return newSource(packets, link, stopped), nil
}

func newSource(packets packetSource, link uint32, stopped func() bool) *InterfaceReader {
	s := &InterfaceReader{packets: packets, stopped: stopped}
	const nanoseconds, version = 0xA1B23C4D, 4<<16 | 2
	for _, v := range []uint32{nanoseconds, version, 0, 0, snap, link} {
		s.rest = binary.LittleEndian.AppendUint32(s.rest, v)
	}
	return s
}

// Read implements [io.Reader]: a pcap file. It waits for packets.
func (s *InterfaceReader) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.stopped() {
			return 0, io.EOF
		}
		data, length, at, err := s.packets.next()
		if err != nil {
			return 0, err
		}
		if data == nil {
			continue
		}
		s.buf = s.buf[:0]
		for _, v := range []uint32{uint32(at.Unix()), uint32(at.Nanosecond()), uint32(len(data)),
			uint32(max(length, len(data)))} {
			s.buf = binary.LittleEndian.AppendUint32(s.buf, v)
		}
		s.buf = append(s.buf, data...)
		s.rest = s.buf
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Drops returns how many packets were not captured since they came too fast.
func (s *InterfaceReader) Drops() int { return s.packets.drops() }

// Close ends the capture.
func (s *InterfaceReader) Close() error {
	s.packets.close()
	return nil
}
