package style

import (
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
)

// Of returns the style in which a shape is written whose description has this own shape.
func Of(own, s *shape.Shape) *Style {
	var o, m detector
	o.read(own.Root(), 0)
	m.read(s.Root(), 0)
	found := &Style{prefixes: make([]string, own.Slots())}
	for i := range found.prefixes {
		found.prefixes[i] = m.prefix(o.spaces[int32(i)])
	}
	found.line, found.unit = m.indents()
	if len(found.Text()) > MaxText {
		return &Style{}
	}
	return found
}

// detector is what a shape says of its style.
type detector struct {
	spaces   map[int32]string    // namespaces of slots
	declared map[string][]string // prefixes by namespace
	used     map[string]int      // elements by their prefix
	gaps     [3]string           // white space before the first element of a depth
}

// prefix is the one that most elements have of those that are declared for a namespace.
func (r *detector) prefix(space string) (best string) {
	most := -1
	for _, p := range r.declared[space] {
		if n := r.used[p]; n > most {
			most, best = n, p
		}
	}
	return best
}

// indents are the line end before elements, and what each level adds to it.
func (r *detector) indents() (line, unit string) {
	line, first := cutLine(r.gaps[1])
	if _, second := cutLine(r.gaps[2]); line != "" && first == "" {
		return line, second
	}
	return line, first
}

func (r *detector) read(n *shape.Node, depth int) {
	if r.spaces == nil {
		r.spaces, r.declared, r.used = map[int32]string{}, map[string][]string{}, map[string]int{}
	}
	switch n.Kind {
	case shape.Element:
		r.used[prefixOf(n.Kids)]++
		depth++
	case shape.Attribute:
		r.declaration(n.Kids)
		return
	}
	for i, k := range n.Kids {
		if k.Kind == shape.Element && depth < len(r.gaps) && r.gaps[depth] == "" && i > 0 {
			before := n.Kids[i-1].Text
			r.gaps[depth] = before[len(strings.TrimRight(before, " \t\r\n")):]
		}
		r.read(k, depth)
	}
}

// prefixOf is the prefix of an element; "" without one.
func prefixOf(kids []*shape.Node) string {
	if len(kids) > 1 && kids[0].Text == "<" && (kids[1].Kind == shape.Slot || kids[1].Kind == shape.Again) {
		return generated
	}
	name := strings.TrimPrefix(kids[0].Text, "<")
	if end := strings.IndexAny(name, " \t\r\n/>"); end >= 0 {
		name = name[:end]
	}
	prefix, _, found := strings.Cut(name, ":")
	if !found {
		return ""
	}
	return prefix
}

// declaration notes the namespace that an attribute declares, if it does.
func (r *detector) declaration(kids []*shape.Node) {
	text := strings.TrimLeft(kids[0].Text, " \t\r\n")
	switch {
	case len(kids) == 3 && text == "xmlns:":
		space := strings.Trim(kids[2].Text, `="'`)
		r.spaces[kids[1].Slot] = space
		r.declared[space] = append(r.declared[space], generated)
	case len(kids) == 1 && strings.HasPrefix(text, "xmlns"):
		name, space, _ := strings.Cut(text, "=")
		space = strings.Trim(space, ` "'`)
		prefix := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(name), "xmlns"), ":")
		r.declared[space] = append(r.declared[space], prefix)
	}
}
