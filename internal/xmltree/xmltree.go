// Package xmltree has documents as trees of elements and texts, read once, for programs that walk
// them.
package xmltree

import (
	"errors"
	"io"

	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// ParsedDocument has the nodes of a document in the order of their beginnings, the root first. That
// is no element; the document's is its child.
type ParsedDocument struct{ Nodes []TreeNode }

// TreeNode is an element, a piece of text, or the root. Where a node is named, 0 stands for none.
type TreeNode struct {
	Local, Space string
	Text         string // of a piece of text
	Attrs        []TreeAttr
	IsText       bool
	Up           int
	First, Last  int // children
	Next, Before int
}

// TreeAttr is an attribute that declares no namespace.
type TreeAttr struct{ Local, Space, Value string }

// Parse makes a tree. Comments and processing instructions are left out. Errors are those of
// [pull.Parser]: a document is well-formed, and has no document type declaration.
func Parse(doc []byte) (*ParsedDocument, error) {
	t := &ParsedDocument{Nodes: make([]TreeNode, 1, 1+len(doc)/32)}
	var p pull.Parser
	p.Reset(doc)
	for at := 0; ; {
		found, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return nil, err
		}
		switch found {
		case pull.StartTag:
			space, local := p.Name()
			n := TreeNode{Local: string(local), Space: string(space)}
			for _, a := range p.Attrs() {
				n.Attrs = append(n.Attrs, TreeAttr{string(a.Local), string(a.Space), string(a.Value)})
			}
			at = t.add(at, n)
		case pull.EndTag:
			at = t.Nodes[at].Up
		case pull.Chars:
			if last := t.Nodes[at].Last; last > 0 && t.Nodes[last].IsText {
				t.Nodes[last].Text += string(p.Text())
			} else {
				t.add(at, TreeNode{IsText: true, Text: string(p.Text())})
			}
		}
	}
}

func (t *ParsedDocument) add(up int, n TreeNode) (at int) {
	at = len(t.Nodes)
	n.Up, n.Before = up, t.Nodes[up].Last
	if t.Nodes = append(t.Nodes, n); n.Before > 0 {
		t.Nodes[n.Before].Next = at
	} else {
		t.Nodes[up].First = at
	}
	t.Nodes[up].Last = at
	return at
}

// After is the node that begins after another one, below top; 0: none.
func (t *ParsedDocument) After(at, top int) int {
	if first := t.Nodes[at].First; first > 0 {
		return first
	}
	for at != top && t.Nodes[at].Next == 0 {
		at = t.Nodes[at].Up
	}
	if at == top {
		return 0
	}
	return t.Nodes[at].Next
}
