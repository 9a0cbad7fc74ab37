package columns

import (
	"slices"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/internal/code"
	"github.com/hhfr/hhfr/pkg/shape/program"
)

// Memory is what one direction of a lane, or a message in fragments, remembers from segment to
// segment (wire-format section 11.6). Both ends hold the same. The zero value is empty. Not safe
// for concurrent use.
type Memory struct {
	latest *recall
	shapes map[shape.Fingerprint]*recall // nil if latest is the only one
	weight int
	words  ring      // at most maxWords
	texts  ring      // at most maxTexts
	step   int64     // of the text that was counted on last
	gaps   [2][]byte // the latest between two words, and another that was before it
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
func (m *Memory) full() bool { return m.weight > maxMemory }

// Knows reports whether anything is remembered of the shape of a program.
func (m *Memory) Knows(p *program.Program) bool {
	c := (*code.Code)(p)
	return m.latest != nil && m.latest.program == c || m.shapes[c.Shape().Fingerprint()] != nil
}

// of gives what is remembered of a shape.
func (m *Memory) of(p *code.Code) *recall {
	if m.latest != nil && m.latest.program == p {
		return m.latest
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
		}
		if m.shapes != nil {
			m.shapes[fp] = r
		}
		m.weight += placeWeight * p.Places()
	}
	r.program, m.latest = p, r
	return r
}

var recalls = sync.Pool{New: func() any { return new(recall) }}

func newRecall(p *code.Code) *recall {
	r := recalls.Get().(*recall)
	r.places = slices.Grow(r.places[:0], p.Places())[:p.Places()]
	for i := range r.places {
		r.places[i] = place{kind: 1, octets: r.places[i].octets[:0]}
	}
	return r
}

// free gives the room back, without what is in it.
func (r *recall) free() {
	for i := range r.places {
		o := r.places[i].octets
		clear(o[:cap(o)])
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
