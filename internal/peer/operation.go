package peer

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Namespace is that of all messages of the services here, but for [Echo], which takes any.
const Namespace = "urn:hhfr:peer:1"

// wrappedOperation is a service with one operation. A request is an element of its name, with the
// values as children; children may have the namespace or none. What does not fit is answered by a
// fault that says why.
type wrappedOperation struct {
	name          string
	documentation string
	// request and reply are the children of the elements NAME and NAMEResponse in XML Schema; types
	// is what they refer to, and elements of server-initiated messages.
	request, reply, types string
	// result is the HHFR Schema type of the element result, where that is all that a reply has;
	// empty: replies are not described in negotiations.
	result string
	// example is what stands in an element of the example's request.
	example string
	// answer reads the children of the request to their end, and gives those of the reply.
	answer func(ctx context.Context, e *envelope) (content, error)
}

// content is what stands in a reply's wrapper: text, then what stream reads, which has length
// bytes.
type content struct {
	text   []byte
	stream io.Reader
	length int
}

// service is the operation at the path of its name.
func (o *wrappedOperation) service() Service {
	return Service{
		Path: "/" + o.name, Handler: o, WSDL: o.wsdl,
		Example: exampleOf(o.name, o.example), ReplySchema: o.replySchema(),
	}
}

// exampleOf is an envelope that calls an operation.
func exampleOf(name, inner string) []byte {
	return []byte(`<soap:Envelope xmlns:soap="` + soap.V11.Namespace() + `"><soap:Body>` +
		`<` + name + ` xmlns="` + Namespace + `">` + inner + `</` + name + `></soap:Body></soap:Envelope>`)
}

// replySchema is that of the service's replies; nil: it has none.
func (o *wrappedOperation) replySchema() *schema.Schema {
	if o.result == "" {
		return nil
	}
	s, err := schema.Parse([]byte(`<element name="` + o.name + `Response"><complexType>` +
		`<element name="result" type="` + o.result + `"/></complexType></element>`))
	if err != nil {
		return nil
	}
	return s
}

// ServeHTTP answers one request.
func (o *wrappedOperation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, c, err := o.serve(r)
	if err != nil {
		sendError(w, r, v, err)
		return
	}
	sendResult(w, r, v, o.name, c)
}

// serve reads a request: one that is whole and short at once, and whatever that cannot read as it
// comes, which says what is wrong with it.
func (o *wrappedOperation) serve(r *http.Request) (soap.Version, content, error) {
	if wholeRequest(r) {
		m := mediums.Get().(*medium)
		defer m.free()
		body := m.take(r)
		if m.whole {
			if c, err := o.read(r.Context(), &m.envelope); err == nil {
				return m.version, c, nil
			}
		}
		same := *r
		same.Body, r = body, &same
	}
	e := newEnvelope(r)
	c, err := o.read(r.Context(), e)
	return e.version, c, err
}

func (o *wrappedOperation) read(ctx context.Context, e *envelope) (content, error) {
	name, err := e.open()
	if err != nil {
		return content{}, err
	}
	if name != (xml.Name{Space: Namespace, Local: o.name}) {
		called := soap.Name{Space: name.Space, Local: name.Local}
		return content{}, refuse("there is no operation %s here, only %s of %s", called, o.name, Namespace)
	}
	c, err := o.answer(ctx, e)
	if err != nil {
		return content{}, err
	}
	return c, e.close()
}

// roomAround is about how much stands around what an operation gives, in bytes.
const roomAround = 320

// sendResult sends what an operation gives.
func sendResult(w http.ResponseWriter, r *http.Request, v soap.Version, operation string, c content) {
	var b bytes.Buffer
	b.Grow(len(c.text) + roomAround)
	open(&b, v, operation+"Response")
	b.Write(c.text)
	end := closing(operation + "Response")
	if c.stream == nil {
		b.WriteString(end)
		send(w, r, http.StatusOK, typeOf(v), b.Bytes())
		return
	}
	sendHead(w, r, http.StatusOK, typeOf(v), b.Len()+c.length+len(end))
	if _, err := io.Copy(w, io.MultiReader(&b, c.stream, strings.NewReader(end))); err != nil {
		panic(http.ErrAbortHandler) // a reply cut short must not look whole
	}
}

func open(b *bytes.Buffer, v soap.Version, name string) {
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<soap:Envelope xmlns:soap="`)
	b.WriteString(v.Namespace())
	b.WriteString(`"><soap:Body><`)
	b.WriteString(name)
	b.WriteString(` xmlns="` + Namespace + `">`)
}

func closing(name string) string { return "</" + name + "></soap:Body></soap:Envelope>" }

// children calls do for each child of the element that the request stands in, with its local name.
// do reads the child to its end.
func (e *envelope) children(do func(name string) error) error {
	for {
		child, ok, err := e.child()
		if err != nil || !ok {
			return err
		}
		if child.Space != Namespace && child.Space != "" {
			return refuse("%s is not of %s", soap.Name{Space: child.Space, Local: child.Local}, Namespace)
		}
		if err := do(child.Local); err != nil {
			return err
		}
	}
}

// values reads children that have text only, as it stands: each of the names at most once, all that
// are not said to be optional.
func (e *envelope) values(names []string, optional ...string) (map[string]string, error) {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	for _, n := range optional {
		known[n] = true
	}
	got := map[string]string{}
	err := e.children(func(name string) error {
		if _, twice := got[name]; twice || !known[name] {
			return refuse("%s is not expected here", name)
		}
		text, err := e.text(name)
		got[name] = text
		return err
	})
	for _, n := range names {
		if _, ok := got[n]; !ok && err == nil {
			err = refuse("%s is missing", n)
		}
	}
	return got, err
}

// element appends an element with text.
func element(b *bytes.Buffer, name, text string) {
	b.WriteByte('<')
	b.WriteString(name)
	b.WriteByte('>')
	escape(b, text)
	b.WriteString("</")
	b.WriteString(name)
	b.WriteByte('>')
}

// escape writes text so that it is read back the same: what has a meaning in XML, and carriage
// returns, as references.
func escape(b *bytes.Buffer, text string) {
	from := 0
	for i := range len(text) {
		var as string
		switch text[i] {
		case '<':
			as = "&lt;"
		case '>':
			as = "&gt;"
		case '&':
			as = "&amp;"
		case '"':
			as = "&quot;"
		case '\r':
			as = "&#13;"
		default:
			continue
		}
		b.WriteString(text[from:i])
		b.WriteString(as)
		from = i + 1
	}
	b.WriteString(text[from:])
}
