package http1

import (
	"bytes"
	"strconv"
)

// AppendTo appends the body of this entity as it was received.
func (f *Chunking) AppendTo(dst, entity []byte) []byte {
	if f == nil {
		return append(dst, entity...)
	}
	r := f.Rechunk()
	return r.End(r.Append(dst, entity))
}

// Rechunk begins to frame a body as it was received.
func (f *Chunking) Rechunk() *Rechunker { return &Rechunker{framing: f} }

// Rechunker frames an entity that comes in pieces. It holds less than one chunk, or all of the last
// one.
type Rechunker struct {
	framing *Chunking
	next    int   // run, or part, at hand
	times   int64 // how many chunks of that run are complete
	at      int64 // how much of the entity came
	held    []byte
}

// Held is how many bytes of the entity it holds.
func (r *Rechunker) Held() int { return len(r.held) }

// Append appends what is known of the body with the next piece of the entity.
func (r *Rechunker) Append(dst, entity []byte) []byte {
	if !r.framing.regular {
		return r.appendParts(dst, entity)
	}
	for {
		size := r.chunk()
		if size == 0 || size > int64(len(r.held)+len(entity)) {
			r.held = append(r.held, entity...)
			return dst
		}
		n := int(size) - len(r.held)
		dst = append(r.framing.appendSize(dst, size), r.held...)
		dst = append(append(dst, entity[:n]...), "\r\n"...)
		r.held, entity = r.held[:0], entity[n:]
		r.times++
	}
}

// chunk is the size of the chunk at hand; 0: it is the last one.
func (r *Rechunker) chunk() int64 {
	sizes := r.framing.sizes
	for r.next < len(sizes) && r.times == sizes[r.next].times {
		r.next, r.times = r.next+1, 0
	}
	if r.next == len(sizes) {
		return 0
	}
	return sizes[r.next].size
}

// appendParts appends the entity with the parts that belong before and in it.
func (r *Rechunker) appendParts(dst, entity []byte) []byte {
	for len(entity) > 0 {
		dst = r.appendDue(dst)
		n := int64(len(entity))
		if r.next < len(r.framing.parts) {
			n = min(n, r.framing.parts[r.next].At-r.at)
		}
		dst = append(dst, entity[:n]...)
		entity = entity[n:]
		r.at += n
	}
	return dst
}

// appendDue appends the parts before the next byte of the entity.
func (r *Rechunker) appendDue(dst []byte) []byte {
	for ; r.next < len(r.framing.parts) && r.framing.parts[r.next].At <= r.at; r.next++ {
		dst = append(dst, r.framing.parts[r.next].Octets...)
	}
	return dst
}

// End appends the rest of the body: the entity is complete. Of an entity that is shorter than its
// framing, the rest is the last chunk.
func (r *Rechunker) End(dst []byte) []byte {
	if !r.framing.regular {
		for _, p := range r.framing.parts[r.next:] {
			dst = append(dst, p.Octets...)
		}
		return dst
	}
	if len(r.held) > 0 {
		dst = r.framing.appendSize(dst, int64(len(r.held)))
		dst = append(append(dst, r.held...), "\r\n"...)
	}
	return AppendLastChunk(dst)
}

// appendSize appends the line with the size of a chunk.
func (f *Chunking) appendSize(dst []byte, size int64) []byte {
	from := len(dst)
	dst = strconv.AppendInt(dst, size, 16)
	if f.upper {
		copy(dst[from:], bytes.ToUpper(dst[from:]))
	}
	return append(dst, "\r\n"...)
}
