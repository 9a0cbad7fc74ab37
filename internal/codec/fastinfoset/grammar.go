package fastinfoset

import (
	"bytes"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// grammar is what may follow what, and which prefixes stand for what. Readers and writers have one,
// so that what the one accepts, the other writes.
type grammar struct {
	depth     int // most elements in each other
	open      []openInfoset
	scopes    []Prefixed
	rooted    bool // the root element has begun
	typed     bool // the document type declaration has
	inDoctype bool
	ended     bool
}

// openInfoset is an element that has not ended.
type openInfoset struct {
	name   Name
	scopes int // of the elements around it
}

func (g *grammar) reset(depth int) {
	*g = grammar{depth: depth, open: g.open[:0], scopes: g.scopes[:0]}
}

// step goes on by an event. It returns what is wrong with it; code is 0 where nothing is.
func (g *grammar) step(ev *Event) (code Code, wrong string) {
	inside := len(g.open) > 0
	switch {
	case g.ended:
		return Malformed, "something behind the end of the document"
	case g.inDoctype && ev.Kind != Instruction && ev.Kind != EndDoctype:
		return Malformed, "a document type declaration has instructions and nothing else"
	}
	switch ev.Kind {
	case StartElement:
		return g.enter(ev)
	case EndElement:
		if !inside {
			return Malformed, "the end of an element that did not begin"
		}
		last := len(g.open) - 1
		ev.Name = g.open[last].name
		g.scopes, g.open = g.scopes[:g.open[last].scopes], g.open[:last]
	case Characters, EntityReference:
		if !inside {
			return Malformed, "content outside of the root element"
		}
	case StartDoctype:
		if g.rooted || g.typed {
			return Malformed, "a document type declaration behind a first one, or in or behind the root element"
		}
		g.typed, g.inDoctype = true, true
	case EndDoctype:
		if !g.inDoctype {
			return Malformed, "the end of a document type declaration that did not begin"
		}
		g.inDoctype = false
	case EndDocument:
		if inside || !g.rooted {
			return Malformed, "the end of the document before that of its root element"
		}
		g.ended = true
	default:
	}
	return 0, ""
}

func (g *grammar) enter(ev *Event) (code Code, wrong string) {
	switch {
	case len(g.open) == 0 && g.rooted:
		return Malformed, "a second root element"
	case len(g.open) >= g.depth:
		return Excessive, "elements nest too deep"
	case len(ev.Attrs) > maxAttrs:
		return Excessive, "too many attributes of one element"
	case len(g.scopes)+len(ev.Declared) > maxScopes:
		return Excessive, "too many prefixes"
	}
	g.open = append(g.open, openInfoset{ev.Name, len(g.scopes)})
	for i, d := range ev.Declared {
		isXML := string(d.Prefix) == "xml"
		if isXML != (string(d.Space) == xmlns.XML) || string(d.Prefix) == "xmlns" || string(d.Space) == xmlns.XMLNS {
			return Malformed, "a prefix that cannot be declared so"
		}
		for _, before := range ev.Declared[:i] {
			if bytes.Equal(before.Prefix, d.Prefix) {
				return Malformed, "a prefix that is declared twice"
			}
		}
		g.scopes = append(g.scopes, d)
	}
	if !g.means(&ev.Name) {
		return Malformed, "a name of an element whose prefix is not declared so"
	}
	for i := range ev.Attrs {
		name := &ev.Attrs[i].Name
		if (len(name.Prefix) > 0 || len(name.Space) > 0) && (len(name.Prefix) == 0 || !g.means(name)) ||
			len(name.Prefix) == 0 && string(name.Local) == "xmlns" {
			return Malformed, "a name of an attribute whose prefix is not declared so"
		}
		for j := range ev.Attrs[:i] {
			if o := &ev.Attrs[j].Name; bytes.Equal(o.Local, name.Local) && bytes.Equal(o.Space, name.Space) {
				return Malformed, "an attribute that stands twice"
			}
		}
	}
	g.rooted = true
	return 0, ""
}

// means reports whether the prefix of a name stands for its namespace here.
func (g *grammar) means(n *Name) bool {
	for i := len(g.scopes) - 1; i >= 0; i-- {
		if s := &g.scopes[i]; bytes.Equal(s.Prefix, n.Prefix) {
			return bytes.Equal(s.Space, n.Space) && (len(n.Prefix) == 0 || len(n.Space) > 0)
		}
	}
	if len(n.Prefix) == 0 {
		return len(n.Space) == 0
	}
	return string(n.Prefix) == "xml" && string(n.Space) == xmlns.XML
}

// badText is the offset of what XML cannot have in a text; -1: nothing.
func badText(b []byte) int {
	for i := 0; i < len(b); {
		c := b[i]
		if c >= ' ' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 || !pull.IsChar(r) {
			return i
		}
		i += size
	}
	return -1
}
