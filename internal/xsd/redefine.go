package xsd

import (
	"slices"
)

// redefine puts a component in place of the one that is known by its name.
func (s *Set) redefine(what globalName, c *DocumentNode, d *schemaDocument) {
	g := &declaration{node: c, doc: d, redefines: s.globals[what]}
	kind := c.Name.Local
	step := stepOf(c)
	switch {
	case g.redefines == nil:
		g.wrong = problemAt(c.Place, "redefine of %s %s, which is not declared in %s", kind, what.name,
			c.parent.Attr("schemaLocation"))
	case g.redefines.node.Name != c.Name:
		g.wrong = problemAt(c.Place, "redefine of %s %s, which is a %s", kind, what.name,
			g.redefines.node.Name.Local)
	case what.kind == "type" && (step == nil || !d.means(step, "base", what.name)):
		g.wrong = problemAt(c.Place, "redefine of %s %s, which does not begin with what it was", kind, what.name)
	case what.kind != "type":
		g.wrong = d.ownReferences(c, what)
	}
	if g.wrong != nil {
		s.note(g.wrong)
	}
	s.globals[what] = g
	s.heads, s.bases = nil, nil
}

// means reports whether an attribute names a component.
func (d *schemaDocument) means(n *DocumentNode, attribute string, is QName) bool {
	name, err := d.name(n, n.Attr(attribute))
	return err == nil && (&TypeDef{Name: is}).isName(name)
}

// ownReferences are the places where a group is redefined with what it was: at most one, which
// occurs once.
func (d *schemaDocument) ownReferences(c *DocumentNode, what globalName) *Problem {
	var found []*DocumentNode
	for todo := slices.Clone(c.Children); len(todo) > 0; todo = todo[1:] {
		n := todo[0]
		if _, refers := n.Get("ref"); refers && n.Name == c.Name && d.means(n, "ref", what.name) {
			found = append(found, n)
		}
		todo = append(todo, n.Children...)
	}
	once := &Particle{Min: 1, Max: 1}
	switch {
	case len(found) > 1:
		return problemAt(found[1].Place, "redefine of %s %s: it has what it was twice", c.Name.Local, what.name)
	case len(found) == 1 && (!occurs(once, found[0]) || once.Min != 1 || once.Max != 1):
		return problemAt(found[0].Place, "redefine of %s %s: what it was occurs once", c.Name.Local, what.name)
	}
	return nil
}

// original is the type that another one redefines.
func (s *Set) original(t *TypeDef) *TypeDef {
	g := t.redefines
	was := &TypeDef{Name: t.Name, Place: g.node.Place, redefines: g.redefines}
	s.define(was, g.node, g.doc)
	return was
}

// refers finds a global component by a reference to it: inside what redefines it, the original.
// around are those of its kind that the reference stands in, the innermost last.
func (s *Set) refers(what globalName, around []*declaration) *declaration {
	g := s.globals[what]
	if len(around) == 0 {
		return g
	}
	in := around[len(around)-1]
	if in.redefines != nil && in.node.Attr("name") == what.name.Local && in.doc.target == what.name.Space {
		return in.redefines
	}
	return g
}
