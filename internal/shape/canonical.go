package shape

// canonical copies a tree into canonical form: texts merged, empty ones gone, sequences unfolded.
// Slots keep their numbers.
func canonical(n *Node) *Node {
	c := *n
	c.Kids = nil
	switch n.Kind {
	case Sequence, Element, Attribute:
		for _, k := range n.Kids {
			c.Kids = appendCanonical(c.Kids, canonical(k))
		}
		if n.Kind == Sequence && len(c.Kids) == 1 {
			return c.Kids[0]
		}
	case Array, Optional, Choice, UTF16LE, UTF16BE:
		for _, k := range n.Kids {
			c.Kids = append(c.Kids, canonical(k))
		}
	}
	return &c
}

func appendCanonical(kids []*Node, k *Node) []*Node {
	switch {
	case k.Kind == Sequence:
		for _, g := range k.Kids {
			kids = appendCanonical(kids, g)
		}
		return kids
	case k.Kind == Text && k.Text == "":
		return kids
	case k.Kind == Text && len(kids) > 0 && kids[len(kids)-1].Kind == Text:
		kids[len(kids)-1] = &Node{Kind: Text, Text: kids[len(kids)-1].Text + k.Text}
		return kids
	}
	return append(kids, k)
}

// renumberSlots gives slots the numbers 0, 1, 2… in preorder of their first appearance, and makes
// that one the Slot node and all others Again.
func renumberSlots(root *Node) {
	numbers := map[int32]int32{}
	walk(root, func(n *Node) {
		if n.Kind != Slot && n.Kind != Again {
			return
		}
		number, seen := numbers[n.Slot]
		if !seen {
			number = int32(len(numbers))
			numbers[n.Slot] = number
			n.Kind = Slot
		} else {
			n.Kind = Again
		}
		n.Slot = number
	})
}

func countSlots(root *Node) (count int) {
	walk(root, func(n *Node) {
		if n.Kind == Slot {
			count++
		}
	})
	return count
}

func walk(n *Node, visit func(*Node)) {
	visit(n)
	for _, k := range n.Kids {
		walk(k, visit)
	}
}
