package http1

import (
	"bytes"
	"slices"
	"strings"
)

// Body takes the raw bytes after a head and returns those of the entity. The caller passes each
// byte once, in order:
//
//	for len(p) > 0 && !b.Done() {
//		entity, n, err := b.Write(p)
//		…
//		p = p[n:]
//	}
//
// p[:n] are the raw bytes. Bytes that are left when it is done belong to the next message. A Body
// holds no more than one chunk line or trailer section, and the framing if [Body.Record] was
// called.
type Body struct {
	kind     Kind
	state    bodyState
	left     int64 // bytes left of the length or chunk
	line     []byte
	trailer  []byte
	raw      int64
	entity   int64
	err      error
	record   bool
	given    bool
	recorded int
	parts    []FramingPart
}

// FramingPart is a part of a chunked body that is not entity: chunk lines, line ends, the trailer
// section. It precedes the entity's byte At.
type FramingPart struct {
	At     int64
	Octets []byte
}

type bodyState uint8

const (
	inEntity bodyState = iota
	inChunkLine
	inChunkData
	inChunkEnd
	inTrailer
	bodyDone
)

// NewBody is the decoder of a body framed like f. A tunnel has no entity: it is done at once.
func NewBody(f Framing) *Body {
	b := &Body{kind: f.Kind}
	switch f.Kind {
	case Length:
		b.left = f.Length
		if b.left == 0 {
			b.state = bodyDone
		}
	case Chunked:
		b.state = inChunkLine
	case UntilClose:
	default:
		b.state = bodyDone
	}
	return b
}

// Record makes the body record its framing, so that [Body.AppendRaw] restores the raw bytes. It is
// called before the first Write.
func (b *Body) Record() { b.record = true }

// Write takes bytes from the front of p: consumed is their number, all of p unless the body ends in
// it or entity follows. entity, a part of p[:consumed], is the end of what was consumed, or empty.
// An error, which is permanent, is [Malformed] or [TooLarge] and has the raw offset.
func (b *Body) Write(p []byte) (entity []byte, consumed int, err error) {
	for consumed < len(p) && b.state != bodyDone && b.err == nil && len(entity) == 0 {
		n := 0
		switch b.state {
		case inEntity, inChunkData:
			entity = b.take(p[consumed:])
			n = len(entity)
		case inChunkEnd:
			n = b.chunkEnd(p[consumed:])
		default:
			n = b.framingLine(p[consumed:])
		}
		if b.record && len(entity) == 0 {
			b.keep(p[consumed : consumed+n])
		}
		consumed += n
		b.raw += int64(n)
		b.entity += int64(len(entity))
	}
	return entity, consumed, b.err
}

// take cuts entity bytes from p.
func (b *Body) take(p []byte) []byte {
	if b.kind == UntilClose {
		return p
	}
	n := int(min(int64(len(p)), b.left))
	if b.left -= int64(n); b.left == 0 {
		b.state = bodyDone
		if b.kind == Chunked {
			b.state = inChunkEnd
		}
	}
	return p[:n]
}

// chunkEnd takes the line end after a chunk: CR LF or LF.
func (b *Body) chunkEnd(p []byte) int {
	switch {
	case p[0] == '\n':
		b.line = b.line[:0]
		b.state = inChunkLine
	case p[0] == '\r' && len(b.line) == 0:
		b.line = append(b.line, '\r')
	default:
		b.fail(Malformed, "end of chunk")
		return 0
	}
	return 1
}

// framingLine takes a chunk line or a line of the trailer section, or as much of it as p has.
func (b *Body) framingLine(p []byte) int {
	n, limit := len(p), maxChunkLine
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		n = i + 1
	}
	if b.state == inTrailer {
		limit = maxTrailer - len(b.trailer)
	}
	if len(b.line)+n > limit {
		b.fail(TooLarge, "chunk line or trailer section")
		return 0
	}
	b.line = append(b.line, p[:n]...)
	if p[n-1] != '\n' {
		return n
	}
	line, _ := cutLine(b.line)
	if b.state == inTrailer {
		b.trailer = append(b.trailer, b.line...)
		if len(line) == 0 {
			b.state = bodyDone
		}
	} else if !b.chunkLine(line) {
		return 0
	}
	b.line = b.line[:0]
	return n
}

// chunkLine reads a chunk's size (RFC 9112, section 7.1); extensions are skipped.
func (b *Body) chunkLine(line []byte) bool {
	size, n := int64(0), 0
	for ; n < len(line); n++ {
		d := strings.IndexByte("0123456789abcdef", line[n]|0x20)
		if line[n] < '0' || d < 0 {
			break
		}
		if size >= 1<<58 {
			b.fail(TooLarge, "chunk size")
			return false
		}
		size = size<<4 | int64(d)
	}
	rest := trim(line[n:])
	if n == 0 || len(rest) > 0 && rest[0] != ';' {
		b.fail(Malformed, "chunk size")
		return false
	}
	b.left, b.state = size, inChunkData
	if size == 0 {
		b.state = inTrailer
	}
	return true
}

func (b *Body) fail(c Code, what string) { b.err = &Error{Code: c, At: b.raw, What: what} }

// keep records bytes of the framing.
func (b *Body) keep(p []byte) {
	if len(p) == 0 || b.given {
		return
	}
	if b.recorded += len(p) + 16; b.recorded > maxRecordedFraming {
		b.given, b.parts = true, nil
		return
	}
	if n := len(b.parts); n > 0 && b.parts[n-1].At == b.entity {
		b.parts[n-1].Octets = append(b.parts[n-1].Octets, p...)
		return
	}
	b.parts = append(b.parts, FramingPart{At: b.entity, Octets: slices.Clone(p)})
}

// Done reports whether the body is whole; a body until close never is before [Body.Close].
func (b *Body) Done() bool { return b.state == bodyDone }

// Close reports the end of the input: nil if the body is whole, otherwise its error, or
// [ErrIncomplete] with the raw offset.
func (b *Body) Close() error {
	switch {
	case b.err != nil:
		return b.err
	case b.kind == UntilClose:
		b.state = bodyDone
	case b.state != bodyDone:
		return &Error{Code: Incomplete, At: b.raw, What: "body"}
	}
	return nil
}

// Left is the number of entity bytes that a body of known length still lacks; 0 for other kinds.
func (b *Body) Left() int64 {
	if b.kind != Length {
		return 0
	}
	return b.left
}

// Skip skips n entity bytes of a body of known length that are lost; at most those left.
func (b *Body) Skip(n int64) {
	n = min(n, b.Left())
	b.left -= n
	b.raw += n
	b.entity += n
	if n > 0 && b.left == 0 {
		b.state = bodyDone
	}
}

// Sizes are the bytes taken so far, and those of them that were entity.
func (b *Body) Sizes() (raw, entity int64) { return b.raw, b.entity }

// Framing returns what [Body.Record] recorded, and whether it is complete: beyond 1 MiB a recording
// is abandoned.
func (b *Body) Framing() ([]FramingPart, bool) { return b.parts, b.record && !b.given }

// EntityOf returns the entity of a raw body with this recorded framing, in pieces that alias raw.
func EntityOf(raw []byte, parts []FramingPart) (pieces [][]byte) {
	at := int64(0)
	for _, p := range parts {
		if n := p.At - at; n > 0 {
			pieces = append(pieces, raw[:n:n])
			raw = raw[n:]
		}
		raw = raw[len(p.Octets):]
		at = p.At
	}
	if len(raw) > 0 {
		pieces = append(pieces, raw)
	}
	return pieces
}
