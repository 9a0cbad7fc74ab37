package columns

import (
	"encoding/binary"
	"sync"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
)

// Folded is a [Memory] that takes little room while nobody uses it. The zero value is an empty one.
// It keeps its room while the memory is unfolded: what lives long stays where it is.
type Folded struct {
	programs []*code.Code // of the shapes that are remembered, the latest first; of those alike, too
	rest     []byte
}

// Size is about how much room it takes, in bytes, beside programs that others use too.
func (f *Folded) Size() int { return cap(f.rest) + 8*len(f.programs) }

// Shapes is the number of shapes of which anything is remembered.
func (f *Folded) Shapes() int { return len(f.programs) }

// foldings are buffers for what memories are folded to, empty ones.
var foldings = sync.Pool{New: func() any { return new([]byte) }}

// Fold takes a memory, which is empty then. [Folded.Unfold] brings it back; what is packed and
// unpacked with that is the same, but that a sender may find less of the texts it knows.
func (f *Folded) Fold(m *Memory) {
	f.programs = f.programs[:0]
	scratch := foldings.Get().(*[]byte)
	defer foldings.Put(scratch)
	b := binary.AppendUvarint((*scratch)[:0], uint64(m.weight))
	b = append(b, boolByte(m.careful)|boolByte(m.wordsAt.table != nil)<<1|boolByte(m.textsAt.table != nil)<<2)
	b = binary.AppendUvarint(b, bin.Zigzag(m.step))
	b = bin.AppendBytes(bin.AppendBytes(b, m.gaps[0]), m.gaps[1])
	b = m.texts.fold(m.words.fold(b))
	if m.latest != nil {
		b = f.add(b, m.latest)
	}
	for _, r := range m.alike {
		if r != m.latest {
			b = f.add(b, r)
		}
	}
	for _, r := range m.shapes {
		if r != m.alike[beginning(r.program)] {
			b = f.add(b, r)
		}
	}
	if cap(f.rest) < len(b) || cap(f.rest) > len(b)+len(b)/4+spareOctets {
		f.rest = make([]byte, 0, len(b))
	}
	f.rest, *scratch = append(f.rest[:0], b...), b
	clear(b)
	careful := m.careful
	m.Reset()
	m.careful = careful
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// add folds what is remembered of a shape.
func (f *Folded) add(b []byte, r *recall) []byte {
	f.programs = append(f.programs, r.program)
	for i := range r.places {
		b = r.places[i].fold(b)
	}
	return b
}

// Unfold brings the memory back into an empty one.
func (f *Folded) Unfold(m *Memory) {
	if len(f.rest) == 0 {
		return
	}
	c := bin.NewCursor(f.rest, 0)
	m.weight = int(c.Uvarint())
	flags := c.U8()
	m.careful = flags&1 != 0
	m.step = bin.Unzigzag(c.Uvarint())
	for i := range m.gaps {
		m.gaps[i] = append([]byte(nil), c.Bytes(uint64(len(f.rest)))...)
	}
	m.words.unfold(&c, maxWords, &m.wordsAt, flags&2 != 0)
	m.texts.unfold(&c, maxTexts, &m.textsAt, flags&4 != 0)
	for i, p := range f.programs {
		r := newRecall(p)
		r.program = p
		for k := range r.places {
			r.places[k].unfold(&c)
		}
		if i == 0 {
			m.latest = r
		}
		if len(f.programs) > 1 {
			if m.shapes == nil {
				m.shapes, m.alike = map[shape.Fingerprint]*recall{}, map[uint32]*recall{}
			}
			m.shapes[p.Shape().Fingerprint()] = r
			if m.alike[beginning(p)] == nil {
				m.alike[beginning(p)] = r
			}
		}
	}
	clear(f.rest)
	clear(f.programs)
	f.rest, f.programs = f.rest[:0], f.programs[:0]
}

// The bits of the first byte of a folded place say what stands behind it; a place where nothing
// came yet is 0.
const (
	foldedKind = 1 << iota
	foldedKnown
	foldedNumber
	foldedSteps
	foldedMinutes
	foldedWidth
	foldedOctets
)

func (p *place) fold(b []byte) []byte {
	at := len(b)
	b = append(b, 0)
	number := func(bit byte, there bool, values ...int64) {
		if !there {
			return
		}
		b[at] |= bit
		for _, v := range values {
			b = binary.AppendUvarint(b, bin.Zigzag(v))
		}
	}
	number(foldedKind, p.kind != 1, int64(p.kind))
	number(foldedKnown, p.known)
	number(foldedNumber, p.number != 0, p.number)
	number(foldedSteps, p.step != 0 || p.stride != 0, p.step, p.stride)
	number(foldedMinutes, p.minutes != 0, int64(p.minutes))
	number(foldedWidth, p.width != 0 || p.base != 0, int64(p.width), p.base)
	if len(p.octets) > 0 {
		b[at] |= foldedOctets
		b = bin.AppendBytes(b, p.octets)
	}
	return b
}

// unfold reads a place that is as newRecall makes it.
func (p *place) unfold(c *bin.Cursor) {
	there := c.U8()
	number := func(bit byte) int64 {
		if there&bit == 0 {
			return 0
		}
		return bin.Unzigzag(c.Uvarint())
	}
	if there&foldedKind != 0 {
		p.kind = uint16(number(foldedKind))
	}
	p.known = there&foldedKnown != 0
	p.number = number(foldedNumber)
	p.step, p.stride = number(foldedSteps), number(foldedSteps)
	p.minutes = int32(number(foldedMinutes))
	p.width, p.base = uint8(number(foldedWidth)), number(foldedWidth)
	if there&foldedOctets != 0 {
		p.octets = append(p.octets, c.Bytes(uint64(c.Len()))...)
	}
}

func (t *ring) fold(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(t.count))
	b = binary.AppendUvarint(b, uint64(t.len))
	for i := range t.len {
		b = bin.AppendBytes(b, t.at(i))
	}
	return b
}

// unfold reads a ring that is empty. at is the index of a sender; that of a receiver has none.
func (t *ring) unfold(c *bin.Cursor, most int, at *index, indexed bool) {
	count, n := int(c.Uvarint()), int(c.Uvarint())
	for range n {
		b := c.Bytes(uint64(c.Len()))
		if i := t.enter(b, most); indexed {
			head := load8(b, 0)
			at.add(t, i, b, hashText(head, b), most)
		}
	}
	t.count = count
}
