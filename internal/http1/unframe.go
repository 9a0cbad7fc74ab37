package http1

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// Chunks of one size, as most senders of long bodies cut them, travel without their framing, which
// is known before the body is there; what differs from it is marked where it stands (docs/proxy.md,
// section 3). Bodies that are XML have no byte like the first of a mark.
const (
	markOctet  = 0x01
	markSelf   = 0x01 // the byte itself
	markOdd    = 0x02 // framing that is not as announced
	markAsItIs = 0x03 // from here on bytes are as they came
	markEnd    = 0x04 // the line end behind a chunk, of which nothing follows for a while
)

// UniformSize is the size of a body's chunks, as it is written, if all of which framing was
// recorded so far have one; "" if they have not.
func UniformSize(parts []FramingPart) string {
	if len(parts) == 0 {
		return ""
	}
	size, ends := bytes.CutSuffix(parts[0].Octets, []byte("\r\n"))
	if !ends || sizeOfChunk(size) == 0 {
		return ""
	}
	between := betweenChunks(size)
	for i, p := range parts[1:] {
		isLast := i+2 == len(parts) // some of it may not be there yet
		if !bytes.Equal(p.Octets, between) && (!isLast || !bytes.HasPrefix(between, p.Octets)) {
			return ""
		}
	}
	return string(size)
}

// sizeOfChunk is that of a chunk line with nothing else; 0: it is none that may be announced.
func sizeOfChunk(size []byte) int64 {
	if len(size) > 12 {
		return 0
	}
	n, err := strconv.ParseUint(string(size), 16, 63)
	if err != nil {
		return 0
	}
	return int64(n)
}

func betweenChunks(size []byte) []byte {
	return append(append([]byte("\r\n"), size...), "\r\n"...)
}

// Unframer takes the framing of chunks that have one size out of a raw body that comes in pieces.
// It holds no more than one chunk line or trailer section.
type Unframer struct {
	body    *Body
	between []byte
	held    []byte // framing behind which no entity came yet
	begun   bool   // the line end behind a chunk is due
	asItIs  bool
}

// NewUnframer begins with a body whose chunks have a size, as [UniformSize] returns it.
func NewUnframer(size string) *Unframer {
	return &Unframer{body: NewBody(Framing{Kind: Chunked}), between: betweenChunks([]byte(size))}
}

// Append appends what travels of the next bytes of the body.
func (u *Unframer) Append(dst, raw []byte) []byte {
	for len(raw) > 0 && !u.asItIs {
		entity, n, err := u.body.Write(raw)
		u.held = append(u.held, raw[:n-len(entity)]...)
		raw = raw[n:]
		if len(entity) > 0 {
			if len(u.held) > 0 {
				dst = u.framing(dst, int64(len(entity))+u.body.left)
			}
			dst = appendMarked(dst, entity)
		}
		if err != nil || u.body.Done() {
			dst = u.rest(dst)
		}
	}
	return append(dst, raw...)
}

// framing appends what is held, behind which a chunk of so many bytes begins, unless it is what is
// announced.
func (u *Unframer) framing(dst []byte, size int64) []byte {
	usual := u.between
	if !u.begun {
		usual = usual[len("\r\n"):]
	}
	if u.begun = true; !bytes.Equal(u.held, usual) {
		dst = binary.AppendUvarint(append(dst, markOctet, markOdd), uint64(len(u.held)))
		dst = binary.AppendUvarint(append(dst, u.held...), uint64(size))
	}
	u.held = u.held[:0]
	return dst
}

// Flush appends the line end behind a chunk, if that is what is held: there are receivers that wait
// for it, and nothing else may come for a while.
func (u *Unframer) Flush(dst []byte) []byte {
	if !bytes.Equal(u.held, []byte("\r\n")) || !u.begun {
		return dst
	}
	u.held, u.begun = u.held[:0], false
	return append(dst, markOctet, markEnd)
}

// rest appends what is held; what follows is not looked at any more.
func (u *Unframer) rest(dst []byte) []byte {
	dst = append(append(dst, markOctet, markAsItIs), u.held...)
	u.asItIs, u.held = true, nil
	return dst
}

// End appends what is left of a body that ended, wherever that is.
func (u *Unframer) End(dst []byte) []byte {
	if len(u.held) == 0 {
		return dst
	}
	return u.rest(dst)
}

func appendMarked(dst, entity []byte) []byte {
	for {
		i := bytes.IndexByte(entity, markOctet)
		if i < 0 {
			return append(dst, entity...)
		}
		dst = append(append(dst, entity[:i]...), markOctet, markSelf)
		entity = entity[i+1:]
	}
}

// Reframer gives the raw body back of what an [Unframer] made of it, in any pieces. It holds no
// more than one mark.
type Reframer struct {
	between []byte
	size    int64
	left    int64 // of the chunk at hand
	mark    []byte
	begun   bool // the line end behind a chunk is due
	asItIs  bool
}

// NewReframer begins with a body whose chunks are announced to have a size. Errors: Malformed.
func NewReframer(size []byte) (*Reframer, error) {
	n := sizeOfChunk(size)
	if n == 0 {
		return nil, errChunking
	}
	return &Reframer{between: betweenChunks(size), size: n}, nil
}

// Append appends the raw body as far as it is known with the next bytes that travelled. Errors:
// Malformed.
func (r *Reframer) Append(dst, p []byte) ([]byte, error) {
	for len(p) > 0 && !r.asItIs {
		if len(r.mark) == 0 && p[0] != markOctet {
			n := len(p)
			if i := bytes.IndexByte(p, markOctet); i >= 0 {
				n = i
			}
			dst, p = r.entity(dst, p[:n]), p[n:]
			continue
		}
		r.mark, p = append(r.mark, p[0]), p[1:]
		all, err := r.marked(&dst)
		if err != nil {
			return dst, err
		}
		if all {
			r.mark = r.mark[:0]
		}
	}
	return append(dst, p...), nil
}

// entity appends bytes of the entity, with the framing that is announced between them.
func (r *Reframer) entity(dst, p []byte) []byte {
	for len(p) > 0 {
		if r.left == 0 {
			dst, r.left = append(dst, r.usual()...), r.size
		}
		n := min(int64(len(p)), r.left)
		dst, p = append(dst, p[:n]...), p[n:]
		r.left -= n
	}
	return dst
}

// usual is the framing that is announced for here.
func (r *Reframer) usual() []byte {
	if !r.begun {
		r.begun = true
		return r.between[len("\r\n"):]
	}
	return r.between
}

// marked appends what a mark stands for, if all of it is there.
func (r *Reframer) marked(dst *[]byte) (all bool, err error) {
	if len(r.mark) < 2 {
		return false, nil
	}
	switch r.mark[1] {
	case markSelf:
		*dst = r.entity(*dst, []byte{markOctet})
		return true, nil
	case markAsItIs:
		r.asItIs = true
		return true, nil
	case markEnd:
		if !r.begun || r.left > 0 {
			return false, errMark
		}
		*dst = append(*dst, "\r\n"...)
		r.begun = false
		return true, nil
	case markOdd:
	default:
		return false, errMark
	}
	length, n := binary.Uvarint(r.mark[2:])
	if n < 0 || length > maxChunkLine+uint64(len("\r\n")) {
		return false, errMark
	}
	from := 2 + n
	to := from + int(length)
	if n == 0 || len(r.mark) <= to {
		return false, nil
	}
	size, n := binary.Uvarint(r.mark[to:])
	if n < 0 || n > 0 && (size == 0 || size > 1<<62 || r.left > 0) {
		return false, errMark
	}
	if n > 0 {
		*dst = append(*dst, r.mark[from:to]...)
		r.left, r.begun = int64(size), true
	}
	return n > 0, nil
}

// Held is how many bytes of a mark came whose end did not.
func (r *Reframer) Held() int { return len(r.mark) }

var errMark = &Error{Code: Malformed, What: "mark in a body of chunks"}
