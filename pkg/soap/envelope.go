package soap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/beevik/etree"
)

// Limits of [Parse]. Zero values mean the defaults.
type Limits struct {
	// MaxBytes is the longest message, in bytes; 0 means 64 KiB, enough for every message that hhfr
	// itself answers.
	MaxBytes int
	// MaxDepth is the deepest nesting of elements; 0 means 32.
	MaxDepth int
	// MaxElements is how many elements there may be; 0 means 4,096.
	MaxElements int
}

func (l Limits) withDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = 64 << 10
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = 32
	}
	if l.MaxElements <= 0 {
		l.MaxElements = 4096
	}
	return l
}

// Element is one element of a small message: no comments, no mixed content, attributes without a
// namespace only. The fields about header blocks are read and written only where the element is
// one, that is in [Envelope.Header].
type Element struct {
	Name     Name
	Attrs    []Attr
	Text     string // the character data directly inside, unchanged
	Children []Element
	// MustUnderstand: the receiver that the header block is for may not ignore it.
	MustUnderstand bool
	// Role is the URI of the receiver that the header block is for (1.1: actor); empty: the
	// ultimate receiver.
	Role string
	// Relay: a receiver that does not process the header block is to pass it on (1.2).
	Relay bool

	qname Name // the text, if it is a name with a declared prefix
}

// Attr is an attribute without a namespace.
type Attr struct{ Name, Value string }

// Child returns the first child with that name, nil if there is none.
func (e *Element) Child(name Name) *Element {
	for i := range e.Children {
		if e.Children[i].Name == name {
			return &e.Children[i]
		}
	}
	return nil
}

// Attr returns the value of an attribute without a namespace, empty if there is none.
func (e *Element) Attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Envelope is a parsed envelope: its header blocks and the children of its Body.
type Envelope struct {
	Version      Version
	Header, Body []Element

	notUnderstood, supported []Name // the names in the header blocks of a 1.2 fault
}

// Parse reads a whole envelope in UTF-8. Errors are of type *[Error]: TooLarge, Forbidden (a DTD),
// BadCharset, Malformed, BadVersion (an envelope of an unknown version), NoEnvelope.
func Parse(data []byte, limits Limits) (*Envelope, error) {
	root, err := parseRoot(data, limits)
	if err != nil {
		return nil, err
	}
	return envelopeOf(root)
}

// ParseElement reads a document that is no envelope, such as a stored context, under the same
// limits.
func ParseElement(data []byte, limits Limits) (*Element, error) {
	root, err := parseRoot(data, limits)
	if err != nil {
		return nil, err
	}
	e, err := elementOf(root)
	return &e, err
}

func parseRoot(data []byte, limits Limits) (*etree.Element, error) {
	l := limits.withDefaults()
	if len(data) > l.MaxBytes {
		return nil, &Error{Code: TooLarge, At: int64(l.MaxBytes), Err: fmt.Errorf("more than %d bytes", l.MaxBytes)}
	}
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	// Each element and each declaration begins with '<': they are counted before a tree is built.
	if n := bytes.Count(data, []byte{'<'}); n > 2*l.MaxElements+16 {
		return nil, &Error{Code: TooLarge, At: -1, Err: fmt.Errorf("more than %d elements", l.MaxElements)}
	}
	doc := etree.NewDocument()
	doc.ReadSettings.MaxDepth = l.MaxDepth
	doc.ReadSettings.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		switch strings.ToLower(label) {
		case "utf-8", "us-ascii", "ascii":
			return in, nil
		}
		return nil, &Error{Code: BadCharset, At: -1, Err: fmt.Errorf("%q", label)}
	}
	if err := doc.ReadFromBytes(data); err != nil {
		return nil, readError(err)
	}
	for _, t := range doc.Child {
		if d, ok := t.(*etree.Directive); ok {
			return nil, &Error{Code: Forbidden, At: -1, Err: fmt.Errorf("%.40q", d.Data)}
		}
	}
	roots := doc.ChildElements()
	if len(roots) != 1 {
		return nil, &Error{Code: Malformed, At: -1, Err: fmt.Errorf("%d root elements", len(roots))}
	}
	return roots[0], nil
}

func readError(err error) error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, etree.ErrMaxDepth):
		return &Error{Code: TooLarge, At: -1, Err: err}
	}
	return &Error{Code: Malformed, At: -1, Err: err}
}

func envelopeOf(root *etree.Element) (*Envelope, error) {
	e := &Envelope{Version: versionOf(root.NamespaceURI())}
	if e.Version == None || root.Tag != "Envelope" {
		code := NoEnvelope
		if root.Tag == "Envelope" {
			code = BadVersion
		}
		return nil, &Error{Code: code, At: -1, Err: fmt.Errorf("root is %.200s", Name{root.NamespaceURI(), root.Tag})}
	}
	var bodies int
	for _, part := range root.ChildElements() {
		name := Name{part.NamespaceURI(), part.Tag}
		list := &e.Header
		switch name {
		case Name{e.Version.Namespace(), "Header"}:
		case Name{e.Version.Namespace(), "Body"}:
			bodies++
			list = &e.Body
		default:
			continue
		}
		for _, c := range part.ChildElements() {
			el, err := elementOf(c)
			if err != nil {
				return nil, err
			}
			if list == &e.Header {
				e.block(&el, c)
			}
			*list = append(*list, el)
		}
	}
	if bodies != 1 {
		return nil, &Error{Code: NoEnvelope, At: -1, Err: fmt.Errorf("%d Body elements", bodies)}
	}
	return e, nil
}

func elementOf(t *etree.Element) (Element, error) {
	e := Element{Name: Name{t.NamespaceURI(), t.Tag}}
	if t.Space != "" && e.Name.Space == "" {
		return e, &Error{Code: Malformed, At: -1, Err: fmt.Errorf("prefix %q is not declared", t.Space)}
	}
	for _, a := range t.Attr {
		switch {
		case a.Space == "" && a.Key != "xmlns":
			e.Attrs = append(e.Attrs, Attr{a.Key, a.Value})
		}
	}
	var text strings.Builder
	for _, c := range t.Child {
		switch c := c.(type) {
		case *etree.CharData:
			text.WriteString(c.Data)
		case *etree.Directive:
			return e, &Error{Code: Forbidden, At: -1}
		case *etree.Element:
			child, err := elementOf(c)
			if err != nil {
				return e, err
			}
			e.Children = append(e.Children, child)
		}
	}
	e.Text = text.String()
	if len(e.Children) == 0 {
		e.qname = resolve(t, strings.TrimSpace(e.Text))
	}
	return e, nil
}

// resolve returns the name that a text with a prefix stands for inside an element; none when the
// prefix is not declared there.
func resolve(t *etree.Element, qname string) Name {
	prefix, local, ok := strings.Cut(qname, ":")
	if !ok || len(qname) > maxQName || local == "" {
		return Name{}
	}
	for ; t != nil; t = t.Parent() {
		for _, a := range t.Attr {
			if a.Space == "xmlns" && a.Key == prefix {
				return Name{a.Value, local}
			}
		}
	}
	return Name{}
}

// maxQName is the longest text that is read as a name, in bytes.
const maxQName = 512

// Build writes an envelope in UTF-8, with an XML declaration. Elements of other namespaces than
// SOAP's get the prefix n. It is for messages that hhfr makes: names are not checked.
func Build(e *Envelope) ([]byte, error) {
	if e.Version.Namespace() == "" {
		return nil, &Error{Code: BadVersion, At: -1}
	}
	doc := newDocument()
	doc.CreateProcInst("xml", `version="1.0" encoding="UTF-8"`)
	root := doc.CreateElement("soap:Envelope")
	root.CreateAttr("xmlns:soap", e.Version.Namespace())
	if len(e.Header) > 0 {
		header := root.CreateElement("soap:Header")
		addAll(header, e.Header, e.Version, "")
		for i, el := range header.ChildElements() {
			e.Header[i].mark(el, e.Version)
		}
	}
	addAll(root.CreateElement("soap:Body"), e.Body, e.Version, "")
	return written(doc)
}

// newDocument returns a document that is written with no more escapes than needed: quotes stay
// quotes in text.
func newDocument() *etree.Document {
	doc := etree.NewDocument()
	doc.WriteSettings.CanonicalText = true
	return doc
}

// addAll appends children to parent. bound is the namespace that the prefix n stands for there.
func addAll(parent *etree.Element, children []Element, v Version, bound string) {
	for i := range children {
		c := &children[i]
		inner, prefix := bound, "n:"
		switch c.Name.Space {
		case "":
			prefix = ""
		case v.Namespace():
			prefix = "soap:"
		default:
			inner = c.Name.Space
		}
		el := parent.CreateElement(prefix + c.Name.Local)
		if inner != bound {
			el.CreateAttr("xmlns:n", inner)
		}
		for _, a := range c.Attrs {
			el.CreateAttr(a.Name, a.Value)
		}
		if c.Text != "" {
			el.SetText(c.Text)
		}
		addAll(el, c.Children, v, inner)
	}
}

// written returns the text of a document.
func written(doc *etree.Document) ([]byte, error) {
	out, err := doc.WriteToBytes()
	if err != nil {
		return nil, &Error{Code: Malformed, At: -1, Err: err}
	}
	return out, nil
}
