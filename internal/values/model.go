package values

import (
	"strings"
	"unicode"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// childRules are what a type says of the elements in it, by name. Elements of one name in one
// content model have one type (XML Schema part 1, section 3.8.6).
type childRules struct {
	names map[xsd.QName]*xsd.ElementDecl
	local map[string][]xsd.QName
	many  map[xsd.QName]bool // may occur more than once
	order []string           // the keys, as the content model has them
	any   bool               // wildcards
	open  bool               // of anyType: nothing is said of what is inside
}

func modelOf(t *xsd.TypeDef) *childRules {
	m := &childRules{
		names: map[xsd.QName]*xsd.ElementDecl{}, local: map[string][]xsd.QName{}, many: map[xsd.QName]bool{},
	}
	if t.Particle != nil {
		m.add(t.Particle, false)
	}
	return m
}

func (m *childRules) add(p *xsd.Particle, many bool) {
	many = many || p.Max != 1
	m.any = m.any || p.Kind == xsd.AnyParticle
	if p.Element != nil {
		m.element(p.Element, many)
		for _, e := range p.Element.Members {
			m.element(e, many)
		}
	}
	for _, part := range p.Parts {
		m.add(part, many)
	}
}

func (m *childRules) element(e *xsd.ElementDecl, many bool) {
	if e.Abstract {
		return
	}
	if many || m.names[e.Name] != nil { // one that stands in two places may be in both
		m.many[e.Name] = true
	}
	if m.names[e.Name] == nil {
		m.names[e.Name] = e
		m.local[e.Name.Local] = append(m.local[e.Name.Local], e.Name)
		m.order = append(m.order, e.Name.Local)
	}
}

// key is how a name is written in JSON: alone where no other has its local part.
func (m *childRules) key(name xsd.QName) string {
	if m.names[name] != nil && len(m.local[name.Local]) == 1 || m.open && name.Space == "" {
		return name.Local
	}
	return clark(name)
}

// name is the element that a key in JSON means, and what is wrong with the key otherwise.
func (m *childRules) name(key string) (name xsd.QName, wrong string) {
	if name, full := parseClark(key); full {
		if m.names[name] == nil && !m.any {
			return name, key + " is not expected" + m.expected()
		}
		return name, ""
	}
	switch known := m.local[key]; {
	case len(known) == 1:
		return known[0], ""
	case len(known) > 1:
		var forms []string
		for _, n := range known {
			forms = append(forms, clark(n))
		}
		return name, key + " may be " + strings.Join(forms, " or ") + ": write one of these"
	case m.open:
		return xsd.QName{Local: key}, ""
	case m.any:
		return name, key + " is not expected" + m.expected() + ", and other elements as {namespace}" + key
	}
	return name, key + " is not expected" + m.expected()
}

// maxExpected bounds the names in an error.
const maxExpected = 12

// expected goes on after "is not expected", with what is.
func (m *childRules) expected() string {
	switch list := m.order; {
	case len(list) == 0:
		return ": nothing is"
	case len(list) > maxExpected:
		return ": " + strings.Join(list[:maxExpected], ", ") + " and others are"
	case len(list) == 1:
		return ": " + list[0] + " is"
	default:
		return ": " + strings.Join(list, ", ") + " are"
	}
}

// isName reports whether a text can be the local part of a name in XML.
func isName(local string) bool {
	for i, r := range local {
		letter := r == '_' || unicode.IsLetter(r)
		if !letter && (i == 0 || r != '-' && r != '.' && r != '·' && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r)) {
			return false
		}
	}
	return local != ""
}

// clark is {namespace}local, with {} for no namespace.
func clark(name xsd.QName) string { return "{" + name.Space + "}" + name.Local }

// parseClark reads {namespace}local; false: text is none.
func parseClark(text string) (name xsd.QName, full bool) {
	rest, ok := strings.CutPrefix(text, "{")
	space, local, ok2 := strings.Cut(rest, "}")
	return xsd.QName{Space: space, Local: local}, ok && ok2
}

// typeKey is how the name of a type is written.
func typeKey(name xsd.QName) string {
	if name.Space == xmlns.XSD {
		return "xs:" + name.Local
	}
	return clark(name)
}

// attributeKey is how an attribute is written.
func attributeKey(name xsd.QName) string {
	switch name.Space {
	case "":
		return "@" + name.Local
	case xmlns.XML:
		return "@xml:" + name.Local
	}
	return "@" + clark(name)
}

// attributeName reads what [attributeKey] writes.
func attributeName(key string) xsd.QName {
	key = strings.TrimPrefix(key, "@")
	if local, ok := strings.CutPrefix(key, "xml:"); ok {
		return xsd.QName{Space: xmlns.XML, Local: local}
	}
	if name, full := parseClark(key); full {
		return name
	}
	return xsd.QName{Local: key}
}
