package shape

import (
	"fmt"
	"io"
	"strings"
)

// Print writes a shape as a tree for people: a line for each node, indented below the one that it
// belongs to.
func Print(w io.Writer, s *Shape) error {
	p := treePrinter{w: w}
	p.node(s.Root(), 0)
	return p.err
}

type treePrinter struct {
	w   io.Writer
	err error // the first one
}

func (p *treePrinter) line(depth int, format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, "%s%s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
	}
}

func (p *treePrinter) node(n *Node, depth int) {
	switch n.Kind {
	case Text:
		p.line(depth, "%q", n.Text)
	case Value:
		p.line(depth, "value %s", n.Type)
	case Slot:
		p.line(depth, "prefix %d", n.Slot)
	case Again:
		p.line(depth, "prefix %d again", n.Slot)
	case Array:
		p.line(depth, "array of %s", rows(n))
	default:
		p.line(depth, "%s", kindNames[n.Kind])
	}
	for _, k := range n.Kids {
		p.node(k, depth+1)
	}
}

func rows(n *Node) string {
	switch {
	case n.Fixed():
		return fmt.Sprint(n.Min)
	case n.Max == 0:
		return fmt.Sprintf("%d or more", n.Min)
	}
	return fmt.Sprintf("%d to %d", n.Min, n.Max)
}

var kindNames = map[Kind]string{
	Sequence: "sequence", Element: "element", Attribute: "attribute", Optional: "optional", Choice: "one of",
	UTF16LE: "UTF-16, lower byte first", UTF16BE: "UTF-16, higher byte first",
}
