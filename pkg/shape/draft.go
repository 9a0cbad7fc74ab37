package shape

import (
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// draft is an element that is being learned: what all elements merged into it have in common, and where they differ.
type draft struct {
	name  name
	raw   string // the name as written, to check the end tag
	attrs []*attribute

	empty string // what closes an empty tag; "" if none was seen
	open  string // what closes a start tag; "" if none was seen
	end   string // what closes the end tag, after its name

	before   gap    // what stands before it, until it hangs in its parent
	blank    string // the content itself, if it is white space in all that were merged
	isBlank  bool
	leaf     bool // content without elements
	leafType Type
	any      bool // content that has nothing in common

	entries []*entry
	tail    gap // between the last element inside and the end tag
}

// slot is a generated prefix; slots of merged declarations are one.
type slot struct {
	number int
	same   *slot
}

func (s *slot) find() *slot {
	for s != nil && s.same != nil {
		s = s.same
	}
	return s
}

// name is a resolved name. A prefix is text, or a slot.
type name struct {
	prefix, local, uri string
	slot               *slot
}

// part is a piece of fixed text.
type part struct {
	text string
	slot *slot
}

type attribute struct {
	lead, eq, quote string
	name            name
	declares        *slot
	fixed           [][]part // markup: the values seen
	typ             Type     // else
	optional        bool
}

// entry is an element inside another, with what stands between it and the one before; or a choice of such.
type entry struct {
	gap             gap
	element         *draft   // nil: a choice
	alts            []*entry // of a choice; none of them is optional, an array or a choice
	typed           bool     // an alternative that is told by its xsi:type
	optional, array bool
}

// gap is what stands between two tags: white space is markup, all else content.
type gap struct {
	text  string
	value bool
}

// size is about what the element takes in memory, its texts included, in octets.
func (d *draft) size() int {
	const element, attr, value = 512, 384, 96
	n := element + len(d.attrs)*attr
	for _, a := range d.attrs {
		n += len(a.fixed) * value
	}
	for _, e := range d.entries {
		for o := range e.forms {
			n += o.element.size()
		}
	}
	return n
}

// gapOf makes a gap of what stands between two tags; mark tells that there is more in it than character data.
func gapOf(text string, mark bool) gap {
	if mark || !blank(text) {
		return gap{value: true}
	}
	return gap{text: text}
}

func (g *gap) add(kind xmltext.Kind, text string) {
	if kind != xmltext.Text || !blank(text) {
		g.value = true
	}
	g.text += text
}

// finish is called when the element is closed; text, and the same as octets, is what stands between its last two tags, mark tells that there is more in it than character data.
func (d *draft) finish(text string, octets []byte, mark bool) {
	if d.leaf = len(d.entries) == 0 && d.empty == ""; d.leaf {
		if d.isBlank = !mark && blank(text); d.isBlank {
			d.blank = text
		}
		d.leafType = TypeText
		if !mark {
			d.leafType = typeOf(octets)
		}
	} else if len(d.entries) > 0 {
		d.tail = gapOf(text, mark)
	}
	if len(d.entries) > minRecurring && d.mayRecur() {
		d.gatherRecurring()
	}
	d.settle()
}

// maxEntries bounds the elements that an element may have inside, alternatives of choices counted each, so that siblings without order cannot make shapes without end.
const maxEntries = 256

// settle gives up on content that no sequence of guarded parts describes.
func (d *draft) settle() {
	forms := 0
	for _, e := range d.entries {
		forms += max(1, len(e.alts))
		if e.gap.value && (e.optional || e.array) || e.overfull() {
			d.any = true // nothing fixed would tell whether it is there, or too much
		}
	}
	if forms > maxEntries {
		d.any = true
	}
	if d.any {
		d.leaf, d.entries, d.tail = false, nil, gap{}
	}
}

// sameKey tells entries that may be merged.
func sameKey(g, h gap, a, b name) bool {
	if g.value != h.value || !g.value && g.text != h.text || a.local != b.local || a.uri != b.uri || (a.slot == nil) != (b.slot == nil) {
		return false
	}
	return a.slot != nil || a.prefix == b.prefix
}

// key is the same for names that mean and look the same, generated prefixes apart.
func (n name) key() string {
	if n.slot != nil {
		return "{" + n.uri + "}" + n.local
	}
	return n.prefix + ":" + n.local + "{" + n.uri
}

// markup tells attributes whose values belong to markup (the closed list of docs/security.md).
func markup(n name) bool {
	switch n.uri {
	case xmlns.XSI:
		return n.local == "type"
	case xmlns.SOAP11, xmlns.SOAP12:
		return n.local == "mustUnderstand" || n.local == "actor" || n.local == "role" || n.local == "encodingStyle"
	}
	return n.uri == "" && n.prefix == "" && n.local == "Algorithm"
}
