package shape

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// writer writes the serialization of a tree in canonical form (wire-format section 9) while it is told, in order, what stands in it: texts that follow each other become one, a sequence of one node becomes that
// node, slots are numbered as they come. A sequence must not be begun inside a sequence, element or attribute.
type writer struct {
	dst   []byte
	open  []written
	text  int // place of the text that is being written, 0: none
	slots map[*slot]int
	nodes int // begun; sequences of one are among them
}

// written is a node that is being written.
type written struct {
	at   int // place in dst
	kind Kind
	kids int
}

// writers are reused, unless one shape made them large.
var writers = sync.Pool{New: func() any { return new(writer) }}

func newWriter() *writer {
	w := writers.Get().(*writer)
	w.dst = append(w.dst[:0], version, 0) // 0: room for the number of slots
	w.open, w.text, w.slots, w.nodes = w.open[:0], 0, nil, 0
	return w
}

// finish gives the shape. The writer is of no use any more.
func (w *writer) finish() (*Shape, error) {
	const usual = 64 << 10
	w.endText()
	w.count(1, len(w.slots))
	octets, nodes := bytes.Clone(w.dst), w.nodes
	if w.slots = nil; cap(w.dst) <= usual {
		writers.Put(w)
	}
	return parse(octets, nodes)
}

// count writes a number into the octet at, and makes room for more if it needs more.
func (w *writer) count(at, n int) {
	if n < 0x80 {
		w.dst[at] = byte(n)
		return
	}
	var buf [binary.MaxVarintLen64]byte
	u := binary.AppendUvarint(buf[:0], uint64(n))
	w.dst = append(w.dst, u[1:]...)
	copy(w.dst[at+len(u):], w.dst[at+1:])
	copy(w.dst[at:], u)
}

func (w *writer) endText() {
	if w.text > 0 {
		w.count(w.text+1, len(w.dst)-w.text-2)
		w.text = 0
	}
}

// kid begins a node without others in it, or a text.
func (w *writer) kid(kind Kind) {
	w.endText()
	if n := len(w.open); n > 0 {
		w.open[n-1].kids++
	}
	w.dst = append(w.dst, byte(kind))
	w.nodes++
}

// begin begins a node that others stand in; end ends it.
func (w *writer) begin(kind Kind) {
	w.kid(kind)
	w.open = append(w.open, written{at: len(w.dst) - 1, kind: kind})
	switch kind {
	case Array:
		w.dst = append(w.dst, 0, 0) // any number of rows
	case Sequence, Element, Attribute, Choice:
		w.dst = append(w.dst, 0)
	}
}

func (w *writer) end() {
	w.endText()
	n := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	switch {
	case n.kind == Sequence && n.kids == 1:
		w.dst = append(w.dst[:n.at], w.dst[n.at+2:]...)
	case n.kind != Array && n.kind != Optional && !n.kind.isUTF16():
		w.count(n.at+1, n.kids)
	}
}

func (w *writer) string(s string) {
	if s == "" {
		return
	}
	if w.text == 0 {
		w.kid(Text)
		w.text = len(w.dst) - 1
		w.dst = append(w.dst, 0)
	}
	w.dst = append(w.dst, s...)
}

func (w *writer) value(t Type, until Until) {
	w.kid(Value)
	w.dst = append(w.dst, byte(t), byte(until))
}

func (w *writer) slot(s *slot) {
	s = s.find()
	number, again := w.slots[s]
	if again {
		w.kid(Again)
	} else {
		if w.slots == nil {
			w.slots = map[*slot]int{}
		}
		number = len(w.slots)
		w.slots[s] = number
		w.kid(Slot)
	}
	w.dst = binary.AppendUvarint(w.dst, uint64(number))
}

func (w *writer) gap(g gap) {
	if g.value {
		w.value(TypeText, UntilTag)
	} else {
		w.string(g.text)
	}
}

func (w *writer) name(n name) {
	if n.slot != nil {
		w.slot(n.slot)
		w.string(":")
	} else if n.prefix != "" {
		w.string(n.prefix)
		w.string(":")
	}
	w.string(n.local)
}

func (w *writer) element(d *draft) {
	w.begin(Element)
	w.string("<")
	w.name(d.name)
	for _, a := range d.attrs {
		w.attribute(a)
	}
	both := d.empty != "" && d.open != ""
	if both {
		w.begin(Choice)
	}
	w.string(d.empty)
	if both {
		w.begin(Sequence)
	}
	if d.open != "" {
		w.string(d.open)
		w.inside(d)
		w.string("</")
		w.name(d.name)
		w.string(d.end)
	}
	if both {
		w.end()
		w.end()
	}
	w.end()
}

func (w *writer) inside(d *draft) {
	switch {
	case d.any:
		w.value(TypeOpen, UntilElement)
	case d.leaf:
		w.value(d.leafType, UntilTag)
	default:
		for _, e := range d.entries {
			w.entry(e)
		}
		w.gap(d.tail)
	}
}

func (w *writer) entry(e *entry) {
	wrapped := e.array || e.optional
	if e.array {
		w.begin(Array)
	} else if e.optional {
		w.begin(Optional)
	}
	if e.element == nil {
		w.begin(Choice)
		for _, o := range e.alts {
			w.form(o, true)
		}
		w.end()
	} else {
		w.form(e, wrapped)
	}
	if wrapped {
		w.end()
	}
}

// form writes an element with what stands before it; alone: as one node.
func (w *writer) form(e *entry, alone bool) {
	sequence := alone && (e.gap.value || e.gap.text != "")
	if sequence {
		w.begin(Sequence)
	}
	w.gap(e.gap)
	w.element(e.element)
	if sequence {
		w.end()
	}
}

func (w *writer) attribute(a *attribute) {
	if a.optional {
		w.begin(Optional)
	}
	w.begin(Attribute)
	w.string(a.lead)
	switch {
	case a.declares != nil:
		w.string("xmlns:")
		w.slot(a.declares)
	case a.name.local == "xmlns" && a.name.prefix != "":
		w.string("xmlns:")
		w.string(a.name.prefix)
	default:
		w.name(a.name)
	}
	w.string(a.eq)
	switch {
	case len(a.fixed) > 1:
		w.begin(Choice)
		for _, parts := range a.fixed {
			w.begin(Sequence)
			w.parts(parts)
			w.string(a.quote)
			w.end()
		}
		w.end()
	case len(a.fixed) == 1:
		w.parts(a.fixed[0])
		w.string(a.quote)
	default:
		until := UntilQuote
		if a.quote == "'" {
			until = UntilApostrophe
		}
		w.value(a.typ, until)
		w.string(a.quote)
	}
	w.end()
	if a.optional {
		w.end()
	}
}

func (w *writer) parts(parts []part) {
	for _, p := range parts {
		if p.slot != nil {
			w.slot(p.slot)
		} else {
			w.string(p.text)
		}
	}
}
