package columns

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// quick packs the values outside arrays that a last segment begins with, as far as they have
// nothing unusual: each is read, compared with what is remembered, and written at one look. It
// gives where it stopped, before the first that is another or at the end of both. What it wrote
// cannot be taken back.
func (e *packer) quick(p *code.Code, pc int32, seg []byte) (stop int32, from int, bits eye, done bool) {
	places, steps, t := e.recall.places, p.Steps(), &e.time
	pen, out := e.w.pen()
	bit, left := uint8(0), uint8(0)
walk:
	for at := from; ; from = at {
		s := &steps[pc]
		pc = s.At
		if s.Item <= code.ItemBits {
			if s.Item <= code.ItemEnd {
				done = s.Item == code.ItemEnd && at == len(seg) && bit == 0
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
			switch s.Item {
			case code.ItemMaybe:
				pen, out = pen.bit(out, v)
				if pc++; v == 0 {
					pc = s.Other
				}
				continue
			case code.ItemSlot:
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
			pl := &places[s.Place]
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
		if s.Item == code.ItemColumn {
			r := items.Reader{Seg: seg, At: at}
			more, ok := r.Group(p.Ops()[pc].Type.Scaled())
			if !ok {
				break
			}
			out = append(out, seg[at:r.At]...)
			if at = r.At; !more {
				pc = s.Other
			}
			continue
		}
		u := uint64(seg[at])
		at++
		kind := uint16(u)
		if s.Item >= code.ItemUUID {
			if u == 0 && s.Item < code.ItemPieces || at == len(seg) { // a text, or nothing
				break
			}
			u = uint64(seg[at])
			if s.Item > code.ItemUUID {
				at++
			}
		}
		if u > 0x7f && s.Item != code.ItemUUID {
			n := 0
			if u, n = bin.UvarintAt(seg, at-1); n == 0 {
				break
			}
			at += n - 1
		}
		pl := &places[s.Place]
		var v int64
		var b []byte
		switch s.Item {
		case code.ItemText:
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
		case code.ItemInt:
			if u--; u >= lexical.MaxZigzag {
				break walk
			}
			v = bin.Unzigzag(u)
			pen, out = pen.bit(out, 1)
		case code.ItemDecimal:
			u--
			kind = uint16(u&7) + 1
			if u >>= 3; kind == 8 || u >= lexical.MaxZigzag {
				break walk
			}
			v = bin.Unzigzag(u)
			if kind == pl.kind {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = e.quickKind(pen, out, pl, kind, 8)
			}
		case code.ItemTime:
			if int(kind) >= lexical.DateTimeForms {
				break walk
			}
			minutes, zoned := int64(0), lexical.DateTimeOf(byte(kind)).Zone == lexical.ZoneOffset
			if zoned {
				m, n := bin.UvarintAt(seg, at)
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
				out = bin.AppendUvarint(out, bin.Zigzag(v-want))
			}
			if !zoned {
			} else if minutes == int64(pl.minutes) {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = pen.bit(out, 0)
				out = bin.AppendUvarint(out, bin.Zigzag(minutes))
				pl.minutes = int32(minutes)
			}
			pc++
			continue
		case code.ItemUUID:
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
			if len(pl.octets) == 16 && *(*[16]byte)(b) == *(*[16]byte)(pl.octets) {
				pen, out = pen.bit(out, 1)
			} else {
				pen, out = pen.bit(out, 0)
				out = append(out, (*[16]byte)(b)[:]...) // without a call
				e.memory.keep16(pl, b)
			}
			pc++
			continue
		case code.ItemPieces:
			piece := u & 3
			if u >>= 2; u > uint64(len(seg)-at) || piece != items.PieceLast && piece != items.PieceTextLast {
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
					out = bin.AppendUvarint(out, u)
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
			out = bin.AppendUvarint(out, bin.Zigzag(v-want))
		}
		pc++
	}
	e.w.lift(pen, out)
	return pc, from, eye{bit, left}, done
}

// quickKind writes the kind of a value outside arrays, of n bits, which is not the one that is
// remembered.
func (e *packer) quickKind(p pen, out []byte, pl *place, kind uint16, n uint) (pen, []byte) {
	pl.kind = kind
	p, out = p.bit(out, 0)
	e.w.lift(p, out)
	e.w.bits(uint64(kind), n)
	return e.w.pen()
}
