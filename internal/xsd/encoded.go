package xsd

import (
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// CheckEncoded compares what stands in the Body of a message in SOAP 1.1's encoding with the
// declaration of its first element: a call or its result, with the values that it refers to beside
// it (SOAP 1.1, sections 5 and 7.1). An accessor that is left out is null, and so may any be; those
// of a struct are in any order, and those of a call in that of its parts. What is of a type of a
// namespace that nothing is known of is not compared, and neither is what stands outside the
// message.
func (s *Set) CheckEncoded(call *ElementDecl, body []*DocumentNode) []Misfit {
	c := encodedChecker{
		contentChecker: contentChecker{set: s}, ids: map[string]*DocumentNode{}, met: map[encodedValue]bool{},
		members: map[*TypeDef]*accessors{}, inner: map[innerArray]*TypeDef{},
	}
	for _, n := range body {
		c.identify(n)
	}
	c.parts(call, body[0], call.Name.Local)
	for _, n := range body[1:] {
		switch _, named := n.Get("id"); {
		case !named:
			c.fail(n, n.Name.Local, "stands beside the call, and has no id by which to refer to it")
		default:
			c.later(&ElementDecl{Name: n.Name, Type: s.anything()}, n, n.Name.Local)
		}
	}
	for len(c.todo) > 0 { // no recursion: what is referred to may be a list of any length
		next := c.todo[0]
		c.todo = c.todo[1:]
		c.value(next.e, next.n, next.path)
	}
	c.sort()
	return c.found
}

// encodedChecker compares values in SOAP 1.1's encoding.
type encodedChecker struct {
	contentChecker
	ids map[string]*DocumentNode
	// todo are values that something refers to, and met those that are there already.
	todo    []referredValue
	met     map[encodedValue]bool
	members map[*TypeDef]*accessors
	inner   map[innerArray]*TypeDef
	spaces  map[string]bool // of which there are types; nil: not yet known
}

type encodedValue struct {
	n *DocumentNode
	t *TypeDef
}

type referredValue struct {
	e    *ElementDecl
	n    *DocumentNode
	path string
}

// identify notes the elements that have an id.
func (c *encodedChecker) identify(n *DocumentNode) {
	if id, ok := n.Get("id"); ok {
		if c.ids[id] != nil {
			c.fail(n, n.Name.Local, "the id %.40q is also that of %s", id, c.ids[id].Place)
		} else {
			c.ids[id] = n
		}
	}
	for _, kid := range n.Children {
		c.identify(kid)
	}
}

// maxPath is how long a path may be, in bytes, that goes on with a reference.
const maxPath = 200

// later compares a value after all others, once for each type that it is referred to as.
func (c *encodedChecker) later(e *ElementDecl, n *DocumentNode, path string) {
	if len(path) > maxPath {
		_, end, _ := strings.Cut(path[len(path)-maxPath/2:], "/")
		path = "…/" + end
	}
	if v := (encodedValue{n, e.Type}); !c.met[v] {
		c.met[v] = true
		c.todo = append(c.todo, referredValue{e, n, path})
	}
}

// enc is the name of an attribute of SOAP 1.1's encoding.
func enc(local string) QName { return QName{xmlns.SOAP11Encoding, local} }

// isEncoded reports whether a value is in this encoding, as far as it says anything of that.
func (c *encodedChecker) isEncoded(n *DocumentNode, path string) bool {
	style, stated := n.getName(QName{xmlns.SOAP11, "encodingStyle"})
	if !stated || slices.ContainsFunc(strings.Fields(style), func(uri string) bool {
		return strings.HasPrefix(uri, xmlns.SOAP11Encoding)
	}) {
		return true
	}
	c.fail(n, path, "encodingStyle is %.80q, and not that of SOAP 1.1", style)
	return false
}

// value compares an accessor.
func (c *encodedChecker) value(e *ElementDecl, n *DocumentNode, path string) {
	if !c.isEncoded(n, path) || c.reference(e, n, path) {
		return
	}
	if n.isNil() {
		if len(n.Children) > 0 || strings.TrimSpace(n.Text) != "" {
			c.fail(n, path, "nil, and not empty")
		}
		return
	}
	t := c.typeOf(e, n, path)
	if t == nil {
		return
	}
	_, isArray := n.getName(enc("arrayType"))
	if !t.Any {
		c.attributes(t, withoutEncoding(n), path)
	}
	switch {
	case t.Array != nil:
		c.items(t, n, path)
	case t.Any && isArray:
		c.items(&TypeDef{Array: c.set.anything()}, n, path)
	case t.Any:
		for _, kid := range n.Children {
			c.value(&ElementDecl{Name: kid.Name, Type: t}, kid, path+"/"+kid.Name.Local)
		}
	case t.Simple != nil:
		c.text(t.Simple, e, n, path)
	default:
		c.accessors(t, n, path, false)
	}
}

// reference reports whether an accessor refers to its value, which is then compared later.
func (c *encodedChecker) reference(e *ElementDecl, n *DocumentNode, path string) bool {
	href, refers := n.Get("href")
	if !refers {
		return false
	}
	if len(n.Children) > 0 || strings.TrimSpace(n.Text) != "" {
		c.fail(n, path, "refers to %.40q, and is not empty", href)
	}
	id, inside := strings.CutPrefix(strings.TrimSpace(href), "#")
	switch to := c.ids[id]; {
	case !inside: // an attachment
	case to == nil:
		c.fail(n, path, "refers to %.40q, which is not there", href)
	default:
		c.later(e, to, path)
	}
	return true
}

// withoutEncoding is an element without the attributes that any value may have.
func withoutEncoding(n *DocumentNode) *DocumentNode {
	own := *n
	own.Attrs = slices.DeleteFunc(slices.Clone(n.Attrs), func(a DocumentAttr) bool {
		return a.Name == (QName{"", "id"}) || isEncoding(a.Name.Space) || a.Name.Space == xmlns.SOAP11
	})
	return &own
}

// typeOf is the declared type, or the one that xsi:type names; nil: it is not compared.
func (c *encodedChecker) typeOf(e *ElementDecl, n *DocumentNode, path string) *TypeDef {
	declared := e.Type
	if declared == nil {
		declared = c.set.anything()
	}
	text, named := n.getName(QName{xmlns.XSI, "type"})
	if !named {
		if declared.Abstract {
			c.fail(n, path, "its type is abstract: xsi:type is needed")
			return nil
		}
		return declared
	}
	t := c.typeNamed("xsi:type", text, n, path)
	if t == nil {
		return nil
	}
	if t.Abstract {
		c.fail(n, path, "xsi:type %s is abstract", t.Name)
		return nil
	}
	is, ok := c.fits(t, declared)
	if !ok {
		c.fail(n, path, "xsi:type %.80s is not derived from its type", text)
		return nil
	}
	return is
}

// typeNamed finds the type that an attribute names; nil: there is none, or nothing is known of its
// namespace.
func (c *encodedChecker) typeNamed(attribute, text string, n *DocumentNode, path string) *TypeDef {
	name, ok := n.QName(text)
	if name == xsName("ur-type") { // anyType in the drafts that SOAP 1.1 quotes
		return c.set.anything()
	}
	if t := c.set.Type(name); t != nil && ok {
		return t
	}
	if c.spaces == nil {
		c.spaces = map[string]bool{"": true, xmlns.XSD: true, xmlns.SOAP11Encoding: true}
		for _, known := range c.set.Types() {
			c.spaces[known.Space] = true
		}
	}
	if !ok || c.spaces[name.Space] {
		c.fail(n, path, "%s %.80q is no type", attribute, text)
	}
	return nil
}

// fits returns the type that a value is compared with whose type is named, where another one is
// declared; false: it cannot be of this type. SOAP's encoding names types for itself that are as
// those of XML Schema, and a type that enumerates values may be named by what it restricts.
func (c *encodedChecker) fits(t, declared *TypeDef) (*TypeDef, bool) {
	switch {
	case declared.Any || t.IsDerived(declared):
		return t, true
	case t.Array != nil && declared.Array != nil:
		item, of := t.Array, declared.Array
		return declared, item.Any || of.Any || item.IsDerived(of) || item.Simple.isAs(of.Simple)
	}
	return declared, t.Simple.isAs(declared.Simple)
}

// isAs reports whether values of a simple type may be those of another one, limits apart.
func (s *Simple) isAs(o *Simple) bool {
	switch {
	case s == nil || o == nil:
		return false
	case o.Variety != Atomic || o.Builtin == "anySimpleType":
		return true
	}
	return s.Variety == Atomic && isBuiltin(s.Builtin, o.Builtin)
}

// accessors are the elements of a struct by their names.
type accessors struct {
	of    map[QName]int
	local map[string]int
	list  []*ElementDecl
	most  []int
	open  bool // any others, too
}

func (c *encodedChecker) accessorsOf(t *TypeDef) *accessors {
	a := c.members[t]
	if a == nil {
		a = &accessors{of: map[QName]int{}, local: map[string]int{}}
		a.add(t.Particle, 1)
		c.members[t] = a
	}
	return a
}

func (a *accessors) add(p *Particle, times int) {
	if p == nil {
		return
	}
	if p.Max == Unbounded || times == Unbounded {
		times = Unbounded
	} else {
		times *= p.Max
	}
	switch p.Kind {
	case AnyParticle:
		a.open = true
	case ElementParticle:
		if at, again := a.of[p.Element.Name]; again {
			a.most[at] = Unbounded // in several places
			return
		}
		a.of[p.Element.Name], a.local[p.Element.Name.Local] = len(a.list), len(a.list)
		a.list, a.most = append(a.list, p.Element), append(a.most, times)
	case Sequence, Choice, All:
		for _, part := range p.Parts {
			a.add(part, times)
		}
	}
}

// find is the accessor of a name: those of a struct are often without their namespace.
func (a *accessors) find(name QName) (at int, found bool) {
	if at, found = a.of[name]; !found && name.Space == "" {
		at, found = a.local[name.Local]
	}
	return at, found
}

// parts compares a call or its result.
func (c *encodedChecker) parts(call *ElementDecl, n *DocumentNode, path string) {
	if c.isEncoded(n, path) {
		c.accessors(call.Type, n, path, true)
	}
}

// accessors compares those of a struct, in any order unless it is that of parts.
func (c *encodedChecker) accessors(t *TypeDef, n *DocumentNode, path string, ordered bool) {
	c.noText(n, path)
	a := c.accessorsOf(t)
	count := make([]int, len(a.list))
	last := 0
	for _, kid := range n.Children {
		at, found := a.find(kid.Name)
		if !found {
			if !a.open {
				c.fail(kid, path, "%s is not declared", kid.Name)
			}
			continue
		}
		if count[at]++; a.most[at] != Unbounded && count[at] == a.most[at]+1 {
			c.fail(kid, path, "%s is too many", kid.Name)
		}
		if ordered && at < last {
			c.fail(kid, path, "%s, which stands before %s", kid.Name, a.list[last].Name)
		}
		last = max(last, at)
		c.value(a.list[at], kid, path+"/"+kid.Name.Local)
	}
}

func (c *encodedChecker) noText(n *DocumentNode, path string) {
	if text := strings.TrimSpace(n.Text); text != "" {
		c.fail(n, path, "text %.40q between elements", text)
	}
}
