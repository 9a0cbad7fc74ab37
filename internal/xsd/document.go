package xsd

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// QName is an expanded name.
type QName struct{ Space, Local string }

// String is {namespace}local, or local alone.
func (n QName) String() string {
	if n.Space == "" {
		return n.Local
	}
	return "{" + n.Space + "}" + n.Local
}

// Position is where something stands: a line and column, both from 1, in a document.
type Position struct {
	Location     string
	Line, Column int
}

// String is location:line:column.
func (p Position) String() string {
	if p.Line == 0 {
		return p.Location
	}
	return fmt.Sprintf("%s:%d:%d", p.Location, p.Line, p.Column)
}

// DocumentNode is an element of a document. It is immutable.
type DocumentNode struct {
	Name     QName
	Attrs    []DocumentAttr
	Children []*DocumentNode
	Place    Position
	// Text is what stands between the tags, of a message, and Before how many bytes of that of its
	// parent stand before the element.
	Text   string
	Before int
	parent *DocumentNode
	// declared are the namespace declarations on this element.
	declared []DocumentAttr
	// elements are how many there are in the document, at its root.
	elements int
}

// DocumentAttr is an attribute; of a declaration the Local name is the prefix.
type DocumentAttr struct {
	Name  QName
	Value string
}

// Get returns an attribute without a namespace, and whether there is one.
func (n *DocumentNode) Get(local string) (string, bool) {
	for i := range n.Attrs {
		if n.Attrs[i].Name.Local == local && n.Attrs[i].Name.Space == "" {
			return n.Attrs[i].Value, true
		}
	}
	return "", false
}

// Attr returns an attribute without a namespace, without the white space around it; "" if there is
// none.
func (n *DocumentNode) Attr(local string) string {
	v, _ := n.Get(local)
	return strings.TrimSpace(v)
}

// Namespace returns what a prefix is bound to where the node stands, and whether it is.
func (n *DocumentNode) Namespace(prefix string) (string, bool) {
	if prefix == "xml" {
		return xmlns.XML, true
	}
	for at := n; at != nil; at = at.parent {
		for i := range at.declared {
			if at.declared[i].Name.Local == prefix {
				return at.declared[i].Value, true
			}
		}
	}
	return "", prefix == ""
}

// QName resolves a name that stands in an attribute; false: its prefix is not declared.
func (n *DocumentNode) QName(text string) (QName, bool) {
	prefix, local, found := strings.Cut(strings.TrimSpace(text), ":")
	if !found {
		prefix, local = "", prefix
	}
	space, ok := n.Namespace(prefix)
	return QName{space, local}, ok
}

// Reference is [DocumentNode.QName], with the problem that the prefix is not declared.
func (n *DocumentNode) Reference(text string) (QName, *Problem) {
	name, ok := n.QName(text)
	if ok {
		return name, nil
	}
	p := problemAt(n.Place, "the prefix of %q is not declared", text)
	prefix, _, _ := strings.Cut(strings.TrimSpace(text), ":")
	p.Kind, p.Name.Local = NoPrefix, prefix
	return name, p
}

// All returns the children of a name.
func (n *DocumentNode) All(name QName) (list []*DocumentNode) {
	for _, c := range n.Children {
		if c.Name == name {
			list = append(list, c)
		}
	}
	return list
}

// First returns the first child of a name; nil if there is none.
func (n *DocumentNode) First(name QName) *DocumentNode {
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// ParseDocument reads an XML document in UTF-8, UTF-16, ISO-8859-1 or windows-125x, with its
// elements alone: documentation inside xs:annotation is left out.
func ParseDocument(location string, text []byte) (*DocumentNode, error) {
	return parse(location, text, false)
}

// ParseMessage is [ParseDocument] for a message: its nodes have their text.
func ParseMessage(location string, text []byte) (*DocumentNode, error) {
	return parse(location, text, true)
}

func parse(location string, text []byte, message bool) (*DocumentNode, error) {
	if len(text) > MaxDocument {
		return nil, &Problem{Place: Position{Location: location}, What: fmt.Sprintf("more than %d bytes", MaxDocument)}
	}
	text, recoded, err := inUTF8(text)
	if err != nil {
		return nil, &Problem{Place: Position{Location: location}, What: err.Error()}
	}
	if at := longTag(text); at >= 0 {
		line, column := xmltext.Position(text, at)
		return nil, problemAt(Position{location, line, column}, "a tag of more than %d bytes", maxTag)
	}
	r := treeReader{location: location, message: message, text: text, dec: xml.NewDecoder(bytes.NewReader(text))}
	r.dec.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		return decoded(in, label, recoded)
	}
	return r.read()
}

// longTag finds a tag that is too long, before anything is made of its attributes: where it begins;
// -1: there is none. Quotes are not looked at: what follows a > in an attribute counts less.
func longTag(text []byte) int {
	for at := 0; ; {
		start := bytes.IndexByte(text[at:], '<')
		if start < 0 {
			return -1
		}
		at += start
		if at+1 < len(text) && (text[at+1] == '!' || text[at+1] == '?') {
			at++
			continue
		}
		end := bytes.IndexByte(text[at:min(len(text), at+maxTag)], '>')
		if end < 0 && len(text)-at > maxTag {
			return at
		}
		at += max(end, 1)
	}
}

// treeReader builds the tree of a document.
type treeReader struct {
	location string
	text     []byte
	dec      *xml.Decoder
	message  bool // texts are kept
	depth    int
	elements int
	at       *DocumentNode
	root     *DocumentNode
}

func (r *treeReader) read() (*DocumentNode, error) {
	for {
		line, column := r.dec.InputPos()
		t, err := r.dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, column = r.dec.InputPos()
			var syntax *xml.SyntaxError
			what := err.Error()
			if errors.As(err, &syntax) {
				what = syntax.Msg
			}
			if errors.Is(err, errCharset) {
				return nil, r.fail(line, column, errCharset.Error()+":"+what[strings.LastIndexByte(what, ' '):])
			}
			return nil, r.fail(line, column, "not well-formed: "+what)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := r.open(t, line, column); err != nil {
				return nil, err
			}
		case xml.EndElement:
			r.depth--
			r.at = r.at.parent
		case xml.CharData:
			if r.message && r.at != nil {
				r.at.Text += string(t)
			}
		case xml.Directive:
			if what := r.entities(t); what != "" {
				return nil, r.fail(line, column, what)
			}
		}
	}
	if r.root == nil {
		return nil, r.fail(1, 1, "not well-formed: no element")
	}
	r.root.elements = r.elements
	return r.root, nil
}

func (r *treeReader) fail(line, column int, what string) error {
	return &Problem{Place: Position{r.location, line, column}, What: what}
}

func (r *treeReader) open(t xml.StartElement, line, column int) error {
	r.depth++
	r.elements++
	switch {
	case r.elements > maxElements:
		return r.fail(line, column, fmt.Sprintf("more than %d elements", maxElements))
	case r.depth > maxDepth:
		return r.fail(line, column, fmt.Sprintf("elements nested deeper than %d", maxDepth))
	case len(t.Attr) > maxAttrs:
		return r.fail(line, column, fmt.Sprintf("an element with more than %d attributes", maxAttrs))
	case r.root != nil && r.at == nil:
		return r.fail(line, column, "not well-formed: a second root element")
	}
	n := &DocumentNode{Name: QName(t.Name), Place: Position{r.location, line, column}, parent: r.at}
	for _, a := range t.Attr {
		switch {
		case a.Name.Space == "xmlns":
			n.declared = append(n.declared, DocumentAttr{QName{Local: a.Name.Local}, a.Value})
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			n.declared = append(n.declared, DocumentAttr{QName{}, a.Value})
		default:
			n.Attrs = append(n.Attrs, DocumentAttr{QName(a.Name), a.Value})
		}
	}
	if r.at == nil {
		r.root = n
	} else {
		n.Before = len(r.at.Text)
		r.at.Children = append(r.at.Children, n)
	}
	r.at = n
	if r.message {
		return nil
	}
	if n.Name == (QName{xmlns.XSD, "documentation"}) || n.Name == (QName{xmlns.WSDL, "documentation"}) {
		if err := r.dec.Skip(); err != nil {
			line, column := r.dec.InputPos()
			return r.fail(line, column, "not well-formed: "+err.Error())
		}
		r.depth--
		r.at = n.parent
	}
	return nil
}
