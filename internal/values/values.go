// Package values translates messages that a WSDL or XML Schema describes between XML and JSON, and
// makes samples of them (docs/values.md).
//
// An element with elements inside is an object: "@name" is an attribute, "name" an element, an
// array where it may repeat. An element with text alone is a string, number or boolean by its
// type, null if it is nil, and has its text as "$" beside attributes. Names are local where that
// is clear, and {namespace}local otherwise. "$type" is the type of xsi:type. "#" has elements,
// and text between them, in their order, where names alone would not give it back.
package values

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Translator translates one kind of message. It is for one goroutine, like the set of its schemas.
type Translator struct {
	set      *xsd.Set
	contents *xsd.Contents
	version  int // of SOAP: 11 or 12
	models   map[*xsd.TypeDef]*childRules
}

// New returns the translator of messages with these contents, of a version of SOAP: 11 or 12.
func New(set *xsd.Set, contents *xsd.Contents, version int) *Translator {
	return &Translator{set: set, contents: contents, version: version, models: map[*xsd.TypeDef]*childRules{}}
}

// model is what a type says of the elements in it, found once.
func (t *Translator) model(of *xsd.TypeDef) *childRules {
	m := t.models[of]
	if m == nil {
		m = modelOf(of)
		t.models[of] = m
	}
	return m
}

// MisfitsError is where values are not as a message of the kind has them: at least one place.
type MisfitsError []xsd.Misfit

// Error has a line for each place.
func (m MisfitsError) Error() string {
	var lines []string
	for _, one := range m {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

// isAny reports whether nothing is said of a type.
func isAny(t *xsd.TypeDef) bool { return t == nil || t.Any }

// isArray reports whether a type is an array of SOAP's encoding, and how an item is declared.
func (t *Translator) isArray(of *xsd.TypeDef) (item *xsd.ElementDecl, is bool) {
	if isAny(of) || of.Array == nil {
		return nil, false
	}
	item = &xsd.ElementDecl{Name: xsd.QName{Local: "item"}, Type: of.Array, Nillable: true}
	if inner, last := strings.CutSuffix(of.Dimensions, "[]"); last && inner != "" { // an array of arrays
		item.Type = &xsd.TypeDef{Array: of.Array, Dimensions: inner}
	}
	if m := t.model(of); len(m.order) == 1 {
		item.Name = m.local[m.order[0]][0]
	}
	return item, true
}

// typeNamed finds the type that "$type" means for an element declared with another one.
func (t *Translator) typeNamed(text string, declared *xsd.TypeDef) (xsd.QName, *xsd.TypeDef, error) {
	if local, ok := strings.CutPrefix(text, "xs:"); ok {
		text = clark(xsd.QName{Space: xmlns.XSD, Local: local})
	}
	if name, full := parseClark(text); full {
		if found := t.set.Type(name); found != nil {
			return name, found, nil
		}
		return name, nil, fmt.Errorf("there is no type %s", text)
	}
	var found []*xsd.TypeDef
	for _, name := range t.set.Types() {
		if name.Local == text {
			if of := t.set.Type(name); of.IsDerived(declared) {
				found = append(found, of)
			}
		}
	}
	switch len(found) {
	case 0:
		return xsd.QName{}, nil, fmt.Errorf("there is no type %s for this element", text)
	case 1:
		return found[0].Name, found[0], nil
	}
	return xsd.QName{}, nil, errors.New(text + " are several types: write {namespace}" + text)
}
