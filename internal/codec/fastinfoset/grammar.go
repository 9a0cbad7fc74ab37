package fastinfoset

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// grammar is what may follow what, and which prefixes stand for what. Readers and writers have one,
// so that what the one accepts, the other writes.
type grammar struct {
	depth     int // most elements in each other
	open      []openInfoset
	scopes    []infosetScope
	attrs     []attrKey // of the element that begins
	rooted    bool      // the root element has begun
	typed     bool      // the document type declaration has
	inDoctype bool
	ended     bool
}

// openInfoset is an element that has not ended.
type openInfoset struct {
	name   Name
	scopes int // of the elements around it
}

// infosetScope is a declared prefix. A document names a long text again by one byte: texts are
// compared whole only where their hashes are equal, so that what an event costs is by its length.
type infosetScope struct {
	Prefixed
	prefix, space uint64 // hashes
	number        int    // of the namespace: the place of the first scope that has it
}

// attrKey tells attributes of an element apart.
type attrKey struct {
	local uint64 // hash
	space int    // the number of the scope, or one below
}

// Namespaces that no scope has.
const (
	noSpace  = -1
	xmlSpace = -2
)

func (g *grammar) reset(depth int) {
	*g = grammar{depth: depth, open: g.open[:0], scopes: g.scopes[:0], attrs: g.attrs[:0]}
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
	for i := range ev.Declared {
		d := &ev.Declared[i]
		isXML := string(d.Prefix) == "xml"
		if isXML != (string(d.Space) == xmlns.XML) || string(d.Prefix) == "xmlns" || string(d.Space) == xmlns.XMLNS {
			return Malformed, "a prefix that cannot be declared so"
		}
		if !g.declare(d, len(g.scopes)-i) {
			return Malformed, "a prefix that is declared twice"
		}
	}
	if _, ok := g.means(&ev.Name); !ok {
		return Malformed, "a name of an element whose prefix is not declared so"
	}
	g.attrs = g.attrs[:0]
	for i := range ev.Attrs {
		name, space, ok := &ev.Attrs[i].Name, noSpace, true
		if len(name.Prefix) > 0 {
			space, ok = g.means(name)
		}
		if !ok || len(name.Prefix) == 0 && (len(name.Space) > 0 || string(name.Local) == "xmlns") {
			return Malformed, "a name of an attribute whose prefix is not declared so"
		}
		key := attrKey{maphash.Bytes(seed, name.Local), space}
		for j, before := range g.attrs {
			if before == key && bytes.Equal(ev.Attrs[j].Name.Local, name.Local) {
				return Malformed, "an attribute that stands twice"
			}
		}
		g.attrs = append(g.attrs, key)
	}
	g.rooted = true
	return 0, ""
}

// declare adds a scope. It reports whether those from a place on, which are of the same element,
// have another prefix.
func (g *grammar) declare(d *Prefixed, from int) bool {
	s := infosetScope{*d, maphash.Bytes(seed, d.Prefix), maphash.Bytes(seed, d.Space), len(g.scopes)}
	for i := range g.scopes {
		o := &g.scopes[i]
		if i >= from && o.prefix == s.prefix && bytes.Equal(o.Prefix, s.Prefix) {
			return false
		}
		if s.number == len(g.scopes) && o.space == s.space && bytes.Equal(o.Space, s.Space) {
			s.number = i
		}
	}
	g.scopes = append(g.scopes, s)
	return true
}

// means reports whether the prefix of a name stands for its namespace here, and the number of that.
func (g *grammar) means(n *Name) (space int, ok bool) {
	prefix := maphash.Bytes(seed, n.Prefix)
	for i := len(g.scopes) - 1; i >= 0; i-- {
		if s := &g.scopes[i]; s.prefix == prefix && bytes.Equal(s.Prefix, n.Prefix) {
			return s.number, bytes.Equal(s.Space, n.Space) && (len(n.Prefix) == 0 || len(n.Space) > 0)
		}
	}
	if len(n.Prefix) == 0 {
		return noSpace, len(n.Space) == 0
	}
	return xmlSpace, string(n.Prefix) == "xml" && string(n.Space) == xmlns.XML
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
