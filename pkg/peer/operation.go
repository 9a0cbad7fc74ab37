package peer

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Namespace is that of all messages of the services here, but for [Echo], which takes any.
const Namespace = "urn:hhfr:peer:1"

// Described is a [Service] that can say what it takes.
type Described interface {
	Service
	// WSDL is the service's description, WSDL 1.1, document/literal wrapped, for SOAP 1.1 and 1.2; location is the URL it is to name.
	WSDL(location string) []byte
	// Example is an envelope that the service answers without a fault.
	Example() []byte
}

// Replying is a [Service] whose replies an HHFR Schema can describe: answers to offers have it.
type Replying interface {
	Service
	// ReplySchema describes replies that are no faults; nil: nothing does.
	ReplySchema() *schema.Schema
}

// operation is a service with one operation. A request is an element of its name, with the values as children; children may have the
// namespace or none. What does not fit is answered by a fault that says why.
type operation struct {
	name          string
	documentation string
	// request and reply are the children of the elements NAME and NAMEResponse in XML Schema; types is what they refer to, and elements of unasked messages.
	request, reply, types string
	// result is the HHFR Schema type of the element result, where that is all that a reply has; empty: replies are not described in negotiations.
	result string
	// example is what stands in an element of the example's request.
	example string
	// answer reads the children of the request to their end, and gives those of the reply.
	answer func(ctx context.Context, r *requestReader) (content, error)
}

// content is what stands in a reply's wrapper: octets, then what stream reads, which has length octets.
type content struct {
	octets []byte
	stream io.Reader
	length int
}

// Path is a slash and the operation's name.
func (o *operation) Path() string { return "/" + o.name }

// Example is as in [Described].
func (o *operation) Example() []byte {
	return []byte(`<soap:Envelope xmlns:soap="` + soap.V11.Namespace() + `"><soap:Body><` + o.name + ` xmlns="` + Namespace + `">` + o.example + `</` + o.name + `></soap:Body></soap:Envelope>`)
}

// ReplySchema is as in [Replying].
func (o *operation) ReplySchema() *schema.Schema {
	if o.result == "" {
		return nil
	}
	s, err := schema.Parse([]byte(`<element name="` + o.name + `Response"><complexType><element name="result" type="` + o.result + `"/></complexType></element>`))
	if err != nil {
		return nil
	}
	return s
}

// Serve answers one request.
func (o *operation) Serve(ctx context.Context, m *streamer.Message, reply func(*streamer.Message) error) error {
	r := newRequest(m)
	c, err := o.read(ctx, r)
	var why *complaint
	switch {
	case errors.As(err, &why):
		return o.refuse(r.version, why, reply)
	case err != nil:
		return err
	}
	return reply(o.message(r.version, c))
}

func (o *operation) read(ctx context.Context, r *requestReader) (content, error) {
	name, err := r.open()
	if err != nil {
		return content{}, err
	}
	if name != (xml.Name{Space: Namespace, Local: o.name}) {
		return content{}, refuse("there is no operation %s here, only %s of %s", soap.Name{Space: name.Space, Local: name.Local}, o.name, Namespace)
	}
	c, err := o.answer(ctx, r)
	if err != nil {
		return content{}, err
	}
	return c, r.close()
}

func (o *operation) message(v soap.Version, c content) *streamer.Message {
	var b bytes.Buffer
	open(&b, v, o.name+"Response")
	b.Write(c.octets)
	end := closing(o.name + "Response")
	if c.stream == nil {
		b.WriteString(end)
		return streamer.NewMessage(replyHead(v), b.Bytes())
	}
	length := b.Len() + c.length + len(end)
	return &streamer.Message{Head: replyHead(v), Body: sized{io.MultiReader(&b, c.stream, bytes.NewReader([]byte(end))), length}}
}

func open(b *bytes.Buffer, v soap.Version, name string) {
	fmt.Fprintf(b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<soap:Envelope xmlns:soap="%s"><soap:Body><%s xmlns="%s">`, v.Namespace(), name, Namespace)
}

func closing(name string) string { return "</" + name + "></soap:Body></soap:Envelope>" }

// replyHead is nil where the default head says the same.
func replyHead(v soap.Version) []byte {
	if v != soap.V12 {
		return nil
	}
	return headOf(http.StatusOK, typeOf(v))
}

func typeOf(v soap.Version) soap.Field {
	if contentType, err := soap.ContentType(v, ""); err == nil {
		return soap.Field{Name: "Content-Type", Value: contentType}
	}
	return xmlType
}

func (o *operation) refuse(v soap.Version, why *complaint, reply func(*streamer.Message) error) error {
	if why.coding {
		known := soap.Field{Name: "Accept-Encoding", Value: "gzip"}
		return reply(errorReply(http.StatusUnsupportedMediaType, why.reason+"\n", known))
	}
	fault, err := soap.BuildFault(v, soap.Fault{Code: why.code, Reason: why.reason, NotUnderstood: why.notUnderstood})
	if err != nil {
		return err
	}
	return reply(streamer.NewMessage(headOf(soap.FaultStatus(v, why.code), typeOf(v)), fault))
}

// children calls do for each child of the element that the request stands in, with its local name. do reads the child to its end.
func (r *requestReader) children(do func(name string) error) error {
	for {
		child, ok, err := r.child()
		if err != nil || !ok {
			return err
		}
		if child.Name.Space != Namespace && child.Name.Space != "" {
			return refuse("%s is not of %s", soap.Name{Space: child.Name.Space, Local: child.Name.Local}, Namespace)
		}
		if err := do(child.Name.Local); err != nil {
			return err
		}
	}
}

// values reads children that have text only, as it stands: each of the names at most once, all that are not said to be optional.
func (r *requestReader) values(names []string, optional ...string) (map[string]string, error) {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	for _, n := range optional {
		known[n] = true
	}
	got := map[string]string{}
	err := r.children(func(name string) error {
		if _, twice := got[name]; twice || !known[name] {
			return refuse("%s is not expected here", name)
		}
		text, err := r.text(name)
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

// escape writes text so that it is read back the same: what has a meaning in XML, and carriage returns, as references.
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
