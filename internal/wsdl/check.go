package wsdl

import (
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Check compares a message with what the description says of it: what is in Body, or the root of a
// document that is no envelope.
func (d *ServiceDescription) Check(root *xsd.DocumentNode) (misfits []xsd.Misfit) {
	parts := []*xsd.DocumentNode{root}
	if space := root.Name.Space; root.Name.Local == "Envelope" && (space == xmlns.SOAP11 || space == xmlns.SOAP12) {
		body := root.First(xsd.QName{Space: space, Local: "Body"})
		if body == nil {
			return []xsd.Misfit{{Place: root.Place, Path: "Envelope", What: "there is no Body"}}
		}
		parts = body.Children
	}
	for i, n := range parts {
		if call := d.encoded(n.Name); call != nil {
			if root.Name.Space == xmlns.SOAP12 {
				break // in the encoding of SOAP 1.2, which is another one
			}
			return append(misfits, d.set.CheckEncoded(call, parts[i:])...)
		}
		e := d.Element(n.Name)
		if e == nil && i > 0 && parts[0].Name.Local == "Fault" && n.Attr("id") != "" {
			continue // a value that the detail of an encoded fault refers to
		}
		if e == nil {
			misfits = append(misfits, xsd.Misfit{Place: n.Place, Path: n.Name.Local,
				What: n.Name.String() + " is not described"})
			continue
		}
		misfits = append(misfits, d.set.Check(e, n)...)
	}
	return misfits
}

// OfContents makes the description of one message that is none of a WSDL or XML Schema.
func OfContents(c *xsd.Contents) *ServiceDescription {
	return &ServiceDescription{Elements: []Declared{{Element: c.Body[0], Headers: c.Headers}}, set: xsd.NewSet()}
}

// Set is the schemas of the description.
func (d *ServiceDescription) Set() *xsd.Set { return d.set }

// encoded finds the call or result in SOAP's encoding that has this name; nil: there is none.
func (d *ServiceDescription) encoded(name xsd.QName) *xsd.ElementDecl {
	for _, o := range d.Operations {
		for _, m := range []*EnvelopeParts{o.Input, o.Output} {
			if m != nil && m.Encoded && len(m.Body) > 0 && m.Body[0].Name == name {
				return m.Body[0]
			}
		}
	}
	return nil
}

// Element finds the declaration of what may be in a Body, or the global one of a name; a fault is
// that of SOAP.
func (d *ServiceDescription) Element(name xsd.QName) *xsd.ElementDecl {
	for _, o := range d.Operations {
		for _, m := range []*EnvelopeParts{o.Input, o.Output} {
			if m == nil || m.Encoded {
				continue
			}
			for _, e := range m.Body {
				if e.Name == name {
					return e
				}
			}
		}
	}
	for i := range d.Elements {
		if e := d.Elements[i].Element; e.Name == name {
			return e
		}
	}
	if name.Local == "Fault" && (name.Space == xmlns.SOAP11 || name.Space == xmlns.SOAP12) {
		return Fault(name.Space, nil)
	}
	return d.set.Element(name)
}

// Derived finds a global type of a local name that is derived from another; nil if there is none,
// or more than one.
func (d *ServiceDescription) Derived(from *xsd.TypeDef, local string) (found *xsd.TypeDef) {
	for _, name := range d.set.Types() {
		if name.Local != local {
			continue
		}
		if t := d.set.Type(name); t.IsDerived(from) {
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}
