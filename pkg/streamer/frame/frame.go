// Package frame has the bytes of the hhfr wire format (docs/wire-format.md, sections 2 to 8): the frames, and what sender, receiver and decoder
// of a capture must all count in the same way: lane and exchange numbers ([Numbering]), message checks ([Checks]), the parts of payloads
// ([MessageState]), the pieces of shapes ([Pieces]). It knows no connection and no clock. Nothing in it is safe for concurrent use of one value.
package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/hhfr/hhfr/internal/bin"
)

const (
	// MaxBody is the longest body of a frame that is no data frame, in octets (section 2).
	MaxBody = 65536
	// MaxPayload is the longest payload of a data frame, in octets: the most that a hello may state (section 3).
	MaxPayload = 16384
	// MinPayload is the least that a hello may state as max fragment, in octets.
	MinPayload = 512
	// Scheme is the version of the format.
	Scheme = 1
	// MaxSyncOctets and MaxSyncMessages bound what a direction carries between two syncs (section 6).
	MaxSyncOctets   = 65536
	MaxSyncMessages = 1024
)

// Kind is the kind of a frame. Values from 1 to 63 are those of the wire; data frames, which have no kind there, are 0.
type Kind uint8

// The kinds of section 2.
const (
	KindData   Kind = 0
	KindHello  Kind = 1
	KindShape  Kind = 2
	KindSync   Kind = 3
	KindAck    Kind = 4
	KindWindow Kind = 5
	KindCancel Kind = 6
	KindClose  Kind = 7
	KindIdle   Kind = 8
	KindFlush  Kind = 9
)

const (
	dataBit  = 0x80
	skipBit  = 0x40
	kindMask = 0x3f
)

// kinds ties number, name, mark and parser. With a mark it has an own check. Without parser: reserved. skip: it has the skip bit, always.
var kinds = map[Kind]struct {
	name  string
	mark  []byte
	parse func(*bin.Cursor) Frame
	skip  bool
}{
	KindData:   {name: "data"},
	KindHello:  {name: "hello", mark: helloMark, parse: parseHello},
	KindShape:  {name: "shape", parse: parseShape},
	KindSync:   {name: "sync", mark: syncMark, parse: parseSync},
	KindAck:    {name: "ack", parse: parseAck, skip: true},
	KindWindow: {name: "window", parse: parseWindow},
	KindCancel: {name: "cancel", parse: parseCancel},
	KindClose:  {name: "close", parse: parseClose},
	KindIdle:   {name: "idle", parse: parseIdle, skip: true},
	KindFlush:  {name: "flush", parse: parseFlush},
}

// String is the name of section 2, or "unknown".
func (k Kind) String() string {
	if e, ok := kinds[k]; ok {
		return e.name
	}
	return "unknown"
}

// Frame is one frame: [Data], [Hello], [Shape], [Sync], [Ack], [Window], [Cancel], [Close], [Idle], [Flush] or [Skipped], each by value.
type Frame interface {
	// Kind is the kind of the frame.
	Kind() Kind
	// AppendTo appends the octets of the frame. What it appends parses back to the same frame if the fields are within the bounds of the format.
	AppendTo(b []byte) []byte
}

// Parse reads the frame that b begins with; at is the offset of b[0] in its direction, used in errors. It returns the frame and the number of
// its octets. When b holds only the beginning of a frame that may still become a good one, it returns 0 and no error. A payload above
// maxPayload is refused as soon as its length is there (0 means [MaxPayload]), likewise a body above [MaxBody]. The frame aliases b.
// Errors are *[Error]; after one, nothing in the direction can be trusted.
func Parse(b []byte, at int64, maxPayload int) (Frame, int, error) {
	if len(b) == 0 {
		return nil, 0, nil
	}
	if b[0]&dataBit != 0 {
		d, n, err := ParseData(b, at, maxPayload)
		if n == 0 || err != nil {
			return nil, 0, err
		}
		return d, n, nil
	}
	kind := Kind(b[0] & kindMask)
	entry := kinds[kind]
	switch skip := b[0]&skipBit != 0; {
	case kind == KindData, entry.parse == nil && !skip, entry.skip && !skip:
		return nil, 0, fault(BadKind, at, "first octet %#02x", b[0])
	case entry.parse != nil && skip && !entry.skip:
		return nil, 0, fault(BadKind, at, "kind %s with the skip bit", kind)
	}
	body, n, err := envelope(b, at, entry.mark)
	if err != nil || n == 0 {
		return nil, 0, err
	}
	if entry.parse == nil {
		return Skipped{Octet: b[0], Body: body}, n, nil
	}
	c := bin.NewCursor(body, at+int64(n-len(body)))
	f := entry.parse(&c)
	if c.Err() == nil && c.Len() > 0 && kind != KindHello {
		c.Fail(fault(Trailing, c.At(), "%d octets after the last field of a %s", c.Len(), kind))
	}
	if err := c.Err(); err != nil {
		return nil, 0, own(err)
	}
	if entry.mark != nil {
		if err := checkOwn(b[:n], at); err != nil {
			return nil, 0, err
		}
	}
	return f, n, nil
}

// envelope finds the body of a frame that is no data frame: after its mark or first octet, and its length.
func envelope(b []byte, at int64, mark []byte) (body []byte, n int, err error) {
	start := 1
	if mark != nil {
		start = len(mark)
		if have := min(start, len(b)); !bytes.Equal(b[:have], mark[:have]) {
			return nil, 0, fault(BadMark, at, "% x", b[:have])
		}
	}
	if len(b) <= start {
		return nil, 0, nil
	}
	c := bin.NewCursor(b[start:], at+int64(start))
	size := c.Count(MaxBody)
	if c.Err() != nil {
		return nil, 0, unlessShort(c.Err())
	}
	if c.Len() < size {
		return nil, 0, nil
	}
	body = c.Take(size)
	return body, int(c.At() - at), nil
}

// unlessShort is nil for an input that just ends too early.
func unlessShort(err error) error {
	e := own(err)
	if errors.Is(e, &Error{Code: Truncated}) {
		return nil
	}
	return e
}

// appendFramed appends first (an octet or a mark), the length, and the body that fill appends.
func appendFramed(b, first []byte, fill func([]byte) []byte) []byte {
	b = append(b, first...)
	start := len(b)
	b = fill(b)
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(b)-start))
	b = append(b, length[:n]...)
	copy(b[start+n:], b[start:len(b)-n])
	copy(b[start:], length[:n])
	return b
}

// checkLen is the length of a check, in octets.
const checkLen = 4

// appendChecked is appendFramed, with a CRC over all that behind it: the own check of the frame.
func appendChecked(b, first []byte, fill func([]byte) []byte) []byte {
	start := len(b)
	b = appendFramed(b, first, func(b []byte) []byte { return append(fill(b), make([]byte, checkLen)...) })
	end := len(b) - checkLen
	binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[start:end], castagnoli))
	return b
}

// checkOwn compares the last octets of the frame b with the CRC over those before.
func checkOwn(b []byte, at int64) error {
	end := len(b) - checkLen
	if said, is := binary.LittleEndian.Uint32(b[end:]), crc32.Checksum(b[:end], castagnoli); said != is {
		return fault(BadSum, at+int64(end), "says %08x, is %08x", said, is)
	}
	return nil
}

// Skipped is a frame of a kind this version does not know or implement, with the skip bit: it is passed over. Octet is its first one.
type Skipped struct {
	Octet byte
	Body  []byte
}

// Kind is the unknown or reserved kind.
func (f Skipped) Kind() Kind { return Kind(f.Octet & kindMask) }

// AppendTo appends the frame.
func (f Skipped) AppendTo(b []byte) []byte { return bin.AppendBytes(append(b, f.Octet), f.Body) }
