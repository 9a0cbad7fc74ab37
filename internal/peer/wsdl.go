package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// description is WSDL 1.1, document/literal wrapped, with a binding and a port for each version of
// SOAP; 1.1 comes first, which is what most programs take. The words in braces are replaced, the
// lines of operations once for each. soapAction is empty, so that the default head of a negotiated
// session is what a client sends.
const description = `<?xml version="1.0" encoding="UTF-8"?>
<wsdl:definitions name="{name}" targetNamespace="{namespace}" xmlns:tns="{namespace}" ` +
	`xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema" ` +
	`xmlns:soap11="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:soap12="http://schemas.xmlsoap.org/wsdl/soap12/">
  <wsdl:documentation>{documentation}</wsdl:documentation>
  <wsdl:types>
    <xs:schema targetNamespace="{namespace}" elementFormDefault="qualified">{elements}
    </xs:schema>
  </wsdl:types>{messages}
  <wsdl:portType name="{name}PortType">{operations}
  </wsdl:portType>
  <wsdl:binding name="{name}Soap11" type="tns:{name}PortType">
    <soap11:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>{bound11}
  </wsdl:binding>
  <wsdl:binding name="{name}Soap12" type="tns:{name}PortType">
    <soap12:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>{bound12}
  </wsdl:binding>
  <wsdl:service name="{name}">
    <wsdl:port name="{name}Soap11" binding="tns:{name}Soap11"><soap11:address location="{location}"/></wsdl:port>
    <wsdl:port name="{name}Soap12" binding="tns:{name}Soap12"><soap12:address location="{location}"/></wsdl:port>
  </wsdl:service>
</wsdl:definitions>
`

// The lines of one operation.
const (
	elementLines = `
      <xs:element name="{op}"><xs:complexType><xs:sequence>{request}</xs:sequence></xs:complexType></xs:element>
      <xs:element name="{op}Response"><xs:complexType><xs:sequence>{reply}</xs:sequence></xs:complexType></xs:element>`
	messageLines = `
  <wsdl:message name="{op}Request"><wsdl:part name="parameters" element="tns:{op}"/></wsdl:message>
  <wsdl:message name="{op}Reply"><wsdl:part name="parameters" element="tns:{op}Response"/></wsdl:message>`
	operationLines = `
    <wsdl:operation name="{op}"><wsdl:input message="tns:{op}Request"/><wsdl:output message="tns:{op}Reply"/>` +
		`</wsdl:operation>`
	boundLines = `
    <wsdl:operation name="{op}"><{soap}:operation soapAction="" style="document"/><wsdl:input><{soap}:body ` +
		`use="literal"/></wsdl:input><wsdl:output><{soap}:body use="literal"/></wsdl:output></wsdl:operation>`
)

// port is one operation as a description has it: the children of the elements NAME and NAMEResponse
// in XML Schema, and what these refer to.
type port struct{ name, request, reply, types string }

// describeService makes a description.
func describeService(name, documentation, location string, ports []port) []byte {
	var elements, messages, operations, bound11, bound12 strings.Builder
	for _, p := range ports {
		of := strings.NewReplacer("{op}", p.name, "{request}", p.request, "{reply}", p.reply)
		elements.WriteString(of.Replace(elementLines))
		if p.types != "" {
			elements.WriteString("\n      " + p.types)
		}
		messages.WriteString(of.Replace(messageLines))
		operations.WriteString(of.Replace(operationLines))
		bound11.WriteString(strings.ReplaceAll(of.Replace(boundLines), "{soap}", "soap11"))
		bound12.WriteString(strings.ReplaceAll(of.Replace(boundLines), "{soap}", "soap12"))
	}
	var where, what bytes.Buffer
	escape(&where, location)
	escape(&what, documentation)
	return []byte(
		strings.NewReplacer(
			"{name}",
			name,
			"{namespace}",
			Namespace,
			"{documentation}",
			what.String(),
			"{location}",
			where.String(),
			"{elements}",
			elements.String(),
			"{messages}",
			messages.String(),
			"{operations}",
			operations.String(),
			"{bound11}",
			bound11.String(),
			"{bound12}",
			bound12.String(),
		).Replace(description),
	)
}

// wsdl is the description of the one operation.
func (o *wrappedOperation) wsdl(location string) []byte {
	return describeService(o.name, o.documentation, location, []port{{o.name, o.request, o.reply, o.types}})
}

// describe answers GET: /NAME?wsdl and /NAME.wsdl are descriptions, all else is not found. streams
// are what they declare; nil: nothing. policy stands in their bindings.
func (s *Services) describe(w http.ResponseWriter, r *http.Request, streams *wsdl.DeclaredStreams, policy []byte) {
	if r.URL.Path == experiment.MachinePath && s.machine != nil {
		text, err := json.Marshal(s.machine())
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		send(w, r, http.StatusOK, "application/json", text)
		return
	}
	path, ok := strings.CutSuffix(r.URL.Path, ".wsdl")
	service := s.byPath[path]
	if n, err := strconv.Atoi(r.URL.Query().Get("wsdl")); err == nil && n > 0 && service.Document != nil {
		if text := service.Document(baseURL(r)+path, n); text != nil {
			send(w, r, http.StatusOK, xmlType, text)
			return
		}
	}
	switch {
	case !ok && !strings.EqualFold(r.URL.RawQuery, "wsdl"):
		sendText(w, r, http.StatusNotFound, "nothing to get here\n")
		return
	case service.WSDL == nil:
		sendText(w, r, http.StatusNotFound, "no description here\n")
		return
	}
	text := atQueues(service.WSDL(baseURL(r)+path), strings.TrimPrefix(path, "/"), s.queues)
	if streams != nil {
		var err error
		if text, err = wsdl.Annotate(text, streams); err != nil {
			sendText(w, r, http.StatusInternalServerError, "the description is not well-formed\n")
			return
		}
	}
	if len(policy) > 0 {
		var err error
		if text, err = wsdl.AddToBindings(text, policy); err != nil {
			sendText(w, r, http.StatusInternalServerError, "the description is not well-formed\n")
			return
		}
	}
	send(w, r, http.StatusOK, xmlType, text)
}

// described are services whose descriptions declare streams, and have a policy.
type described struct {
	*Services
	streams *wsdl.DeclaredStreams
	policy  []byte
}

// The binding and the port of a service at a queue are those of SOAP 1.1 but for these.
const (
	overHTTP  = `transport="http://schemas.xmlsoap.org/soap/http"`
	overQueue = `transport="http://www.w3.org/2010/soapjms/"`
)

// atQueues adds ports at queues to a description that this package made; another one stays as it
// is.
func atQueues(text []byte, name string, queues []string) []byte {
	begin, end := `  <wsdl:binding name="`+name+`Soap11"`, "  </wsdl:binding>\n"
	before, rest, found := strings.Cut(string(text), begin)
	inside, after, whole := strings.Cut(rest, end)
	if !found || !whole || len(queues) == 0 {
		return text
	}
	queued := `  <wsdl:binding name="` + name + `SoapJMS"` + strings.Replace(inside, overHTTP, overQueue, 1) + end
	var ports strings.Builder
	for i, queue := range queues {
		var at bytes.Buffer
		escape(&at, "jms:queue:"+url.PathEscape(queue)+"?targetService="+url.QueryEscape(name))
		fmt.Fprintf(&ports, `    <wsdl:port name="%sSoapJMS%d" binding="tns:%sSoapJMS"><soap11:address location="%s"/>`+
			"</wsdl:port>\n", name, i+1, name, &at)
	}
	after = strings.Replace(after, "  <wsdl:service ", queued+"  <wsdl:service ", 1)
	after = strings.Replace(after, "  </wsdl:service>", ports.String()+"  </wsdl:service>", 1)
	return []byte(before + begin + inside + end + after)
}

// ServeHTTP has the service at the path of a request serve it. A GET gives its description.
func (d *described) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.serve(w, r, d.streams, d.policy)
}

// declaredStreams are what descriptions declare: the transports over which a first contact is
// possible, and their addresses; nil: there are none.
func declaredStreams(addresses map[string]string) *wsdl.DeclaredStreams {
	d := &wsdl.DeclaredStreams{Scheme: negotiate.Scheme}
	for _, r := range negotiate.Representations {
		d.Representations = append(d.Representations, negotiate.RepresentationURI(r.Name))
	}
	for _, name := range []string{"tls", "tcp"} {
		if address := addresses[name]; address != "" {
			d.Streams = append(d.Streams, wsdl.DeclaredStream{
				Transport: negotiate.TransportURI(name), Address: address,
			})
		}
	}
	if d.Streams == nil {
		return nil
	}
	return d
}

// contract returns what the description of the service at a path says of messages, for initiators
// that name a description; nil if there is none. It is compiled when the first of them comes.
func (s *Services) contract(path string, named bool) *typed.Contract {
	if c := s.contracts[path]; named && c != nil {
		return c()
	}
	return nil
}

// compiled compiles the description of a service, once.
func (s Service) compiled() func() *typed.Contract {
	return sync.OnceValue(func() *typed.Contract {
		d, err := wsdl.Parse(context.Background(), s.WSDL("http://localhost"+s.Path))
		if err != nil {
			return nil
		}
		return typed.New(d)
	})
}

// baseURL is the server's, as the client calls it; empty if that is not known.
func baseURL(r *http.Request) string {
	facts := responder.FactsOf(r.Context())
	switch {
	case facts != nil: // by a stream, whatever transport that has
		return facts.Origin
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
