package columns

import (
	"slices"

	"github.com/hhfr/hhfr/internal/reuse"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// Memory is what one direction of a lane, or a message in fragments, remembers from segment to
// segment (wire-format section 11.6). Both ends hold the same. The zero value is empty. Not safe
// for concurrent use.
type Memory struct {
	latest *recall
	before *recall                       // the one that was the latest before; nil: none, as with shapes
	shapes map[shape.Fingerprint]*recall // nil if latest is the only one
	alike  map[uint32]*recall            // the latest of those whose first place has a sign; nil as shapes
	weight int                           // of shapes and places
	words  ring                          // at most maxWords
	texts  ring                          // at most maxTexts
	step   int64                         // of the text that was counted on last
	gaps   [2][]byte                     // the latest between two words, and another that was before it
	// wordsAt and textsAt are for the sending end: the other reads numbers.
	wordsAt, textsAt index
	// careful: values are taken item by item, and a segment that is sent is looked through before.
	// One turned out not to be packed when part of it was noted already.
	careful bool
}

// recall is what is remembered of the places of a shape.
type recall struct {
	program *code.Code // the latest of the shape
	places  []place
}

// place is what is remembered of one place.
type place struct {
	kind         uint16
	known        bool // number is one that was there
	width        uint8
	minutes      int32
	number       int64 // the latest
	step, stride int64 // how far it is from the one before; what is expected of the next
	base         int64 // with width: the range of the column before
	octets       []byte
}

// Reset forgets everything, and gives the room back.
func (m *Memory) Reset() {
	m.words.free()
	m.texts.free()
	m.wordsAt.free()
	m.textsAt.free()
	if m.shapes == nil && m.latest != nil {
		m.latest.free()
	}
	for _, r := range m.shapes {
		r.free()
	}
	*m = Memory{careful: m.careful}
}

// Drop forgets everything, and has the next packed segment tell that.
func (m *Memory) Drop() {
	m.Reset()
	m.weight = maxMemory + 1
}

// full tells that the memory must be reset before a further segment.
func (m *Memory) full() bool { return m.size() > maxMemory }

// size is the weight of all that is remembered.
func (m *Memory) size() int { return m.weight + m.words.weight() + m.texts.weight() }

// Knows reports whether anything is remembered of the shape of a program.
func (m *Memory) Knows(p *program.Program) bool {
	c := (*code.Code)(p)
	if m.latest != nil && m.latest.program == c || m.before != nil && m.before.program == c {
		return true
	}
	return m.shapes[c.Shape().Fingerprint()] != nil
}

// Shapes is the number of shapes of which anything is remembered.
func (m *Memory) Shapes() int {
	if m.shapes == nil && m.latest != nil {
		return 1
	}
	return len(m.shapes)
}

// of gives what is remembered of a shape.
func (m *Memory) of(p *code.Code) *recall {
	if m.latest != nil && m.latest.program == p {
		return m.latest
	}
	if r := m.before; r != nil && r.program == p { // heads and bodies take turns
		m.before, m.latest = m.latest, r
		if sign := beginning(p); sign == beginning(m.before.program) {
			m.alike[sign] = r
		}
		return r
	}
	fp := p.Shape().Fingerprint()
	r := m.shapes[fp]
	if m.latest != nil && m.latest.program.Shape().Fingerprint() == fp {
		r = m.latest
	}
	if r == nil {
		r = newRecall(p)
		if p.Places() > maxPlaces {
			return r
		}
		if m.latest != nil && m.shapes == nil {
			m.shapes = map[shape.Fingerprint]*recall{m.latest.program.Shape().Fingerprint(): m.latest}
			m.alike = map[uint32]*recall{beginning(m.latest.program): m.latest}
		}
		m.weight += shapeWeight + placeWeight*p.Places()
		if m.shapes != nil {
			m.shapes[fp] = r
			m.inherit(r, p)
		}
	}
	if m.latest != r {
		m.before, m.latest = m.latest, r
	}
	if r.program = p; m.alike != nil {
		m.alike[beginning(p)] = r
	}
	return r
}

// beginning is what shapes have in common that are the same up to their first place.
func beginning(p *code.Code) uint32 {
	if p.Places() == 0 {
		return 0
	}
	return p.Signs()[0]
}

// inherit has a shape that is new begin with what is remembered of the latest one that begins in
// the same way, as far as they are the same: the headers of an envelope, for example.
func (m *Memory) inherit(r *recall, p *code.Code) {
	from := m.alike[beginning(p)]
	if from == nil {
		return
	}
	signs, n, octets := from.program.Signs(), 0, 0
	for i, sign := range p.Signs() {
		if i == len(signs) || signs[i] != sign {
			break
		}
		n++
		octets += len(from.places[i].octets)
	}
	if m.size()+octets > maxMemory {
		return
	}
	m.weight += octets
	for i := range r.places[:n] {
		own := r.places[i].octets
		r.places[i] = from.places[i]
		r.places[i].octets = append(own, from.places[i].octets...)
	}
}

var recalls reuse.Spares[recall]

func newRecall(p *code.Code) *recall {
	r := recalls.Get()
	if r == nil {
		r = new(recall)
	}
	r.places = slices.Grow(r.places[:0], p.Places())[:p.Places()]
	for i := range r.places {
		r.places[i] = place{kind: 1, octets: r.places[i].octets[:0]}
	}
	return r
}

// free gives the room back, without what is in it.
func (r *recall) free() {
	for i := range r.places {
		o := &r.places[i].octets
		if clear((*o)[:cap(*o)]); cap(*o) > spareOctets {
			*o = nil
		}
	}
	r.program = nil
	recalls.Put(r)
}

// forgo takes the weight back that a segment of a shape added which is not remembered.
func (m *Memory) forgo(p *code.Code, before int) {
	if p.Places() > maxPlaces {
		m.weight = before
	}
}

// keep has a text or byte string remembered; one that is too long leaves an empty one.
func (m *Memory) keep(p *place, b []byte) {
	if len(b) > maxRecalled {
		b = nil
	}
	m.weight += len(b) - len(p.octets)
	if cap(p.octets) < len(b) || cap(p.octets) > 2*len(b)+spareOctets { // weight is about what it takes
		p.octets = nil
	}
	p.octets = append(p.octets[:0], b...)
}

// keep16 is keep for 16 bytes.
func (m *Memory) keep16(p *place, b []byte) {
	if len(p.octets) == 16 {
		*(*[16]byte)(p.octets) = *(*[16]byte)(b)
		return
	}
	m.keep(p, b)
}

// timeline is what the times of a segment so far say about the next.
type timeline struct {
	any, moved bool
	value      int64 // of the time before
	step       int64 // how far it is from the one that was remembered at its place
}

// predict gives what the next value at a place is expected to be.
func (p *place) predict(t *timeline, isTime bool) int64 {
	switch {
	case isTime && !p.known && t.any:
		return t.value
	case isTime && p.known && t.moved:
		return p.number + t.step
	}
	return p.number + p.stride
}

// note remembers a value.
func (p *place) note(v int64, t *timeline, isTime bool) {
	if isTime {
		t.any, t.value = true, v
		if t.moved = p.known; p.known {
			t.step = v - p.number
		}
	}
	step := v - p.number
	if p.stride = 0; p.known && step == p.step {
		p.stride = step
	}
	p.known, p.number, p.step = true, v, step
}

// noteColumn remembers the last value of a column, and the step to it.
func (p *place) noteColumn(nums []int64, t *timeline, isTime bool) {
	last := nums[len(nums)-1]
	if len(nums) > 1 {
		p.known, p.number = true, nums[len(nums)-2]
	}
	p.note(last, t, isTime)
	t.moved = false
}
