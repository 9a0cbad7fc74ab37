package xsd

import (
	"cmp"
	"slices"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// attributes adds the attributes of a complex type, or of one step of its derivation.
func (s *Set) attributes(t *TypeDef, n *DocumentNode, d *schemaDocument) {
	t.anyOwn = nil
	s.attributesOf(t, n, d, nil)
	t.AnyAttribute = t.anyOwn.union(t.AnyAttribute)
}

// attributesOf adds those of an attribute group as well; groups are those that it stands in.
func (s *Set) attributesOf(t *TypeDef, n *DocumentNode, d *schemaDocument, groups []*declaration) {
	for _, c := range n.Children {
		if c.Name.Space != xmlns.XSD {
			continue
		}
		switch c.Name.Local {
		case "attribute":
			if a, prohibited := s.attribute(t, c, d); a != nil {
				if prohibited {
					t.remove(a.Name)
				} else {
					t.Set(a)
				}
			}
		case "attributeGroup":
			s.attributeGroup(t, c, d, groups)
		case "anyAttribute":
			t.anyOwn = wildcard(c, d).intersection(t.anyOwn)
		}
	}
}

func (s *Set) attributeGroup(t *TypeDef, n *DocumentNode, d *schemaDocument, groups []*declaration) {
	name, wrong := d.name(n, n.Attr("ref"))
	g := s.refers(globalName{"attributeGroup", name}, groups)
	switch {
	case wrong != nil:
		t.problems = append(t.problems, wrong)
	case g == nil && name == QName{xmlns.SOAP11Encoding, "commonAttributes"}:
		t.anyOwn = (&Wildcard{Namespaces: []string{anyNamespace}, Process: "lax"}).intersection(t.anyOwn)
	case g == nil:
		t.problems = append(t.problems, s.Absent(n, "attribute group", name))
	case g.wrong != nil:
		t.problems = append(t.problems, g.wrong)
	case slices.Contains(groups, g):
		t.inItself(n, "attribute group", name)
	case s.takes(t, 1):
		s.attributesOf(t, g.node, g.doc, append(slices.Clone(groups), g))
	}
}

// Set adds an attribute, or replaces the one of its name.
func (t *TypeDef) Set(a *AttributeRule) {
	if at, found := t.find(a.Name); found {
		t.Attributes[at] = a
	} else {
		t.Attributes = slices.Insert(t.Attributes, at, a)
	}
}

func (t *TypeDef) remove(name QName) {
	if at, found := t.find(name); found {
		t.Attributes = slices.Delete(t.Attributes, at, at+1)
	}
}

// attribute makes the use of an attribute; nil if it cannot be.
func (s *Set) attribute(t *TypeDef, n *DocumentNode, d *schemaDocument) (a *AttributeRule, prohibited bool) {
	a = &AttributeRule{Required: n.Attr("use") == "required", Place: n.Place}
	node, doc := n, d
	if ref, ok := n.Get("ref"); ok {
		name, wrong := d.name(n, ref)
		if wrong != nil {
			t.problems = append(t.problems, wrong)
			return nil, false
		}
		a.Name = name
		g := s.globals[globalName{"attribute", name}]
		if g == nil {
			if a.Type = s.knownAttribute(name); a.Type == nil {
				t.problems = append(t.problems, s.Absent(n, "attribute", name))
				return nil, false
			}
			return a, n.Attr("use") == "prohibited"
		}
		node, doc = g.node, g.doc
	} else {
		a.Name = QName{"", n.Attr("name")}
		if form := n.Attr("form"); form == "qualified" || form == "" && d.qualifiedAttrs {
			a.Name.Space = d.target
		}
	}
	a.of = s.attributeType(t, node, doc)
	a.Type = cmp.Or(a.of.Simple, s.builtin("anySimpleType").Simple)
	for _, from := range []*DocumentNode{node, n} {
		if v, ok := from.Get("default"); ok {
			a.Default = &v
		}
		if v, ok := from.Get("fixed"); ok {
			a.Fixed = &v
		}
	}
	return a, n.Attr("use") == "prohibited"
}

// attributeType is the type that an attribute declares.
func (s *Set) attributeType(t *TypeDef, n *DocumentNode, d *schemaDocument) *TypeDef {
	if text, ok := n.Get("type"); ok {
		of := s.reference(n, d, text, func(p *Problem) { t.problems = append(t.problems, p) })
		s.complete(of)
		return of
	}
	if inner := n.First(xsName("simpleType")); inner != nil {
		own := &TypeDef{Place: inner.Place}
		s.define(own, inner, d)
		return own
	}
	return s.builtin("anySimpleType")
}

// attributeNamed is the type of the global attribute of a name; nil: there is none.
func (s *Set) attributeNamed(name QName) *Simple {
	g := s.globals[globalName{"attribute", name}]
	if g == nil {
		return s.knownAttribute(name)
	}
	of := s.attributeType(&TypeDef{Place: g.node.Place}, g.node, g.doc)
	s.fill()
	return cmp.Or(of.Simple, s.builtin("anySimpleType").Simple)
}

// knownAttribute is the type of an attribute that every processor knows, whose schema documents
// often import without saying where it is: those of the namespace xml, of SOAP's encoding, and of
// attachments; nil: it is none of these.
func (s *Set) knownAttribute(name QName) *Simple {
	switch name.Space {
	case xmlns.XML:
		switch name.Local {
		case "lang":
			return s.builtin("language").Simple
		case "base":
			return s.builtin("anyURI").Simple
		case "id":
			return s.builtin("ID").Simple
		case "space":
			return s.builtin("NCName").Simple
		}
	case reference:
		return s.builtin("anyURI").Simple
	case xmlns.SOAP11Encoding, xmlns.SOAP11, xmlns.SOAP12, xmlns.SOAP12Encoding, xmime, xmime04:
		return s.builtin("string").Simple
	}
	return nil
}

// reference is the namespace of ref:location, a reference to an attachment (WSDL Extension for SOAP
// in DIME, 2002).
const reference = "http://schemas.xmlsoap.org/ws/2002/04/reference/"

// The namespaces of xmime:contentType and xmime:expectedContentTypes (Describing Media Content of
// Binary Data in XML, W3C note of 4 May 2005, and its draft).
const (
	xmime   = "http://www.w3.org/2005/05/xmlmime"
	xmime04 = "http://www.w3.org/2004/11/xmlmime"
)
