package wsdl

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// ServicePort is a port of a service that a binding of SOAP has.
type ServicePort struct {
	Name, Location string
	Binding        xsd.QName
	// Streams are those that its binding declares; nil: it declares none.
	Streams *DeclaredStreams
}

// DeclaredStreams is what an annotation of a binding declares: that there are streams, and where
// (docs/negotiation.md, section 6.4).
type DeclaredStreams struct {
	// Scheme is a URI-S, Representations are URI-R, preferred first.
	Scheme          string
	Representations []string
	// Streams are preferred first; none: at the address of the port itself.
	Streams []DeclaredStream
}

// DeclaredStream is a transport and where it is.
type DeclaredStream struct {
	// Transport is a URI-T.
	Transport string
	// Address is ":PORT", at the host of the port's location, or "HOST:PORT"; empty: that of the
	// location itself.
	Address string
}

// StreamsAt returns the streams that are declared for the service at a URL; nil: none are.
func (d *ServiceDescription) StreamsAt(u *url.URL) *DeclaredStreams {
	for _, p := range d.Ports {
		if at, err := url.Parse(p.Location); p.Streams != nil && err == nil && isSameService(at, u) {
			return p.Streams
		}
	}
	return nil
}

// isSameService reports whether two URLs have scheme, host, port and path in common.
func isSameService(a, b *url.URL) bool {
	path := func(u *url.URL) string { return cmp.Or(u.EscapedPath(), "/") }
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) &&
		portOf(a) == portOf(b) && path(a) == path(b)
}

func portOf(u *url.URL) string {
	if strings.EqualFold(u.Scheme, "https") {
		return cmp.Or(u.Port(), "443")
	}
	return cmp.Or(u.Port(), "80")
}

// declared reads the annotation of a binding: an element declaration of one of the namespaces of
// such, or binding, as it was named before.
func (c *compiler) declared(b *xsd.DocumentNode) *DeclaredStreams {
	for _, n := range b.Children {
		named := n.Name.Local == "declaration" || n.Name.Local == "binding"
		if named && slices.Contains(c.annotations, n.Name.Space) {
			d, err := readDeclared(n)
			if err != nil {
				c.problem(n, "what %s declares: %v", n.Name, err)
			}
			return d
		}
	}
	return nil
}

// readDeclared reads an annotation. What is not said is as it is without an offer.
func readDeclared(n *xsd.DocumentNode) (*DeclaredStreams, error) {
	d := &DeclaredStreams{Scheme: n.Attr("scheme")}
	if list := strings.Fields(n.Attr("representation")); len(list) > 0 {
		d.Representations = list
	}
	for _, s := range n.Children {
		if s.Name.Local != "stream" || s.Name.Space != n.Name.Space {
			continue
		}
		one := DeclaredStream{Transport: s.Attr("transport"), Address: s.Attr("address")}
		if one.Transport == "" {
			return nil, errors.New("a stream without a transport")
		}
		if _, port, err := net.SplitHostPort(one.Address); one.Address != "" && (err != nil || port == "") {
			return nil, fmt.Errorf("address %q is neither :PORT nor HOST:PORT", one.Address)
		}
		d.Streams = append(d.Streams, one)
	}
	return d, nil
}

// ports finds the ports of a service whose bindings are of SOAP.
func (c *compiler) ports(service *xsd.DocumentNode) {
	for _, p := range service.All(name("port")) {
		at, _ := extension(p, "address")
		b, wrong := c.find(p, "binding", p.Attr("binding"))
		if at == nil || wrong != nil { // of another protocol, or of no use without its binding
			continue
		}
		c.out.Ports = append(c.out.Ports, ServicePort{
			Name: p.Attr("name"), Location: at.Attr("location"), Streams: c.declaredBy(b.node),
			Binding: xsd.QName{Space: b.target, Local: b.node.Attr("name")},
		})
	}
}

// declaredBy is declared, once for each binding.
func (c *compiler) declaredBy(b *xsd.DocumentNode) *DeclaredStreams {
	d, known := c.streams[b]
	if !known {
		d = c.declared(b)
		c.streams[b] = d
	}
	return d
}

// Annotate has each binding of SOAP in a WSDL declare streams.
func Annotate(text []byte, d *DeclaredStreams) ([]byte, error) {
	return AddToBindings(text, d.annotation())
}

// AddToBindings puts elements into each binding of SOAP in a WSDL, behind the one that says so.
func AddToBindings(text, annotation []byte) ([]byte, error) {
	var out bytes.Buffer
	from, inside := int64(0), false
	r := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := r.Token()
		if errors.Is(err, io.EOF) {
			out.Write(text[from:])
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			inside = t.Name.Local == "binding" && soapBindings[t.Name.Space] != 0
		case xml.EndElement:
			if inside {
				out.Write(text[from:r.InputOffset()])
				out.Write(annotation)
				from, inside = r.InputOffset(), false
			}
		}
	}
}

// annotation writes the element. Clients that go by local names must not take it for one of WSDL.
func (d *DeclaredStreams) annotation() []byte {
	var b bytes.Buffer
	attribute := func(name, value string) {
		if value != "" {
			b.WriteString(` ` + name + `="`)
			_ = xml.EscapeText(&b, []byte(value)) // a buffer takes all
			b.WriteString(`"`)
		}
	}
	b.WriteString("\n    <hhfr:declaration xmlns:hhfr=\"" + xmlns.HHFRWSDL + `"`)
	attribute("scheme", d.Scheme)
	attribute("representation", strings.Join(d.Representations, " "))
	b.WriteString(">")
	for _, s := range d.Streams {
		b.WriteString("\n      <hhfr:stream")
		attribute("transport", s.Transport)
		attribute("address", s.Address)
		b.WriteString("/>")
	}
	b.WriteString("\n    </hhfr:declaration>")
	return b.Bytes()
}
