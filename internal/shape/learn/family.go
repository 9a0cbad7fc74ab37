// Package learn makes shapes from messages alone.
//
// Every value is a leaf, repeated siblings are an array whose rows are widened to fit each of them;
// values never enter a shape, but for those of a closed list that belong to markup
// (docs/architecture.md). A [Family] is what was learned from the messages of one kind, and widens.
package learn

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// FromMessage makes a shape from one message. Every value is a leaf, repeated siblings are an array
// whose rows are widened to fit each of them (values never enter a shape, but for those of a closed
// list that belong to markup: docs/architecture.md). A message that is no XML, has a DTD or is
// nested too deeply gives an [shape.Error], code Unlearnable or TooLarge.
func FromMessage(message []byte) (*shape.Shape, error) {
	f, err := NewFamily(message, true)
	if err != nil {
		return nil, err
	}
	return f.Shape()
}

// Plain makes the plain shape of a message (docs/wire-format.md, section 4.2): markup as it stands,
// and each value a leaf. It is what [FromMessage] makes, but that siblings are an array only where
// they are alike. There is none of UTF-16.
func Plain(message []byte) (*shape.Shape, error) {
	if lexical.UTF16Of(message).IsUTF16() {
		return nil, &shape.Error{Code: shape.Unlearnable, What: "UTF-16"}
	}
	l := newLearner(message)
	l.plain = true
	d, err := l.document(false)
	l.done()
	if err != nil {
		return nil, err
	}
	return (&Family{document: d}).Shape()
}

// Family is what was learned from messages of one kind so far: it gives a shape that fits them all,
// and widens. It is immutable, but must not be used by several goroutines at once.
type Family struct {
	encoding shape.Kind
	document
}

// NewFamily learns from one message, or, if it is not whole, from its beginning. What is still open
// where a beginning ends is expected to be closed without more.
func NewFamily(message []byte, whole bool) (*Family, error) {
	encoding := lexical.UTF16Of(message)
	if encoding.IsUTF16() {
		var n lexical.Narrower
		message = n.Append(make([]byte, 0, len(message)/2), encoding, message, whole)
	}
	l := newLearner(message)
	d, err := l.document(!whole)
	l.done()
	if err != nil {
		return nil, err
	}
	if len(message) > heldMessage {
		d.detach()
	}
	return &Family{encoding, d}, nil
}

// Key is the same for families that may be merged: what stands before the root element, its name,
// and for a SOAP envelope the name of what stands in its Body.
func (f *Family) Key() string {
	key := string(rune(f.encoding)) + f.before.text + f.root.name.key()
	for _, e := range f.root.entries {
		if b := e.element; b != nil && b.name.local == "Body" && b.name.uri == f.root.name.uri && len(b.entries) > 0 {
			for first := range b.entries[0].forms {
				key += " " + first.element.name.key()
				break
			}
		}
	}
	return key
}

// Widen gives a family that has what both have, and all that is declared of it; nil if they have
// too little in common. Neither may be widened by others afterwards if it succeeds.
func (f *Family) Widen(o *Family) *Family {
	if f.encoding != o.encoding || f.before != o.before {
		return nil
	}
	var m merger
	root := m.draft(f.root, o.root)
	if root == nil || root.any {
		return nil
	}
	root.loosen()
	return &Family{f.encoding, document{before: f.before, after: mergeGaps(f.after, o.after), root: root}}
}

// Shape gives the shape that fits all messages of the family.
func (f *Family) Shape() (*shape.Shape, error) {
	w := writer{shape.NewBuilder()}
	if f.encoding.IsUTF16() {
		w.Begin(f.encoding)
	}
	w.Begin(shape.Sequence)
	w.gap(f.before)
	w.element(f.root)
	w.gap(f.after)
	w.End()
	if f.encoding.IsUTF16() {
		w.End()
	}
	return w.Shape()
}

// Size is about what the family takes in memory, in bytes.
func (f *Family) Size() int {
	const message, whole = 4096, 1024 // what its texts may be cut from, and what there is once
	return message + whole + f.root.size()
}
