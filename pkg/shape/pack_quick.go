package shape

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/bin"
)

// pen writes single bits between octets, as a packWriter does. It is passed by value, so that a loop has it in registers.
type pen struct {
	at   int // place of the bit octet, which is written when it is full, and by lift
	acc  uint8
	used uint8 // bits in acc
}

func (w *packWriter) pen() (pen, []byte) {
	p := pen{at: w.at, used: uint8(w.used)}
	if p.at >= 0 {
		p.acc = w.out[p.at]
	}
	return p, w.out
}

func (w *packWriter) lift(p pen, out []byte) {
	if p.at >= 0 {
		out[p.at] = p.acc
	}
	w.out, w.at, w.used = out, p.at, uint(p.used)
}

// bit appends v, which is 0 or 1.
func (p pen) bit(out []byte, v uint8) (pen, []byte) {
	if p.used == 8 {
		if p.at >= 0 {
			out[p.at] = p.acc
		}
		return pen{at: len(out), acc: v, used: 1}, append(out, 0)
	}
	p.acc |= v << (p.used & 7)
	p.used++
	return p, out
}

// pair appends the two bits of a boolean.
func (p pen) pair(out []byte, v uint8) (pen, []byte) {
	if p.used <= 6 {
		p.acc |= v << p.used
		p.used += 2
		return p, out
	}
	p, out = p.bit(out, v)
	return p.bit(out, 0)
}

// quick packs the values outside arrays that a last segment begins with, as far as they have nothing unusual: each is read, compared with what is remembered, and written at one look. It gives where
// it stopped, before the first that is another or at the end of both. What it wrote cannot be taken back.
func (e *packer) quick(p *Program, pc int32, seg []byte) (stop int32, from int, bits eye, done bool) {
	places, steps, t := e.recall.places, p.Steps(), &e.time
	pen, out := e.w.pen()
	bit, left := uint8(0), uint8(0)
walk:
	for at := from; ; from = at {
		s := &steps[pc]
		pc = s.at
		if s.item <= itemBits {
			if s.item <= itemEnd {
				done = s.item == itemEnd && at == len(seg) && bit == 0
				break
			}
			was, had := bit, left
			if left == 0 {
				if at == len(seg) {
					break
				}
				bit, left = seg[at], 8
				at++
			}
			v := bit & 1
			bit >>= 1
			left--
			switch s.item {
			case itemMaybe:
				pen, out = pen.bit(out, v)
				if pc++; v == 0 {
					pc = s.other
				}
				continue
			case itemSlot:
				if v == 0 {
					bit, left = was, had
					break walk
				}
				pen, out = pen.bit(out, 1)
				pc++
				continue
			}
			if left == 0 {
				if at == len(seg) {
					bit, left = was, had
					break
				}
				bit, left = seg[at], 8
				at++
			}
			v |= bit & 1 << 1
			bit >>= 1
			left--
			if v > 1 {
				bit, left = was, had
				break
			}
			pl := &places[s.place]
			if uint16(v) == pl.kind {
				pen, out = pen.bit(out, 1)
			} else {
				pl.kind = uint16(v)
				pen, out = pen.bit(out, 0)
				pen, out = pen.bit(out, v)
				pen, out = pen.bit(out, 0)
			}
			pc++
			continue
		}
		if at == len(seg) {
			break
		}
		u := uint64(seg[at])
		at++
		kind := uint16(u)
		if s.item >= itemUUID {
			if u == 0 && s.item < itemPieces || at == len(seg) { // a text, or nothing
				break
			}
			u = uint64(seg[at])
			if s.item > itemUUID {
				at++
			}
		}
		if u > 0x7f && s.item != itemUUID {
			n := 0
			if u, n = uvarintAt(seg, at-1); n == 0 {
				break
			}
			at += n - 1
		}
		pl := &places[s.place]
		var v int64
		var b []byte
		switch s.item {
		case itemText:
			if u--; u > uint64(len(seg)-at) { // also one in pieces, of which the first has 0
				break walk
			}
			b = seg[at : at+int(u)]
			at += len(b)
			if bytes.Equal(b, pl.octets) {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = pen.bit(out, 0)
				e.w.lift(pen, out)
				e.text(b, pl.octets)
				e.memory.keep(pl, b)
				pen, out = e.w.pen()
			}
			pc++
			continue
		case itemInt:
			if u--; u >= maxZigzag {
				break walk
			}
			v = bin.Unzigzag(u)
			pen, out = pen.bit(out, 1)
		case itemDecimal:
			u--
			kind = uint16(u&7) + 1
			if u >>= 3; kind == 8 || u >= maxZigzag {
				break walk
			}
			v = bin.Unzigzag(u)
			if kind == pl.kind {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = e.quickKind(pen, out, pl, kind, 8)
			}
		case itemTime:
			if int(kind) >= instantForms {
				break walk
			}
			minutes, zoned := int64(0), instantOf(byte(kind)).zone == zoneOffset
			if zoned {
				m, n := uvarintAt(seg, at)
				minutes = bin.Unzigzag(m)
				if at += n; n == 0 || minutes != int64(int32(minutes)) {
					break walk
				}
			}
			v = bin.Unzigzag(u)
			if kind == pl.kind {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = e.quickKind(pen, out, pl, kind, 8)
			}
			want := pl.predict(t, true)
			pl.note(v, t, true)
			if v == want {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = pen.bit(out, 0)
				out = appendUvarint(out, bin.Zigzag(v-want))
			}
			if !zoned {
			} else if minutes == int64(pl.minutes) {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = pen.bit(out, 0)
				out = appendUvarint(out, bin.Zigzag(minutes))
				pl.minutes = int32(minutes)
			}
			pc++
			continue
		case itemUUID:
			if len(seg)-at < 16 {
				break walk
			}
			b = seg[at : at+16]
			at += 16
			if kind == pl.kind {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = e.quickKind(pen, out, pl, kind, 8)
			}
			if bytes.Equal(b, pl.octets) {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = pen.bit(out, 0)
				out = append(out, b...)
				e.memory.keep16(pl, b)
			}
			pc++
			continue
		case itemPieces:
			piece := u & 3
			if u >>= 2; u > uint64(len(seg)-at) || piece != pieceLast && piece != pieceTextLast {
				break walk
			}
			b = seg[at : at+int(u)]
			at += len(b)
			kind |= uint16(piece>>1) << 8
			if kind == pl.kind {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = e.quickKind(pen, out, pl, kind, 9)
			}
			if bytes.Equal(b, pl.octets) {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = pen.bit(out, 0)
				if len(b) == len(pl.octets) {
					pen, out = pen.bit(out, 1)
				} else {
					pen, out = pen.bit(out, 0)
					out = appendUvarint(out, u)
				}
				out = append(out, b...)
				e.memory.keep(pl, b)
			}
			pc++
			continue
		}
		want := pl.number + pl.stride
		pl.note(v, t, false)
		if v == want {
			pen, out = pen.bit(out, 1)
		} else {
			pen, out = pen.bit(out, 0)
			out = appendUvarint(out, bin.Zigzag(v-want))
		}
		pc++
	}
	e.w.lift(pen, out)
	return pc, from, eye{bit, left}, done
}

// quickKind writes the kind of a value outside arrays, of n bits, which is not the one that is remembered.
func (e *packer) quickKind(p pen, out []byte, pl *place, kind uint16, n uint) (pen, []byte) {
	pl.kind = kind
	p, out = p.bit(out, 0)
	e.w.lift(p, out)
	e.w.bits(uint64(kind), n)
	return e.w.pen()
}
