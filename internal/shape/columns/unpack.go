package columns

import (
	"math"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// Unpack appends the segment behind a packed one to dst; one that is longer than most bytes is
// refused. last tells that it is the last of its part. After an error, of type [shape.Error],
// memory and s are of no use.
func (u *Unpacker) Unpack(
	dst []byte, of *program.Program, s *Packing, m *Memory, packed []byte, last bool, most int,
) ([]byte, error) {
	p := (*code.Code)(of)
	u.r = packReader{items.Reader{Seg: packed}}
	whole := u.r.flag()
	if u.r.flag() {
		m.Reset()
	}
	switch {
	case u.r.Err != nil:
		return dst, u.r.Err
	case !whole:
		if packed[0] > 0b10 || len(packed)-1 > most {
			return dst, u.fail("segment that is not packed")
		}
		if !last && !s.at.lost {
			u.skip.begin(p, &s.at, packed[1:], last)
			u.skip.gather(packed[1:], last)
		}
		return append(dst, packed[1:]...), nil
	case s.at.lost:
		return dst, u.fail("packed segment behind one that was not understood")
	case m.full():
		return dst, u.fail("memory over its limit")
	}
	u.p, u.walk, u.memory, u.recall = p, &s.at, m, m.of(p)
	u.out.begin(dst)
	u.start, u.most = len(dst), most
	u.time, u.rows, u.room, u.used = timeline{}, 0, 8*most, 0
	u.beside, u.arena = nil, slices.Grow(u.arena[:0], most)
	if n := len(p.Ops()) * int(subs); len(u.at) < n {
		u.at = make([]int32, n)
	}
	for i := range s.at.loops {
		s.at.loops[i].at = -1
	}
	before := m.weight
	var err error
	u.Bill.open(len(p.Ops()), u.r.used())
	if last && u.Bill == nil && !m.careful && len(s.at.loops) == 0 && !s.at.text && !s.at.form && u.quick(p) {
		err = u.r.End()
	} else {
		err = u.run(last)
	}
	m.forgo(p, before)
	for i := range u.used {
		g := &u.leaves[i]
		u.at[g.place] = 0
		if err == nil && g.next < g.n {
			err = u.fail("column of which values are left over")
		}
	}
	return u.out.out, err
}

func (u *Unpacker) run(last bool) error {
	w := u.walk
	items := uint64(math.MaxUint64)
	if !last {
		items = u.r.Uvarint()
	}
	for u.r.Err == nil {
		w.pc = u.p.Steps()[w.pc].At
		if o := &u.p.Ops()[w.pc]; o.Code == code.OpNext {
			items = u.rest(o, items)
			u.Bill.charge(o.A, u.r.used())
		}
		o, end := w.enter(u.p)
		if end || !last && items == 0 {
			if !last && items > 0 {
				return u.fail("items beyond the shape")
			}
			if !last {
				u.tail()
			}
			return u.r.End()
		}
		items--
		pc := w.pc
		u.take(o)
		u.Bill.charge(pc, u.r.used())
		if len(u.out.out)-u.start > u.most {
			return u.fail("segment longer than a fragment")
		}
	}
	return u.r.Err
}

// tail ends a segment that others follow.
func (u *Unpacker) tail() {
	used := byte(0)
	if u.out.at >= 0 {
		used = byte(u.out.used)
	}
	u.out.out = append(u.out.out, used)
}

func (u *Unpacker) take(o *code.Op) {
	w, out := u.walk, &u.out
	switch o.Code {
	case code.OpValue:
		u.value(o)
	case code.OpSlot:
		k := u.kind(o)
		if out.bits(uint64(k), 1); k == 0 {
			u.textItem(o)
		}
		w.pc++
	case code.OpMaybe:
		k := u.kind(o)
		out.bits(uint64(k), 1)
		if w.pc++; k == 0 {
			w.pc = o.B
		}
	case code.OpChoice:
		if o.Bits > code.MaxKindBits {
			u.r.Fail("choice of too many")
			return
		}
		k := u.kind(o)
		if int(k) >= len(o.Alts) {
			u.r.Fail("choice that is none")
			return
		}
		out.bits(uint64(k), uint(o.Bits))
		w.pc = o.Alts[k].PC
	case code.OpRows:
		u.rowsItem(o)
	case code.OpColumn:
		u.group(o)
	}
}

func (u *Unpacker) textItem(o *code.Op) {
	b := u.string(o, subText)
	u.out.uvarint(uint64(len(b)) + 1)
	u.out.out = append(u.out.out, b...)
}

// group copies a group of an array of numbers.
func (u *Unpacker) group(o *code.Op) {
	if len(u.walk.loops) == 0 {
		octets, more, ok := u.r.group(o.Type.Scaled())
		u.endGroup(o, octets, more, ok)
		return
	}
	octets := u.string(o, subOctets)
	inner := items.Reader{Seg: octets}
	more, ok := inner.Group(o.Type.Scaled())
	u.endGroup(o, octets, more, ok && inner.At == len(octets))
}

func (u *Unpacker) endGroup(o *code.Op, octets []byte, more, ok bool) {
	if !ok {
		u.r.Fail(noGroup)
		return
	}
	u.out.out = append(u.out.out, octets...)
	if !more {
		u.walk.pc = o.B
	}
}

// rowsItem writes the header of a group of rows, as full as it can be.
func (u *Unpacker) rowsItem(o *code.Op) {
	w := u.walk
	n := len(w.loops)
	if n == 0 || w.loops[n-1].pc != w.pc {
		w.loops = append(w.loops, walkLoop{pc: w.pc, at: -1})
		n++
	}
	l := &w.loops[n-1]
	if l.at < 0 {
		outer := w.loops
		w.loops = w.loops[:n-1]
		count := uint64(u.number(o, subNumber))
		w.loops = outer
		rows := count >> 1
		if rows > uint64(u.most)*items.MaxGroup || rows == 0 && count > 0 {
			u.r.Fail("rows of an array")
			return
		}
		l.at, l.open = int(rows), count&1 == 1
	} else if l.at == 0 {
		u.r.Fail("array goes on behind its last row")
		return
	}
	g := min(l.at, items.MaxGroup)
	l.at -= g
	l.more = l.at > 0 || l.open
	octet := byte(g)
	if l.more {
		octet |= items.MaxGroup + 1
	}
	u.out.out = append(u.out.out, octet)
	if g == 0 {
		w.loops = w.loops[:n-1]
		w.pc = o.B
		return
	}
	l.left = uint64(g)
	w.pc = o.B - 1 // its code.OpNext
}

func (u *Unpacker) value(o *code.Op) {
	w, out := u.walk, &u.out
	switch {
	case o.Type.Pieces():
		u.piece(o)
		return
	case w.text || o.Type == shape.TypeText || o.Type == shape.TypeString || o.Type == shape.TypeOpen:
		w.text = false
		u.textItem(o)
	case o.Type.Numeric():
		u.putNumber(o)
	case o.Type == shape.TypeBoolean:
		k := u.kind(o)
		if k > 2 {
			u.r.Fail("boolean that is none")
		}
		out.bits(uint64(k), 2)
		w.text = k == 2
	case o.Type == shape.TypeUUID:
		k := u.kind(o)
		out.out = append(out.out, byte(k))
		if w.text = k == 0; !w.text {
			out.out = append(out.out, u.string(o, subOctets)...)
		}
	case o.Type == shape.TypeDateTime:
		k := u.kind(o)
		out.out = append(out.out, byte(k))
		if w.text = k == 0; !w.text {
			if int(k) >= lexical.DateTimeForms {
				u.r.Fail("form of a dateTime")
				return
			}
			out.zigzag(u.number(o, subNumber))
			if lexical.DateTimeOf(byte(k)).Zone == lexical.ZoneOffset {
				out.zigzag(u.number(o, subMinutes))
			}
		}
	}
	if !w.text {
		w.pc++
	}
}

// piece writes a value in one piece.
func (u *Unpacker) piece(o *code.Op) {
	if u.walk.form {
		u.r.Fail("value in pieces")
		return
	}
	k := u.kind(o)
	u.out.out = append(u.out.out, byte(k))
	octets := u.string(o, subOctets)
	kind := uint64(items.PieceLast)
	if k > 0xff {
		kind = items.PieceTextLast
	}
	u.out.uvarint(uint64(len(octets))<<2 | kind)
	u.out.out = append(u.out.out, octets...)
	u.walk.pc++
}

func (u *Unpacker) putNumber(o *code.Op) {
	out := &u.out
	k := u.kind(o)
	if k == 0 {
		out.uvarint(0)
		u.walk.text = true
		return
	}
	m := u.number(o, subNumber)
	if m >= lexical.MaxMantissa || m <= -lexical.MaxMantissa {
		u.r.Fail("number out of range")
		return
	}
	z, how := bin.Zigzag(m), int(k)-1
	switch {
	case !o.Type.Scaled():
		out.uvarint(z + 1)
		return
	case how < 7:
		out.uvarint(z<<3 + uint64(how) + 1)
		return
	}
	out.uvarint(z<<3 + 7 + 1)
	out.out = append(out.out, byte(how))
	switch {
	case how <= lexical.MaxScale, how >= lexical.FirstWord && how < lexical.FirstWord+len(lexical.FloatWords):
	case how >= lexical.WithExponent && how <= lexical.WithExponent+lexical.MaxScale:
		e := u.number(o, subMinutes)
		if !(lexical.Exponent{Form: byte(e & 15), X: bin.Unzigzag(uint64(e >> 4))}).Valid() {
			u.r.Fail("exponent out of range")
			return
		}
		out.out = append(out.out, byte(e&15))
		out.uvarint(uint64(e >> 4))
	default:
		u.r.Fail("number of that form")
	}
}
