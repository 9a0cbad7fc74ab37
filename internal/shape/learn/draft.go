package learn

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// draft is an element that is being learned: what all elements merged into it have in common, and
// where they differ.
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
	leafType shape.Type
	any      bool // content that has nothing in common

	entries []*entry
	tail    gap // between the last element inside and the end tag
}

// slot is a generated prefix; slots of merged declarations are one.
type slot struct {
	number int64
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

// key is the same for names that mean and look the same, generated prefixes apart.
func (n name) key() string {
	if n.slot != nil {
		return "{" + n.uri + "}" + n.local
	}
	return n.prefix + ":" + n.local + "{" + n.uri
}

// part is a piece of fixed text.
type part struct {
	text string
	slot *slot
}

func samePart(a, b part) bool { return a.text == b.text && a.slot.find() == b.slot.find() }

type attribute struct {
	lead, eq, quote string
	name            name
	declares        *slot
	fixed           [][]part   // markup: the values seen
	typ             shape.Type // else
	optional        bool
	mayLack         bool // by its declaration
}

func (a *attribute) like(b *attribute) bool {
	return a.lead == b.lead && a.eq == b.eq && a.quote == b.quote && (a.fixed == nil) == (b.fixed == nil) &&
		sameName(a.name, b.name)
}

func (a *attribute) maybe() *attribute {
	o := *a
	o.optional = true
	return &o
}

// entry is an element inside another, with what stands between it and the one before; or a choice
// of such.
type entry struct {
	gap             gap
	element         *draft   // nil: a choice
	alts            []*entry // of a choice; none of them is optional, an array or a choice
	typed           bool     // an alternative that is told by its xsi:type
	optional, array bool
	// mayLack and mayRepeat are what its declaration says of it.
	mayLack, mayRepeat bool
}

// gap is what stands between two tags: white space is markup, all else content.
type gap struct {
	text  string
	value bool
}

func (g *gap) add(kind xmltext.Kind, text string) {
	if kind != xmltext.Text || !blank(text) {
		g.value = true
	}
	g.text += text
}

// gapOf makes a gap of what stands between two tags; mark tells that there is more in it than
// character data.
func gapOf(text string, mark bool) gap {
	if mark || !blank(text) {
		return gap{value: true}
	}
	return gap{text: text}
}

func blank(b string) bool {
	for i := range len(b) {
		if !xmltext.IsSpace(b[i]) {
			return false
		}
	}
	return true
}

func sameName(a, b name) bool {
	if a.local != b.local || a.uri != b.uri || (a.slot == nil) != (b.slot == nil) {
		return false
	}
	return a.slot == nil && a.prefix == b.prefix || a.slot != nil && a.slot.find() == b.slot.find()
}

// sameKey tells entries that may be merged.
func sameKey(g, h gap, a, b name) bool {
	if g.value != h.value || !g.value && g.text != h.text ||
		a.local != b.local || a.uri != b.uri || (a.slot == nil) != (b.slot == nil) {
		return false
	}
	return a.slot != nil || a.prefix == b.prefix
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
