package columns

import (
	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// begin begins a segment.
func (g *gatherer) begin(p *code.Code, w *position, segment []byte, last bool) {
	g.p, g.walk, g.events, g.used, g.items, g.plain = p, w, g.events[:0], 0, 0, false
	g.bits = false
	if n := len(p.Ops()) * int(subs); cap(g.at) < n {
		g.at = make([]int32, n)
	} else {
		g.at = g.at[:n]
	}
	g.seg.Reset(segment, last)
	for i := range w.loops {
		w.loops[i].at = -1
	}
}

// gather reads what is left of the segment; false: it has something that a packed segment cannot
// say, or is malformed, and then the walk is lost.
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

// usedBits is how many bits of the last bit byte were read.
func (g *gatherer) usedBits() byte {
	if !g.bits {
		return 0
	}
	return 8 - g.seg.Left
}

func (g *gatherer) run(last bool) bool {
	w := g.walk
	for {
		w.pc = g.p.Steps()[w.pc].At
		if o := &g.p.Ops()[w.pc]; o.Code == code.OpNext {
			g.rest(o)
		}
		o, end := w.enter(g.p)
		if end {
			return g.seg.End() == nil
		}
		bits := o.IsBits() && !w.text
		if !g.seg.Has(bits) {
			return !last && g.seg.End() == nil
		}
		g.items++
		g.bits = g.bits || bits
		if !g.take(o) || g.seg.Err != nil {
			return false
		}
	}
}

func (g *gatherer) take(o *code.Op) bool {
	w := g.walk
	switch o.Code {
	case code.OpValue:
		return g.value(o)
	case code.OpSlot:
		b := g.seg.Bits(1)
		if g.kind(uint16(b)); b == 0 && !g.text() {
			return false // a prefix in pieces
		}
		w.pc++
	case code.OpMaybe:
		b := g.seg.Bits(1)
		g.kind(uint16(b))
		if w.pc++; b == 0 {
			w.pc = o.B
		}
	case code.OpChoice:
		i := g.seg.Bits(o.Bits)
		if int(i) >= len(o.Alts) {
			return false
		}
		g.plain = g.plain || o.Bits > code.MaxKindBits
		g.kind(uint16(i))
		w.pc = o.Alts[i].PC
	case code.OpRows:
		return g.rows(o)
	case code.OpColumn:
		at := g.seg.At
		more, ok := g.seg.Group(o.Type.Scaled())
		if !ok {
			return false
		}
		octets := g.seg.Seg[at:g.seg.At]
		if len(w.loops) == 0 {
			g.string(subGroup, octets)
		} else {
			g.string(subOctets, octets)
		}
		if !more {
			w.pc = o.B
		}
	}
	return true
}

// text reads a text item; false: the value goes on.
func (g *gatherer) text() bool {
	u := g.seg.Uvarint()
	if u == 0 {
		g.seg.Take(g.seg.Uvarint())
		g.plain = true
		return false
	}
	g.string(subText, g.seg.Take(u-1))
	return true
}

// rows reads the header of a group of rows. The groups of one array in one segment are one count;
// they must be as full as they can be.
func (g *gatherer) rows(o *code.Op) bool {
	w := g.walk
	if n := len(w.loops); n == 0 || w.loops[n-1].pc != w.pc {
		g.rowCount(walkLoop{pc: w.pc, at: -1})
	} else if w.loops[n-1].at < 0 {
		l := w.loops[n-1]
		w.loops = w.loops[:n-1]
		g.rowCount(l)
	} else if last := g.count(&w.loops[n-1]); *last>>1%items.MaxGroup != 0 {
		g.plain = true
	}
	l := &w.loops[len(w.loops)-1]
	octet := g.seg.Octet()
	n := uint64(octet & items.MaxGroup)
	l.more = octet > items.MaxGroup
	count := g.count(l)
	*count = *count&^1 + int64(n)<<1
	if l.more {
		*count |= 1
	}
	if n == 0 {
		g.plain = g.plain || *count > 0
		w.loops = w.loops[:len(w.loops)-1]
		w.pc = o.B
		return true
	}
	l.left = n
	w.pc = o.B - 1 // its code.OpNext
	return true
}

func (g *gatherer) value(o *code.Op) bool {
	w, r := g.walk, &g.seg
	switch {
	case o.Type.Pieces():
		return g.pieces()
	case w.text || o.Type == shape.TypeText || o.Type == shape.TypeString || o.Type == shape.TypeOpen:
		if w.text = !g.text(); !w.text {
			w.pc++
		}
		return true
	case o.Type.Numeric():
		w.text = !g.takeNumber(o)
	case o.Type == shape.TypeBoolean:
		b := r.Bits(2)
		g.kind(uint16(b))
		if w.text = b == 2; b > 2 {
			return false
		}
	case o.Type == shape.TypeUUID:
		form := r.Octet()
		g.kind(uint16(form))
		if w.text = form == 0; !w.text {
			g.string(subOctets, r.Take(16))
		}
	case o.Type == shape.TypeDateTime:
		form := r.Octet()
		g.kind(uint16(form))
		if w.text = form == 0; !w.text {
			if int(form) >= lexical.DateTimeForms {
				return false
			}
			g.number(subNumber, bin.Unzigzag(r.Uvarint()))
			if lexical.DateTimeOf(form).Zone == lexical.ZoneOffset {
				m := bin.Unzigzag(r.Uvarint())
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
		form = uint16(r.Octet())
		if r.At == len(r.Seg) {
			g.plain, w.form = true, true
			return true
		}
	}
	u := r.Uvarint()
	octets := r.Take(u >> 2)
	kind := u & 3
	last := kind == items.PieceLast || kind == items.PieceTextLast
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
func (g *gatherer) takeNumber(o *code.Op) bool {
	r := &g.seg
	u := r.Uvarint()
	if u == 0 {
		g.kind(0)
		return false
	}
	how := byte(0)
	if u--; o.Type.Scaled() {
		if how = byte(u & 7); how == 7 {
			how = r.Octet()
			g.plain = g.plain || how < 7
		}
		u >>= 3
	}
	m := bin.Unzigzag(u)
	g.plain = g.plain || m >= lexical.MaxMantissa || m <= -lexical.MaxMantissa
	g.kind(1 + uint16(how))
	g.number(subNumber, m)
	switch {
	case how <= lexical.MaxScale:
	case how < lexical.FirstWord:
		form, x := r.Octet(), r.Uvarint()
		e := lexical.Exponent{Form: form, X: bin.Unzigzag(x)}
		g.plain = g.plain || how < lexical.WithExponent || how > lexical.WithExponent+lexical.MaxScale || !e.Valid()
		g.number(subMinutes, int64(x<<4|uint64(form)))
	default:
		g.plain = g.plain || int(how) >= lexical.FirstWord+len(lexical.FloatWords)
	}
	return true
}
