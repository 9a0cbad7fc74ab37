package xsd

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// Set is the schemas of a description, and their components as far as they were asked for. It is
// for one goroutine.
type Set struct {
	globals map[globalName]*declaration
	types   map[QName]*TypeDef
	// declared are elements that somebody has asked for.
	declared map[QName]*ElementDecl
	// locals are elements that are declared in a content model.
	locals map[local]*ElementDecl
	simple map[string]*TypeDef // built-in types
	// heads has the global elements that name a head of a substitution group; nil: not yet known.
	heads map[QName][]QName
	// bases has the global complex types that name a base; nil: not yet known.
	bases map[QName][]QName
	// missing says of namespaces why they are not there.
	missing map[string]*Problem
	// inAll is what all types contain, and full whether that was said to be too much.
	inAll int
	full  bool
	// queue is what still has to be filled in, late what needs all that first, and checks what
	// compares that then.
	queue, late, checks []func()
	// compared is how much was done for the checks of restrictions.
	compared int
	blocks   bool // something blocks a derivation
	// blockedTypes are those that xsi:type may not name, of all elements of a type.
	blockedTypes map[blockedType][]*TypeDef

	// Problems are those of documents and of global components that are declared twice.
	Problems []*Problem
}

// local is a declaration in a content model; one that is included by several schemas is several.
type local struct {
	node *DocumentNode
	doc  *schemaDocument
}

// globalName names a global component.
type globalName struct {
	kind string // local name of its element in XSD
	name QName
}

// NewSet returns a set without schemas.
func NewSet() *Set {
	return &Set{
		globals: map[globalName]*declaration{}, types: map[QName]*TypeDef{}, declared: map[QName]*ElementDecl{},
		locals: map[local]*ElementDecl{}, simple: map[string]*TypeDef{}, missing: map[string]*Problem{},
		blockedTypes: map[blockedType][]*TypeDef{},
	}
}

// note keeps a problem of a description as a whole.
func (s *Set) note(p *Problem) {
	if len(s.Problems) < maxProblems {
		s.Problems = append(s.Problems, p)
	}
}

func xsName(local string) QName { return QName{xmlns.XSD, local} }

// kinds are the elements that declare global components; simple and complex types have one space of
// names.
var kinds = map[string]string{
	"element": "element", "attribute": "attribute", "group": "group", "attributeGroup": "attributeGroup",
	"simpleType": "type", "complexType": "type",
}

// document makes what applies to all in a schema element. as is the namespace of a schema without
// one that is included by a schema with one.
func (s *Set) document(root *DocumentNode, as string) *schemaDocument {
	return &schemaDocument{
		target:         cmp.Or(root.Attr("targetNamespace"), as),
		chameleon:      as != "" && root.Attr("targetNamespace") == "",
		qualified:      root.Attr("elementFormDefault") == "qualified",
		qualifiedAttrs: root.Attr("attributeFormDefault") == "qualified",
		block:          s.derivations(root, "blockDefault"),
		final:          s.derivations(root, "finalDefault"),
	}
}

// add takes the global components of a schema element.
func (s *Set) add(root *DocumentNode, d *schemaDocument) {
	for _, c := range root.Children {
		if kind, ok := kinds[c.Name.Local]; ok && c.Name.Space == xmlns.XSD {
			s.declare(kind, c, d)
		}
	}
	s.heads, s.bases = nil, nil
}

func (s *Set) declare(kind string, c *DocumentNode, d *schemaDocument) {
	key := globalName{kind, QName{d.target, c.Attr("name")}}
	was := s.globals[key]
	if was == nil {
		s.globals[key] = &declaration{node: c, doc: d}
		return
	}
	if !strings.HasPrefix(c.Place.Location, Standard) && !alike(was.node, c) {
		s.note(problemAt(c.Place, "%s %s is declared again, and otherwise than at %s", kind, key.name,
			was.node.Place))
	}
}

// alike reports whether two elements are the same but for their place.
func alike(a, b *DocumentNode) bool {
	if a.Name != b.Name || len(a.Attrs) != len(b.Attrs) || len(a.Children) != len(b.Children) {
		return false
	}
	for _, x := range a.Attrs {
		if v, ok := b.Get(x.Name.Local); x.Name.Space == "" && (!ok || v != x.Value && !sameQName(a, b, x.Value, v)) {
			return false
		}
	}
	for i := range a.Children {
		if !alike(a.Children[i], b.Children[i]) {
			return false
		}
	}
	return true
}

func sameQName(a, b *DocumentNode, x, y string) bool {
	m, okA := a.QName(x)
	n, okB := b.QName(y)
	return okA && okB && m == n
}

// Elements are the names of all global elements, in their order.
func (s *Set) Elements() []QName { return s.names("element") }

// Types are the names of all global types, in their order.
func (s *Set) Types() []QName { return s.names("type") }

func (s *Set) names(kind string) (list []QName) {
	for c := range s.globals {
		if c.kind == kind {
			list = append(list, c.name)
		}
	}
	slices.SortStableFunc(list, compareNames)
	return list
}

// TypeProblems are those of the global types that somebody has asked for, or that xsi:type may name
// in place of these, but for those that are known; in the order of their places.
func (s *Set) TypeProblems(known map[*Problem]bool) (list []*Problem) {
	for _, t := range s.types {
		for _, p := range t.problems {
			if !known[p] && !slices.Contains(list, p) && len(list) < maxProblems {
				list = append(list, p)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Place.Location, b.Place.Location), cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column), cmp.Compare(a.What, b.What))
	})
	return list
}

// fill completes what was begun.
func (s *Set) fill() {
	for len(s.queue) > 0 || len(s.late) > 0 || len(s.checks) > 0 {
		from := &s.queue
		if len(*from) == 0 {
			from = &s.late
		}
		if len(*from) == 0 {
			from = &s.checks
		}
		next := (*from)[0]
		*from = (*from)[1:]
		next()
	}
}

// name resolves a reference in a document.
func (d *schemaDocument) name(n *DocumentNode, text string) (QName, *Problem) {
	name, wrong := n.Reference(text)
	if wrong == nil && name.Space == "" && d.chameleon {
		name.Space = d.target
	}
	return name, wrong
}

// Absent is the problem of a reference to what is not there.
func (s *Set) Absent(at *DocumentNode, what string, name QName) *Problem {
	p := Undeclared(at, what, name)
	if why := s.missing[name.Space]; why != nil {
		p.What += ": " + why.Error()
	}
	return p
}

// derivations reads block or final, which a schema has for all that says nothing itself.
func (s *Set) derivations(n *DocumentNode, attribute string) (d derivations) {
	for field := range strings.FieldsSeq(n.Attr(attribute)) {
		switch at := slices.Index(derivationWords, field); {
		case field == "#all":
			d = allDerivations
		case at >= 0:
			d |= 1 << at
		default:
			s.note(problemAt(n.Place, "%s of %q", attribute, field))
		}
	}
	return d
}

// blockedType is a type where some ways of derivation from it are blocked.
type blockedType struct {
	t    *TypeDef
	ways derivations
}

// Standard begins the location of a schema of a standard, which yields to what a description brings
// along.
const Standard = "standard:"

func isTrue(v string) bool { return v == "true" || v == "1" }
