package shape

import "github.com/hhfr/hhfr/internal/bin"

// gatherer takes a segment apart into the columns of its places (wire-format section 11.2).
type gatherer struct {
	seg    segmentReader
	walk   *position
	p      *Program
	events []event
	leaves []leaf
	used   int     // of leaves
	at     []int32 // by place and sub: 1 + the index in leaves, of those in this segment
	flat   [maxFlat]flatItem[leaf]
	items  uint64
	bits   bool // the segment has bits
	plain  bool // the segment has something that a packed one cannot say
}

// event is a value outside arrays, with its kind if it has one, or a column, at its first place in the segment.
type event struct {
	num    int64 // a kind alone, too
	at     uint32
	size   uint32 // with at: where in the segment a text or octets are
	pc     int32
	leaf   int32 // -1: a value outside arrays
	kind   uint16
	sub    sub
	kinded bool // kind comes first
}

// begin begins a segment.
func (g *gatherer) begin(p *Program, w *position, segment []byte, last bool) {
	g.p, g.walk, g.events, g.used, g.items, g.plain = p, w, g.events[:0], 0, 0, false
	g.bits = false
	if n := len(p.Ops()) * int(subs); cap(g.at) < n {
		g.at = make([]int32, n)
	} else {
		g.at = g.at[:n]
	}
	g.seg = newSegmentReader(segment, last)
	for i := range w.loops {
		w.loops[i].at = -1
	}
}

// gather reads what is left of the segment; false: it has something that a packed segment cannot say, or is malformed, and then the walk is lost.
func (g *gatherer) gather(segment []byte, last bool) bool {
	w := g.walk
	ok := g.run(last) && (last || len(segment) > 0)
	if ok && !last && segment[len(segment)-1] != g.usedBits() {
		g.plain = true
	}
	for i := range g.events {
		if e := &g.events[i]; e.leaf >= 0 {
			g.at[int(e.pc)*int(subs)+int(e.sub)] = 0
		}
	}
	if !ok {
		w.lost = true
	}
	return ok && !g.plain
}

// usedBits is how many bits of the last bit octet were read.
func (g *gatherer) usedBits() byte {
	if !g.bits {
		return 0
	}
	return 8 - g.seg.left
}

func (g *gatherer) run(last bool) bool {
	w := g.walk
	for {
		w.pc = g.p.Steps()[w.pc].at
		if o := &g.p.Ops()[w.pc]; o.code == opNext {
			g.rest(o)
		}
		o, end := w.enter(g.p)
		if end {
			return g.seg.end() == nil
		}
		bits := o.isBits() && !w.text
		if !g.seg.has(bits) {
			return !last && g.seg.end() == nil
		}
		g.items++
		g.bits = g.bits || bits
		if !g.take(o) || g.seg.err != nil {
			return false
		}
	}
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
		g.events = append(g.events, event{pc: pc, sub: s, leaf: int32(g.used)})
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
	g.events = append(g.events, event{pc: g.walk.pc, sub: subKind, leaf: -1, num: int64(v)})
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
	e.at, e.size = uint32(g.seg.at-len(b)), uint32(len(b))
}

// event begins the event of a value outside arrays, which the kind before belongs to.
func (g *gatherer) event(s sub) *event {
	n := len(g.events)
	if n > 0 && g.events[n-1].sub == subKind && g.events[n-1].pc == g.walk.pc {
		e := &g.events[n-1]
		e.kind, e.kinded, e.sub = uint16(e.num), true, s
		return e
	}
	g.events = append(g.events, event{pc: g.walk.pc, sub: s, leaf: -1})
	return &g.events[n]
}

func (g *gatherer) take(o *op) bool {
	w := g.walk
	switch o.code {
	case opValue:
		return g.value(o)
	case opSlot:
		b := g.seg.bits(1)
		if g.kind(uint16(b)); b == 0 && !g.text() {
			return false // a prefix in pieces
		}
		w.pc++
	case opMaybe:
		b := g.seg.bits(1)
		g.kind(uint16(b))
		if w.pc++; b == 0 {
			w.pc = o.b
		}
	case opChoice:
		i := g.seg.bits(o.bits)
		if int(i) >= len(o.alts) {
			return false
		}
		g.plain = g.plain || o.bits > maxKindBits
		g.kind(uint16(i))
		w.pc = o.alts[i].pc
	case opRows:
		return g.rows(o)
	case opColumn:
		at := g.seg.at
		more, ok := g.seg.group(o.typ.scaled())
		if !ok {
			return false
		}
		octets := g.seg.seg[at:g.seg.at]
		if len(w.loops) == 0 {
			g.string(subGroup, octets)
		} else {
			g.string(subOctets, octets)
		}
		if !more {
			w.pc = o.b
		}
	}
	return true
}

// text reads a text item; false: the value goes on.
func (g *gatherer) text() bool {
	u := g.seg.uvarint()
	if u == 0 {
		g.seg.take(g.seg.uvarint())
		g.plain = true
		return false
	}
	g.string(subText, g.seg.take(u-1))
	return true
}

// group passes over a group of an array of numbers.
func (r *segmentReader) group(scaled bool) (more, ok bool) {
	h := r.uvarint()
	n := h >> 1
	more = h&1 == 1
	if n == 0 || n > maxColumn {
		return more, n == 0 && !more && r.err == nil
	}
	head := r.octet()
	bits := uint64(head & 0x7f)
	if scaled {
		bits += uint64(r.octet() >> 5)
	}
	if head > 0x7f {
		for rares := r.uvarint(); rares > 0 && r.err == nil; rares-- {
			r.uvarint()
			r.take(r.uvarint() - 1)
		}
	}
	r.take(uint64(bin.PackedLen(int(n), int(bits))))
	return more, r.err == nil
}

// rows reads the header of a group of rows. The groups of one array in one segment are one count; they must be as full as they can be.
func (g *gatherer) rows(o *op) bool {
	w := g.walk
	if n := len(w.loops); n == 0 || w.loops[n-1].pc != w.pc {
		g.rowCount(walkLoop{pc: w.pc, at: -1})
	} else if w.loops[n-1].at < 0 {
		l := w.loops[n-1]
		w.loops = w.loops[:n-1]
		g.rowCount(l)
	} else if last := g.count(&w.loops[n-1]); *last>>1%maxGroup != 0 {
		g.plain = true
	}
	l := &w.loops[len(w.loops)-1]
	octet := g.seg.octet()
	n := uint64(octet & maxGroup)
	l.more = octet > maxGroup
	count := g.count(l)
	*count = *count&^1 + int64(n)<<1
	if l.more {
		*count |= 1
	}
	if n == 0 {
		g.plain = g.plain || *count > 0
		w.loops = w.loops[:len(w.loops)-1]
		w.pc = o.b
		return true
	}
	l.left = n
	w.pc = o.b - 1 // its opNext
	return true
}

// rowCount begins the count of an array's rows in this segment; what stands around the array says where it goes.
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

func (g *gatherer) value(o *op) bool {
	w, r := g.walk, &g.seg
	switch {
	case o.typ.pieces():
		return g.pieces()
	case w.text || o.typ == TypeText || o.typ == TypeString || o.typ == TypeOpen:
		if w.text = !g.text(); !w.text {
			w.pc++
		}
		return true
	case o.typ.numeric():
		w.text = !g.takeNumber(o)
	case o.typ == TypeBoolean:
		b := r.bits(2)
		g.kind(uint16(b))
		if w.text = b == 2; b > 2 {
			return false
		}
	case o.typ == TypeUUID:
		form := r.octet()
		g.kind(uint16(form))
		if w.text = form == 0; !w.text {
			g.string(subOctets, r.take(16))
		}
	case o.typ == TypeDateTime:
		form := r.octet()
		g.kind(uint16(form))
		if w.text = form == 0; !w.text {
			if int(form) >= instantForms {
				return false
			}
			g.number(subNumber, bin.Unzigzag(r.uvarint()))
			if instantOf(form).zone == zoneOffset {
				m := bin.Unzigzag(r.uvarint())
				g.plain = g.plain || m != int64(int32(m))
				g.number(subMinutes, m)
			}
		}
	}
	if !w.text {
		w.pc++
	}
	return true
}

// pieces reads a value that is one piece, or an item of one in several.
func (g *gatherer) pieces() bool {
	w, r := g.walk, &g.seg
	form := uint16(0)
	if !w.form {
		form = uint16(r.octet())
		if r.at == len(r.seg) {
			g.plain, w.form = true, true
			return true
		}
	}
	u := r.uvarint()
	octets := r.take(u >> 2)
	kind := u & 3
	last := kind == pieceLast || kind == pieceTextLast
	if w.form || !last {
		g.plain, w.form = true, !last
	} else {
		g.kind(form | uint16(kind>>1)<<8)
		g.string(subOctets, octets)
	}
	if last {
		w.pc++
	}
	return true
}

// takeNumber reads a number; false: a text item follows in its place.
func (g *gatherer) takeNumber(o *op) bool {
	r := &g.seg
	u := r.uvarint()
	if u == 0 {
		g.kind(0)
		return false
	}
	how := byte(0)
	if u--; o.typ.scaled() {
		if how = byte(u & 7); how == 7 {
			how = r.octet()
			g.plain = g.plain || how < 7
		}
		u >>= 3
	}
	m := bin.Unzigzag(u)
	g.plain = g.plain || m >= maxMantissa || m <= -maxMantissa
	g.kind(1 + uint16(how))
	g.number(subNumber, m)
	switch {
	case how <= maxScale:
	case how < firstWord:
		form, x := r.octet(), r.uvarint()
		g.plain = g.plain || how < withExponent || how > withExponent+maxScale || !exponent{form, bin.Unzigzag(x)}.valid()
		g.number(subMinutes, int64(x<<4|uint64(form)))
	default:
		g.plain = g.plain || int(how) >= firstWord+len(floatWords)
	}
	return true
}
