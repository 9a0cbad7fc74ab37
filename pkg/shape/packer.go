package shape

// Packer packs segments: it regroups their items by place and writes what a [Memory] does not say already (wire-format section 11). It allocates nothing once its buffers have
// grown. Not safe for concurrent use.
type Packer struct{ e packer }

// Packing is where a part of a message stands between two of its segments, for a [Packer] or an [Unpacker]. The zero value is the beginning.
type Packing struct{ at position }

// Reset begins a further part.
func (s *Packing) Reset() { s.at.reset() }

// Packed tells a packed segment from one that is as it was (wire-format section 11.1).
func Packed(segment []byte) bool { return len(segment) > 0 && segment[0]&1 != 0 }

// Resets tells a segment that resets the memory.
func Resets(segment []byte) bool { return len(segment) > 0 && segment[0]&2 != 0 }

// Pack appends the packed form of a segment to dst, at most most octets and at least one longer than the segment. last tells that it is the last of its part.
func (k *Packer) Pack(dst []byte, p *Program, s *Packing, m *Memory, segment []byte, last bool, most int) []byte {
	e, w, start := &k.e, &s.at, len(dst)
	if w.lost {
		return append(append(dst, 0), segment...)
	}
	quick := last && !m.careful && len(w.loops) == 0 && !w.text && !w.form && p.Steps()[w.pc].item > itemStop
	if !quick {
		if e.gather.begin(p, w, segment, last); !e.gather.gather(segment, last) {
			return append(append(dst, 0), segment...)
		}
	}
	e.w.begin(dst)
	e.w.flag(true)
	if e.w.flag(m.full()) {
		m.Reset()
	}
	e.memory, e.recall, e.time = m, m.of(p), timeline{}
	before := m.weight
	if !quick {
		if !last {
			e.w.uvarint(e.gather.items)
		}
		e.pack(p)
	} else if pc, at, bits, done := e.quick(p, w.pc, segment); !done {
		e.gather.begin(p, w, segment, last)
		r := &e.gather.seg
		w.pc, r.at, r.bit, r.left = pc, at, bits.octet, bits.left
		if !e.gather.gather(segment, last) {
			if at > 0 {
				m.careful = true
				m.Reset()
				return append(append(dst[:start], 0b10), segment...)
			}
			return append(append(dst[:start], e.w.out[start]&0b10), segment...)
		}
		e.pack(p)
	}
	m.forgo(p, before)
	if len(e.w.out)-start > most {
		m.Reset()
		return append(append(dst[:start], 0b10), segment...)
	}
	return e.w.out
}
