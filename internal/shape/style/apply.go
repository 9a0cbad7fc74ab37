package style

import (
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
)

// Apply returns an own shape in the style. Errors are of type [shape.Error], or say that the style
// adds too much.
func (s *Style) Apply(own *shape.Shape) (*shape.Shape, error) {
	a := restyler{Style: s}
	root := a.node(own.Root(), 0)
	if a.added > maxAdded {
		return nil, errStyle
	}
	return shape.New(root)
}

type restyler struct {
	*Style
	added int // bytes of white space
}

// node copies a node; depth is how many elements are around it.
func (a *restyler) node(n *shape.Node, depth int) *shape.Node {
	c := *n
	switch n.Kind {
	case shape.Element:
		c.Kids = a.list(n.Kids, depth+1)
	case shape.Sequence, shape.Attribute:
		c.Kids = a.list(n.Kids, depth)
	default:
		c.Kids = make([]*shape.Node, len(n.Kids))
		for i, k := range n.Kids {
			c.Kids[i] = a.node(k, depth)
			if k.Kind != shape.Element {
				continue
			}
			if gap := a.gap(depth); gap != nil && depth > 0 {
				c.Kids[i] = &shape.Node{Kind: shape.Sequence, Kids: []*shape.Node{gap, c.Kids[i]}}
			}
		}
	}
	return &c
}

// gap is the white space before a tag; nil: there is none.
func (a *restyler) gap(depth int) *shape.Node {
	if a.line == "" || a.added > maxAdded {
		return nil
	}
	text := a.line + strings.Repeat(a.unit, depth)
	a.added += len(text)
	return textNode(text)
}

func textNode(text string) *shape.Node { return &shape.Node{Kind: shape.Text, Text: text} }

// list copies nodes that follow each other, with texts for slots, and white space before elements
// and before an end tag that follows an element.
func (a *restyler) list(kids []*shape.Node, depth int) (out []*shape.Node) {
	bare := false // the name that goes on has lost its prefix
	for i, k := range kids {
		switch k.Kind {
		case shape.Slot, shape.Again:
			prefix, ok := a.prefix(k)
			if bare = ok && prefix == ""; bare {
				out = undeclare(out)
				continue
			}
			if ok {
				k = textNode(prefix)
			}
		case shape.Text:
			text := k.Text
			if bare {
				text = strings.TrimPrefix(text, ":")
			}
			if i > 0 && strings.HasPrefix(text, "</") && kids[i-1].Kind != shape.Value {
				if gap := a.gap(depth - 1); gap != nil {
					out = append(out, gap)
				}
			}
			k, bare = textNode(text), false
		case shape.Element:
			if gap := a.gap(depth); gap != nil && depth > 0 {
				out = append(out, gap)
			}
			k = a.node(k, depth)
		default:
			k = a.node(k, depth)
		}
		out = append(out, k)
	}
	return out
}

// prefix is what stands for a slot; false: the slot itself.
func (a *restyler) prefix(n *shape.Node) (prefix string, ok bool) {
	if int(n.Slot) >= len(a.prefixes) || a.prefixes[n.Slot] == generated {
		return "", false
	}
	return a.prefixes[n.Slot], true
}

// undeclare makes the declaration of a prefix one of the default namespace.
func undeclare(out []*shape.Node) []*shape.Node {
	if n := len(out) - 1; n >= 0 && out[n].Kind == shape.Text {
		if text, found := strings.CutSuffix(out[n].Text, "xmlns:"); found {
			out[n] = textNode(text + "xmlns")
		}
	}
	return out
}
