package pcap

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Types of blocks.
const (
	blockSection   = 0x0A0D0D0A
	blockInterface = 1
	blockPacket    = 2 // obsolete
	blockSimple    = 3
	blockEnhanced  = 6
	blockSecrets   = 10
)

const (
	// orderMagic is in the header of a section, in its byte order.
	orderMagic = 0x1A2B3C4D
	// secretsTLS is the type of secrets that are a key log.
	secretsTLS = 0x544C534B
	// frame is the length of what is around each block: its type, and its length twice.
	frame = 12
	// enhancedHead and simpleHead are the lengths of what is before the packet in a block.
	enhancedHead = 20
	simpleHead   = 4
)

// section is what was read of a section of a pcapng file.
type section struct {
	unknown    bool // it is of another version: its packets are passed over
	interfaces []netInterface
}

// netInterface is an interface that packets were captured from.
type netInterface struct {
	link   int
	snap   uint32
	unit   uint64 // of a second in its times
	offset int64  // of its times, in seconds
}

var (
	errBlock     = errors.New("the length of a block is impossible")
	errOrder     = errors.New("the byte order of a section is unknown")
	errInterface = errors.New("a packet of an interface that is not described")
	errTimeUnit  = errors.New("the resolution of times is below 10^-19 or 2^-63 seconds")
)

// beginSections reads the header of the first section.
func (r *PacketReader) beginSections() error {
	kind, left, err := r.block()
	if err != nil {
		return cut(err, true)
	}
	return r.skimmed(kind, left)
}

// nextInSection reads blocks up to the next packet.
func (r *PacketReader) nextInSection(p *PacketRecord) error {
	for {
		kind, left, err := r.block()
		if err != nil {
			return err
		}
		switch {
		case r.unknown && kind != blockSection:
			err = r.skip(left)
		case kind == blockEnhanced, kind == blockPacket:
			return r.packet(p, kind, left)
		case kind == blockSimple:
			return r.simple(p, left)
		default:
			err = r.skimmed(kind, left)
		}
		if err != nil {
			return err
		}
	}
}

// block begins a block. left is what follows of it, with the length that ends it.
func (r *PacketReader) block() (kind uint32, left int64, err error) {
	b, err := r.head(8, true)
	if err != nil {
		return 0, 0, err
	}
	size := [4]byte(b[4:8])
	if kind = r.order.uint32(b); kind == blockSection { // the same in both byte orders
		order, err := r.in.Peek(4)
		if err != nil {
			return 0, 0, cut(err, true)
		}
		switch {
		case byteOrder(false).uint32(order) == orderMagic:
			r.order = false
		case byteOrder(true).uint32(order) == orderMagic:
			r.order = true
		default:
			return 0, 0, errOrder
		}
	}
	if left = int64(r.order.uint32(size[:])) - 8; left < frame-8 {
		return 0, 0, errBlock
	}
	return kind, left, nil
}

// skimmed reads a block that is no packet.
func (r *PacketReader) skimmed(kind uint32, left int64) error {
	switch kind {
	case blockSection, blockInterface, blockSecrets:
	default:
		return r.skip(left)
	}
	if left > maxBlock {
		if kind == blockSecrets {
			return r.skip(left)
		}
		return errBlock
	}
	b, err := r.body(left)
	if err != nil {
		return err
	}
	switch kind {
	case blockSection:
		return r.beginSection(b)
	case blockInterface:
		return r.describe(b)
	}
	r.keepSecrets(b)
	return nil
}

// skip passes over n bytes of a block.
func (r *PacketReader) skip(n int64) error {
	for n > 0 {
		m, err := r.in.Discard(int(min(n, math.MaxInt32)))
		if err != nil {
			return cut(err, true)
		}
		n -= int64(m)
	}
	return nil
}

// body reads the rest of a block, without the length at its end. It is valid until the next call.
func (r *PacketReader) body(left int64) ([]byte, error) {
	n := int(left) - 4
	for at := 0; at < n; {
		// By steps: the length is what a file says.
		step := min(n-at, max(at, maxSnap))
		if len(r.scratch) < at+step {
			r.scratch = append(r.scratch[:at], make([]byte, step)...)
		}
		for end := at + step; at < end; {
			m, err := r.in.Read(r.scratch[at:end])
			if at += m; err != nil {
				return nil, cut(err, true)
			}
		}
	}
	return r.scratch[:n], r.skip(4)
}

// beginSection begins a section, whose interfaces are its own.
func (r *PacketReader) beginSection(b []byte) error {
	const least, major = 16, 1
	if len(b) < least {
		return errBlock
	}
	r.unknown, r.interfaces = r.order.uint16(b[4:]) != major, r.interfaces[:0]
	return nil
}

// describe adds an interface.
func (r *PacketReader) describe(b []byte) error {
	const least, optionUnit, optionOffset = 8, 9, 14
	if len(b) < least {
		return errBlock
	}
	i := netInterface{link: int(r.order.uint16(b)), snap: r.order.uint32(b[4:]), unit: 1e6}
	var err error
	r.options(b[least:], func(code uint16, value []byte) {
		switch {
		case code == optionUnit && len(value) > 0 && value[0] != 0:
			i.unit, err = unit(value[0])
		case code == optionOffset && len(value) >= 8:
			i.offset = int64(r.order.uint64(value))
		}
	})
	r.interfaces = append(r.interfaces, i)
	return err
}

// unit is how many of a resolution make a second.
func unit(resolution byte) (uint64, error) {
	const binary, most, mostBinary = 0x80, 19, 63
	n := resolution &^ binary
	if resolution&binary != 0 {
		if n > mostBinary {
			return 0, errTimeUnit
		}
		return 1 << n, nil
	}
	if n > most {
		return 0, errTimeUnit
	}
	unit := uint64(1)
	for range n {
		unit *= 10
	}
	return unit, nil
}

func (c *netInterface) time(ticks uint64) time.Time {
	// Less than a second, so that the quotient is below 10^9.
	hi, lo := bits.Mul64(ticks%c.unit, 1e9)
	nanos, _ := bits.Div64(hi, lo, c.unit)
	return time.Unix(int64(ticks/c.unit)+c.offset, int64(nanos)).UTC()
}

// options calls f for each option; one that is cut off ends them.
func (r *PacketReader) options(b []byte, f func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, n := r.order.uint16(b), int(r.order.uint16(b[2:]))
		if b = b[4:]; code == 0 || n > len(b) {
			return
		}
		f(code, b[:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

func (r *PacketReader) packet(p *PacketRecord, kind uint32, left int64) error {
	if left -= enhancedHead; left < 4 {
		return errBlock
	}
	b, err := r.head(enhancedHead, false)
	if err != nil {
		return err
	}
	number := int64(r.order.uint32(b))
	if kind == blockPacket {
		number = int64(r.order.uint16(b))
	}
	if number >= int64(len(r.interfaces)) {
		return fmt.Errorf("%w: number %d of %d", errInterface, number, len(r.interfaces))
	}
	from := &r.interfaces[number]
	p.Time = from.time(uint64(r.order.uint32(b[4:]))<<32 | uint64(r.order.uint32(b[8:])))
	p.Link, p.Length = from.link, length(r.order.uint32(b[16:]))
	return r.packetData(p, int64(r.order.uint32(b[12:])), left)
}

// simple reads a packet without time, of the first interface.
func (r *PacketReader) simple(p *PacketRecord, left int64) error {
	if left -= simpleHead; left < 4 {
		return errBlock
	}
	b, err := r.head(simpleHead, false)
	if err != nil {
		return err
	}
	if len(r.interfaces) == 0 {
		return errInterface
	}
	from := &r.interfaces[0]
	p.Link, p.Length = from.link, length(r.order.uint32(b))
	n := int64(r.order.uint32(b))
	if from.snap != 0 {
		n = min(n, int64(from.snap))
	}
	return r.packetData(p, n, left)
}

// packetData reads n bytes of a packet, and its options. left is what follows of the block.
func (r *PacketReader) packetData(p *PacketRecord, n, left int64) (err error) {
	if left -= n; left < 4 {
		return errBlock
	}
	if p.Data, err = r.data(n); err != nil {
		return err
	}
	padding := min(-n&3, left-4)
	if left -= padding; left == 4 || left > maxBlock {
		return r.skip(padding + left)
	}
	if err := r.skip(padding); err != nil {
		return err
	}
	b, err := r.body(left)
	if err != nil {
		return err
	}
	const optionComment = 1
	r.options(b, func(code uint16, value []byte) {
		if code == optionComment {
			p.Comments = append(p.Comments, string(value))
		}
	})
	return nil
}

// keepSecrets keeps a key log.
func (r *PacketReader) keepSecrets(b []byte) {
	const head = 8
	if len(b) < head || r.order.uint32(b) != secretsTLS {
		return
	}
	n := int64(r.order.uint32(b[4:]))
	if n > int64(len(b)-head) || int64(r.secretsSize)+n > maxSecrets {
		return
	}
	r.secrets = append(r.secrets, bytes.Clone(b[head:head+n]))
	r.secretsSize += int(n)
}
