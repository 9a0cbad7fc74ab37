package wsdl

import (
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// FaultContents is what Body has in a fault of a version of SOAP, 11 or 12, as [Fault] declares it.
func FaultContents(version int, inside *xsd.ElementDecl) *xsd.Contents {
	envelope := xmlns.SOAP11
	if version == 12 {
		envelope = xmlns.SOAP12
	}
	return &xsd.Contents{Body: []*xsd.ElementDecl{Fault(envelope, inside)}}
}

// Fault is the declaration of the fault of a version of SOAP, by the namespace of its envelope. Its
// detail has this element; nil: any.
func Fault(envelope string, inside *xsd.ElementDecl) *xsd.ElementDecl {
	lax := &xsd.Wildcard{Namespaces: []string{"##any"}, Process: "lax"}
	detail := sequence(&xsd.Particle{Kind: xsd.AnyParticle, Max: xsd.Unbounded, Any: lax})
	if inside != nil {
		detail = sequence(xsd.Once(inside))
	}
	detail.AnyAttribute = lax
	if envelope == xmlns.SOAP12 {
		return fault12(detail)
	}
	return element(xmlns.SOAP11, "Fault", sequence(
		xsd.Once(element("", "faultcode", text("QName"))),
		xsd.Once(element("", "faultstring", text("string"))),
		optional(element("", "faultactor", text("anyURI"))),
		optional(element("", "detail", detail)),
	))
}

// fault12 is the fault of SOAP 1.2 (part 1, section 5.4).
func fault12(detail *xsd.TypeDef) *xsd.ElementDecl {
	const space = xmlns.SOAP12
	subcode := &xsd.TypeDef{}
	inner := optional(element(space, "Subcode", subcode))
	value := xsd.Once(element(space, "Value", text("QName")))
	*subcode = *sequence(value, inner)
	reason := text("string")
	reason.Set(&xsd.AttributeRule{
		Name: xsd.QName{Space: xmlns.XML, Local: "lang"}, Type: text("language").Simple, Required: true,
	})
	texts := xsd.Once(element(space, "Text", reason))
	texts.Max = xsd.Unbounded
	return element(space, "Fault", sequence(
		xsd.Once(element(space, "Code", sequence(value, inner))),
		xsd.Once(element(space, "Reason", sequence(texts))),
		optional(element(space, "Node", text("anyURI"))),
		optional(element(space, "Role", text("anyURI"))),
		optional(element(space, "Detail", detail)),
	))
}

func element(space, local string, t *xsd.TypeDef) *xsd.ElementDecl {
	return &xsd.ElementDecl{Name: xsd.QName{Space: space, Local: local}, Type: t}
}

func text(builtin string) *xsd.TypeDef {
	return &xsd.TypeDef{Simple: &xsd.Simple{Variety: xsd.Atomic, Builtin: builtin}}
}

func sequence(parts ...*xsd.Particle) *xsd.TypeDef {
	return &xsd.TypeDef{Particle: &xsd.Particle{Kind: xsd.Sequence, Min: 1, Max: 1, Parts: parts}}
}

func optional(e *xsd.ElementDecl) *xsd.Particle {
	p := xsd.Once(e)
	p.Min = 0
	return p
}
