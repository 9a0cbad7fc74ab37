package shape

import (
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/xmltext"
)

// Program is a shape compiled to a linear list of operations, for [Splitter] and [Joiner]. It is immutable and may be used concurrently.
type Program struct {
	shape *Shape
	ops   []op
	lits  []byte // with litRoom more octets than texts have
	rows  []plainRow
	pack  packPlan
	// leads are the octets that every message of the shape begins with, up to the first slot or item.
	leads    []byte
	encoding Kind // of messages, Text: as it comes
}

// litRoom is how many octets of a text are copied at once.
const litRoom = 32

// plainRow is the row of a column that is a text, a number and a text at which the number surely ends.
type plainRow struct{ before, behind, between []byte } // between is behind and before, with a capacity of litRoom more

type opcode uint8

const (
	opText   opcode = iota // match lits[a:b]
	opSlot                 // item: prefix of slot a
	opAgain                // match the prefix of slot a
	opValue                // item: value of typ up to until; lits[a:b] is the text behind it if it surely ends there, and is not looked for otherwise
	opMaybe                // item: one bit; the body follows, b is behind it
	opChoice               // item: index; alts[a:b] are the bodies' places, c bits
	opJump                 // go to a
	opRows                 // array: item or count; the body follows, b is behind its opNext
	opNext                 // end of a row: back to a
	opColumn               // column: rows begin behind it with static operations, opNumber, static operations; b is behind their end; a is their place in rows, -1 if they are not plain
	opNumber               // the number of a column's row
	opEnd                  // end of the message, or of a column's row
)

type op struct {
	code     opcode
	typ      Type
	until    Until
	nameEnd  bool // opMaybe, opRows, opJump as alternative: the guard ends in a name, which must end there
	fixed    bool
	bits     uint8
	a, b     int32
	lead     lead // opMaybe, opRows
	min, max uint64
	alts     []alternative // opChoice, and opRows of one
}

// lead is the text lits[a:b] by which the operations behind a guard are known if they begin with it and no prefix follows; else it is empty.
type lead struct{ a, b int32 }

type alternative struct {
	pc      int32
	nameEnd bool
	lead    lead
}

// Shape is what the program was compiled from.
func (p *Program) Shape() *Shape { return p.shape }

// Size is about what the program takes in memory, its shape included, in octets.
func (p *Program) Size() int {
	const node, operation, texts = 96, 80, 3
	return p.shape.Nodes()*node + cap(p.ops)*operation + texts*len(p.shape.Octets())
}

// Leads are the octets every message of the shape begins with; they must not be changed.
func (p *Program) Leads() []byte { return p.leads }

// Ops are the operations; they must not be changed, nor what the following give.
func (p *Program) Ops() []op { return p.ops }

// Lits are the texts, one behind the other.
func (p *Program) Lits() []byte { return p.lits }

// Row is the plain row of a column whose operation has its place.
func (p *Program) Row(place int32) *plainRow { return &p.rows[place] }

// Encoding is that of messages, Text: as it comes.
func (p *Program) Encoding() Kind { return p.encoding }

// Steps are what packing does first at each operation.
func (p *Program) Steps() []step { return p.pack.steps }

// Places is how many operations have items.
func (p *Program) Places() int { return p.pack.places }

// Flat gives the values in the rows of the array whose operation is pc, nil if they have anything else.
func (p *Program) Flat(pc int32) []int32 { return p.pack.flat[pc] }

// compiling has room for the operations and texts of programs, while it is not known how many there are.
var compiling = sync.Pool{New: func() any { return new(Program) }}

// Compile makes a program. It cannot fail: whatever a [Shape] may be can be compiled.
func Compile(s *Shape) *Program {
	room := compiling.Get().(*Program)
	p := &Program{shape: s, ops: room.ops[:0], lits: room.lits[:0]}
	p.node(s.Root())
	p.emit(op{code: opEnd})
	p.lits = append(p.lits, make([]byte, litRoom)...)
	room.ops, room.lits = p.ops, p.lits
	p.ops, p.lits = slices.Clone(p.ops), slices.Clone(p.lits)
	if clear(room.ops); s.Nodes() <= 4096 { // unless one shape made it large
		compiling.Put(room)
	}
	p.pair()
	p.pack = planPacking(p.ops)
	if first := p.ops[0]; first.code == opText {
		p.leads = p.lits[first.a:first.b:first.b]
		if p.encoding.isUTF16() {
			p.leads, _, _ = widenText(p.encoding, nil, p.leads, false)
		}
	}
	return p
}

func (p *Program) emit(o op) int {
	p.ops = append(p.ops, o)
	return len(p.ops) - 1
}

func (p *Program) here() int32 { return int32(len(p.ops)) }

// text appends a text, to the operation before if that is a text nobody jumps behind.
func (p *Program) text(t string, joinable bool) {
	from := int32(len(p.lits))
	p.lits = append(p.lits, t...)
	if last := len(p.ops) - 1; joinable && last >= 0 && p.ops[last].code == opText && p.ops[last].b == from {
		p.ops[last].b = int32(len(p.lits))
		return
	}
	p.emit(op{code: opText, a: from, b: int32(len(p.lits))})
}

func (p *Program) node(n *Node) { p.nodes([]*Node{n}, false) }

// nodes compiles siblings; joinable tells whether the text before them runs on into them.
func (p *Program) nodes(list []*Node, joinable bool) bool {
	for _, n := range list {
		switch n.Kind {
		case Text:
			p.text(n.Text, joinable)
			joinable = true
		case Value:
			p.emit(op{code: opValue, typ: n.Type, until: n.Until})
			joinable = false
		case Slot:
			p.emit(op{code: opSlot, a: n.Slot})
			joinable = false
		case Again:
			p.emit(op{code: opAgain, a: n.Slot})
			joinable = false
		case Sequence, Element, Attribute:
			joinable = p.nodes(n.Kids, joinable)
		case Optional:
			at := p.emit(op{code: opMaybe})
			p.node(n.Kids[0])
			p.ops[at].b, p.ops[at].nameEnd = p.here(), p.endsInName(at+1)
			joinable = false
		case Choice:
			p.choice(n)
			joinable = false
		case Array:
			p.array(n)
			joinable = false
		case UTF16LE, UTF16BE:
			p.encoding = n.Kind
			p.node(n.Kids[0])
		}
	}
	return joinable
}

func (p *Program) choice(n *Node) {
	at := p.emit(op{code: opChoice})
	for 1<<p.ops[at].bits < len(n.Kids) {
		p.ops[at].bits++
	}
	jumps := make([]int, len(n.Kids))
	alts := make([]alternative, len(n.Kids))
	for i, k := range n.Kids {
		start := p.here()
		p.node(k)
		jumps[i] = p.emit(op{code: opJump})
		alts[i] = alternative{pc: start, nameEnd: p.endsInName(int(start))}
	}
	for _, j := range jumps {
		p.ops[j].a = p.here()
	}
	p.ops[at].alts = alts
}

func (p *Program) array(n *Node) {
	if number := n.column(); number != nil {
		at := p.emit(op{code: opColumn, typ: number.Type, until: number.Until, a: -1, min: n.Min, max: n.Max})
		p.columnRow(n.Kids[0])
		p.emit(op{code: opEnd})
		p.ops[at].b = p.here()
		return
	}
	at := p.emit(op{code: opRows, min: n.Min, max: n.Max, fixed: n.fixed()})
	p.node(n.Kids[0])
	p.emit(op{code: opNext, a: int32(at)})
	p.ops[at].b, p.ops[at].nameEnd = p.here(), p.endsInName(at+1)
}

func (p *Program) columnRow(row *Node) {
	from := len(p.ops)
	p.node(row)
	for i := range p.ops[from:] {
		if o := &p.ops[from+i]; o.code == opValue {
			o.code = opNumber
		}
	}
}

// pair notes which texts follow values that surely end where these begin, and by which texts guards decide.
func (p *Program) pair() {
	for i := range p.ops {
		o := &p.ops[i]
		switch o.code {
		case opMaybe, opRows:
			o.lead = p.leadAt(i + 1)
			if body := &p.ops[i+1]; o.code == opRows && body.code == opChoice {
				o.alts, o.bits = body.alts, body.bits
			}
		case opChoice:
			for k := range o.alts {
				o.alts[k].lead = p.leadAt(int(o.alts[k].pc))
			}
		case opValue:
			if lit := p.textAt(i + 1); ends(o.until, lit) {
				o.a, o.b = p.ops[i+1].a, p.ops[i+1].b
			}
		case opColumn:
			number := i + 1
			before := p.textAt(number)
			if len(before) > 0 {
				number++
			}
			behind := p.textAt(number + 1)
			if p.ops[number].code == opNumber && ends(o.until, behind) && p.ops[number+2].code == opEnd {
				o.a = int32(len(p.rows))
				between := slices.Concat(behind, before)
				p.rows = append(p.rows, plainRow{before, behind, slices.Grow(between, litRoom)})
			}
		}
	}
}

func (p *Program) leadAt(pc int) (l lead) {
	if o := &p.ops[pc]; o.code == opText {
		if c := p.ops[pc+1].code; c != opText && c != opAgain && c != opSlot {
			l = lead{o.a, o.b}
		}
	}
	return l
}

// textAt gives the text of an operation, nothing for another.
func (p *Program) textAt(pc int) []byte {
	if o := &p.ops[pc]; o.code == opText {
		return p.lits[o.a:o.b]
	}
	return nil
}

// ends tells whether the first place where lit stands is the end of a value, if none of it stands in the value.
func ends(until Until, lit []byte) bool {
	switch until {
	case UntilTag:
		return len(lit) > 1 && lit[0] == '<' && lit[1] != '!' && lit[1] != '?'
	case UntilQuote:
		return len(lit) > 0 && lit[0] == '"'
	case UntilApostrophe:
		return len(lit) > 0 && lit[0] == '\''
	}
	return false
}

// endsInName tells whether the texts from pc on stop inside a tag, right behind a name: then a match must check that the name ends there.
func (p *Program) endsInName(pc int) bool {
	last := byte(' ')
	for ; pc < len(p.ops); pc++ {
		switch o := p.ops[pc]; o.code {
		case opText:
			last = p.lits[o.b-1]
		case opSlot, opAgain:
			last = 'x'
		case opMaybe, opChoice, opRows, opColumn:
			return !xmltext.IsNameEnd(last)
		default:
			return false
		}
	}
	return false
}
