package frame

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/hhfr/hhfr/internal/bin"
)

// kinds ties number, name, mark and parser. With a mark it has an own check. Without parser:
// reserved. skip: it has the skip bit, always.
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
	KindKept:   {name: "kept", parse: parseKept, skip: true},
	KindResync: {name: "resync", parse: parseResync, skip: true},
}

// String is the name of section 2, or "unknown".
func (k Kind) String() string {
	if e, ok := kinds[k]; ok {
		return e.name
	}
	return "unknown"
}

// Parse reads the frame that b begins with; at is the offset of b[0] in its direction, used in
// errors. It returns the frame and the number of its octets. When b holds only the beginning of a
// frame that may still become a good one, it returns 0 and no error. A payload above maxPayload is
// refused as soon as its length is there (0 means [MaxPayload]), likewise a body above [maxBody].
// The frame aliases b. Errors are *[Error]; after one, nothing in the direction can be trusted.
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

// envelope finds the body of a frame that is no data frame: after its mark or first octet, and its
// length.
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
	size := c.Count(maxBody)
	if c.Err() != nil {
		return nil, 0, unlessShort(c.Err())
	}
	if c.Len() < size {
		return nil, 0, nil
	}
	body = c.Take(size)
	return body, int(c.At() - at), nil
}

// checkOwn compares the last octets of the frame b with the CRC over those before.
func checkOwn(b []byte, at int64) error {
	end := len(b) - checkLen
	if said, is := binary.LittleEndian.Uint32(b[end:]), crc32.Checksum(b[:end], castagnoli); said != is {
		return fault(BadSum, at+int64(end), "says %08x, is %08x", said, is)
	}
	return nil
}

// Skipped is a frame of a kind this version does not know or implement, with the skip bit: it is
// passed over. Octet is its first one.
type Skipped struct {
	Octet byte
	Body  []byte
}

// Kind is the unknown or reserved kind.
func (f Skipped) Kind() Kind { return Kind(f.Octet & kindMask) }

// AppendTo appends the frame.
func (f Skipped) AppendTo(b []byte) []byte { return bin.AppendBytes(append(b, f.Octet), f.Body) }
