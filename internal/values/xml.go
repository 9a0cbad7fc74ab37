package values

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// tagWriter writes the content of an envelope. Its namespaces get prefixes in the order in
// which they are met, all declared at the envelope.
type tagWriter struct {
	b        bytes.Buffer
	space    string // of the envelope
	prefixes map[string]string
	spaces   []string // that have a prefix, in their order
	// places are where the elements come from, in the order of their start tags.
	places []xsd.Position
	attrs  []xsd.QName // of the start tag that was begun last
}

func newTagWriter(version int) tagWriter {
	space := xmlns.SOAP11
	if version == 12 {
		space = xmlns.SOAP12
	}
	return tagWriter{space: space, prefixes: map[string]string{space: "soap"}}
}

// commonPrefixes are those that namespaces have in most messages.
var commonPrefixes = map[string]string{
	xmlns.XSI: "xsi", xmlns.XSD: "xsd", xmlns.SOAP11Encoding: "soapenc", xmlns.SOAP12Encoding: "enc",
}

// prefixed is a name with its prefix.
func (w *tagWriter) prefixed(name xsd.QName) string {
	switch name.Space {
	case "":
		return name.Local
	case xmlns.XML:
		return "xml:" + name.Local
	}
	prefix, known := w.prefixes[name.Space]
	if !known {
		if prefix = commonPrefixes[name.Space]; prefix == "" {
			prefix = "n" + strconv.Itoa(len(w.spaces)+1)
		}
		w.prefixes[name.Space] = prefix
		w.spaces = append(w.spaces, name.Space)
	}
	return prefix + ":" + name.Local
}

// open writes a start tag without its end: attributes follow, and then inside.
func (w *tagWriter) open(name xsd.QName, at xsd.Position) {
	w.places, w.attrs = append(w.places, at), w.attrs[:0]
	w.b.WriteString("<" + w.prefixed(name))
}

func (w *tagWriter) attr(name xsd.QName, value string) {
	w.attrs = append(w.attrs, name)
	fmt.Fprintf(&w.b, ` %s="`, w.prefixed(name))
	_ = xml.EscapeText(&w.b, []byte(value))
	w.b.WriteByte('"')
}

func (w *tagWriter) inside() { w.b.WriteByte('>') }

// text writes text; a carriage return is a reference, as readers would drop it.
func (w *tagWriter) text(text string) {
	from := 0
	for i := range len(text) {
		escaped := ""
		switch text[i] {
		case '<':
			escaped = "&lt;"
		case '>':
			escaped = "&gt;"
		case '&':
			escaped = "&amp;"
		case '\r':
			escaped = "&#xD;"
		default:
			continue
		}
		w.b.WriteString(text[from:i])
		w.b.WriteString(escaped)
		from = i + 1
	}
	w.b.WriteString(text[from:])
}

func (w *tagWriter) close(name xsd.QName) { w.b.WriteString("</" + w.prefixed(name) + ">") }

// envelope puts an envelope around what was written: header blocks, if header is not empty, which
// bring their own declarations.
func (w *tagWriter) envelope(header string) []byte {
	var all bytes.Buffer
	all.WriteString(`<soap:Envelope xmlns:soap="` + w.space + `"`)
	for _, s := range w.spaces {
		fmt.Fprintf(&all, ` xmlns:%s="`, w.prefixes[s])
		_ = xml.EscapeText(&all, []byte(s))
		all.WriteByte('"')
	}
	all.WriteString(">")
	if header != "" {
		all.WriteString("<soap:Header>" + header + "</soap:Header>")
	}
	all.WriteString("<soap:Body>")
	all.Write(w.b.Bytes())
	all.WriteString("</soap:Body></soap:Envelope>")
	return all.Bytes()
}

// forbidden finds a character that XML cannot have, or a byte that is none in UTF-8; -1: there is
// none.
func forbidden(text string) int {
	for i, r := range text {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\uFFFE' || r == '\uFFFF' ||
			r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}

// wrongName says why an element or attribute cannot have a name; empty: it can.
func wrongName(name xsd.QName) string {
	switch {
	case !isName(name.Local):
		return fmt.Sprintf("%.40q is no name in XML", name.Local)
	case forbidden(name.Space) >= 0:
		return fmt.Sprintf("%q has what no namespace of XML can have", name.Space)
	case name.Space == xmlns.XMLNS || name == xsd.QName{Local: "xmlns"}:
		return name.String() + " declares a namespace, which is no value"
	}
	return ""
}
