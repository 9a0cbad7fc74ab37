package peer

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// description is WSDL 1.1, document/literal wrapped, with a binding and a port for each version of SOAP; 1.1 comes first, which is what most programs take.
// The words in braces are replaced. soapAction is empty, so that the default head of a negotiated session is what a client sends.
const description = `<?xml version="1.0" encoding="UTF-8"?>
<wsdl:definitions name="{name}" targetNamespace="{namespace}" xmlns:tns="{namespace}" xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:soap11="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:soap12="http://schemas.xmlsoap.org/wsdl/soap12/">
  <wsdl:documentation>{documentation}</wsdl:documentation>
  <wsdl:types>
    <xs:schema targetNamespace="{namespace}" elementFormDefault="qualified">
      <xs:element name="{name}"><xs:complexType><xs:sequence>{request}</xs:sequence></xs:complexType></xs:element>
      <xs:element name="{name}Response"><xs:complexType><xs:sequence>{reply}</xs:sequence></xs:complexType></xs:element>{types}
    </xs:schema>
  </wsdl:types>
  <wsdl:message name="{name}Request"><wsdl:part name="parameters" element="tns:{name}"/></wsdl:message>
  <wsdl:message name="{name}Reply"><wsdl:part name="parameters" element="tns:{name}Response"/></wsdl:message>
  <wsdl:portType name="{name}PortType">
    <wsdl:operation name="{name}"><wsdl:input message="tns:{name}Request"/><wsdl:output message="tns:{name}Reply"/></wsdl:operation>
  </wsdl:portType>
  <wsdl:binding name="{name}Soap11" type="tns:{name}PortType">
    <soap11:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <wsdl:operation name="{name}"><soap11:operation soapAction="" style="document"/><wsdl:input><soap11:body use="literal"/></wsdl:input><wsdl:output><soap11:body use="literal"/></wsdl:output></wsdl:operation>
  </wsdl:binding>
  <wsdl:binding name="{name}Soap12" type="tns:{name}PortType">
    <soap12:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <wsdl:operation name="{name}"><soap12:operation soapAction="" style="document"/><wsdl:input><soap12:body use="literal"/></wsdl:input><wsdl:output><soap12:body use="literal"/></wsdl:output></wsdl:operation>
  </wsdl:binding>
  <wsdl:service name="{name}">
    <wsdl:port name="{name}Soap11" binding="tns:{name}Soap11"><soap11:address location="{location}"/></wsdl:port>
    <wsdl:port name="{name}Soap12" binding="tns:{name}Soap12"><soap12:address location="{location}"/></wsdl:port>
  </wsdl:service>
</wsdl:definitions>
`

// WSDL is as in [Described].
func (o *operation) WSDL(location string) []byte {
	types := ""
	if o.types != "" {
		types = "\n      " + o.types
	}
	var escaped bytes.Buffer
	escape(&escaped, location)
	var documentation bytes.Buffer
	escape(&documentation, o.documentation)
	return []byte(strings.NewReplacer("{name}", o.name, "{namespace}", Namespace, "{documentation}", documentation.String(),
		"{request}", o.request, "{reply}", o.reply, "{types}", types, "{location}", escaped.String()).Replace(description))
}

// describe answers GET: /NAME?wsdl and /NAME.wsdl are descriptions, all else is not found. base is the server's URL as the client calls it; empty: not known, the description then names the path alone.
func (s *Services) describe(t target, reply func(*streamer.Message) error) error {
	path, ok := strings.CutSuffix(t.path, ".wsdl")
	if !ok && !strings.EqualFold(t.query, "wsdl") {
		return reply(errorReply(http.StatusNotFound, "nothing to get here\n"))
	}
	service, ok := s.byPath[path].(Described)
	if !ok {
		return reply(errorReply(http.StatusNotFound, "no description here\n"))
	}
	return reply(streamer.NewMessage(headOf(http.StatusOK, soap.Field{Name: "Content-Type", Value: "text/xml; charset=utf-8"}), service.WSDL(t.base+path)))
}

// target is what a request is for.
type target struct{ method, path, query, base string }
