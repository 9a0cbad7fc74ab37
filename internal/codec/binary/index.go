package binary

import (
	"slices"

	"github.com/hhfr/hhfr/internal/shape/program"
)

// leadIndex finds the pages whose leading text a message begins with: a radix tree over these
// texts, so that the time does not depend on how many shapes are known.
type leadIndex struct{ root leadNode }

// leadNode is a place in the tree: label leads to it from the one above.
type leadNode struct {
	label string
	pages []*bookPage // those whose text ends here, the last that fitted first
	kids  []*leadNode // by the first byte of their labels
}

func (n *leadNode) kid(c byte) (int, bool) {
	return slices.BinarySearchFunc(n.kids, c, func(k *leadNode, c byte) int { return int(k.label[0]) - int(c) })
}

// add puts a page where its text ends.
func (x *leadIndex) add(p *bookPage) {
	n, rest := &x.root, p.key
	for len(rest) > 0 {
		i, ok := n.kid(rest[0])
		if !ok {
			n.kids = slices.Insert(n.kids, i, &leadNode{label: rest, pages: []*bookPage{p}})
			return
		}
		k := n.kids[i]
		common := 0
		for common < len(k.label) && common < len(rest) && k.label[common] == rest[common] {
			common++
		}
		if common < len(k.label) {
			upper := &leadNode{label: k.label[:common], kids: []*leadNode{k}}
			k.label = k.label[common:]
			n.kids[i] = upper
			k = upper
		}
		n, rest = k, rest[common:]
	}
	n.pages = slices.Insert(n.pages, 0, p)
}

// remove takes a page out.
func (x *leadIndex) remove(p *bookPage) { x.root.remove(p, p.key) }

func (n *leadNode) remove(p *bookPage, rest string) {
	if rest == "" {
		n.pages = slices.DeleteFunc(n.pages, func(q *bookPage) bool { return q == p })
		return
	}
	i, ok := n.kid(rest[0])
	if !ok || len(rest) < len(n.kids[i].label) || rest[:len(n.kids[i].label)] != n.kids[i].label {
		return
	}
	k := n.kids[i]
	k.remove(p, rest[len(k.label):])
	switch {
	case len(k.pages) > 0:
	case len(k.kids) == 0:
		n.kids = slices.Delete(n.kids, i, i+1)
	case len(k.kids) == 1:
		below := k.kids[0]
		below.label = k.label + below.label
		n.kids[i] = below
	}
}

// first moves a page to the front of its place.
func (x *leadIndex) first(p *bookPage) {
	n, rest := &x.root, p.key
	for len(rest) > 0 {
		i, ok := n.kid(rest[0])
		if !ok || len(n.kids[i].label) > len(rest) {
			return
		}
		n = n.kids[i]
		rest = rest[len(n.label):]
	}
	if i := slices.Index(n.pages, p); i > 0 {
		copy(n.pages[1:i+1], n.pages[:i])
		n.pages[0] = p
	}
}

// find appends the programs of the pages whose texts the message begins with, longer texts first,
// up to maxTries.
func (x *leadIndex) find(dst []*program.Program, beginning []byte) []*program.Program {
	return x.root.find(dst, beginning)
}

func (n *leadNode) find(dst []*program.Program, rest []byte) []*program.Program {
	if len(rest) > 0 {
		if i, ok := n.kid(rest[0]); ok {
			if k := n.kids[i]; len(rest) >= len(k.label) && string(rest[:len(k.label)]) == k.label {
				dst = k.find(dst, rest[len(k.label):])
			}
		}
	}
	for _, p := range n.pages[:min(len(n.pages), maxTries-len(dst))] {
		dst = append(dst, p.program)
	}
	return dst
}

// goesOn reports whether a page has a text that is longer, and has this beginning.
func (x *leadIndex) goesOn(beginning []byte) bool {
	n := &x.root
	for {
		if len(beginning) == 0 {
			return len(n.kids) > 0
		}
		i, ok := n.kid(beginning[0])
		if !ok {
			return false
		}
		n = n.kids[i]
		if len(beginning) < len(n.label) {
			return n.label[:len(beginning)] == string(beginning)
		}
		if string(beginning[:len(n.label)]) != n.label {
			return false
		}
		beginning = beginning[len(n.label):]
	}
}
