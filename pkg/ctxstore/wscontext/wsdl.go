package wscontext

import (
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// portOperation is an operation in the description: its elements, and what XML Schema says of them.
// An empty type stands for text.
type portOperation struct {
	request, reply         soap.Name
	requestType, replyType string
}

// Parts of the types below.
const (
	idType      = `<xs:element name="context-identifier" type="xs:anyURI"/>`
	maybeID     = `<xs:element name="context-identifier" type="xs:anyURI" minOccurs="0"/>`
	ofHeader    = `<xs:element ref="c:context-identifier" minOccurs="0"/>`
	version     = `<xs:element name="version" type="xs:unsignedLong"/>`
	expect      = `<xs:element name="expect-version" type="xs:unsignedLong" minOccurs="0"/>`
	maybeExpect = `<xs:element ref="c:expect-version" minOccurs="0"/>`
	maybeTime   = `<xs:element name="timeout" type="xs:decimal" minOccurs="0"/>`
	anything    = `<xs:any namespace="##other" processContents="lax" minOccurs="0" maxOccurs="unbounded"/>`
	expiresAt   = `<xs:attribute name="expiresAt" type="xs:dateTime"/>`
	ofPrefix    = `<xs:element name="prefix" type="xs:string"/>`
)

func sequence(elements ...string) string {
	return `<xs:complexType><xs:sequence>` + strings.Join(elements, "") + `</xs:sequence></xs:complexType>`
}

var ports = []portOperation{
	{std("begin"), std("begun"), sequence(`<xs:element name="type" type="xs:anyURI" minOccurs="0"/>`,
		`<xs:element name="parent" type="xs:anyURI" minOccurs="0"/>`, maybeTime,
		`<xs:element name="contents" minOccurs="0">`, sequence(anything), `</xs:element>`),
		sequence(`<xs:element name="context"><xs:complexType><xs:sequence>`, idType, `</xs:sequence>`, expiresAt,
			`</xs:complexType></xs:element>`)},
	{std("complete"), std("completed"), sequence(maybeID), sequence()},
	{std("getStatus"), std("status"), sequence(maybeID), ""},
	{std("setTimeout"), std("timeoutSet"), sequence(maybeID, `<xs:element name="timeout" type="xs:decimal"/>`),
		sequence()},
	{std("getTimeout"), std("timeout"), sequence(maybeID), ""},
	{std("getContents"), std("contents"), sequence(maybeID), `<xs:complexType><xs:sequence>` + idType + version +
		anything + `</xs:sequence>` + expiresAt + `</xs:complexType>`},
	{std("setContents"), std("contentsSet"), sequence(maybeID, expect, maybeTime, anything), sequence(idType, version)},
	{own("delete"), own("deleted"), sequence(ofHeader, maybeExpect), sequence()},
	{own("list"), own("listed"), sequence(ofPrefix), sequence(`<xs:element name="entry" minOccurs="0" ` +
		`maxOccurs="unbounded"><xs:complexType><xs:simpleContent><xs:extension base="xs:anyURI">` +
		`<xs:attribute name="version" type="xs:unsignedLong"/><xs:attribute name="size" type="xs:unsignedLong"/>` +
		expiresAt + `<xs:attribute name="problem" type="xs:string"/></xs:extension></xs:simpleContent>` +
		`</xs:complexType></xs:element>`)},
	{own("watch"), own("watched"), sequence(ofPrefix, `<xs:element name="known" type="xs:string" minOccurs="0"/>`), ""},
	{own("about"), own("store"), sequence(), sequence(`<xs:element name="persistent" type="xs:boolean"/>`,
		`<xs:element name="read-only" type="xs:boolean"/>`)},
}

// Description is the service at a URL in WSDL 1.1, document/literal, for SOAP 1.1 and 1.2.
func Description(location string) []byte {
	schemas := map[string]*strings.Builder{xmlns.WSContext: {}, xmlns.HHFRContext: {}}
	element := func(name soap.Name, of string) {
		open, shut := `<xs:element name="`+name.Local+`">`+of, `</xs:element>`
		if of == "" {
			open, shut = `<xs:element name="`+name.Local+`" type="xs:string"/>`, ""
		}
		schemas[name.Space].WriteString("\n      " + open + shut)
	}
	element(std("context-identifier"), "")
	element(std("expect-version"), "")
	element(own("binary"), "")
	var messages, operations, bound strings.Builder
	for _, p := range ports {
		element(p.request, p.requestType)
		element(p.reply, p.replyType)
		op := p.request.Local
		for _, m := range []struct{ suffix, element string }{{"Request", ref(p.request)}, {"Reply", ref(p.reply)}} {
			messages.WriteString("\n  <wsdl:message name=\"" + op + m.suffix + `"><wsdl:part name="body" element="` +
				m.element + `"/></wsdl:message>`)
		}
		operations.WriteString("\n    <wsdl:operation name=\"" + op + `"><wsdl:input message="c:` + op +
			`Request"/><wsdl:output message="c:` + op + `Reply"/></wsdl:operation>`)
		bound.WriteString("\n    <wsdl:operation name=\"" + op + `"><s:operation soapAction="` + action(p.request) +
			`"/><wsdl:input><s:body use="literal"/></wsdl:input><wsdl:output><s:body use="literal"/></wsdl:output>` +
			`</wsdl:operation>`)
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<wsdl:definitions name="ContextService" targetNamespace="` + xmlns.WSContext + `" xmlns:c="` + xmlns.WSContext +
		`" xmlns:h="` + xmlns.HHFRContext + `" xmlns:wsdl="` + xmlns.WSDL + `" xmlns:xs="` + xmlns.XSD + `">
  <wsdl:types>`)
	for _, ns := range []string{xmlns.WSContext, xmlns.HHFRContext} {
		imports := ""
		if ns == xmlns.HHFRContext {
			imports = `<xs:import namespace="` + xmlns.WSContext + `"/>`
		}
		b.WriteString("\n    <xs:schema targetNamespace=\"" + ns + `" elementFormDefault="qualified">` + imports +
			schemas[ns].String() + "\n    </xs:schema>")
	}
	b.WriteString("\n  </wsdl:types>" + messages.String() + "\n  <wsdl:portType name=\"ContextService\">" +
		operations.String() + "\n  </wsdl:portType>")
	var services strings.Builder
	for _, v := range []struct{ name, ns string }{{"Soap11", xmlns.WSDLSOAP11}, {"Soap12", xmlns.WSDLSOAP12}} {
		b.WriteString("\n  <wsdl:binding name=\"" + v.name + `" type="c:ContextService" xmlns:s="` + v.ns +
			`"><s:binding style="document" transport="` + xmlns.TransportHTTP + `"/>` + bound.String() +
			"\n  </wsdl:binding>")
		services.WriteString("\n    <wsdl:port name=\"" + v.name + `" binding="c:` + v.name + `"><s:address xmlns:s="` +
			v.ns + `" location="` + escape(location) + `"/></wsdl:port>`)
	}
	b.WriteString("\n  <wsdl:service name=\"ContextService\">" + services.String() +
		"\n  </wsdl:service>\n</wsdl:definitions>\n")
	return []byte(b.String())
}

// ref is a name with the prefix that the description declares.
func ref(name soap.Name) string {
	if name.Space == xmlns.HHFRContext {
		return "h:" + name.Local
	}
	return "c:" + name.Local
}
