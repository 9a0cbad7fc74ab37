// Package code holds what a shape compiles to: the operations that splitting, joining and packing
// run, and for packing what kind of item each of them has.
package code

import (
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/lexical"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// Code is a shape compiled to a linear list of operations. Users hold it as a program.Program,
// which is the same struct under a name that they may use: its fields are unexported here, and
// reached by methods, so that nobody else sees what is in it. It is immutable and may be used
// concurrently.
type Code struct {
	shape *shape.Shape
	ops   []Op
	lits  []byte // with LitRoom more bytes than texts have
	rows  []PlainRow
	plan  plan
	// leads are the bytes that every message of the shape begins with, up to the first slot or
	// item.
	leads    []byte
	encoding shape.Kind // of messages, Text: as it comes
}

// Shape is what the code was compiled from.
func (p *Code) Shape() *shape.Shape { return p.shape }

// Size is about what the code takes in memory, its shape included, in bytes.
func (p *Code) Size() int {
	const node, operation, texts = 96, 80, 3
	return p.shape.Nodes()*node + cap(p.ops)*operation + texts*len(p.shape.Octets())
}

// Leads are the bytes every message of the shape begins with; they must not be changed.
func (p *Code) Leads() []byte { return p.leads }

// Ops are the operations; they must not be changed, nor what the following give.
func (p *Code) Ops() []Op { return p.ops }

// Lits are the texts, one behind the other.
func (p *Code) Lits() []byte { return p.lits }

// Row is the plain row of a column whose operation has its place.
func (p *Code) Row(place int32) *PlainRow { return &p.rows[place] }

// Encoding is that of messages, Text: as it comes.
func (p *Code) Encoding() shape.Kind { return p.encoding }

// Steps are what packing does first at each operation.
func (p *Code) Steps() []Step { return p.plan.steps }

// Places is how many operations have items.
func (p *Code) Places() int { return p.plan.places }

// Signs are those of the places: two shapes are the same up to a place of which they have the same
// sign, as far as packing goes.
func (p *Code) Signs() []uint32 { return p.plan.signs }

// Flat gives the values in the rows of the array whose operation is pc, nil if they have anything
// else.
func (p *Code) Flat(pc int32) []int32 { return p.plan.flat[pc] }

// compiling has room for the operations and texts of programs, while it is not known how many there
// are.
var compiling = sync.Pool{New: func() any { return new(Code) }}

// Compile compiles a shape. It cannot fail: whatever a [shape.Shape] may be can be compiled.
func Compile(s *shape.Shape) *Code {
	room := compiling.Get().(*Code)
	p := &Code{shape: s, ops: room.ops[:0], lits: room.lits[:0]}
	p.node(s.Root())
	p.emit(Op{Code: OpEnd})
	p.lits = append(p.lits, make([]byte, LitRoom)...)
	room.ops, room.lits = p.ops, p.lits
	p.ops, p.lits = slices.Clone(p.ops), slices.Clone(p.lits)
	if clear(room.ops); s.Nodes() <= 4096 { // unless one shape made it large
		compiling.Put(room)
	}
	p.pair()
	p.plan = planPacking(p.ops, p.lits)
	if first := p.ops[0]; first.Code == OpText {
		p.leads = p.lits[first.A:first.B:first.B]
		if p.encoding.IsUTF16() {
			p.leads, _, _ = lexical.Widen(p.encoding, nil, p.leads, false)
		}
	}
	return p
}

func (p *Code) emit(o Op) int {
	p.ops = append(p.ops, o)
	return len(p.ops) - 1
}

func (p *Code) here() int32 { return int32(len(p.ops)) }

// text appends a text, to the operation before if that is a text nobody jumps behind.
func (p *Code) text(t string, joinable bool) {
	from := int32(len(p.lits))
	p.lits = append(p.lits, t...)
	if last := len(p.ops) - 1; joinable && last >= 0 && p.ops[last].Code == OpText && p.ops[last].B == from {
		p.ops[last].B = int32(len(p.lits))
		return
	}
	p.emit(Op{Code: OpText, A: from, B: int32(len(p.lits))})
}

func (p *Code) node(n *shape.Node) { p.nodes([]*shape.Node{n}, false) }

// nodes compiles siblings; joinable reports whether the text before them runs on into them.
func (p *Code) nodes(list []*shape.Node, joinable bool) bool {
	for _, n := range list {
		switch n.Kind {
		case shape.Text:
			p.text(n.Text, joinable)
			joinable = true
		case shape.Value:
			p.emit(Op{Code: OpValue, Type: n.Type, Until: n.Until})
			joinable = false
		case shape.Slot:
			p.emit(Op{Code: OpSlot, A: n.Slot})
			joinable = false
		case shape.Again:
			p.emit(Op{Code: OpAgain, A: n.Slot})
			joinable = false
		case shape.Sequence, shape.Element, shape.Attribute:
			joinable = p.nodes(n.Kids, joinable)
		case shape.Optional:
			at := p.emit(Op{Code: OpMaybe})
			p.node(n.Kids[0])
			p.ops[at].B, p.ops[at].NameEnd = p.here(), p.endsInName(at+1)
			joinable = false
		case shape.Choice:
			p.choice(n)
			joinable = false
		case shape.Array:
			p.array(n)
			joinable = false
		case shape.UTF16LE, shape.UTF16BE:
			p.encoding = n.Kind
			p.node(n.Kids[0])
		}
	}
	return joinable
}

func (p *Code) choice(n *shape.Node) {
	at := p.emit(Op{Code: OpChoice})
	for 1<<p.ops[at].Bits < len(n.Kids) {
		p.ops[at].Bits++
	}
	jumps := make([]int, len(n.Kids))
	alts := make([]Alternative, len(n.Kids))
	for i, k := range n.Kids {
		start := p.here()
		p.node(k)
		jumps[i] = p.emit(Op{Code: OpJump})
		alts[i] = Alternative{PC: start, NameEnd: p.endsInName(int(start))}
	}
	for _, j := range jumps {
		p.ops[j].A = p.here()
	}
	p.ops[at].Alts = alts
}

func (p *Code) array(n *shape.Node) {
	if number := n.Column(); number != nil {
		at := p.emit(Op{Code: OpColumn, Type: number.Type, Until: number.Until, A: -1, Min: n.Min, Max: n.Max})
		p.columnRow(n.Kids[0])
		p.emit(Op{Code: OpEnd})
		p.ops[at].B = p.here()
		return
	}
	at := p.emit(Op{Code: OpRows, Min: n.Min, Max: n.Max, Fixed: n.Fixed()})
	p.node(n.Kids[0])
	p.emit(Op{Code: OpNext, A: int32(at)})
	p.ops[at].B, p.ops[at].NameEnd = p.here(), p.endsInName(at+1)
}

func (p *Code) columnRow(row *shape.Node) {
	from := len(p.ops)
	p.node(row)
	for i := range p.ops[from:] {
		if o := &p.ops[from+i]; o.Code == OpValue {
			o.Code = OpNumber
		}
	}
}

// pair notes which texts follow values that surely end where these begin, and by which texts guards
// decide.
func (p *Code) pair() {
	for i := range p.ops {
		o := &p.ops[i]
		switch o.Code {
		case OpMaybe, OpRows:
			o.Lead = p.leadAt(i + 1)
			if body := &p.ops[i+1]; o.Code == OpRows && body.Code == OpChoice {
				o.Alts, o.Bits = body.Alts, body.Bits
			}
		case OpChoice:
			for k := range o.Alts {
				o.Alts[k].Lead = p.leadAt(int(o.Alts[k].PC))
			}
		case OpValue:
			if lit := p.textAt(i + 1); ends(o.Until, lit) {
				o.A, o.B = p.ops[i+1].A, p.ops[i+1].B
			}
		case OpColumn:
			number := i + 1
			before := p.textAt(number)
			if len(before) > 0 {
				number++
			}
			behind := p.textAt(number + 1)
			if p.ops[number].Code == OpNumber && ends(o.Until, behind) && p.ops[number+2].Code == OpEnd {
				o.A = int32(len(p.rows))
				between := slices.Concat(behind, before)
				p.rows = append(p.rows, PlainRow{before, behind, slices.Grow(between, LitRoom)})
			}
		}
	}
}

func (p *Code) leadAt(pc int) (l Lead) {
	if o := &p.ops[pc]; o.Code == OpText {
		if c := p.ops[pc+1].Code; c != OpText && c != OpAgain && c != OpSlot {
			l = Lead{o.A, o.B}
		}
	}
	return l
}

// textAt gives the text of an operation, nothing for another.
func (p *Code) textAt(pc int) []byte {
	if o := &p.ops[pc]; o.Code == OpText {
		return p.lits[o.A:o.B]
	}
	return nil
}

// ends reports whether the first place where lit stands is the end of a value, if none of it stands
// in the value.
func ends(until shape.Until, lit []byte) bool {
	switch until {
	case shape.UntilTag:
		return len(lit) > 1 && lit[0] == '<' && lit[1] != '!' && lit[1] != '?'
	case shape.UntilQuote:
		return len(lit) > 0 && lit[0] == '"'
	case shape.UntilApostrophe:
		return len(lit) > 0 && lit[0] == '\''
	}
	return false
}

// endsInName reports whether the texts from pc on stop inside a tag, right behind a name: then a
// match must check that the name ends there.
func (p *Code) endsInName(pc int) bool {
	last := byte(' ')
	for ; pc < len(p.ops); pc++ {
		switch o := p.ops[pc]; o.Code {
		case OpText:
			last = p.lits[o.B-1]
		case OpSlot, OpAgain:
			last = 'x'
		case OpMaybe, OpChoice, OpRows, OpColumn:
			return !xmltext.IsNameEnd(last)
		default:
			return false
		}
	}
	return false
}
