// Package xmlns has the namespace names that hhfr knows, each once, with its source document. A
// name in XML is a namespace and a local part; a prefix never says what an element is.
package xmlns

// XML itself.
const (
	// XML is bound to the prefix xml and to no other (Namespaces in XML 1.0, section 3).
	XML = "http://www.w3.org/XML/1998/namespace"
	// XMLNS is bound to the prefix xmlns and is never declared (Namespaces in XML 1.0, section 3).
	XMLNS = "http://www.w3.org/2000/xmlns/"
	// XSD is the namespace of schema documents and built-in types (XML Schema part 1, section 2.6).
	XSD = "http://www.w3.org/2001/XMLSchema"
	// XSI has type, nil, schemaLocation and noNamespaceSchemaLocation (XML Schema part 1, section
	// 2.6).
	XSI = "http://www.w3.org/2001/XMLSchema-instance"
)

// SOAP envelopes and encodings.
const (
	// SOAP11 is the envelope of SOAP 1.1 (W3C note of 8 May 2000, section 4).
	SOAP11 = "http://schemas.xmlsoap.org/soap/envelope/"
	// SOAP11Encoding is the encoding of SOAP 1.1 (section 5 of the same), with arrayType, Array,
	// offset, position.
	SOAP11Encoding = "http://schemas.xmlsoap.org/soap/encoding/"
	// SOAP12 is the envelope of SOAP 1.2 (part 1, section 5).
	SOAP12 = "http://www.w3.org/2003/05/soap-envelope"
	// SOAP12Encoding is the encoding of SOAP 1.2 (part 2, section 3), with arraySize, itemType, id,
	// ref.
	SOAP12Encoding = "http://www.w3.org/2003/05/soap-encoding"
	// SOAPJMS names headers and properties of SOAP over Java Message Service 1.0 (W3C, 2012), and
	// its WSDL transport.
	SOAPJMS = "http://www.w3.org/2010/soapjms/"
	// SOAPJMS2008 is the same in the drafts of 2008, still met in the field.
	SOAPJMS2008 = "http://www.w3.org/2008/07/soap/bindings/JMS/"
)

// WSDL 1.1 and its bindings (W3C note of 15 March 2001, section 1.2; SOAP 1.2 binding: member
// submission of 5 April 2006).
const (
	WSDL       = "http://schemas.xmlsoap.org/wsdl/"
	WSDLSOAP11 = "http://schemas.xmlsoap.org/wsdl/soap/"
	WSDLSOAP12 = "http://schemas.xmlsoap.org/wsdl/soap12/"
	WSDLHTTP   = "http://schemas.xmlsoap.org/wsdl/http/"
	WSDLMIME   = "http://schemas.xmlsoap.org/wsdl/mime/"
	// TransportHTTP is no namespace but the value of soap:binding's transport for HTTP (WSDL 1.1,
	// section 3.3).
	TransportHTTP = "http://schemas.xmlsoap.org/soap/http"
)

// WS-Addressing.
const (
	// WSA is WS-Addressing 1.0 (W3C, 9 May 2006).
	WSA = "http://www.w3.org/2005/08/addressing"
	// WSA200408 is the member submission of 10 August 2004.
	WSA200408 = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
	// WSA200403 is the draft of March 2004, still deployed.
	WSA200403 = "http://schemas.xmlsoap.org/ws/2004/03/addressing"
	// WSAMetadata has Addressing, AnonymousResponses, NonAnonymousResponses (WS-Addressing 1.0
	// Metadata, 2007).
	WSAMetadata = "http://www.w3.org/2007/05/addressing/metadata"
	// WSAW has UsingAddressing (WS-Addressing 1.0 WSDL Binding, May 2006), WSA200408Policy that of
	// the submission of 2004.
	WSAW            = "http://www.w3.org/2006/05/addressing/wsdl"
	WSA200408Policy = "http://schemas.xmlsoap.org/ws/2004/08/addressing/policy"
)

// WS-ReliableMessaging.
const (
	// WSRM10 is WS-ReliableMessaging 1.0 (February 2005).
	WSRM10 = "http://schemas.xmlsoap.org/ws/2005/02/rm"
	// WSRM is WS-ReliableMessaging 1.1 and 1.2 (OASIS, 2007 and 2009).
	WSRM = "http://docs.oasis-open.org/ws-rx/wsrm/200702"
	// WSRM10Policy is the policy assertion of 1.0.
	WSRM10Policy = "http://schemas.xmlsoap.org/ws/2005/02/rm/policy"
	// WSRMPolicy is the policy assertion of 1.1 and 1.2.
	WSRMPolicy = "http://docs.oasis-open.org/ws-rx/wsrmp/200702"
	// WSPolicy is WS-Policy 1.5 (W3C, 2007), WSPolicy200409 the draft of September 2004.
	WSPolicy       = "http://www.w3.org/ns/ws-policy"
	WSPolicy200409 = "http://schemas.xmlsoap.org/ws/2004/09/policy"
	// WSMC is WS-MakeConnection 1.0 and 1.1 (OASIS, 2007 and 2009).
	WSMC = "http://docs.oasis-open.org/ws-rx/wsmc/200702"
)

// WS-Security (OASIS, 2004 and 2006) and XML signature.
const (
	WSSE   = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
	WSSE11 = "http://docs.oasis-open.org/wss/oasis-wss-wssecurity-secext-1.1.xsd"
	WSU    = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
	// DS is XML Signature Syntax and Processing (W3C, 2002, section 1.3).
	DS = "http://www.w3.org/2000/09/xmldsig#"
	// XENC is XML Encryption Syntax and Processing (W3C, 2002, section 1.3).
	XENC = "http://www.w3.org/2001/04/xmlenc#"
	// SAML11 and SAML20 are assertions of SAML 1.0 and 1.1 (OASIS, 2003) and of SAML 2.0 (OASIS,
	// 2005), as tokens of WS-Security have them.
	SAML11 = "urn:oasis:names:tc:SAML:1.0:assertion"
	SAML20 = "urn:oasis:names:tc:SAML:2.0:assertion"
)

// Attachments.
const (
	// XOP has Include (XML-binary Optimized Packaging, W3C, 25 January 2005).
	XOP = "http://www.w3.org/2004/08/xop/include"
	// XMIME has contentType and expectedContentTypes (Describing Media Content of Binary Data in
	// XML, W3C, 2005).
	XMIME = "http://www.w3.org/2005/05/xmlmime"
	// MTOMPolicy has OptimizedMimeSerialization (MTOM Policy Assertion, September 2004).
	MTOMPolicy = "http://schemas.xmlsoap.org/ws/2004/09/policy/optimizedmimeserialization"
)

// Contexts and hhfr's own names.
const (
	// Reference is the namespace of what stands in the place of header blocks in plain SOAP. It is
	// short, as each such message has it.
	Reference = "hhfr:ref"
	// WSContext is WS-Context 1.0 (OASIS, 2 April 2007).
	WSContext = "http://docs.oasis-open.org/ws-caf/2005/10/wsctx"
	// WSReference is the schema of service references that WS-Context points to.
	WSReference = "http://docs.oasis-open.org/wsrm/2004/06/reference-1.1.xsd"
	// HHFRNegotiation is the namespace of offers and answers (docs/negotiation.md).
	HHFRNegotiation = "urn:hhfr:negotiation:1"
	// HHFRWSDL is the namespace of the annotation that declares streams in a WSDL.
	HHFRWSDL = "urn:hhfr:wsdl:1"
	// HHFRContext is the namespace of hhfr's context documents.
	HHFRContext = "urn:hhfr:context:1"
)
