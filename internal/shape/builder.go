package shape

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// Builder makes a shape without a tree: it is told, in order, what stands in it. Texts that follow
// each other become one, a sequence of one node becomes that node, slots are numbered as they come.
// A sequence inside a sequence, element or attribute makes an invalid shape.
type Builder struct {
	dst   []byte
	open  []written
	text  int // place of the text that is being written, 0: none
	slots map[int64]int
	nodes int // begun; sequences of one are among them
}

// written is a node that is being written.
type written struct {
	at   int // place in dst
	kind Kind
	kids int
}

// builders are reused, unless one shape made them large.
var builders = sync.Pool{New: func() any { return new(Builder) }}

// NewBuilder begins a shape.
func NewBuilder() *Builder {
	b := builders.Get().(*Builder)
	b.dst = append(b.dst[:0], version, 0) // 0: room for the number of slots
	b.open, b.text, b.slots, b.nodes = b.open[:0], 0, nil, 0
	return b
}

// Shape ends the shape; the builder is of no use any more. Errors are as those of [Parse].
func (b *Builder) Shape() (*Shape, error) {
	const usual = 64 << 10
	b.endText()
	b.count(1, len(b.slots))
	octets, nodes := bytes.Clone(b.dst), b.nodes
	if b.slots = nil; cap(b.dst) <= usual {
		builders.Put(b)
	}
	return parse(octets, nodes)
}

// count writes a number into the byte at, and makes room for more if it needs more.
func (b *Builder) count(at, n int) {
	if n < 0x80 {
		b.dst[at] = byte(n)
		return
	}
	var buf [binary.MaxVarintLen64]byte
	u := binary.AppendUvarint(buf[:0], uint64(n))
	b.dst = append(b.dst, u[1:]...)
	copy(b.dst[at+len(u):], b.dst[at+1:])
	copy(b.dst[at:], u)
}

func (b *Builder) endText() {
	if b.text > 0 {
		b.count(b.text+1, len(b.dst)-b.text-2)
		b.text = 0
	}
}

// kid begins a node without others in it, or a text.
func (b *Builder) kid(kind Kind) {
	b.endText()
	if n := len(b.open); n > 0 {
		b.open[n-1].kids++
	}
	b.dst = append(b.dst, byte(kind))
	b.nodes++
}

// Begin begins a node that others stand in; [Builder.End] ends it.
func (b *Builder) Begin(kind Kind) {
	b.kid(kind)
	b.open = append(b.open, written{at: len(b.dst) - 1, kind: kind})
	switch kind {
	case Array:
		b.dst = append(b.dst, 0, 0) // any number of rows
	case Sequence, Element, Attribute, Choice:
		b.dst = append(b.dst, 0)
	}
}

// End ends the node that was begun last.
func (b *Builder) End() {
	b.endText()
	n := b.open[len(b.open)-1]
	b.open = b.open[:len(b.open)-1]
	switch {
	case n.kind == Sequence && n.kids == 1:
		b.dst = append(b.dst[:n.at], b.dst[n.at+2:]...)
	case n.kind != Array && n.kind != Optional && !n.kind.IsUTF16():
		b.count(n.at+1, n.kids)
	}
}

// Text writes markup.
func (b *Builder) Text(s string) {
	if s == "" {
		return
	}
	if b.text == 0 {
		b.kid(Text)
		b.text = len(b.dst) - 1
		b.dst = append(b.dst, 0)
	}
	b.dst = append(b.dst, s...)
}

// Value writes where a value stands.
func (b *Builder) Value(t Type, until Until) {
	b.kid(Value)
	b.dst = append(b.dst, byte(t), byte(until))
}

// Slot writes where a generated prefix stands, the same for the same id.
func (b *Builder) Slot(id int64) {
	number, again := b.slots[id]
	if again {
		b.kid(Again)
	} else {
		if b.slots == nil {
			b.slots = map[int64]int{}
		}
		number = len(b.slots)
		b.slots[id] = number
		b.kid(Slot)
	}
	b.dst = binary.AppendUvarint(b.dst, uint64(number))
}
