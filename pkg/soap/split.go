package soap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/beevik/etree"

	"github.com/hhfr/hhfr/internal/xmltext"
)

// Apart is an envelope as it came, with its header blocks apart: they can be taken out, and others
// put in, while every other byte stays what it was. It reads no more than the Header and the start
// tag of the Body's first child, however long the Body is.
type Apart struct {
	// Envelope has the header blocks. Its Body has the first child only, without its content.
	Envelope

	data   []byte
	blocks []span // of the header blocks, in data
	insert int    // where header blocks begin
	prefix string // of the envelope's element names, with its colon; empty: there is none
	header bool   // there is a Header, with a tag of its own for its end
	empty  span   // a Header that is one tag
}

type span struct{ from, to int }

// Split takes an envelope in UTF-8 apart. The limits are of what stands before the Body; MaxBytes 0
// means 256 KiB, room for security tokens. Errors: as of [Parse].
func Split(data []byte, limits Limits) (*Apart, error) {
	if limits.MaxBytes <= 0 {
		limits.MaxBytes = 256 << 10
	}
	s := splitter{a: &Apart{data: data}, tokens: xmltext.New(data), limit: limits.MaxBytes}
	head, err := s.split()
	if err != nil {
		return nil, err
	}
	limits.MaxBytes += len(head) // what is added to close the elements is no part of the message
	e, err := Parse(head, limits)
	if err != nil {
		return nil, err
	}
	if len(e.Header) != len(s.a.blocks) { // a Header of another namespace
		return nil, &Error{Code: Malformed, At: -1, Err: errors.New("a Header that is none of SOAP")}
	}
	s.a.Envelope = *e
	return s.a, nil
}

// splitter goes over the tokens up to the Body's first child.
type splitter struct {
	a      *Apart
	tokens *xmltext.Tokenizer
	limit  int
	open   []string // names of the elements that are open

	headers int
}

// split returns a whole envelope that begins like the message.
func (s *splitter) split() ([]byte, error) {
	for {
		t, err := s.tokens.Next()
		if err != nil {
			return nil, s.judge(err)
		}
		if t.To > s.limit && (t.Kind != xmltext.Text || t.From > s.limit) {
			return nil, &Error{Code: TooLarge, At: int64(s.limit),
				Err: fmt.Errorf("a header of more than %d bytes", s.limit)}
		}
		name := string(s.a.data[t.NameFrom:t.NameTo])
		switch t.Kind {
		case xmltext.Doctype:
			return nil, &Error{Code: Forbidden, At: int64(t.From)}
		case xmltext.Start, xmltext.Empty:
			whole := s.start(t, name)
			switch {
			case s.headers > 1:
				return nil, &Error{Code: Malformed, At: int64(t.From), Err: errors.New("a second Header")}
			case whole:
				return s.closed(t), nil
			}
		case xmltext.End:
			if len(s.open) == 0 || s.open[len(s.open)-1] != name {
				return nil, &Error{Code: Malformed, At: int64(t.From), Err: fmt.Errorf("</%.40s> closes nothing", name)}
			}
			if s.end(t) {
				return s.closed(t), nil
			}
		}
	}
}

func (s *splitter) judge(err error) error {
	var syntax *xmltext.Error
	switch {
	case errors.Is(err, io.EOF):
		return &Error{Code: NoEnvelope, At: int64(len(s.a.data)), Err: errors.New("it ends before a Body")}
	case errors.As(err, &syntax):
		return &Error{Code: Malformed, At: int64(syntax.At), Err: err}
	}
	return err
}

// start takes in a start tag, and reports whether it is that of the Body's first child, or a Body
// that is one tag.
func (s *splitter) start(t xmltext.Token, name string) bool {
	prefix, local := cutPrefix(name)
	depth := len(s.open)
	if t.Kind == xmltext.Start {
		s.open = append(s.open, name)
	}
	part := ""
	if depth >= 2 {
		_, part = cutPrefix(s.open[1])
	}
	if depth == 1 && local == "Header" {
		s.headers++
	}
	switch {
	case depth == 0 && prefix != "":
		s.a.prefix = prefix + ":"
	case depth == 1 && local == "Header" && t.Kind == xmltext.Empty:
		s.a.empty, s.a.insert = span{t.From, t.To}, t.From
	case depth == 1 && local == "Header":
		s.a.header, s.a.insert = true, t.To
	case depth == 1 && local == "Body":
		if !s.a.header && s.a.empty.to == 0 {
			s.a.insert = t.From
		}
		return t.Kind == xmltext.Empty
	case depth == 2 && part == "Header":
		s.a.blocks = append(s.a.blocks, span{t.From, t.To})
	case depth == 2 && part == "Body":
		return true
	}
	return depth == 0 && t.Kind == xmltext.Empty
}

// end takes in an end tag, and reports whether it is that of a Body without a child, or of the
// envelope.
func (s *splitter) end(t xmltext.Token) bool {
	depth := len(s.open) - 1
	_, local := cutPrefix(s.open[depth])
	s.open = s.open[:depth]
	if depth != 2 {
		return depth == 1 && local == "Body" || depth == 0
	}
	if _, part := cutPrefix(s.open[1]); part == "Header" {
		s.a.blocks[len(s.a.blocks)-1].to = t.To
	}
	return false
}

// closed is the message up to the end of a token, with the elements closed that are open there.
func (s *splitter) closed(t xmltext.Token) []byte {
	head := slices.Clone(s.a.data[:t.To])
	for _, name := range slices.Backward(s.open) {
		head = append(head, "</"+name+">"...)
	}
	return head
}

// Rewrite returns the message without the header blocks for which drop reports true, and with add
// in front of those that stay. drop may be nil. All else is as it came; the result shares no memory
// with the message if anything changed.
func (a *Apart) Rewrite(drop func(*Element) bool, add []Element) ([]byte, error) {
	blocks, err := buildBlocks(add, a.Version)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(len(a.data) + len(blocks) + 32)
	at := 0
	copyTo := func(to int) { out.Write(a.data[at:to]); at = to }
	copyTo(a.insert)
	switch {
	case len(blocks) == 0:
	case a.header:
		out.Write(blocks)
	default:
		at = max(at, a.empty.to)
		out.WriteString("<" + a.prefix + "Header>")
		out.Write(blocks)
		out.WriteString("</" + a.prefix + "Header>")
	}
	for i, b := range a.blocks {
		if drop != nil && drop(&a.Header[i]) {
			copyTo(b.from)
			at = b.to
		}
	}
	copyTo(len(a.data))
	return out.Bytes(), nil
}

// buildBlocks writes header blocks, each with all the declarations that it needs.
func buildBlocks(add []Element, v Version) ([]byte, error) {
	if len(add) == 0 {
		return nil, nil
	}
	doc := newDocument()
	addAll(&doc.Element, add, None, "")
	for i, el := range doc.ChildElements() {
		if add[i].MustUnderstand || add[i].Role != "" || add[i].Relay {
			el.Attr = slices.Insert(el.Attr, 0, etree.Attr{Space: "xmlns", Key: "soap", Value: v.Namespace()})
			add[i].mark(el, v)
		}
	}
	return written(doc)
}

// Understood returns the fault that answers a message with header blocks that its ultimate receiver
// must understand, and for which understood reports false: nothing of the message may be processed
// then. ok is false if there are no such blocks. See [Envelope.Mandatory].
func (e *Envelope) Understood(understood func(*Element) bool) (f Fault, ok bool) {
	left := Envelope{Version: e.Version}
	for i := range e.Header {
		if !understood(&e.Header[i]) {
			left.Header = append(left.Header, e.Header[i])
		}
	}
	return left.Mandatory()
}

// ForReceiver reports whether a header block of a message of that version is for its ultimate
// receiver (SOAP 1.1, section 4.2.2; SOAP 1.2 part 1, section 2.2).
func (e *Element) ForReceiver(v Version) bool { return e.forReceiver(v) }
