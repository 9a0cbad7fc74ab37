package wscontext

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext"
	"github.com/hhfr/hhfr/pkg/soap"
)

// soapMessage is an envelope of the service, request or reply, taken apart.
type soapMessage struct {
	version soap.Version
	// context is the identifier in a context header block.
	context string
	// mandatory are the header blocks that must be understood and are not.
	mandatory []soap.Name
	// name is that of the Body's child, text its text if it has no elements, expires its attribute.
	name          soap.Name
	text, expires string
	// fields are the elements in it beside contents, at any depth.
	fields map[soap.Name]string
	// contents are the other elements in it, as bytes, or the bytes that were sent in base64.
	contents []byte
}

// textOnly are the elements whose content is text.
var textOnly = []soap.Name{std("status"), std("timeout"), own("watched")}

// roles are those of the ultimate receiver, as which the service acts.
var roles = []string{"", "http://schemas.xmlsoap.org/soap/actor/next", xmlns.SOAP12 + "/role/next",
	xmlns.SOAP12 + "/role/ultimateReceiver"}

// parseMessage reads an envelope. What it keeps of src are the contents.
func parseMessage(src []byte) (*soapMessage, error) {
	r, err := newXMLReader(src)
	if err != nil {
		return nil, err
	}
	m := &soapMessage{fields: map[soap.Name]string{}}
	t, name, err := r.root()
	if err != nil {
		return nil, err
	}
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		if name == (soap.Name{Space: v.Namespace(), Local: "Envelope"}) {
			m.version = v
		}
	}
	if m.version == soap.None && name.Local == "Envelope" {
		return nil, &malformed{soap.VersionMismatch, "the envelope is of neither SOAP 1.1 nor 1.2"}
	} else if m.version == soap.None {
		return nil, bad("the request is no SOAP envelope but %.200s", name)
	}
	bodies := 0
	err = r.children(t, func(name soap.Name, t xmltext.Token) error {
		switch {
		case name == soap.Name{Space: m.version.Namespace(), Local: "Header"}:
			return r.children(t, func(name soap.Name, t xmltext.Token) error { return m.block(r, name, t) })
		case name == soap.Name{Space: m.version.Namespace(), Local: "Body"}:
			bodies++
			return r.children(t, func(name soap.Name, t xmltext.Token) error { return m.served(r, name, t) })
		}
		return r.wrong(t, "neither Header nor Body")
	})
	if err == nil {
		err = r.end()
	}
	if err == nil && (bodies != 1 || m.name == soap.Name{}) {
		err = bad("the envelope needs one Body with one element")
	}
	return m, err
}

// root enters the first element.
func (r *xmlReader) root() (xmltext.Token, soap.Name, error) {
	for {
		t, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return t, soap.Name{}, bad("there is no XML")
		case err != nil:
			return t, soap.Name{}, err
		case t.Kind == xmltext.Start || t.Kind == xmltext.Empty:
			name, err := r.open(t)
			return t, name, err
		case t.Kind != xmltext.Text || len(bytes.Trim(r.src[t.From:t.To], " \t\r\n")) > 0:
			return t, soap.Name{}, r.wrong(t, "text before the envelope")
		}
	}
}

// block reads a header block.
func (m *soapMessage) block(r *xmlReader, name soap.Name, t xmltext.Token) error {
	env := func(local string) string { return r.attr(soap.Name{Space: m.version.Namespace(), Local: local}) }
	must := env("mustUnderstand")
	role := env("actor") + env("role")
	if name == std("context") {
		return r.children(t, func(name soap.Name, t xmltext.Token) (err error) {
			if name == std("context-identifier") {
				m.context, err = r.text(t)
				m.context = strings.TrimSpace(m.context)
				return err
			}
			_, err = r.skip(t)
			return err
		})
	}
	if (must == "1" || must == "true") && slices.Contains(roles, role) && len(m.mandatory) < maxMandatory {
		m.mandatory = append(m.mandatory, name)
	}
	_, err := r.skip(t)
	return err
}

// operation reads the Body's child.
func (m *soapMessage) served(r *xmlReader, name soap.Name, t xmltext.Token) (err error) {
	if m.name != (soap.Name{}) {
		return r.wrong(t, "the Body has more than one element")
	}
	m.name, m.expires = name, r.attr(soap.Name{Local: "expiresAt"})
	switch {
	case slices.Contains(textOnly, name):
		m.text, err = r.text(t)
		return err
	case name.Space != xmlns.WSContext && name.Space != xmlns.HHFRContext:
		_, err = r.skip(t)
		return err
	}
	c := contentsReader{m: m, r: r}
	if err := c.within(t); err != nil {
		return err
	}
	if !c.binary {
		m.contents = c.bytes()
	}
	return nil
}

// contentsReader tells what an operation says from the contents that it carries.
type contentsReader struct {
	m      *soapMessage
	r      *xmlReader
	first  int // where the contents begin, once found is true
	last   int
	found  bool
	binary bool
	// behind: a field followed the contents.
	behind bool
	adds   []addition
}

// addition is a declaration that stands outside of the contents, and is needed in them.
type addition struct {
	at   int
	text string
}

// within reads the children of an operation, or of a container in it.
func (c *contentsReader) within(t xmltext.Token) error {
	base := c.r.base
	c.r.base = len(c.r.names) + 1
	defer func() { c.r.base = base }()
	return c.r.children(t, func(name soap.Name, t xmltext.Token) error {
		defer func() { c.r.inherits = false }()
		switch {
		case name == std("context") || name == std("contents"):
			return c.within(t)
		case name == own("binary"):
			return c.base64(t)
		case name.Space == xmlns.WSContext || name.Space == xmlns.HHFRContext:
			return c.field(name, t)
		}
		return c.element(t)
	})
}

func (c *contentsReader) field(name soap.Name, t xmltext.Token) error {
	text, err := c.r.text(t)
	if err != nil {
		return err
	}
	_, twice := c.m.fields[name]
	if c.m.fields[name] = strings.TrimSpace(text); twice || len(c.m.fields) > maxFields {
		return c.r.wrong(t, "the element "+name.Local+" stands twice, or there are too many")
	}
	c.behind = c.found
	return nil
}

func (c *contentsReader) base64(t xmltext.Token) error {
	text, err := c.r.text(t)
	if err != nil {
		return err
	}
	if c.found {
		return c.r.wrong(t, "contents are elements, or one element binary")
	}
	c.found, c.binary = true, true
	text = strings.Join(strings.Fields(text), "")
	if c.m.contents, err = base64.StdEncoding.DecodeString(text); err != nil {
		return c.r.wrong(t, "the element binary is not base64")
	}
	return nil
}

// element reads an element of the contents.
func (c *contentsReader) element(t xmltext.Token) error {
	if c.binary || c.behind {
		return c.r.wrong(t, "contents are elements with no other element between them, or one element binary")
	}
	at := t.NameTo
	declared := map[string]bool{}
	for _, a := range c.r.tokens.Attrs() {
		declared[string(c.r.src[a.NameFrom:a.NameTo])] = true
	}
	outer := slices.Clone(c.r.scopes)
	end, err := c.r.skip(t)
	if err != nil {
		return err
	}
	if !c.found {
		c.found, c.first = true, t.From
	}
	c.last = end
	inside := c.r.src[t.From:end]
	for _, s := range slices.Backward(outer) {
		name := "xmlns:" + s.prefix
		if s.prefix == "" {
			name = "xmlns"
		}
		needed := s.prefix == "" && c.r.inherits || s.prefix != "" && mentions(inside, s.prefix)
		if needed && !declared[name] && s.depth < c.r.base {
			c.adds = append(c.adds, addition{at, " " + name + `="` + escape(s.ns) + `"`})
		}
		declared[name] = true
	}
	return nil
}

// bytes returns the contents, with the declarations that they need.
func (c *contentsReader) bytes() []byte {
	if !c.found {
		return nil
	}
	var out []byte
	from := c.first
	for _, a := range c.adds {
		out = append(append(out, c.r.src[from:a.at]...), a.text...)
		from = a.at
	}
	return append(out, c.r.src[from:c.last]...)
}

// depthOfContents is how many elements may be around contents in an envelope.
const depthOfContents = 4

// isContents reports whether a value can stand in an envelope as it is, and comes out of it as the
// same bytes: elements that declare what they use.
func isContents(value []byte) bool {
	if len(value) < 4 || value[0] != '<' || value[1] == '!' || value[1] == '?' || value[len(value)-1] != '>' {
		return false
	}
	for _, prefix := range []string{prefixSOAP, prefixStd, prefixOwn} {
		if mentions(value, prefix) {
			return false
		}
	}
	r, err := newXMLReader(value)
	if err != nil {
		return false
	}
	r.above = depthOfContents
	for end := 0; ; {
		t, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return end == len(value)
		case err != nil:
			return false
		case t.Kind == xmltext.Text && len(bytes.Trim(value[t.From:t.To], " \t\r\n")) == 0:
		case t.Kind == xmltext.Start || t.Kind == xmltext.Empty:
			name, err := r.open(t)
			if err != nil || name.Space == xmlns.WSContext || name.Space == xmlns.HHFRContext {
				return false
			}
			if end, err = r.skip(t); err != nil {
				return false
			}
		default:
			return false
		}
	}
}
