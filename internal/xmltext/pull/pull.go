// Package pull reads the elements of an XML document in memory one after the other: names with
// their namespaces (Namespaces in XML 1.0), text with its references resolved. It checks that the
// document is well-formed, and refuses document type declarations. Whatever it reads, encoding/xml
// reads the same.
package pull

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// Found is what [Parser.Next] came to.
type Found uint8

const (
	// StartTag is that of an element, whose name and attributes the parser has then.
	StartTag Found = iota + 1
	// EndTag is the end of the element that began last and has not ended.
	EndTag
	// Chars is text in an element. What stands between two tags may come in several steps.
	Chars
	// Comment and Instruction are steps where [Parser.Whole] is set; Text has what they say. The
	// target of an instruction is the local name of [Parser.Name].
	Comment
	Instruction
)

const (
	// maxAttrs is the largest number of attributes of one element: their names are compared.
	maxAttrs = 128
	// maxScopes is how many prefixes may be declared at one place: they are searched one by one.
	maxScopes = 128
	// maxForeign is how many names beyond ASCII a document may have: checking one takes long.
	maxForeign = 1000
	// defaultDepth is how deep elements may nest where nothing else is said.
	defaultDepth = 1000
)

// Attr is an attribute that declares no namespace.
type Attr struct{ Prefix, Space, Local, Value []byte }

// Parser reads one document. Its zero value reads an empty one. What its methods return is valid
// until the next call of Next, Content or Skip, and may be part of the document. It is not safe for
// concurrent use.
type Parser struct {
	// MaxDepth is how deep elements may nest; 0 means 1,000.
	MaxDepth int
	// Whole makes steps of comments and instructions, and white space in attributes to spaces (XML
	// 1.0, section 3.3.3).
	Whole bool

	tokens   xmltext.Tokenizer
	src      []byte
	open     []openElement
	scopes   []NSDecl
	attrs    []Attr
	prefix   []byte
	space    []byte
	local    []byte
	text     []byte
	at       int // where the last token stands
	buffer   []byte
	foreign  map[string]int // names beyond ASCII that are some, with the place of their colon
	resolved []byte         // values of attributes, and one text, that are not as they stand in src
	empty    bool           // the end tag is still to come
	ended    bool           // the root has
	err      error
}

// openElement is an element that has not ended.
type openElement struct {
	name   []byte // as it is written
	scopes int    // of the elements around it
}

// NSDecl is a prefix that was declared; an empty one is the default namespace.
type NSDecl struct{ Prefix, Space []byte }

var (
	mark     = []byte("\xEF\xBB\xBF")
	xmlSpace = []byte(xmlns.XML)
)

// Reset begins with a document in UTF-8, which must not change while it is read.
func (p *Parser) Reset(src []byte) {
	src = bytes.TrimPrefix(src, mark)
	p.tokens.Reset(src)
	clear(p.foreign)
	p.src, p.open, p.scopes, p.attrs = src, p.open[:0], p.scopes[:0], p.attrs[:0]
	p.prefix, p.space, p.local, p.text, p.empty, p.ended, p.err = nil, nil, nil, nil, false, false, nil
}

// Depth is how many elements have begun and not ended.
func (p *Parser) Depth() int { return len(p.open) }

// Name is that of the element that began last.
func (p *Parser) Name() (space, local []byte) { return p.space, p.local }

// Prefix is that of the element that began last.
func (p *Parser) Prefix() []byte { return p.prefix }

// Declared are the namespaces that the element that began last declares.
func (p *Parser) Declared() []NSDecl { return p.scopes[p.open[len(p.open)-1].scopes:] }

// Attrs are those of the element that began last, but for declarations of namespaces.
func (p *Parser) Attrs() []Attr { return p.attrs }

// Text is that of the last step, if it was no tag.
func (p *Parser) Text() []byte { return p.text }

// Next goes on. Errors are [io.EOF] behind the document, and *[xmltext.Error]; an error stays.
func (p *Parser) Next() (Found, error) {
	if p.err != nil {
		return 0, p.err
	}
	if p.empty {
		p.empty = false
		p.leave()
		return EndTag, nil
	}
	if last := len(p.open) - 1; last >= 0 && p.tokens.EndOf(p.open[last].name) {
		p.leave()
		return EndTag, nil
	}
	for {
		t, err := p.tokens.Next()
		if err != nil {
			return 0, p.over(err)
		}
		step := Found(0)
		p.at = t.From
		switch t.Kind {
		case xmltext.Start, xmltext.Empty:
			step, err = StartTag, p.enter(t)
		case xmltext.End:
			step, err = EndTag, p.end(t)
		case xmltext.Text:
			step, err = p.chars(t)
		case xmltext.CDATA:
			step = Chars
			raw := p.src[t.From+len("<![CDATA[") : t.To-len("]]>")]
			p.resolved = p.resolved[:0]
			if p.text, err = p.resolve(raw, t.From, verbatim); len(p.open) == 0 {
				err = p.fail(t.From, "text outside of the root element")
			}
		case xmltext.Comment:
			step, err = p.comment(t)
		case xmltext.Inst:
			step, err = p.instruction(t)
		case xmltext.Doctype:
			err = p.fail(t.From, "a document type declaration is not allowed")
		}
		if err != nil {
			p.err = err
			return 0, err
		}
		if step != 0 {
			return step, nil
		}
	}
}

func (p *Parser) over(err error) error {
	if errors.Is(err, io.EOF) && (!p.ended || len(p.open) > 0) {
		err = p.fail(len(p.src), "the document ends too early")
	}
	p.err = err
	return err
}

func (p *Parser) fail(at int, format string, args ...any) error {
	line, column := xmltext.Position(p.src, at)
	return &xmltext.Error{
		Code: xmltext.Malformed, At: at, Line: line, Column: column, What: fmt.Sprintf(format, args...),
	}
}

// enter begins an element.
func (p *Parser) enter(t xmltext.Token) error {
	most := p.MaxDepth
	if most == 0 {
		most = defaultDepth
	}
	switch {
	case len(p.open) == 0 && p.ended:
		return p.fail(t.From, "a second root element")
	case len(p.open) >= most:
		return p.fail(t.From, "elements nest deeper than %d", most)
	}
	name := p.src[t.NameFrom:t.NameTo]
	colon, ok := p.nameOf(name)
	if !ok {
		return p.fail(t.NameFrom, "%.40q is no name", name)
	}
	p.open = append(p.open, openElement{name, len(p.scopes)})
	p.attrs, p.resolved = p.attrs[:0], p.resolved[:0]
	if attrs := p.tokens.Attrs(); len(attrs) > 0 {
		if err := p.attributes(attrs); err != nil {
			return err
		}
	}
	p.empty = t.Kind == xmltext.Empty
	p.prefix, p.local = name[:max(colon, 0)], name[colon+1:]
	if p.space, ok = p.spaceOf(p.prefix); !ok {
		return p.fail(t.NameFrom, "the prefix of %.40q is not declared", name)
	}
	return nil
}

// attributes reads those of an element: first the namespaces, then the others, whose prefixes these
// may declare.
func (p *Parser) attributes(attrs []xmltext.Attr) error {
	if len(attrs) > maxAttrs {
		return p.fail(attrs[0].From, "more than %d attributes", maxAttrs)
	}
	for i, a := range attrs {
		name := p.src[a.NameFrom:a.NameTo]
		colon, ok := p.nameOf(name)
		if !ok {
			return p.fail(a.NameFrom, "%.40q is no name", name)
		}
		for _, b := range attrs[:i] {
			if bytes.Equal(name, p.src[b.NameFrom:b.NameTo]) {
				return p.fail(a.NameFrom, "%.40q stands twice", name)
			}
		}
		raw := p.src[a.ValueFrom:a.ValueTo]
		if p.Whole {
			raw = normalized(raw)
		}
		value, err := p.resolve(raw, a.ValueFrom, attribute)
		if err != nil {
			return err
		}
		switch prefix := string(name[:max(colon, 0)]); {
		case prefix == "xmlns":
			err = p.declare(a.NameFrom, name[colon+1:], value)
		case prefix == "" && string(name) == "xmlns":
			err = p.declare(a.NameFrom, nil, value)
		default:
			p.attrs = append(p.attrs, Attr{name[:max(colon, 0)], nil, name[colon+1:], value})
		}
		if err != nil {
			return err
		}
	}
	for i := range p.attrs {
		a := &p.attrs[i]
		if len(a.Prefix) == 0 {
			continue
		}
		var ok bool
		if a.Space, ok = p.spaceOf(a.Prefix); !ok {
			return p.fail(attrs[0].From, "the prefix %.40q is not declared", a.Prefix)
		}
	}
	return nil
}

func (p *Parser) declare(at int, prefix, space []byte) error {
	isXML := string(prefix) == "xml"
	switch {
	case len(space) == 0 && len(prefix) > 0, string(prefix) == "xmlns", isXML != (string(space) == xmlns.XML),
		string(space) == xmlns.XMLNS:
		return p.fail(at, "the prefix %.40q cannot be declared as %.80q", prefix, space)
	}
	if len(p.scopes) >= maxScopes {
		return p.fail(at, "more than %d prefixes", maxScopes)
	}
	if len(p.resolved) > 0 { // where the value may be, which the next tag overwrites
		space = bytes.Clone(space)
	}
	p.scopes = append(p.scopes, NSDecl{prefix, space})
	return nil
}

// spaceOf is the namespace of a prefix; ok is false where it is not declared.
func (p *Parser) spaceOf(prefix []byte) (space []byte, ok bool) {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if s := &p.scopes[i]; bytes.Equal(s.Prefix, prefix) {
			return s.Space, true
		}
	}
	if string(prefix) == "xml" {
		return xmlSpace, true
	}
	return nil, len(prefix) == 0
}

func (p *Parser) end(t xmltext.Token) error {
	if len(p.open) == 0 {
		return p.fail(t.From, "an end tag without its start tag")
	}
	if name := p.open[len(p.open)-1].name; !bytes.Equal(name, p.src[t.NameFrom:t.NameTo]) {
		return p.fail(t.From, "the end tag of %.40q in %.40q", p.src[t.NameFrom:t.NameTo], name)
	}
	p.leave()
	return nil
}

func (p *Parser) leave() {
	last := len(p.open) - 1
	p.scopes, p.open = p.scopes[:p.open[last].scopes], p.open[:last]
	p.ended = p.ended || last == 0
}

// chars reads text; outside of the root element it is white space, and no step.
func (p *Parser) chars(t xmltext.Token) (Found, error) {
	raw := p.src[t.From:t.To]
	if len(p.open) == 0 {
		if len(bytes.TrimLeft(raw, " \t\r\n")) > 0 {
			return 0, p.fail(t.From, "text outside of the root element")
		}
		return 0, nil
	}
	p.resolved = p.resolved[:0]
	var err error
	p.text, err = p.resolve(raw, t.From, content)
	return Chars, err
}

func (p *Parser) comment(t xmltext.Token) (Found, error) {
	inner := p.src[t.From+len("<!--") : t.To-len("-->")]
	if bytes.Contains(inner, []byte("--")) || bytes.HasSuffix(inner, []byte("-")) {
		return 0, p.fail(t.From, "-- inside a comment")
	}
	return p.remark(Comment, inner, t.From)
}

// remark makes a step of what is no content, if it is to be one.
func (p *Parser) remark(step Found, inner []byte, at int) (Found, error) {
	if !p.Whole {
		return 0, nil
	}
	var err error
	p.resolved = p.resolved[:0]
	p.text, err = p.resolve(inner, at, verbatim)
	return step, err
}

// instruction passes over one. The declaration stands first, and is of XML 1.0 in UTF-8.
func (p *Parser) instruction(t xmltext.Token) (Found, error) {
	switch string(p.src[t.From:t.To]) { // what nearly all documents have
	case `<?xml version="1.0" encoding="UTF-8"?>`, `<?xml version="1.0" encoding="utf-8"?>`:
		if t.From == 0 {
			return 0, nil
		}
	}
	inner := string(p.src[t.From+len("<?") : t.To-len("?>")])
	target, rest, _ := strings.Cut(strings.Map(spaced, inner), " ")
	if _, ok := p.nameOf([]byte(target)); !ok {
		return 0, p.fail(t.From, "%.40q is no name", target)
	}
	if !strings.EqualFold(target, "xml") {
		data := p.src[t.From+len("<?") : t.To-len("?>")]
		p.local = data[:len(target)]
		return p.remark(Instruction, bytes.TrimLeft(data[len(target):], " \t\r\n"), t.From)
	}
	rest = joined.Replace(strings.Join(strings.Fields(rest), " "))
	rest = strings.TrimSuffix(strings.TrimSuffix(rest, ` standalone="yes"`), ` standalone="no"`)
	version, encoding, declared := strings.Cut(rest, " encoding=")
	if target != "xml" || t.From > 0 || version != `version="1.0"` {
		return 0, p.fail(t.From, "<?%.40s?> is no declaration of XML 1.0 at the start", inner)
	}
	if declared && !strings.EqualFold(encoding, `"utf-8"`) {
		return 0, p.fail(t.From, "the encoding %.40s is not read, only UTF-8", encoding)
	}
	return 0, nil
}

// joined is an instruction with one kind of quotes, and no white space around the sign between name
// and value.
var joined = strings.NewReplacer("'", `"`, " = ", "=", " =", "=", "= ", "=")

func spaced(r rune) rune {
	if r < utf8.RuneSelf && xmltext.IsSpace(byte(r)) {
		return ' '
	}
	return r
}

// nameBytes says where in a name a byte of ASCII may stand: 1, behind the first; 2, anywhere.
var nameBytes = func() (table [256]uint8) {
	for c := range table {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
			table[c] = 2
		case c >= '0' && c <= '9', c == '.', c == '-':
			table[c] = 1
		}
	}
	return table
}()

// nameOf checks a name with or without prefix, and returns where its colon is; -1: it has none.
func (p *Parser) nameOf(name []byte) (colon int, ok bool) {
	colon = -1
	first := true
	for i, c := range name {
		switch at := nameBytes[c]; {
		case at == 2, at == 1 && !first:
			first = false
		case c == ':' && colon < 0 && i > 0:
			colon, first = i, true
		case c >= utf8.RuneSelf:
			return p.foreignName(name)
		default:
			return -1, false
		}
	}
	return colon, !first
}

// foreignName is nameOf for names beyond ASCII: which characters they may have, encoding/xml knows.
func (p *Parser) foreignName(name []byte) (colon int, ok bool) {
	if colon, ok = p.foreign[string(name)]; ok || len(p.foreign) >= maxForeign {
		return colon, ok
	}
	colon = bytes.IndexByte(name, ':')
	for _, part := range bytes.SplitN(name, []byte(":"), 2) {
		read, err := xml.NewDecoder(strings.NewReader("<" + string(part) + "/>")).Token()
		start, is := read.(xml.StartElement)
		if err != nil || !is || start.Name.Local != string(part) || start.Name.Space != "" {
			return -1, false
		}
	}
	if p.foreign == nil {
		p.foreign = map[string]int{}
	}
	p.foreign[string(name)] = colon
	return colon, true
}

// IsLocalName reports whether an element or attribute can have a name, without prefix.
func IsLocalName(name string) bool { return IsNCName([]byte(name)) }

// IsNCName is [IsLocalName] for bytes.
func IsNCName(name []byte) bool {
	var p Parser
	colon, ok := p.nameOf(name)
	return ok && colon < 0
}
