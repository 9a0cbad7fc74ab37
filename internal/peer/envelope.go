package peer

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	// maxRequest is the longest request that a service of ours reads, in bytes: room for a million
	// of the numbers or strings of the papers.
	maxRequest = 64 << 20
	// maxDepth is how deep elements may nest: no header we have seen comes near.
	maxDepth = 64
	// maxUnknown is how many header blocks a fault names that are not understood.
	maxUnknown = 16
	// maxText is the longest value, in bytes.
	maxText = 16 << 20
)

// complaint is what is wrong with a request; its sender is told.
type complaint struct {
	code          soap.FaultCode
	reason        string
	notUnderstood []soap.Name // header blocks
	coding        bool        // it is the content coding that is not known
}

func (r *complaint) Error() string { return r.reason }

func refuse(format string, args ...any) error {
	return &complaint{code: soap.Client, reason: fmt.Sprintf(format, args...)}
}

// envelope reads a request of either version as it comes, up to the children of the Body's one
// child. It goes by names and namespaces, never by prefixes. A tag that it came to has its name and
// attributes there, text its bytes.
type envelope struct {
	tags    tags
	version soap.Version
	depth   int

	name  xml.Name
	attrs []xml.Attr
	chars []byte
	value []byte
}

// tags gives an envelope what stands in it next, but for comments and instructions.
type tags interface {
	next(e *envelope) (pull.Found, error)
}

// bounded reads up to left bytes, and then fails.
type bounded struct {
	from io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		if n, err := b.from.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, refuse("the request is longer than %d octets", maxRequest)
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func newEnvelope(r *http.Request) *envelope {
	body, declared := text(r)
	d := xml.NewDecoder(body)
	d.CharsetReader = declared
	return &envelope{tags: streamed{d}, version: soap.V11}
}

// token goes to the next start or end tag, or text.
func (e *envelope) token() (pull.Found, error) {
	step, err := e.tags.next(e)
	if err != nil {
		return 0, err
	}
	switch step {
	case pull.StartTag:
		if e.depth++; e.depth > maxDepth {
			return 0, refuse("elements nest deeper than %d", maxDepth)
		}
	case pull.EndTag:
		e.depth--
	case pull.Chars:
	}
	return step, nil
}

// streamed are the tags of a request that is read as it comes.
type streamed struct{ decoder *xml.Decoder }

func (s streamed) next(e *envelope) (pull.Found, error) {
	for {
		t, err := s.decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			return 0, err
		case err != nil:
			return 0, judge(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			e.name, e.attrs = t.Name, t.Attr
			return pull.StartTag, nil
		case xml.EndElement:
			return pull.EndTag, nil
		case xml.CharData:
			e.chars = t
			return pull.Chars, nil
		case xml.Directive:
			return 0, refuse("a document type declaration is not allowed")
		}
	}
}

// judge tells a request that is malformed from one that does not come.
func judge(err error) error {
	var own *complaint
	var syntax *xml.SyntaxError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &syntax):
		return refuse("line %d: malformed XML: %s", syntax.Line, syntax.Msg)
	case strings.HasPrefix(err.Error(), "xml: "):
		return refuse("malformed XML: %s", strings.TrimPrefix(err.Error(), "xml: "))
	}
	return err
}

// child goes to the next child element of the element that the request stands in; ok is false at
// its end, which is passed then. Text between children is white space.
func (e *envelope) child() (name xml.Name, ok bool, err error) {
	for {
		step, err := e.token()
		switch {
		case errors.Is(err, io.EOF):
			return name, false, refuse("the request ends too early")
		case err != nil:
			return name, false, err
		case step != pull.Chars:
			return e.name, step == pull.StartTag, nil
		case len(bytes.TrimLeft(e.chars, " \t\r\n")) > 0:
			return name, false, refuse("text %.40q between elements", e.chars)
		}
	}
}

// text reads the rest of an element that has text only.
func (e *envelope) text(name string) (string, error) {
	e.value = e.value[:0]
	for {
		step, err := e.token()
		switch {
		case errors.Is(err, io.EOF):
			return "", refuse("the request ends too early")
		case err != nil:
			return "", err
		case step == pull.StartTag:
			return "", refuse("%s has a child element %s", name, e.name.Local)
		case step == pull.EndTag:
			return string(e.value), nil
		case len(e.value)+len(e.chars) > maxText:
			return "", refuse("%s is longer than %d octets", name, maxText)
		}
		e.value = append(e.value, e.chars...)
	}
}

// collapse takes away the white space around a value that is no string.
func collapse(text string) string { return strings.Trim(text, " \t\r\n") }

// skip passes over the rest of an element.
func (e *envelope) skip() error {
	for until := e.depth - 1; e.depth > until; {
		if _, err := e.token(); err != nil {
			if errors.Is(err, io.EOF) {
				return refuse("the request ends too early")
			}
			return err
		}
	}
	return nil
}

// open reads up to the start tag of the Body's child, which is returned.
func (e *envelope) open() (xml.Name, error) {
	if err := e.root(); err != nil {
		return xml.Name{}, err
	}
	switch {
	case e.name.Local != "Envelope":
		return xml.Name{}, refuse("%s is no SOAP envelope", e.name.Local)
	case e.name.Space == xmlns.SOAP11:
	case e.name.Space == xmlns.SOAP12:
		e.version = soap.V12
	default:
		return xml.Name{}, &complaint{code: soap.VersionMismatch, reason: "neither SOAP 1.1 nor SOAP 1.2"}
	}
	own := e.version.Namespace()
	for {
		part, ok, err := e.child()
		switch {
		case err != nil:
			return xml.Name{}, err
		case !ok:
			return xml.Name{}, refuse("the envelope has no Body")
		case part == xml.Name{Space: own, Local: "Header"}:
			if err := e.header(); err != nil {
				return xml.Name{}, err
			}
		case part == xml.Name{Space: own, Local: "Body"}:
			child, ok, err := e.child()
			if err == nil && !ok {
				err = refuse("the Body is empty")
			}
			return child, err
		default:
			return xml.Name{}, refuse("%s is neither Header nor Body", part.Local)
		}
	}
}

func (e *envelope) root() error {
	for {
		step, err := e.token()
		switch {
		case errors.Is(err, io.EOF):
			return refuse("the request is empty")
		case err != nil:
			return err
		case step == pull.StartTag:
			return nil
		case step == pull.Chars && strings.Trim(string(e.chars), "\uFEFF \t\r\n") != "":
			return refuse("the request is no XML")
		}
	}
}

// header passes over header blocks. Those that are for us, and may not be ignored, are refused, all
// at once: the services know none.
func (e *envelope) header() error {
	var unknown []soap.Name
	for {
		block, ok, err := e.child()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if e.mandatory(e.attrs) && len(unknown) < maxUnknown {
			unknown = append(unknown, soap.Name{Space: block.Space, Local: block.Local})
		}
		if err := e.skip(); err != nil {
			return err
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	reason := fmt.Sprintf("header block %s is not understood", unknown[0])
	return &complaint{code: soap.MustUnderstand, reason: reason, notUnderstood: unknown}
}

// mandatory tells header blocks that must be understood here (SOAP 1.1, section 4.2.3; SOAP 1.2
// part 1, section 5.2.3).
func (e *envelope) mandatory(attrs []xml.Attr) bool {
	must, ours := false, true
	for _, a := range attrs {
		if a.Name.Space != e.version.Namespace() {
			continue
		}
		switch a.Name.Local {
		case "mustUnderstand":
			must = a.Value == "1" || a.Value == "true"
		case "actor", "role":
			ours = a.Value == "" || strings.HasSuffix(a.Value, "/next") ||
				strings.HasSuffix(a.Value, "/ultimateReceiver")
		}
	}
	return must && ours
}

// close reads to the end: nothing else stands in the Body, and nothing behind the envelope.
func (e *envelope) close() error {
	for range 2 {
		extra, more, err := e.child()
		if err == nil && more {
			err = refuse("there is %s where nothing more is expected", extra.Local)
		}
		if err != nil {
			return err
		}
	}
	for {
		step, err := e.token()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case step != pull.Chars || len(bytes.TrimLeft(e.chars, " \t\r\n")) > 0:
			return refuse("there is something behind the envelope")
		}
	}
}
