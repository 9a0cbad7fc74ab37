// Package columns packs content: a [Packer] regroups the items of a segment by their places in the
// shape, and writes of these columns what a [Memory] does not say already; an [Unpacker] gives the
// segment back (docs/wire-format.md, section 11).
package columns

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// Packer packs segments: it regroups their items by place and writes what a [Memory] does not say
// already (wire-format section 11). It allocates nothing once its buffers have grown. Not safe for
// concurrent use.
type Packer struct{ e packer }

// Packed tells a packed segment from one that is as it was (wire-format section 11.1).
func Packed(segment []byte) bool { return len(segment) > 0 && segment[0]&1 != 0 }

// Resets tells a segment that resets the memory.
func Resets(segment []byte) bool { return len(segment) > 0 && segment[0]&2 != 0 }

// Pack appends the packed form of a segment to dst, at most most bytes and at least one longer
// than the segment. last tells that it is the last of its part.
func (k *Packer) Pack(
	dst []byte, of *program.Program, s *Packing, m *Memory, segment []byte, last bool, most int,
) []byte {
	p := (*code.Code)(of)
	e, w, start := &k.e, &s.at, len(dst)
	if w.lost {
		return append(append(dst, 0), segment...)
	}
	quick := last && !m.careful && len(w.loops) == 0 && !w.text && !w.form && p.Steps()[w.pc].Item > code.ItemStop
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
		w.pc, r.At, r.Bit, r.Left = pc, at, bits.octet, bits.left
		if !e.gather.gather(segment, last) {
			m.careful = true
			m.Reset()
			return append(append(dst[:start], 0b10), segment...)
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

// pack appends what was gathered.
func (e *packer) pack(p *code.Code) {
	e.rows, e.beside = 0, nil
	for i := range e.gather.events {
		ev := &e.gather.events[i]
		o, pl := &p.Ops()[ev.pc], &e.recall.places[p.Steps()[ev.pc].Place]
		if ev.leaf >= 0 {
			e.column(o, pl, ev.pc, ev.sub, &e.gather.leaves[ev.leaf])
			continue
		}
		if ev.kinded {
			e.kind(o, pl, ev.kind)
		}
		str := e.gather.seg.Seg[ev.at : ev.at+ev.size]
		switch ev.sub {
		case subKind:
			e.kind(o, pl, uint16(ev.num))
		case subNumber:
			e.number(o, pl, ev.num)
		case subMinutes:
			if !e.w.flag(ev.num == int64(pl.minutes)) {
				e.w.zigzag(ev.num)
				pl.minutes = int32(ev.num)
			}
		case subText:
			if !e.w.flag(bytes.Equal(str, pl.octets)) {
				e.text(str, pl.octets)
				e.memory.keep(pl, str)
			}
		case subOctets:
			if !e.w.flag(bytes.Equal(str, pl.octets)) {
				e.octets(o, str, pl.octets)
				e.memory.keep(pl, str)
			}
		case subGroup:
			e.w.out = append(e.w.out, str...)
		}
	}
}

func (e *packer) kind(o *code.Op, pl *place, v uint16) {
	n := o.KindBits()
	if n > 1 && e.w.flag(v == pl.kind) {
		return
	}
	e.w.bits(uint64(v), n)
	pl.kind = v
}

func (e *packer) number(o *code.Op, pl *place, v int64) {
	isTime := o.Type == shape.TypeDateTime
	want := pl.predict(&e.time, isTime)
	if !e.w.flag(v == want) {
		e.w.zigzag(v - want)
	}
	pl.note(v, &e.time, isTime)
}
