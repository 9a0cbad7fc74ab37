package shape

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/bin"
)

const version = 1

// serialize writes a canonical tree (wire-format section 9).
func serialize(root *Node) ([]byte, error) {
	dst := append([]byte{version}, binary.AppendUvarint(nil, uint64(countSlots(root)))...)
	return appendNode(dst, root, 0)
}

func appendNode(dst []byte, n *Node, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, &Error{Code: TooLarge, At: int64(len(dst)), What: fmt.Sprintf("deeper than %d", maxDepth)}
	}
	if len(dst) > maxSerialization {
		what := fmt.Sprintf("longer than %d octets", maxSerialization)
		return nil, &Error{Code: TooLarge, At: int64(len(dst)), What: what}
	}
	dst = append(dst, byte(n.Kind))
	switch n.Kind {
	case Text:
		return bin.AppendBytes(dst, []byte(n.Text)), nil
	case Value:
		return append(dst, byte(n.Type), byte(n.Until)), nil
	case Slot, Again:
		return binary.AppendUvarint(dst, uint64(n.Slot)), nil
	case Array:
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, n.Min), n.Max)
	case Sequence, Element, Attribute, Choice:
		dst = binary.AppendUvarint(dst, uint64(len(n.Kids)))
	}
	var err error
	for _, k := range n.Kids {
		if dst, err = appendNode(dst, k, depth+1); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func invalid(err error) error {
	var own *Error
	var field *bin.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &field):
		return &Error{Code: Invalid, At: field.At, What: "serialization", Err: err}
	}
	return &Error{Code: Invalid, What: "serialization", Err: err}
}

type parser struct {
	cur         bin.Cursor
	text        string // what is parsed, for texts to be cut from
	slots, seen int
	nodes       int
	room        []Node  // for nodes to come
	kidRoom     []*Node // for lists of them
	stack       []*Node // kids of nodes that are being read
}

// fresh makes a node. Nodes are allocated many at a time, but not more than there are bytes for.
func (p *parser) fresh() *Node {
	const most = 64
	if len(p.room) == 0 {
		p.room = make([]Node, min(most, 2+p.cur.Len()/8))
	}
	n := &p.room[0]
	p.room = p.room[1:]
	p.nodes++
	return n
}

// list takes the nodes from the stack that were put there after from.
func (p *parser) list(from int) []*Node {
	n := len(p.stack) - from
	if len(p.kidRoom) < n {
		p.kidRoom = make([]*Node, max(n, min(64, 2+p.cur.Len()/8)))
	}
	kids := p.kidRoom[:n:n]
	copy(kids, p.stack[from:])
	p.kidRoom, p.stack = p.kidRoom[n:], p.stack[:from]
	return kids
}

// kid reads the one node inside another.
func (p *parser) kid(depth int, parent Kind) []*Node {
	from := len(p.stack)
	k := p.node(depth, parent)
	p.stack = append(p.stack, k)
	return p.list(from)
}

func (p *parser) fail(what string) {
	p.cur.Fail(&Error{Code: Invalid, At: p.cur.At(), What: what})
}

// node reads one node below a parent of the given kind (the root: Sequence is allowed there, so its
// parent counts as Array).
func (p *parser) node(depth int, parent Kind) *Node {
	if depth > maxDepth {
		p.cur.Fail(&Error{Code: TooLarge, At: p.cur.At(), What: fmt.Sprintf("deeper than %d", maxDepth)})
	}
	if p.cur.Err() != nil {
		return &Node{}
	}
	n := p.fresh()
	n.Kind = Kind(p.cur.U8())
	switch n.Kind {
	case Text:
		size := len(p.cur.Bytes(maxSerialization))
		if n.Text = p.text[int(p.cur.At())-size : p.cur.At()]; n.Text == "" {
			p.fail("empty text")
		}
	case Value:
		n.Type, n.Until = Type(p.cur.U8()), Until(p.cur.U8())
		if n.Type >= types || n.Until >= untils {
			p.fail(fmt.Sprintf("value of type %d until %d", n.Type, n.Until))
		}
	case Slot:
		if n.Slot = int32(p.cur.Count(MaxSlots)); int(n.Slot) != p.seen {
			p.fail(fmt.Sprintf("slot %d where %d comes next", n.Slot, p.seen))
		}
		p.seen++
	case Again:
		if n.Slot = int32(p.cur.Count(MaxSlots)); int(n.Slot) >= p.seen {
			p.fail(fmt.Sprintf("slot %d stands again before it stands first", n.Slot))
		}
	case Sequence, Element, Attribute, Choice:
		p.kids(n, depth, parent)
	case Array:
		n.Min, n.Max = p.cur.Uvarint(), p.cur.Uvarint()
		n.Kids = p.kid(depth+1, Array)
		p.checkArray(n)
	case Optional:
		n.Kids = p.kid(depth+1, Optional)
	case UTF16LE, UTF16BE:
		if depth > 0 {
			p.fail("encoding below the root")
		}
		n.Kids = p.kid(depth+1, n.Kind)
	default:
		p.fail(fmt.Sprintf("node of unknown kind %d", n.Kind))
	}
	return n
}

func (p *parser) kids(n *Node, depth int, parent Kind) {
	least := 1
	if n.Kind == Sequence || n.Kind == Choice {
		least = 2
	}
	if n.Kind == Sequence && (parent == Sequence || parent == Element || parent == Attribute) {
		p.fail("sequence in a sequence")
	}
	count := p.cur.Count(uint64(p.cur.Len()))
	if p.cur.Err() == nil && count < least {
		p.fail(fmt.Sprintf("%d nodes, at least %d are needed", count, least))
	}
	from := len(p.stack)
	for i := 0; i < count && p.cur.Err() == nil; i++ {
		k := p.node(depth+1, n.Kind)
		if n.Kind != Choice && k.Kind == Text && i > 0 && p.stack[len(p.stack)-1].Kind == Text {
			p.fail("text after text")
		}
		p.stack = append(p.stack, k)
	}
	n.Kids = p.list(from)
}

func (p *parser) checkArray(n *Node) {
	switch {
	case p.cur.Err() != nil:
	case n.Max != 0 && n.Min > n.Max:
		p.fail(fmt.Sprintf("array of %d to %d", n.Min, n.Max))
	case n.Fixed() && (n.Max > maxFixedRows || !takesContent(n.Kids[0])):
		p.fail(fmt.Sprintf("fixed array of %d rows, at most %d, or rows without content", n.Max, maxFixedRows))
	}
}
