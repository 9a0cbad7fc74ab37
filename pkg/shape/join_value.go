package shape

import (
	"encoding/base64"
	"encoding/hex"

	"github.com/hhfr/hhfr/internal/bin"
)

// value reads a value's item, or the next piece of it.
func (j *Joiner) value(o *op) error {
	s := &j.at
	if s.inText {
		return j.textItem()
	}
	switch o.typ {
	case TypeInt, TypeByte, TypeFloat, TypeDecimal, TypeScientific:
		return j.number(o)
	case TypeBoolean:
		return j.boolean()
	case TypeUUID:
		return j.uuid()
	case TypeDateTime:
		return j.instant()
	case TypeBase64, TypeHex:
		return j.piece(o)
	}
	return j.textItem()
}

func (j *Joiner) textItem() error {
	s := &j.at
	u := j.seg.uvarint()
	s.inText = u == 0
	if s.inText {
		j.dst = append(j.dst, j.seg.take(j.seg.uvarint())...)
		return nil
	}
	j.dst = append(j.dst, j.seg.take(u-1)...)
	s.pc++
	return nil
}

// booleans are the texts of the two.
var booleans = [2]string{"false", "true"}

func (j *Joiner) boolean() error {
	switch v := j.seg.bits(2); v {
	case 0, 1:
		j.dst = append(j.dst, booleans[v]...)
	case 2:
		j.at.inText = true
		return nil
	default:
		return j.fail("boolean that is none")
	}
	j.at.pc++
	return nil
}

func (j *Joiner) number(o *op) error {
	u := j.seg.uvarint()
	if u == 0 {
		j.at.inText = true
		return nil
	}
	n, how := number{}, uint64(0)
	if u--; o.typ.scaled() {
		u, how = u>>3, u&7
	}
	if n.m = bin.Unzigzag(u); n.abs() >= maxMantissa {
		return j.fail("number over 2^59")
	}
	j.at.pc++
	if n.scale = uint8(how); how == 7 {
		if n.scale = j.seg.octet(); n.scale > maxScale {
			return j.float(n, n.scale)
		}
		if n.scale < 7 {
			return j.fail("scale %d", n.scale)
		}
	}
	j.dst = n.append(j.dst)
	return nil
}

func (j *Joiner) uuid() error {
	form := j.seg.octet()
	if form == 0 {
		j.at.inText = true
		return nil
	}
	if form > uuidForms {
		return j.fail("UUID form %d", form)
	}
	octets := j.seg.take(16)
	if j.seg.err == nil {
		j.dst = appendUUID(j.dst, form, octets)
	}
	j.at.pc++
	return nil
}

func (j *Joiner) instant() error {
	form := j.seg.octet()
	if form == 0 {
		j.at.inText = true
		return nil
	}
	if int(form) >= instantForms {
		return j.fail("dateTime form %d", form)
	}
	in := instantOf(form)
	in.units = bin.Unzigzag(j.seg.uvarint())
	if in.zone == zoneOffset {
		in.offset = bin.Unzigzag(j.seg.uvarint())
	}
	var ok bool
	if j.dst, ok = in.append(j.dst); !ok {
		return j.fail("dateTime out of range")
	}
	j.at.pc++
	return nil
}

// piece reads the form of a base64 or hexadecimal value, and a piece if the segment has one.
func (j *Joiner) piece(o *op) error {
	p := &j.at.pieces
	if !p.begun {
		*p = pieceJoiner{begun: true, form: j.seg.octet()}
		if !j.seg.has(false) {
			return nil
		}
	}
	u := j.seg.uvarint()
	octets := j.seg.take(u >> 2)
	kind := u & 3
	if kind >= pieceTextMore {
		p.text = true
		j.dst = append(j.dst, octets...)
	} else {
		if p.text || kind == pieceMore && o.typ == TypeBase64 && len(octets)%3 != 0 {
			return j.fail("piece out of place")
		}
		j.octets(o.typ, p, octets)
	}
	if kind == pieceLast || kind == pieceTextLast {
		p.begun = false
		j.at.pc++
	}
	return nil
}

// octets writes a piece's octets as text.
func (j *Joiner) octets(t Type, p *pieceJoiner, octets []byte) {
	if t == TypeHex {
		j.digits(p, octets)
		return
	}
	switch l := linesOf(p.form); l.width {
	case 0:
		j.dst = base64.StdEncoding.AppendEncode(j.dst, octets)
	default:
		j.chars = base64.StdEncoding.AppendEncode(j.chars[:0], octets)
		j.dst = l.put(j.dst, j.chars, &p.column)
	}
}

// digits writes octets in hexadecimal.
func (j *Joiner) digits(p *pieceJoiner, octets []byte) {
	l := hexLinesOf(p.form)
	j.chars = hex.AppendEncode(j.chars[:0], octets)
	if p.form&1 != 0 {
		for i, c := range j.chars {
			if c >= 'a' {
				j.chars[i] = c - 'a' + 'A'
			}
		}
	}
	if l.width == 0 {
		j.dst = append(j.dst, j.chars...)
		return
	}
	j.dst = l.put(j.dst, j.chars, &p.column)
}
