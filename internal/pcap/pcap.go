// Package pcap reads capture files, pcap (draft-ietf-opsawg-pcap) and pcapng
// (draft-ietf-opsawg-pcapng), and writes pcapng.
package pcap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// LinkRaw is the link type of packets that begin with an IP header.
const LinkRaw = 101

// PacketRecord is one packet of a capture. Time is zero where the file has none. Link is the
// LINKTYPE number of its interface. Length is its length on the wire, in bytes; Data may be
// shorter.
type PacketRecord struct {
	Time     time.Time
	Link     int
	Length   int
	Data     []byte
	Comments []string
}

const (
	// maxSnap is the longest packet that is read although the file states that it has no packets of
	// that length, in bytes: writers that do not cut packets state a shorter one.
	maxSnap = 256 << 10
	// maxBlock bounds what is read of a block beside its packet, in bytes.
	maxBlock = 16 << 20
	// maxSecrets bounds the secrets that nobody has taken yet, in bytes.
	maxSecrets = 32 << 20
)

// magics are how captures begin: pcapng, and pcap of either byte order with micro- and nanoseconds.
var magics = []string{"\x0A\x0D\x0D\x0A", "\xD4\xC3\xB2\xA1", "\xA1\xB2\xC3\xD4", "\x4D\x3C\xB2\xA1",
	"\xA1\xB2\x3C\x4D"}

// Begins reports whether b, up to four bytes, may be the beginning of a capture.
func Begins(b []byte) bool {
	return slices.ContainsFunc(magics, func(m string) bool { return strings.HasPrefix(m, string(b)) })
}

// PacketReader reads the packets of a capture. It is not safe for concurrent use.
type PacketReader struct {
	in      *bufio.Reader
	order   byteOrder
	next    func(*PacketRecord) error
	scratch []byte

	classic // what a pcap file states
	section // what the current section of a pcapng file states

	secrets     [][]byte
	secretsSize int
}

// byteOrder is that of a file; false: little-endian. Calls are direct, not through an interface.
type byteOrder bool

func (big byteOrder) uint16(b []byte) uint16 {
	if big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (big byteOrder) uint32(b []byte) uint32 {
	if big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func (big byteOrder) uint64(b []byte) uint64 {
	if big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

var errNoCapture = errors.New("neither pcap nor pcapng")

// NewReader reads the beginning of a capture. A file that ends within it is io.ErrUnexpectedEOF.
func NewReader(in *bufio.Reader) (*PacketReader, error) {
	r := &PacketReader{in: in}
	magic, err := in.Peek(4)
	switch {
	case err != nil:
		return nil, cut(err, true)
	case !Begins(magic):
		return nil, errNoCapture
	case string(magic) == magics[0]:
		r.next, err = r.nextInSection, r.beginSections()
	default:
		r.next, err = r.nextClassic, r.beginClassic()
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Next reads the next packet; what it refers to is the caller's. At the end the error is io.EOF; it
// is io.ErrUnexpectedEOF where the file is cut off.
func (r *PacketReader) Next() (p PacketRecord, err error) {
	err = r.next(&p)
	return p, err
}

// Secrets returns the key logs of TLS (of NSS) that were read since the last call. Those that
// nobody takes are bounded.
func (r *PacketReader) Secrets() (logs [][]byte) {
	logs, r.secrets, r.secretsSize = r.secrets, nil, 0
	return logs
}

// cut is an error of reading: the end of the file is none at a boundary alone.
func cut(err error, inside bool) error {
	if inside && errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// head reads n bytes, which are valid until the next read. begins: they may be missing.
func (r *PacketReader) head(n int, begins bool) ([]byte, error) {
	b, err := r.in.Peek(n)
	if err != nil {
		return nil, cut(err, !begins || len(b) > 0)
	}
	_, _ = r.in.Discard(n) // they are there
	return b, nil
}

// data reads n bytes of a packet. The length is what a file says: of more than the usual, no more
// memory is taken than there is in the file.
func (r *PacketReader) data(n int64) ([]byte, error) {
	if n > math.MaxInt32 {
		return nil, fmt.Errorf("a packet of %d bytes", n)
	}
	b := make([]byte, min(n, maxSnap))
	for read := 0; ; {
		m, err := io.ReadFull(r.in, b[read:])
		if read += m; err != nil {
			return nil, cut(err, true)
		}
		if read == int(n) {
			return b, nil
		}
		b = append(b, make([]byte, min(int(n)-read, read))...)
	}
}

// length is a length on the wire, which no file has to be right about.
func length(n uint32) int { return int(min(n, math.MaxInt32)) }

// classic is what the header of a pcap file states.
type classic struct {
	link   int
	snap   int64
	factor int64 // nanoseconds of the lesser unit of times
}

func (r *PacketReader) beginClassic() error {
	const size, major = 24, 2
	b, err := r.head(size, false)
	if err != nil {
		return err
	}
	r.factor = 1000
	switch string(b[:4]) {
	case "\xA1\xB2\xC3\xD4":
		r.order = true
	case "\xA1\xB2\x3C\x4D":
		r.order, r.factor = true, 1
	case "\x4D\x3C\xB2\xA1":
		r.factor = 1
	}
	if v := r.order.uint16(b[4:]); v != major {
		return fmt.Errorf("pcap of version %d", v)
	}
	r.snap = max(maxSnap, int64(r.order.uint32(b[16:])))
	r.link = int(r.order.uint32(b[20:]) & 0xFFFF) // above: the length of a checksum
	return nil
}

func (r *PacketReader) nextClassic(p *PacketRecord) error {
	const size = 16
	b, err := r.head(size, true)
	if err != nil {
		return err
	}
	n, whole := int64(r.order.uint32(b[8:])), r.order.uint32(b[12:])
	switch {
	case n > r.snap:
		return fmt.Errorf("a packet of %d bytes, where the longest has %d", n, r.snap)
	case n > int64(whole):
		return fmt.Errorf("%d bytes of a packet of %d", n, whole)
	}
	p.Time = time.Unix(int64(r.order.uint32(b)), int64(r.order.uint32(b[4:]))*r.factor).UTC()
	p.Link, p.Length = r.link, length(whole)
	p.Data, err = r.data(n)
	return err
}
