package shape

import "github.com/hhfr/hhfr/internal/bin"

// eye reads single bits between octets, as a packReader does. It is passed by value, so that a loop has it in registers.
type eye struct {
	octet uint8 // the bit octet, bits taken shifted out
	left  uint8 // bits left in it
}

func (r *packReader) eye() (eye, int) { return eye{r.bit, r.left}, r.at }

func (r *packReader) look(e eye, at int) {
	if r.bit, r.left, r.at = e.octet, e.left, at; at > len(r.seg) {
		r.at = len(r.seg)
		r.fail("content ends inside an item")
	}
}

// flag takes a bit. Behind the end it gives 0, and a place that is beyond the end.
func (e eye) flag(seg []byte, at int) (eye, int, bool) {
	if e.left == 0 {
		if e.left = 8; at < len(seg) {
			e.octet = seg[at]
		}
		at++
	}
	v := e.octet & 1
	e.octet >>= 1
	e.left--
	return e, at, v == 1
}

// quick unpacks the values outside arrays that a last segment begins with, as far as they have nothing unusual; done: that is all.
func (u *Unpacker) quick(p *Program) (done bool) {
	r, places, steps, t := &u.r, u.recall.places, p.Steps(), &u.time
	seg, most := r.seg, u.start+u.most
	eye, at := r.eye()
	pen, out := u.out.pen()
	pc := u.walk.pc
	var next int32
	was, from := eye, at
walk:
	for ; at <= len(seg) && len(out) <= most; pc, was, from = next, eye, at {
		s := &steps[pc]
		pc = s.at
		if s.item <= itemEnd {
			done = s.item == itemEnd
			break
		}
		next = pc + 1
		pl := &places[s.place]
		same, isTime := false, s.item == itemTime
		eye, at, same = eye.flag(seg, at)
		if s.item >= itemBoolean && s.item != itemText { // it was about the kind
			if !same {
				if s.item == itemInt {
					eye, at = was, from
					break
				}
				r.look(eye, at)
				pl.kind = uint16(r.wide(uint(s.bits)))
				if eye, at = r.eye(); r.err != nil {
					break
				}
			}
			if pl.kind-s.low > s.high-s.low {
				eye, at = was, from
				break
			}
			if s.item > itemBoolean {
				eye, at, same = eye.flag(seg, at)
			}
		}
		b := pl.octets
		switch s.item {
		case itemMaybe:
			bit := uint8(1)
			if !same {
				bit, next = 0, s.other
			}
			pen, out = pen.bit(out, bit)
			continue
		case itemSlot:
			if !same {
				eye, at = was, from
				break walk
			}
			pen, out = pen.bit(out, 1)
			continue
		case itemBoolean:
			pen, out = pen.pair(out, uint8(pl.kind))
			continue
		case itemText:
			if !same {
				r.look(eye, at)
				if word := u.knownWord(); word != nil {
					b = word
				} else {
					b = u.readText(b)
				}
				u.memory.keep(pl, b)
				if eye, at = r.eye(); r.err != nil {
					break walk
				}
			}
			out = append(appendUvarint(out, uint64(len(b))+1), b...)
			continue
		case itemUUID:
			if !same {
				if len(seg)-at < 16 {
					at = len(seg) + 1
					break walk
				}
				b = seg[at : at+16]
				at += 16
				u.memory.keep16(pl, b)
			}
			out = append(append(out, byte(pl.kind)), b...)
			continue
		case itemPieces:
			if !same {
				n := len(b)
				if eye, at, same = eye.flag(seg, at); !same {
					r.look(eye, at)
					n = r.count(len(seg))
					if eye, at = r.eye(); r.err != nil {
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
			piece := uint64(pieceLast)
			if pl.kind > 0xff {
				piece = pieceTextLast
			}
			out = append(appendUvarint(append(out, byte(pl.kind)), uint64(len(b))<<2|piece), b...)
			continue
		}
		v := pl.predict(t, isTime)
		if !same {
			u, n := uvarintAt(seg, at)
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
			out = appendUvarint(append(out, byte(pl.kind)), z)
			if instantOf(byte(pl.kind)).zone == zoneOffset {
				if eye, at, same = eye.flag(seg, at); !same {
					r.look(eye, at)
					pl.minutes = u.minutes()
					if eye, at = r.eye(); r.err != nil {
						break walk
					}
				}
				out = appendUvarint(out, bin.Zigzag(int64(pl.minutes)))
			}
		case z >= maxZigzag:
			r.fail("number out of range")
			break walk
		case s.item == itemDecimal:
			out = appendUvarint(out, z<<3+uint64(pl.kind))
		default:
			out = appendUvarint(out, z+1)
		}
	}
	r.look(eye, at)
	u.out.lift(pen, out)
	if u.walk.pc = pc; len(out) > most {
		r.fail("segment longer than a fragment")
	}
	return done
}
