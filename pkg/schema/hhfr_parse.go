package schema

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// hhfrTypes are the five types of the dialect, in all spellings; the first spelling of a type is
// the one written.
var hhfrTypes = []struct {
	name string
	typ  shape.Type
}{
	{"string", shape.TypeString}, {"int", shape.TypeInt}, {"byte", shape.TypeByte}, {"float", shape.TypeFloat},
	{"boolean", shape.TypeBoolean}, {"Boolean", shape.TypeBoolean},
}

// Parse reads an HHFR Schema: one element declaration, with the prefix xs:, another declared
// prefix, or none. Errors are *[Error] with line and column: Malformed, Unsupported, TooLarge.
func Parse(text []byte) (*Schema, error) {
	if len(text) > MaxSchema {
		return nil, &Error{Code: TooLarge, At: MaxSchema, What: fmt.Sprintf("more than %d bytes", MaxSchema)}
	}
	p := hhfrParser{src: text, tk: xmltext.New(text)}
	if err := p.next(); err != nil {
		return nil, err
	}
	if p.done {
		return nil, p.fail(Malformed, "no element declaration")
	}
	if p.tok.Kind == xmltext.End {
		return nil, p.fail(Malformed, "an end tag that nothing began")
	}
	p.takePrefixes()
	headers, err := p.headers()
	if err != nil {
		return nil, err
	}
	root, err := p.element(0, "")
	if err != nil {
		return nil, err
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	if !p.done {
		return nil, p.fail(Unsupported, "a second declaration: a schema describes one message")
	}
	return &Schema{root: root, headers: headers, prefix: p.prefix}, nil
}

// headers reads the declarations of header blocks before that of the message, if there are some,
// and goes to the tag behind them.
func (p *hhfrParser) headers() (list []*Element, err error) {
	if !p.is("header") || p.tok.Kind != xmltext.Start {
		return nil, nil
	}
	name := p.name()
	if _, err := p.attributes(); err != nil {
		return nil, err
	}
	for {
		if err := p.next(); err != nil {
			return nil, err
		}
		switch {
		case p.done:
			return nil, p.fail(Malformed, "the schema ends inside %s", name)
		case p.tok.Kind == xmltext.End && p.name() != name:
			return nil, p.fail(Malformed, "</%s> where <%s> is open", p.name(), name)
		case p.tok.Kind == xmltext.End && len(list) == 0:
			return nil, p.fail(Malformed, "%s without a declaration", name)
		case p.tok.Kind == xmltext.End:
			if err := p.next(); err != nil {
				return nil, err
			}
			if p.done {
				return nil, p.fail(Malformed, "no element declaration")
			}
			return list, nil
		}
		at := p.tok.From
		block, err := p.element(0, "")
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, block.sameName) {
			return nil, p.failAt(Malformed, at, "header block %s is declared twice", block.Name)
		}
		list = append(list, block)
	}
}

func (e *Element) sameName(other *Element) bool {
	return e.Name == other.Name && e.Namespace == other.Namespace
}

// hhfrParser is a recursive descent parser over the tags of a schema; text between them is ignored.
type hhfrParser struct {
	src    []byte
	tk     *xmltext.Tokenizer
	tok    xmltext.Token // the current tag
	attrs  []xmltext.Attr
	done   bool
	prefix string // that of the first tag, with its colon; empty: none
	// prefixes records for prefixes whether they are those of XML Schema.
	prefixes map[string]bool
	nodes    int
}

func (p *hhfrParser) fail(code Code, format string, args ...any) error {
	at := p.tok.From
	if p.done {
		at = len(p.src)
	}
	return p.failAt(code, at, format, args...)
}

func (p *hhfrParser) failAt(code Code, at int, format string, args ...any) error {
	line, column := xmltext.Position(p.src, at)
	return &Error{Code: code, At: int64(at), Line: line, Column: column, What: fmt.Sprintf(format, args...)}
}

// next goes to the next tag.
func (p *hhfrParser) next() error {
	for {
		tok, err := p.tk.Next()
		if errors.Is(err, io.EOF) {
			p.done = true
			return nil
		}
		var at *xmltext.Error
		if errors.As(err, &at) {
			return &Error{Code: Malformed, At: int64(at.At), Line: at.Line, Column: at.Column, What: at.What}
		}
		p.tok = tok
		switch tok.Kind {
		case xmltext.Doctype:
			return p.fail(Unsupported, "a document type declaration")
		case xmltext.CDATA:
			return p.fail(Malformed, "text between declarations")
		case xmltext.Text:
			text := strings.TrimPrefix(string(p.src[tok.From:tok.To]), "\xEF\xBB\xBF")
			if strings.Trim(text, " \t\r\n") != "" {
				return p.fail(Malformed, "text between declarations: %.40q", text)
			}
		case xmltext.Start, xmltext.Empty, xmltext.End:
			p.attrs = p.tk.Attrs()
			return nil
		}
	}
}

// takePrefixes finds which prefixes are those of XML Schema: xs and xsd, unless the first tag
// declares otherwise, and those that it declares as such. The schema is printed with the prefix of
// the first tag, if that is one of the usual ones.
func (p *hhfrParser) takePrefixes() {
	p.prefixes = map[string]bool{"xs": true, "xsd": true}
	for _, a := range p.attrs {
		if prefix, ok := strings.CutPrefix(string(p.src[a.NameFrom:a.NameTo]), "xmlns:"); ok {
			p.prefixes[prefix] = string(p.src[a.ValueFrom:a.ValueTo]) == xmlns.XSD
		}
	}
	// One that the tag declares itself would have to be declared again when the schema is printed.
	if prefix, _, ok := strings.Cut(p.name(), ":"); ok && p.prefixes[prefix] && (prefix == "xs" || prefix == "xsd") {
		p.prefix = prefix + ":"
	}
}

// local removes a prefix of XML Schema from a name.
func (p *hhfrParser) local(name string) string {
	if prefix, local, ok := strings.Cut(name, ":"); ok && p.prefixes[prefix] {
		return local
	}
	return name
}

func (p *hhfrParser) name() string { return string(p.src[p.tok.NameFrom:p.tok.NameTo]) }

// is reports whether the current tag is the dialect's with that name. The prefix may be left out.
func (p *hhfrParser) is(local string) bool { return p.local(p.name()) == local }

// attributes returns the tag's attributes by name; only known ones are allowed.
func (p *hhfrParser) attributes(known ...string) (map[string]string, error) {
	values := map[string]string{}
	for _, a := range p.attrs {
		name := string(p.src[a.NameFrom:a.NameTo])
		if name == "xmlns" || strings.HasPrefix(name, "xmlns:") {
			continue
		}
		if _, twice := values[name]; twice {
			return nil, p.failAt(Malformed, a.NameFrom, "attribute %s twice", name)
		}
		var fine bool
		for _, k := range known {
			fine = fine || k == name
		}
		if !fine {
			return nil, p.failAt(Unsupported, a.NameFrom, "attribute %.60s of %s", name, p.name())
		}
		values[name] = strings.TrimSpace(string(p.src[a.ValueFrom:a.ValueTo]))
	}
	return values, nil
}

// declared reads the name that a declaration gives.
func (p *hhfrParser) declared(values map[string]string) (string, error) {
	name := values["name"]
	if p.nodes++; p.nodes > maxNodes {
		return "", p.fail(TooLarge, "more than %d declarations", maxNodes)
	}
	switch {
	case name == "":
		return "", p.fail(Malformed, "%s without a name", p.name())
	case len(name) > maxName:
		return "", p.fail(TooLarge, "a name of %d bytes, at most %d are allowed", len(name), maxName)
	case !isName(name):
		return "", p.fail(Malformed, "%.60q is no name", name)
	}
	return name, nil
}

// entities are those that XML has by itself.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")

// isName reports whether a text is a name without a colon, as far as ASCII goes.
func isName(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80 && c != '\uFFFD'
		if !letter && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}

func (p *hhfrParser) typeOf(name string) (shape.Type, error) {
	local := p.local(name)
	for _, t := range hhfrTypes {
		if t.name == local {
			return t.typ, nil
		}
	}
	if name == "" {
		return 0, p.fail(Malformed, "%s without a type", p.name())
	}
	return 0, p.fail(Unsupported, "type %.60q: there are string, int, byte, float, boolean and array", name)
}

// element reads a declaration, at its start tag.
// It stands inside one of a namespace.
func (p *hhfrParser) element(depth int, inside string) (*Element, error) {
	if !p.is("element") {
		return nil, p.fail(Unsupported, "%.60s where an element is declared", p.name())
	}
	if depth > maxDepth {
		return nil, p.fail(TooLarge, "elements nested deeper than %d", maxDepth)
	}
	values, err := p.attributes("name", "targetNamespace", "type", "primitives", "value", "item")
	if err != nil {
		return nil, err
	}
	e := &Element{Type: shape.TypeOpen, Namespace: inside}
	if space, stated := values["targetNamespace"]; stated {
		e.Namespace = entities.Replace(space)
	}
	if e.Name, err = p.declared(values); err != nil {
		return nil, err
	}
	typ, typed := values["type"]
	switch {
	case strings.Contains(e.Namespace, "&#"):
		err = p.fail(Unsupported, "a character reference in a namespace")
	case len(e.Namespace) > maxName:
		err = p.fail(TooLarge, "a namespace of %d bytes, at most %d are allowed", len(e.Namespace), maxName)
	case typed && p.local(typ) == "array":
		err = p.array(e, values)
	case values["primitives"] != "" || values["value"] != "" || values["item"] != "":
		err = p.fail(Malformed, "primitives, value and item are only for type=\"array\"")
	case typed:
		e.Type, err = p.typeOf(typ)
	}
	if err != nil || typed {
		if err == nil {
			err = p.empty()
		}
		return e, err
	}
	if p.tok.Kind == xmltext.Empty {
		return nil, p.fail(Malformed, "element %s without a type", e.Name)
	}
	return e, p.complex(e, depth)
}

// array reads the attributes that type="array" needs (paper 1, section 3.4.2).
func (p *hhfrParser) array(e *Element, values map[string]string) (err error) {
	e.Array = true
	if e.Type, err = p.typeOf(values["primitives"]); err != nil {
		return err
	}
	if item, named := values["item"]; named {
		if !isName(item) || len(item) > maxName {
			return p.fail(Malformed, "item=%.60q is no name", item)
		}
		e.Item = item
	}
	v, given := values["value"]
	if !given {
		return nil
	}
	n, err := strconv.ParseUint(v, 10, 32)
	switch {
	case err != nil || n == 0:
		return p.fail(Malformed, "value=%.20q is no number of items", v)
	case n > maxItems:
		return p.fail(TooLarge, "an array of %d items, at most %d are allowed", n, maxItems)
	}
	e.Items = int(n)
	return nil
}

// empty reads the end tag of a declaration without content.
func (p *hhfrParser) empty() error {
	if p.tok.Kind == xmltext.Empty {
		return nil
	}
	name := p.name()
	if err := p.next(); err != nil {
		return err
	}
	if p.done || p.tok.Kind != xmltext.End || p.name() != name {
		return p.fail(Unsupported, "more than a type in %s", name)
	}
	return nil
}

// complex reads the complexType inside an element, and its end tag.
func (p *hhfrParser) complex(e *Element, depth int) error {
	outer := p.name()
	if err := p.next(); err != nil {
		return err
	}
	if p.done || p.tok.Kind == xmltext.End || !p.is("complexType") {
		return p.fail(Unsupported, "element %s has neither a type nor a complexType", e.Name)
	}
	if _, err := p.attributes("mixed"); err != nil {
		return err
	}
	if p.tok.Kind == xmltext.Empty {
		return p.fail(Unsupported, "a complexType without content")
	}
	inner := p.name()
	for {
		if err := p.next(); err != nil {
			return err
		}
		if p.done {
			return p.fail(Malformed, "the schema ends inside %s", inner)
		}
		if p.tok.Kind == xmltext.End {
			break
		}
		if err := p.member(e, depth); err != nil {
			return err
		}
	}
	switch {
	case p.name() != inner:
		return p.fail(Malformed, "</%s> where <%s> is open", p.name(), inner)
	case len(e.Children) == 0:
		return p.fail(Unsupported, "a complexType without elements")
	}
	if err := p.next(); err != nil {
		return err
	}
	if p.done || p.tok.Kind != xmltext.End || p.name() != outer {
		return p.fail(Malformed, "<%s> is not closed here", outer)
	}
	return nil
}

// member reads an attribute or element declaration inside a complexType.
func (p *hhfrParser) member(e *Element, depth int) error {
	if !p.is("attribute") {
		if p.is("sequence") || p.is("all") || p.is("choice") {
			return p.fail(Unsupported, "%s: elements stand in a complexType itself, in their order", p.name())
		}
		at := p.tok.From
		child, err := p.element(depth+1, e.Namespace)
		if err != nil {
			return err
		}
		for _, c := range e.Children {
			if c.sameName(child) {
				return p.failAt(Unsupported, at, "element %s is declared twice: what repeats is an array", c.Name)
			}
		}
		e.Children = append(e.Children, child)
		return nil
	}
	values, err := p.attributes("name", "type")
	if err != nil {
		return err
	}
	var a Attribute
	if a.Name, err = p.declared(values); err != nil {
		return err
	}
	for _, b := range e.Attributes {
		if b.Name == a.Name {
			return p.fail(Malformed, "attribute %s is declared twice", a.Name)
		}
	}
	if a.Type, err = p.typeOf(values["type"]); err != nil {
		return err
	}
	e.Attributes = append(e.Attributes, a)
	return p.empty()
}
