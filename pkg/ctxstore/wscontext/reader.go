package wscontext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext"
	"github.com/hhfr/hhfr/pkg/soap"
)

// malformed is what is wrong with an envelope or with contents; its sender is told.
type malformed struct {
	code   soap.FaultCode
	reason string
}

func (m *malformed) Error() string { return m.reason }

func bad(format string, args ...any) error {
	return &malformed{soap.Client, fmt.Sprintf(format, args...)}
}

// nsBinding is a namespace declaration of the element at a depth.
type nsBinding struct {
	depth      int
	prefix, ns string
}

// xmlReader reads well-formed XML in UTF-8 with namespaces, element by element, and knows where in
// its source each one stands. SOAP has neither document types nor processing instructions, so both
// are refused.
type xmlReader struct {
	src    []byte
	tokens *xmltext.Tokenizer
	scopes []nsBinding
	names  [][]byte // of the elements that are open
	above  int      // elements around src
	// inherits is set by unprefixed elements whose default namespace is declared above depth base.
	base     int
	inherits bool
}

func newXMLReader(src []byte) (*xmlReader, error) {
	src = bytes.TrimPrefix(src, []byte("\xEF\xBB\xBF"))
	if !utf8.Valid(src) {
		return nil, bad("the text is not UTF-8")
	}
	return &xmlReader{src: src, tokens: xmltext.New(src)}, nil
}

// next returns the next token that is no comment.
func (r *xmlReader) next() (xmltext.Token, error) {
	for {
		t, err := r.tokens.Next()
		var syntax *xmltext.Error
		switch {
		case errors.Is(err, io.EOF):
			return t, err
		case errors.As(err, &syntax):
			return t, bad("malformed XML: %v", syntax)
		case err != nil:
			return t, err
		}
		switch text := r.src[t.From:t.To]; t.Kind {
		case xmltext.Comment:
			if bytes.Contains(text[len("<!--"):len(text)-len("-->")], []byte("--")) || !isText(text, false) {
				return t, r.wrong(t, "malformed comment")
			}
		case xmltext.Inst:
			if t.From > 0 || !bytes.HasPrefix(text, []byte("<?xml ")) {
				return t, r.wrong(t, "a processing instruction is not allowed")
			}
			if err := r.encoding(t); err != nil {
				return t, err
			}
		case xmltext.Doctype:
			return t, r.wrong(t, "a document type declaration is not allowed")
		default:
			return t, nil
		}
	}
}

// encoding refuses an XML declaration with another encoding than UTF-8.
func (r *xmlReader) encoding(t xmltext.Token) error {
	_, value, found := strings.Cut(strings.ToLower(string(r.src[t.From:t.To])), "encoding")
	value = strings.Trim(value, " \t\r\n=?>\"'")
	if i := strings.IndexAny(value, "\"' "); i >= 0 {
		value = value[:i]
	}
	if found && value != "utf-8" && value != "us-ascii" && value != "ascii" {
		return bad("the encoding %.40q is not read, only UTF-8", value)
	}
	return nil
}

func (r *xmlReader) wrong(t xmltext.Token, what string) error {
	line, column := xmltext.Position(r.src, t.From)
	return bad("line %d, column %d: %s", line, column, what)
}

// open enters the element of a start or empty tag.
func (r *xmlReader) open(t xmltext.Token) (soap.Name, error) {
	raw := r.src[t.NameFrom:t.NameTo]
	r.names = append(r.names, raw)
	attrs := r.tokens.Attrs()
	switch {
	case len(r.names)+r.above > maxDepth:
		return soap.Name{}, r.wrong(t, fmt.Sprintf("elements nest deeper than %d", maxDepth))
	case len(attrs) > maxAttrs:
		return soap.Name{}, r.wrong(t, fmt.Sprintf("more than %d attributes", maxAttrs))
	}
	for _, a := range attrs {
		value := r.src[a.ValueFrom:a.ValueTo]
		if !isText(value, true) || bytes.IndexByte(value, '<') >= 0 {
			return soap.Name{}, r.wrong(t, "malformed value of an attribute")
		}
		prefix, local, err := r.split(t, r.src[a.NameFrom:a.NameTo])
		if err != nil {
			return soap.Name{}, err
		}
		switch {
		case prefix == "" && local == "xmlns":
			r.scopes = append(r.scopes, nsBinding{len(r.names), "", unescape(value)})
		case prefix == "xmlns":
			if len(value) == 0 || local == "xmlns" || local == "xml" {
				return soap.Name{}, r.wrong(t, "malformed namespace declaration")
			}
			r.scopes = append(r.scopes, nsBinding{len(r.names), local, unescape(value)})
		}
	}
	if len(r.scopes) > maxScopes {
		return soap.Name{}, r.wrong(t, fmt.Sprintf("more than %d namespace declarations", maxScopes))
	}
	if err := r.checkAttrs(t, attrs); err != nil {
		return soap.Name{}, err
	}
	prefix, local, err := r.split(t, raw)
	if err != nil {
		return soap.Name{}, err
	}
	ns, ok := r.resolve(prefix)
	if !ok {
		return soap.Name{}, r.wrong(t, fmt.Sprintf("the prefix %q is not declared", prefix))
	}
	return soap.Name{Space: ns, Local: local}, nil
}

// checkAttrs refuses attributes that stand twice, and prefixes that are not declared.
func (r *xmlReader) checkAttrs(t xmltext.Token, attrs []xmltext.Attr) error {
	names := make([]soap.Name, 0, len(attrs))
	for _, a := range attrs {
		prefix, local, err := r.split(t, r.src[a.NameFrom:a.NameTo])
		if err != nil {
			return err
		}
		name := soap.Name{Local: local}
		switch prefix {
		case "":
		case "xmlns":
			name.Space = xmlns.XMLNS
		default:
			var ok bool
			if name.Space, ok = r.resolve(prefix); !ok {
				return r.wrong(t, fmt.Sprintf("the prefix %q is not declared", prefix))
			}
		}
		if slices.Contains(names, name) {
			return r.wrong(t, fmt.Sprintf("the attribute %s stands twice", local))
		}
		names = append(names, name)
	}
	return nil
}

// attr returns the value of an attribute of the tag that was read last.
func (r *xmlReader) attr(name soap.Name) string {
	for _, a := range r.tokens.Attrs() {
		found := soap.Name{Local: string(r.src[a.NameFrom:a.NameTo])}
		if prefix, local, ok := strings.Cut(found.Local, ":"); ok {
			found.Local = local
			found.Space, _ = r.resolve(prefix)
		}
		if found == name {
			return unescape(r.src[a.ValueFrom:a.ValueTo])
		}
	}
	return ""
}

// split checks a name as written.
func (r *xmlReader) split(t xmltext.Token, raw []byte) (prefix, local string, err error) {
	name := string(raw)
	prefix, local, both := strings.Cut(name, ":")
	if !both {
		prefix, local = "", name
	}
	if !isName(local) || both && !isName(prefix) {
		return "", "", r.wrong(t, fmt.Sprintf("%.40q is no name", name))
	}
	return prefix, local, nil
}

func isName(s string) bool {
	for i, c := range s {
		first := c == '_' || unicode.IsLetter(c)
		if !first && (i == 0 || c != '-' && c != '.' && c != '·' && !unicode.IsDigit(c) && !unicode.IsMark(c)) {
			return false
		}
	}
	return s != ""
}

// resolve returns the namespace of a prefix.
func (r *xmlReader) resolve(prefix string) (ns string, ok bool) {
	if prefix == "xml" {
		return xmlns.XML, true
	}
	for i := len(r.scopes) - 1; i >= 0; i-- {
		if s := &r.scopes[i]; s.prefix == prefix {
			r.inherits = r.inherits || prefix == "" && s.depth < r.base && s.ns != ""
			return s.ns, true
		}
	}
	return "", prefix == ""
}

// shut leaves the innermost element. end is its end tag, or the empty tag that it is.
func (r *xmlReader) shut(end xmltext.Token) error {
	depth := len(r.names)
	name := r.names[depth-1]
	if end.Kind == xmltext.End && !bytes.Equal(name, r.src[end.NameFrom:end.NameTo]) {
		return r.wrong(end, fmt.Sprintf("the end tag of %.40q was expected", name))
	}
	r.names = r.names[:depth-1]
	for n := len(r.scopes); n > 0 && r.scopes[n-1].depth >= depth; n-- {
		r.scopes = r.scopes[:n-1]
	}
	return nil
}

// children calls each for every child of the element that t began, which is entered already, and
// leaves it. each leaves the child that it is called for. Text between children is white space.
func (r *xmlReader) children(t xmltext.Token, each func(name soap.Name, t xmltext.Token) error) error {
	for t.Kind != xmltext.Empty {
		c, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return bad("the text ends inside of %.40q", r.names[len(r.names)-1])
		case err != nil:
			return err
		}
		switch c.Kind {
		case xmltext.Start, xmltext.Empty:
			name, err := r.open(c)
			if err == nil {
				err = each(name, c)
			}
			if err != nil {
				return err
			}
		case xmltext.End:
			t = c
		default:
			if len(bytes.Trim(r.src[c.From:c.To], " \t\r\n")) > 0 {
				return r.wrong(c, "text where only elements are expected")
			}
		}
		if c.Kind == xmltext.End {
			break
		}
	}
	return r.shut(t)
}

// text reads and leaves an element that has text only.
func (r *xmlReader) text(t xmltext.Token) (string, error) {
	var b strings.Builder
	for t.Kind != xmltext.Empty {
		c, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return "", bad("the text ends inside of %.40q", r.names[len(r.names)-1])
		case err != nil:
			return "", err
		}
		switch raw := r.src[c.From:c.To]; c.Kind {
		case xmltext.Text:
			if !isText(raw, true) {
				return "", r.wrong(c, "malformed text")
			}
			b.WriteString(unescape(raw))
		case xmltext.CDATA:
			b.Write(raw[len("<![CDATA[") : len(raw)-len("]]>")])
		case xmltext.End:
			return b.String(), r.shut(c)
		default:
			return "", r.wrong(c, fmt.Sprintf("an element inside of %.40q", r.names[len(r.names)-1]))
		}
	}
	return "", r.shut(t)
}

// skip reads and leaves an element whatever it has, and returns where it ends.
func (r *xmlReader) skip(t xmltext.Token) (end int, err error) {
	if t.Kind == xmltext.Empty {
		return t.To, r.shut(t)
	}
	for depth := len(r.names); len(r.names) >= depth; {
		c, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, bad("the text ends inside of %.40q", r.names[len(r.names)-1])
		case err != nil:
			return 0, err
		}
		switch end = c.To; c.Kind {
		case xmltext.Start:
			_, err = r.open(c)
		case xmltext.Empty:
			if _, err = r.open(c); err == nil {
				err = r.shut(c)
			}
		case xmltext.End:
			err = r.shut(c)
		default:
			if !isText(r.src[c.From:c.To], c.Kind == xmltext.Text) {
				err = r.wrong(c, "malformed text")
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return end, nil
}

// end checks that nothing but white space and comments is left.
func (r *xmlReader) end() error {
	for {
		t, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case t.Kind != xmltext.Text || len(bytes.Trim(r.src[t.From:t.To], " \t\r\n")) > 0:
			return r.wrong(t, "something follows the last element")
		}
	}
}
