package xsd

import (
	"crypto/md5" //nolint:gosec // an identifier that others have defined, for no security
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Contents is what an envelope contains, as far as it is described.
type Contents struct {
	// Body has the elements in Body, in their order.
	Body []*ElementDecl
	// Type is the type of Body itself, which then has no Body; nil: it has none.
	Type *TypeDef
	// Headers are header blocks that may be there, in any order.
	Headers []*ElementDecl
	// Encoded: values have the types and references of SOAP's encoding.
	Encoded bool
}

// URIPrefix is what the URI of every description begins with.
const URIPrefix = "urn:hhfr:schema:sha256:"

// Canonical returns what is described, as text that is the same for all descriptions of the same
// messages: however types and groups are named, or not named, in whatever order and in however many
// documents things are declared. Whatever changes the messages changes the text: names, order, how
// often something occurs, types, their facets, what may stand in an element's place, and what is
// supplied where nothing stands. docs/schemas.md defines it.
//
// A description is a graph, since types may contain themselves. Nodes that describe the same are
// merged, as in the smallest automaton, and written in the order in which a walk from the Body
// meets them.
func (c *Contents) Canonical() []byte {
	g := newGraph()
	first := g.contents(c)
	return g.write(nil, g.classes(), first)
}

// Print names what is described.
type Print struct {
	// Fingerprint is the SHA-256 of the canonical form.
	Fingerprint [sha256.Size]byte
	// Identifier is its MD5: the schema-identifier of Fast SOAP (ITU-T X.892). It proves nothing.
	Identifier [md5.Size]byte
}

// URI is the fingerprint as a URI.
func (p *Print) URI() string { return URIPrefix + hex.EncodeToString(p.Fingerprint[:]) }

// Prints are those of the canonical forms of several messages of a description. What they have in
// common is looked at once.
func Prints(messages ...*Contents) (list []Print) {
	g := newGraph()
	var first []canonicalNode
	for _, c := range messages {
		first = append(first, g.contents(c))
	}
	classes := g.classes()
	var text []byte
	for _, f := range first {
		text = g.write(text[:0], classes, f)
		list = append(list, Print{sha256.Sum256(text), md5.Sum(text)}) //nolint:gosec // as above
	}
	return list
}

func newGraph() *graph { return &graph{of: map[any]int{}, simple: map[*Simple]string{}} }

// contents is the first line of a canonical form.
func (g *graph) contents(c *Contents) canonicalNode {
	l := &line{}
	l.add("body")
	for _, e := range c.Body {
		l.add(" ")
		l.to(g.element(e))
	}
	if c.Type != nil {
		l.add(" type ")
		l.to(g.typ(c.Type))
	}
	if len(c.Headers) > 0 {
		l.add(" header")
	}
	for _, e := range sorted(c.Headers) {
		l.add(" ")
		l.to(g.element(e))
	}
	l.flag(c.Encoded, "encoded")
	return canonicalNode{l.b.String(), l.next}
}

// write merges nodes that describe the same, and writes those that the first line reaches.
func (g *graph) write(out []byte, class []int, first canonicalNode) []byte {
	number := map[int]int{} // of classes, in the order in which they are met
	var order []int         // a node of each
	out = append(out, "hhfr schema 2\n"...)
	lineOf := func(n canonicalNode) {
		text := n.line
		for _, to := range n.next {
			at, met := number[class[to]]
			if !met {
				at = len(order)
				number[class[to]] = at
				order = append(order, to)
			}
			i := strings.IndexByte(text, mark)
			out = append(out, text[:i]...)
			out = strconv.AppendInt(out, int64(at), 10)
			text = text[i+1:]
		}
		out = append(append(out, text...), '\n')
	}
	lineOf(first)
	for at := 0; at < len(order); at++ {
		lineOf(g.nodes[order[at]])
	}
	return out
}

// Canonical returns what elements in a Body describe, as the text that docs/schemas.md defines. See
// [Contents.Canonical].
func Canonical(elements ...*ElementDecl) []byte { return (&Contents{Body: elements}).Canonical() }
