package typed

import (
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

const (
	// maxWritten is how many elements and attributes an own shape has at most: it must have at most
	// 32 KiB, and what comes first in a message costs most.
	maxWritten = 400
	// maxInHeader is how many of these may be in its Header.
	maxInHeader = 100
	// maxNested is how deep they are nested: a shape has at most 200 levels, an element up to four.
	maxNested = 32
)

// own makes the own shape of a message: an envelope without white space, with a prefix slot for
// each namespace. What a type contains is written where it comes first, and is open where it comes
// again, so that types that contain themselves come to an end. It depends on nothing but what
// fingerprints stand for, since both peers make it by themselves.
func own(k *kind) (*shape.Shape, error) {
	w := ownWriter{Builder: shape.NewBuilder(), written: map[string]bool{}, spaces: map[string]int64{}}
	w.tag(k.envelope, "Envelope", func() {
		w.declaration("xsi", xmlns.XSI)
		w.declaration("xsd", xmlns.XSD)
		if k.encoded {
			w.declaration("soapenc", xmlns.SOAP11Encoding)
		}
		w.Text(">")
		if len(k.headers) > 0 {
			w.most = maxInHeader
			w.part(k.envelope, "Header", k.headers)
		}
		w.most, w.encoded = maxWritten, k.encoded
		w.part(k.envelope, "Body", k.in)
	})
	return w.Shape()
}

// part writes Header or Body.
func (w *ownWriter) part(envelope, local string, inside []*xsd.ElementDecl) {
	w.tag(envelope, local, func() {
		w.Text(">")
		for _, e := range inside {
			if w.count <= w.most && w.encoded {
				w.call(envelope, e)
			} else if w.count <= w.most {
				w.element(e, 0)
			}
		}
	})
}

type ownWriter struct {
	*shape.Builder
	written map[string]bool  // what types contain that were written
	spaces  map[string]int64 // slots of namespaces
	count   int              // of elements and attributes
	most    int              // of these
	encoded bool             // values are in SOAP's encoding
}

// declaration writes a namespace that types and nil of elements need.
func (w *ownWriter) declaration(prefix, space string) {
	w.Begin(shape.Attribute)
	w.Text(" xmlns:" + prefix + `="` + space + `"`)
	w.End()
}

// tag writes an element; inside writes what stands between its name and its end tag.
func (w *ownWriter) tag(space, local string, inside func()) {
	_, known := w.spaces[space]
	w.Begin(shape.Element)
	w.Text("<")
	w.name(space, local)
	if space != "" && !known {
		w.Begin(shape.Attribute)
		w.Text(" xmlns:")
		w.Slot(w.spaces[space])
		w.Text(`="` + escapes.Replace(space) + `"`)
		w.End()
	}
	inside()
	w.Text("</")
	w.name(space, local)
	w.Text(">")
	w.End()
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;")

// name writes a name with the slot of its namespace, where that has one.
func (w *ownWriter) name(space, local string) {
	slot, known := w.spaces[space]
	if !known && space != "" && len(w.spaces) < shape.MaxSlots {
		slot, known = int64(len(w.spaces)), true
		w.spaces[space] = slot
	}
	if known {
		w.Slot(slot)
		local = ":" + local
	}
	w.Text(local)
}

func (w *ownWriter) element(e *xsd.ElementDecl, depth int) {
	w.count++
	w.tag(e.Name.Space, e.Name.Local, func() { w.content(e.Type, depth) })
}

// content writes the attributes of a type, and what stands between the tags.
func (w *ownWriter) content(t *xsd.TypeDef, depth int) {
	if t == nil || w.count > w.most || depth > maxNested {
		w.Text(">")
		w.Value(shape.TypeOpen, shape.UntilElement)
		return
	}
	if w.encoded && t.Array != nil {
		w.items(t, depth)
		return
	}
	if w.encoded && t.Simple != nil {
		w.fixed(` xsi:type="xsd:` + nameOf(t.Simple) + `"`)
	} else {
		for _, a := range t.Attributes {
			w.attribute(a)
		}
	}
	w.Text(">")
	switch {
	case t.Simple != nil:
		w.Value(typeOf(t.Simple), shape.UntilTag)
	case t.Any || t.Mixed || w.again(t):
		w.Value(shape.TypeOpen, shape.UntilElement)
	default:
		walk(t.Particle, func(p *xsd.Particle, occurs learn.Occurrence) {
			if p.Kind == xsd.ElementParticle && w.count <= w.most {
				w.occurs(p.Element, occurs, depth+1)
			}
		})
	}
}

// call writes the element around the parts of an operation, in SOAP's encoding.
func (w *ownWriter) call(envelope string, e *xsd.ElementDecl) {
	w.count++
	w.tag(e.Name.Space, e.Name.Local, func() {
		w.Begin(shape.Attribute)
		w.Text(" ")
		w.name(envelope, `encodingStyle="`+xmlns.SOAP11Encoding+`"`)
		w.End()
		w.content(e.Type, 0)
	})
}

// items writes the content of an array of SOAP's encoding.
func (w *ownWriter) items(t *xsd.TypeDef, depth int) {
	w.fixed(` xsi:type="soapenc:Array"`)
	w.Begin(shape.Attribute)
	w.Text(` soapenc:arrayType="`)
	w.Value(shape.TypeText, shape.UntilQuote)
	w.Text(`"`)
	w.End()
	w.Text(">")
	w.Begin(shape.Array)
	w.element(&xsd.ElementDecl{Name: xsd.QName{Local: "item"}, Type: t.Array}, depth+1)
	w.End()
}

// fixed writes an attribute that is always the same.
func (w *ownWriter) fixed(text string) {
	w.Begin(shape.Attribute)
	w.Text(text)
	w.End()
}

// nameOf is the built-in type that a simple type is made of.
func nameOf(s *xsd.Simple) string {
	if s.Variety != xsd.Atomic || s.Builtin == "anySimpleType" {
		return "string"
	}
	return s.Builtin
}

// again reports whether a type was written that contains elements of the same names, and notes this
// one.
func (w *ownWriter) again(t *xsd.TypeDef) bool {
	var names strings.Builder
	walk(t.Particle, func(p *xsd.Particle, _ learn.Occurrence) {
		if p.Kind == xsd.ElementParticle {
			names.WriteString(p.Element.Name.String() + " ")
		}
	})
	was := w.written[names.String()]
	w.written[names.String()] = names.Len() > 0
	return was
}

// occurs writes an element as in a message in which it is there, and repeats if it may.
func (w *ownWriter) occurs(e *xsd.ElementDecl, occurs learn.Occurrence, depth int) {
	if occurs.Repeats {
		w.Begin(shape.Array)
		defer w.End()
	}
	w.element(e, depth)
}

func (w *ownWriter) attribute(a *xsd.AttributeRule) {
	w.count++
	w.Begin(shape.Attribute)
	w.Text(" ")
	if _, known := w.spaces[a.Name.Space]; known {
		w.name(a.Name.Space, a.Name.Local)
	} else {
		w.Text(a.Name.Local)
	}
	w.Text(`="`)
	w.Value(typeOf(a.Type), shape.UntilQuote)
	w.Text(`"`)
	w.End()
}
