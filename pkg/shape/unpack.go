package shape

import (
	"math"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

// Unpacker is the other way of a [Packer]. It allocates nothing once its buffers have grown. Not safe for concurrent use.
type Unpacker struct {
	r      packReader
	out    packWriter // the segment
	start  int        // of it in out
	most   int
	p      *Program
	walk   *position
	memory *Memory
	recall *recall
	time   timeline
	rows   int
	room   int // how many values columns may still announce
	beside []int64
	values []uint64
	arena  []byte // texts that are not in the packed segment as they are
	at     []int32
	leaves []given
	used   int
	flat   [maxFlat]flatItem[given]
	skip   gatherer
	fresh  []fresh
}

// given is a column that was read.
type given struct {
	leaf
	n, next int
	one     bool // all values are the first
	place   int32
}

// Unpack appends the segment behind a packed one to dst; one that is longer than most octets is refused. last tells that it is the last of its part. After an error, of type [Error],
// memory and s are of no use.
func (u *Unpacker) Unpack(dst []byte, p *Program, s *Packing, m *Memory, packed []byte, last bool, most int) ([]byte, error) {
	u.r = packReader{segmentReader{seg: packed}}
	whole := u.r.flag()
	if u.r.flag() {
		m.Reset()
	}
	switch {
	case u.r.err != nil:
		return dst, u.r.err
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
	if last && len(s.at.loops) == 0 && !s.at.text && !s.at.form && u.quick(p) {
		err = u.r.end()
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

func (u *Unpacker) fail(what string) error {
	u.r.fail(what)
	return u.r.err
}

func (u *Unpacker) run(last bool) error {
	w := u.walk
	items := uint64(math.MaxUint64)
	if !last {
		items = u.r.uvarint()
	}
	for u.r.err == nil {
		w.pc = u.p.Steps()[w.pc].at
		if o := &u.p.Ops()[w.pc]; o.code == opNext {
			items = u.rest(o, items)
		}
		o, end := w.enter(u.p)
		if end || !last && items == 0 {
			if !last && items > 0 {
				return u.fail("items beyond the shape")
			}
			if !last {
				u.tail()
			}
			return u.r.end()
		}
		items--
		u.take(o)
		if len(u.out.out)-u.start > u.most {
			return u.fail("segment longer than a fragment")
		}
	}
	return u.r.err
}

// tail ends a segment that others follow.
func (u *Unpacker) tail() {
	used := byte(0)
	if u.out.at >= 0 {
		used = byte(u.out.used)
	}
	u.out.out = append(u.out.out, used)
}

func (u *Unpacker) take(o *op) {
	w, out := u.walk, &u.out
	switch o.code {
	case opValue:
		u.value(o)
	case opSlot:
		k := u.kind(o)
		if out.bits(uint64(k), 1); k == 0 {
			u.textItem(o)
		}
		w.pc++
	case opMaybe:
		k := u.kind(o)
		out.bits(uint64(k), 1)
		if w.pc++; k == 0 {
			w.pc = o.b
		}
	case opChoice:
		if o.bits > maxKindBits {
			u.r.fail("choice of too many")
			return
		}
		k := u.kind(o)
		if int(k) >= len(o.alts) {
			u.r.fail("choice that is none")
			return
		}
		out.bits(uint64(k), uint(o.bits))
		w.pc = o.alts[k].pc
	case opRows:
		u.rowsItem(o)
	case opColumn:
		u.group(o)
	}
}

func (u *Unpacker) textItem(o *op) {
	b := u.string(o, subText)
	u.out.uvarint(uint64(len(b)) + 1)
	u.out.out = append(u.out.out, b...)
}

// group copies a group of an array of numbers.
func (u *Unpacker) group(o *op) {
	r := &u.r.segmentReader
	if len(u.walk.loops) == 0 {
		at := r.at
		more, ok := r.group(o.typ.scaled())
		u.endGroup(o, r.seg[at:r.at], more, ok)
		return
	}
	octets := u.string(o, subOctets)
	inner := segmentReader{seg: octets}
	more, ok := inner.group(o.typ.scaled())
	u.endGroup(o, octets, more, ok && inner.at == len(octets))
}

func (u *Unpacker) endGroup(o *op, octets []byte, more, ok bool) {
	if !ok {
		u.r.fail("group of an array of numbers")
		return
	}
	u.out.out = append(u.out.out, octets...)
	if !more {
		u.walk.pc = o.b
	}
}

// rowsItem writes the header of a group of rows, as full as it can be.
func (u *Unpacker) rowsItem(o *op) {
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
		if rows > uint64(u.most)*maxGroup || rows == 0 && count > 0 {
			u.r.fail("rows of an array")
			return
		}
		l.at, l.open = int(rows), count&1 == 1
	} else if l.at == 0 {
		u.r.fail("array goes on behind its last row")
		return
	}
	g := min(l.at, maxGroup)
	l.at -= g
	l.more = l.at > 0 || l.open
	octet := byte(g)
	if l.more {
		octet |= maxGroup + 1
	}
	u.out.out = append(u.out.out, octet)
	if g == 0 {
		w.loops = w.loops[:n-1]
		w.pc = o.b
		return
	}
	l.left = uint64(g)
	w.pc = o.b - 1 // its opNext
}

func (u *Unpacker) value(o *op) {
	w, out := u.walk, &u.out
	switch {
	case o.typ.pieces():
		u.piece(o)
		return
	case w.text || o.typ == TypeText || o.typ == TypeString || o.typ == TypeOpen:
		w.text = false
		u.textItem(o)
	case o.typ.numeric():
		u.putNumber(o)
	case o.typ == TypeBoolean:
		k := u.kind(o)
		if k > 2 {
			u.r.fail("boolean that is none")
		}
		out.bits(uint64(k), 2)
		w.text = k == 2
	case o.typ == TypeUUID:
		k := u.kind(o)
		out.out = append(out.out, byte(k))
		if w.text = k == 0; !w.text {
			out.out = append(out.out, u.string(o, subOctets)...)
		}
	case o.typ == TypeDateTime:
		k := u.kind(o)
		out.out = append(out.out, byte(k))
		if w.text = k == 0; !w.text {
			if int(k) >= instantForms {
				u.r.fail("form of a dateTime")
				return
			}
			out.zigzag(u.number(o, subNumber))
			if instantOf(byte(k)).zone == zoneOffset {
				out.zigzag(u.number(o, subMinutes))
			}
		}
	}
	if !w.text {
		w.pc++
	}
}

// piece writes a value in one piece.
func (u *Unpacker) piece(o *op) {
	if u.walk.form {
		u.r.fail("value in pieces")
		return
	}
	k := u.kind(o)
	u.out.out = append(u.out.out, byte(k))
	octets := u.string(o, subOctets)
	kind := uint64(pieceLast)
	if k > 0xff {
		kind = pieceTextLast
	}
	u.out.uvarint(uint64(len(octets))<<2 | kind)
	u.out.out = append(u.out.out, octets...)
	u.walk.pc++
}

func (u *Unpacker) putNumber(o *op) {
	out := &u.out
	k := u.kind(o)
	if k == 0 {
		out.uvarint(0)
		u.walk.text = true
		return
	}
	m := u.number(o, subNumber)
	if m >= maxMantissa || m <= -maxMantissa {
		u.r.fail("number out of range")
		return
	}
	z, how := bin.Zigzag(m), int(k)-1
	switch {
	case !o.typ.scaled():
		out.uvarint(z + 1)
		return
	case how < 7:
		out.uvarint(z<<3 + uint64(how) + 1)
		return
	}
	out.uvarint(z<<3 + 7 + 1)
	out.out = append(out.out, byte(how))
	switch {
	case how <= maxScale, how >= firstWord && how < firstWord+len(floatWords):
	case how >= withExponent && how <= withExponent+maxScale:
		e := u.number(o, subMinutes)
		if !(exponent{byte(e & 15), bin.Unzigzag(uint64(e >> 4))}).valid() {
			u.r.fail("exponent out of range")
			return
		}
		out.out = append(out.out, byte(e&15))
		out.uvarint(uint64(e >> 4))
	default:
		u.r.fail("number of that form")
	}
}
