package columns

import (
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
)

// gatherer takes a segment apart into the columns of its places (wire-format section 11.2).
type gatherer struct {
	seg    items.Reader
	walk   *position
	p      *code.Code
	events []firstPlace
	leaves []leaf
	used   int     // of leaves
	at     []int32 // by place and sub: 1 + the index in leaves, of those in this segment
	flat   [code.MaxFlat]flatItem[leaf]
	items  uint64
	bits   bool // the segment has bits
	plain  bool // the segment has something that a packed one cannot say
}

// firstPlace is a value outside arrays, with its kind if it has one, or a column, at its first
// place in the segment.
type firstPlace struct {
	num    int64 // a kind alone, too
	at     uint32
	size   uint32 // with at: where in the segment a text or bytes are
	pc     int32
	leaf   int32 // -1: a value outside arrays
	kind   uint16
	sub    sub
	kinded bool // kind comes first
}

// leaf is the column of a place inside arrays.
func (g *gatherer) leaf(pc int32, s sub) *leaf {
	at := &g.at[int(pc)*int(subs)+int(s)]
	if *at == 0 {
		if g.used == len(g.leaves) {
			g.leaves = append(g.leaves, leaf{})
		}
		l := &g.leaves[g.used]
		l.reset()
		g.events = append(g.events, firstPlace{pc: pc, sub: s, leaf: int32(g.used)})
		g.used++
		*at = int32(g.used)
	}
	return &g.leaves[*at-1]
}

func (g *gatherer) kind(v uint16) {
	if len(g.walk.loops) > 0 {
		g.leaf(g.walk.pc, subKind).addKind(v)
		return
	}
	g.events = append(g.events, firstPlace{pc: g.walk.pc, sub: subKind, leaf: -1, num: int64(v)})
}

func (g *gatherer) number(s sub, v int64) {
	if len(g.walk.loops) > 0 {
		g.leaf(g.walk.pc, s).addNumber(v)
		return
	}
	g.event(s).num = v
}

func (g *gatherer) string(s sub, b []byte) {
	if len(g.walk.loops) > 0 {
		g.leaf(g.walk.pc, s).addString(b)
		return
	}
	e := g.event(s)
	e.at, e.size = uint32(g.seg.At-len(b)), uint32(len(b))
}

// event begins the event of a value outside arrays, which the kind before belongs to.
func (g *gatherer) event(s sub) *firstPlace {
	n := len(g.events)
	if n > 0 && g.events[n-1].sub == subKind && g.events[n-1].pc == g.walk.pc {
		e := &g.events[n-1]
		e.kind, e.kinded, e.sub = uint16(e.num), true, s
		return e
	}
	g.events = append(g.events, firstPlace{pc: g.walk.pc, sub: s, leaf: -1})
	return &g.events[n]
}

// rowCount begins the count of an array's rows in this segment; what stands around the array says
// where it goes.
func (g *gatherer) rowCount(l walkLoop) {
	if len(g.walk.loops) > 0 {
		l.at = len(g.leaf(g.walk.pc, subNumber).nums)
	} else {
		l.at = len(g.events)
	}
	g.number(subNumber, 0)
	g.walk.loops = append(g.walk.loops, l)
}

// count is the value that holds the rows of an array, innermost or not.
func (g *gatherer) count(l *walkLoop) *int64 {
	if len(g.walk.loops) > 1 {
		return &g.leaves[g.at[int(l.pc)*int(subs)+int(subNumber)]-1].nums[l.at]
	}
	return &g.events[l.at].num
}
