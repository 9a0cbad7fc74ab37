package shape

import (
	"fmt"
	"io"
	"strings"
)

// Print writes a shape as a tree for people: a line for each node, indented below the one that it
// belongs to.
func Print(w io.Writer, s *Shape) error { return PrintNoted(w, s, func(int) string { return "" }) }

// PrintNoted is [Print] with a note behind each place of the shape, which are counted from 0: a
// value, prefix, optional part, choice or array; not the numbers of an array of them.
func PrintNoted(w io.Writer, s *Shape, note func(place int) string) error {
	p := treePrinter{w: w, note: note}
	p.node(s.Root(), 0)
	return p.err
}

type treePrinter struct {
	w   io.Writer
	err error // the first one

	note   func(place int) string
	places int
	column bool // within an array of numbers
}

func (p *treePrinter) line(depth int, format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, "%s%s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
	}
}

func (p *treePrinter) node(n *Node, depth int) {
	note := p.noteOf(n)
	switch n.Kind {
	case Text:
		p.line(depth, "%q", n.Text)
	case Value:
		p.line(depth, "value %s%s", n.Type, note)
	case Slot:
		p.line(depth, "prefix %d%s", n.Slot, note)
	case Again:
		p.line(depth, "prefix %d again", n.Slot)
	case Array:
		p.line(depth, "array of %s%s", rows(n), note)
	default:
		p.line(depth, "%s%s", kindNames[n.Kind], note)
	}
	within := p.column
	p.column = within || n.Kind == Array && n.Column() != nil
	for _, k := range n.Kids {
		p.node(k, depth+1)
	}
	p.column = within
}

// noteOf is the note behind a place; empty for other nodes.
func (p *treePrinter) noteOf(n *Node) string {
	switch n.Kind {
	case Value, Slot, Optional, Choice, Array:
		if !p.column {
			p.places++
			return p.note(p.places - 1)
		}
	}
	return ""
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
