package fastinfoset

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// FromXML appends to dst the document that is the infoset of an XML text in UTF-8. CDATA sections
// become text. Errors are those of [pull.Parser.Next], also where it has a document type
// declaration, and *[Error].
func (w *InfosetWriter) FromXML(dst, text []byte) ([]byte, error) {
	w.Reset(dst)
	w.parser.Reset(text)
	w.parser.Whole = true
	for {
		found, err := w.parser.Next()
		ev := &w.ev
		*ev = Event{Declared: ev.Declared[:0], Attrs: ev.Attrs[:0]}
		switch {
		case errors.Is(err, io.EOF):
			ev.Kind = EndDocument
			err := w.Write(ev)
			return w.dst, err
		case err != nil:
			return w.dst, err
		}
		switch found {
		case pull.StartTag:
			ev.begin(&w.parser)
		case pull.EndTag:
			ev.Kind = EndElement
		case pull.Chars:
			ev.Kind, ev.Value.Bytes = Characters, w.parser.Text()
		case pull.Comment:
			ev.Kind, ev.Value.Bytes = Comment, w.parser.Text()
		case pull.Instruction:
			_, target := w.parser.Name()
			ev.Kind, ev.Name.Local, ev.Value.Bytes = Instruction, target, w.parser.Text()
		}
		if err := w.Write(ev); err != nil {
			return w.dst, err
		}
	}
}

// begin is the element that a parser came to.
func (ev *Event) begin(p *pull.Parser) {
	ev.Kind = StartElement
	space, local := p.Name()
	ev.Name = Name{p.Prefix(), space, local}
	for _, d := range p.Declared() {
		ev.Declared = append(ev.Declared, Prefixed(d))
	}
	for _, a := range p.Attrs() {
		ev.Attrs = append(ev.Attrs, Attr{Name{a.Prefix, a.Space, a.Local}, Value{Bytes: a.Value}})
	}
}

// ToXML appends to dst the XML text, in UTF-8 and without declaration, of which src is the infoset.
// CDATA sections stay such where they can. A document type declaration is written with what it
// refers to. Errors are *[Error]; with Refused: the infoset has what XML text cannot say.
func (r *Reader) ToXML(dst, src []byte) ([]byte, error) {
	r.Reset(src)
	t := textWriter{dst: dst}
	for {
		switch err := t.step(r); {
		case errors.Is(err, io.EOF):
			return t.dst, nil
		case err != nil:
			return t.dst, err
		}
	}
}

// TextReader reads the XML text of a document, as [Reader.ToXML] makes it, while it is read: a
// document can be far shorter than its text.
type TextReader struct {
	from *Reader
	t    textWriter
	done int // of what t has
	err  error
}

// NewTextReader reads the document with which a reader was reset.
func NewTextReader(r *Reader) *TextReader { return &TextReader{from: r} }

// Read implements [io.Reader].
func (x *TextReader) Read(p []byte) (int, error) {
	for x.done == len(x.t.dst) && x.err == nil && len(p) > 0 {
		x.t.dst, x.done = x.t.dst[:0], 0
		x.err = x.t.step(x.from)
	}
	n := copy(p, x.t.dst[x.done:])
	if x.done += n; n > 0 {
		return n, nil
	}
	return 0, x.err
}

// textWriter writes events as XML text.
type textWriter struct {
	dst     []byte
	open    bool   // the start tag has no end yet
	doctype []byte // behind the name
	coded   []byte // a value as text
}

// step writes the next event of a reader.
func (t *textWriter) step(r *Reader) error {
	ev, err := r.Next()
	if err != nil {
		return err
	}
	if wrong := t.write(ev); wrong != "" {
		return problem(Refused, r.Offset(), "%w", errors.New(wrong))
	}
	return nil
}

func (t *textWriter) write(ev *Event) (wrong string) {
	if t.open && ev.Kind != EndElement {
		t.open, t.dst = false, append(t.dst, '>')
	}
	switch ev.Kind {
	case StartElement:
		return t.start(ev)
	case EndElement:
		if t.open {
			t.open, t.dst = false, append(t.dst, "/>"...)
		} else {
			t.dst = append(append(t.dst, "</"...), ev.Name.Prefix...)
			t.dst = append(appendLocal(t.dst, &ev.Name), '>')
		}
	case Characters:
		return t.characters(&ev.Value)
	case Comment:
		text, wrong := t.text(&ev.Value)
		if wrong != "" || bytes.Contains(text, []byte("--")) || bytes.HasSuffix(text, []byte("-")) ||
			bytes.IndexByte(text, '\r') >= 0 {
			return "a comment that XML cannot have"
		}
		t.dst = append(append(append(t.dst, "<!--"...), text...), "-->"...)
	case Instruction:
		text, wrong := t.text(&ev.Value)
		if wrong != "" || bytes.Contains(text, []byte("?>")) || strings.EqualFold(string(ev.Name.Local), "xml") ||
			bytes.IndexByte(text, '\r') >= 0 {
			return "a processing instruction that XML cannot have"
		}
		t.dst = append(append(t.dst, "<?"...), ev.Name.Local...)
		if text = bytes.TrimLeft(text, " \t\n"); len(text) > 0 {
			t.dst = append(append(t.dst, ' '), text...)
		}
		t.dst = append(t.dst, "?>"...)
	case StartDoctype:
		return t.identifiers(ev)
	case EntityReference:
		t.dst = append(append(append(t.dst, '&'), ev.Name.Local...), ';')
	default:
	}
	return ""
}

// identifiers notes what a document type declaration refers to: its name is that of the element.
func (t *textWriter) identifiers(ev *Event) (wrong string) {
	quoted := func(id []byte) {
		quote := byte('"')
		if bytes.IndexByte(id, quote) >= 0 {
			quote = '\''
		}
		if bytes.IndexByte(id, quote) >= 0 {
			wrong = "an identifier with both kinds of quotes"
		}
		t.doctype = append(append(append(append(t.doctype, ' '), quote), id...), quote)
	}
	t.doctype = append(t.doctype, ' ')
	switch {
	case len(ev.Public) > 0:
		t.doctype = append(t.doctype, "PUBLIC"...)
		quoted(ev.Public)
		quoted(ev.System)
	case len(ev.System) > 0:
		t.doctype = append(t.doctype, "SYSTEM"...)
		quoted(ev.System)
	}
	return wrong
}

func (t *textWriter) start(ev *Event) (wrong string) {
	if len(t.doctype) > 0 {
		t.dst = append(append(t.dst, "<!DOCTYPE "...), ev.Name.Prefix...)
		t.dst = append(append(appendLocal(t.dst, &ev.Name), bytes.TrimRight(t.doctype, " ")...), '>')
		t.doctype = nil
	}
	t.dst = append(append(t.dst, '<'), ev.Name.Prefix...)
	t.dst = appendLocal(t.dst, &ev.Name)
	for _, d := range ev.Declared {
		if t.dst = append(t.dst, " xmlns"...); len(d.Prefix) > 0 {
			if len(d.Space) == 0 {
				return "the end of a prefix, which XML 1.0 has not"
			}
			t.dst = append(append(t.dst, ':'), d.Prefix...)
		}
		t.dst = append(appendEscaped(append(t.dst, `="`...), d.Space, true), '"')
	}
	for i := range ev.Attrs {
		a := &ev.Attrs[i]
		text, wrong := t.text(&a.Value)
		if wrong != "" {
			return wrong
		}
		t.dst = append(append(t.dst, ' '), a.Name.Prefix...)
		t.dst = append(appendLocal(t.dst, &a.Name), `="`...)
		t.dst = append(appendEscaped(t.dst, text, true), '"')
	}
	t.open = true
	return ""
}

func (t *textWriter) characters(v *Value) (wrong string) {
	text, wrong := t.text(v)
	if v.Form == Encoded && v.Index == CDATA && !bytes.Contains(text, []byte("]]>")) &&
		bytes.IndexByte(text, '\r') < 0 {
		t.dst = append(append(append(t.dst, "<![CDATA["...), text...), "]]>"...)
	} else {
		t.dst = appendEscaped(t.dst, text, false)
	}
	return wrong
}

func (t *textWriter) text(v *Value) (text []byte, wrong string) {
	if v.Form != Encoded {
		return v.Bytes, ""
	}
	var err error
	if t.coded, err = v.AppendText(t.coded[:0]); err != nil {
		return nil, err.Error()
	}
	return t.coded, ""
}

// appendLocal appends the local part of a name, whose prefix stands there.
func appendLocal(dst []byte, n *Name) []byte {
	if len(n.Prefix) > 0 {
		dst = append(dst, ':')
	}
	return append(dst, n.Local...)
}

// appendEscaped appends text, in which references stand for what has another meaning in XML, as
// canonical XML has them; and for > always, as ]]> is not allowed.
func appendEscaped(dst, text []byte, attribute bool) []byte {
	done := 0
	for i, c := range text {
		var as string
		switch {
		case c > '>' || c < ' ' && c != '\t' && c != '\n' && c != '\r':
			continue
		case c == '&':
			as = "&amp;"
		case c == '<':
			as = "&lt;"
		case c == '>' && !attribute:
			as = "&gt;"
		case c == '"' && attribute:
			as = "&quot;"
		case c == '\t' && attribute:
			as = "&#x9;"
		case c == '\n' && attribute:
			as = "&#xA;"
		case c == '\r':
			as = "&#xD;"
		default:
			continue
		}
		dst, done = append(append(dst, text[done:i]...), as...), i+1
	}
	return append(dst, text[done:]...)
}
