package columns

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// quick unpacks the values outside arrays that a last segment begins with, as far as they have
// nothing unusual; done: that is all.
func (u *Unpacker) quick(p *code.Code) (done bool) {
	r, places, steps, t := &u.r, u.recall.places, p.Steps(), &u.time
	seg, most := r.Seg, u.start+u.most
	eye, at := r.eye()
	pen, out := u.out.pen()
	pc := u.walk.pc
	var next int32
	was, from := eye, at
walk:
	for ; at <= len(seg) && len(out) <= most; pc, was, from = next, eye, at {
		s := &steps[pc]
		pc = s.At
		if s.Item <= code.ItemEnd {
			done = s.Item == code.ItemEnd
			break
		}
		if s.Item == code.ItemColumn {
			r.look(eye, at)
			octets, more, ok := r.group(p.Ops()[pc].Type.Scaled())
			if eye, at = r.eye(); !ok {
				r.Fail(noGroup)
				break
			}
			out = append(out, octets...)
			if next = pc; !more {
				next = s.Other
			}
			continue
		}
		next = pc + 1
		pl := &places[s.Place]
		same, isTime := false, s.Item == code.ItemTime
		eye, at, same = eye.flag(seg, at)
		if s.Item >= code.ItemBoolean && s.Item != code.ItemText { // it was about the kind
			if !same {
				if s.Item == code.ItemInt {
					eye, at = was, from
					break
				}
				r.look(eye, at)
				pl.kind = uint16(r.wide(uint(s.Bits)))
				if eye, at = r.eye(); r.Err != nil {
					break
				}
			}
			if pl.kind-s.Low > s.High-s.Low {
				eye, at = was, from
				break
			}
			if s.Item > code.ItemBoolean {
				eye, at, same = eye.flag(seg, at)
			}
		}
		b := pl.octets
		switch s.Item {
		case code.ItemMaybe:
			bit := uint8(1)
			if !same {
				bit, next = 0, s.Other
			}
			pen, out = pen.bit(out, bit)
			continue
		case code.ItemSlot:
			if !same {
				eye, at = was, from
				break walk
			}
			pen, out = pen.bit(out, 1)
			continue
		case code.ItemBoolean:
			pen, out = pen.pair(out, uint8(pl.kind))
			continue
		case code.ItemText:
			if !same {
				r.look(eye, at)
				if word := u.knownWord(); word != nil {
					b = word
				} else {
					b = u.readText(b)
				}
				u.memory.keep(pl, b)
				if eye, at = r.eye(); r.Err != nil {
					break walk
				}
			}
			out = append(bin.AppendUvarint(out, uint64(len(b))+1), b...)
			continue
		case code.ItemUUID:
			if !same {
				if len(seg)-at < 16 {
					at = len(seg) + 1
					break walk
				}
				b = seg[at : at+16]
				at += 16
				u.memory.keep16(pl, b)
			}
			if out = append(out, byte(pl.kind)); len(b) == 16 {
				out = append(out, (*[16]byte)(b)[:]...) // without a call
			} else {
				out = append(out, b...)
			}
			continue
		case code.ItemPieces:
			if !same {
				n := len(b)
				if eye, at, same = eye.flag(seg, at); !same {
					r.look(eye, at)
					n = r.count(len(seg))
					if eye, at = r.eye(); r.Err != nil {
						break walk
					}
				}
				if n > len(seg)-at {
					at = len(seg) + 1
					break walk
				}
				b = seg[at : at+n]
				at += n
				u.memory.keep(pl, b)
			}
			piece := uint64(items.PieceLast)
			if pl.kind > 0xff {
				piece = items.PieceTextLast
			}
			out = append(bin.AppendUvarint(append(out, byte(pl.kind)), uint64(len(b))<<2|piece), b...)
			continue
		}
		v := pl.predict(t, isTime)
		if !same {
			u, n := bin.UvarintAt(seg, at)
			if n == 0 {
				at = len(seg) + 1
				break
			}
			v += bin.Unzigzag(u)
			at += n
		}
		pl.note(v, t, isTime)
		z := bin.Zigzag(v)
		switch {
		case isTime:
			if z < 1<<49 { // both by one store
				w, n := bin.Stretch(z)
				out = binary.LittleEndian.AppendUint64(out, w<<8|uint64(byte(pl.kind)))[:len(out)+1+n]
			} else {
				out = bin.AppendUvarint(append(out, byte(pl.kind)), z)
			}
			if lexical.DateTimeOf(byte(pl.kind)).Zone == lexical.ZoneOffset {
				if eye, at, same = eye.flag(seg, at); !same {
					r.look(eye, at)
					pl.minutes = u.minutes()
					if eye, at = r.eye(); r.Err != nil {
						break walk
					}
				}
				out = bin.AppendUvarint(out, bin.Zigzag(int64(pl.minutes)))
			}
		case z >= lexical.MaxZigzag:
			r.Fail("number out of range")
			break walk
		default:
			if s.Item == code.ItemDecimal {
				z = z<<3 + uint64(pl.kind-1)
			}
			if z++; z < 1<<56 {
				w, n := bin.Stretch(z)
				out = binary.LittleEndian.AppendUint64(out, w)[:len(out)+n]
			} else {
				out = binary.AppendUvarint(out, z)
			}
		}
	}
	r.look(eye, at)
	u.out.lift(pen, out)
	if u.walk.pc = pc; len(out) > most {
		r.Fail("segment longer than a fragment")
	}
	return done
}
