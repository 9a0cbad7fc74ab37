package program

import (
	"encoding/hex"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// value reads a value's item, or the next piece of it.
func (j *Joiner) value(o *code.Op) error {
	s := &j.at
	if s.inText {
		return j.textItem()
	}
	switch o.Type {
	case shape.TypeInt, shape.TypeByte, shape.TypeFloat, shape.TypeDecimal, shape.TypeScientific:
		return j.number(o)
	case shape.TypeBoolean:
		return j.boolean()
	case shape.TypeUUID:
		return j.uuid()
	case shape.TypeDateTime:
		return j.dateTime()
	case shape.TypeBase64, shape.TypeHex:
		return j.piece(o)
	}
	return j.textItem()
}

func (j *Joiner) textItem() error {
	s := &j.at
	u := j.seg.Uvarint()
	s.inText = u == 0
	if s.inText {
		j.dst = append(j.dst, j.seg.Take(j.seg.Uvarint())...)
		return nil
	}
	j.dst = append(j.dst, j.seg.Take(u-1)...)
	s.pc++
	return nil
}

// booleans are the texts of the two.
var booleans = [2]string{"false", "true"}

func (j *Joiner) boolean() error {
	switch v := j.seg.Bits(2); v {
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

func (j *Joiner) number(o *code.Op) error {
	u := j.seg.Uvarint()
	if u == 0 {
		j.at.inText = true
		return nil
	}
	n, how := lexical.Number{}, uint64(0)
	if u--; o.Type.Scaled() {
		u, how = u>>3, u&7
	}
	if n.M = bin.Unzigzag(u); n.Abs() >= lexical.MaxMantissa {
		return j.fail("number over 2^59")
	}
	j.at.pc++
	if n.Scale = uint8(how); how == 7 {
		if n.Scale = j.seg.Octet(); n.Scale > lexical.MaxScale {
			return j.float(n, n.Scale)
		}
		if n.Scale < 7 {
			return j.fail("scale %d", n.Scale)
		}
	}
	j.dst = n.Append(j.dst)
	return nil
}

func (j *Joiner) uuid() error {
	form := j.seg.Octet()
	if form == 0 {
		j.at.inText = true
		return nil
	}
	if form > lexical.UUIDForms {
		return j.fail("UUID form %d", form)
	}
	octets := j.seg.Take(16)
	if j.seg.Err == nil {
		j.dst = lexical.AppendUUID(j.dst, form, octets)
	}
	j.at.pc++
	return nil
}

func (j *Joiner) dateTime() error {
	form := j.seg.Octet()
	if form == 0 {
		j.at.inText = true
		return nil
	}
	if int(form) >= lexical.DateTimeForms {
		return j.fail("dateTime form %d", form)
	}
	in := lexical.DateTimeOf(form)
	in.Units = bin.Unzigzag(j.seg.Uvarint())
	if in.Zone == lexical.ZoneOffset {
		in.Offset = bin.Unzigzag(j.seg.Uvarint())
	}
	var ok bool
	if j.dst, ok = in.Append(j.dst); !ok {
		return j.fail("dateTime out of range")
	}
	j.at.pc++
	return nil
}

// float reads what follows the mantissa of such an item: how says which it is.
func (j *Joiner) float(n lexical.Number, how byte) error {
	if word := int(how) - lexical.FirstWord; word >= 0 && word < len(lexical.FloatWords) && n.M == 0 {
		j.dst = append(j.dst, lexical.FloatWords[word]...)
		return nil
	}
	n.Scale = how - lexical.WithExponent
	e := lexical.Exponent{Form: j.seg.Octet()}
	if e.X = bin.Unzigzag(j.seg.Uvarint()); how < lexical.WithExponent || n.Scale > lexical.MaxScale || !e.Valid() {
		return j.fail("number of form %d", how)
	}
	j.dst = e.Append(n.Append(j.dst))
	return nil
}

// piece reads the form of a base64 or hexadecimal value, and a piece if the segment has one.
func (j *Joiner) piece(o *code.Op) error {
	p := &j.at.pieces
	if !p.begun {
		*p = pieceJoiner{begun: true, form: j.seg.Octet()}
		if !j.seg.Has(false) {
			return nil
		}
	}
	u := j.seg.Uvarint()
	octets := j.seg.Take(u >> 2)
	kind := u & 3
	if kind >= items.PieceTextMore {
		p.text = true
		j.dst = append(j.dst, octets...)
	} else {
		if p.text || kind == items.PieceMore && o.Type == shape.TypeBase64 && len(octets)%3 != 0 {
			return j.fail("piece out of place")
		}
		j.octets(o.Type, p, octets)
	}
	if kind == items.PieceLast || kind == items.PieceTextLast {
		p.begun = false
		j.at.pc++
	}
	return nil
}

// bytes writes a piece's bytes as text.
func (j *Joiner) octets(t shape.Type, p *pieceJoiner, octets []byte) {
	if t == shape.TypeHex {
		j.digits(p, octets)
		return
	}
	switch l := lexical.LinesOf(p.form); l.Width {
	case 0:
		j.dst = lexical.AppendBase64(j.dst, octets)
	default:
		j.chars = lexical.AppendBase64(j.chars[:0], octets)
		j.dst = l.Put(j.dst, j.chars, &p.column)
	}
}

// digits writes bytes in hexadecimal.
func (j *Joiner) digits(p *pieceJoiner, octets []byte) {
	l := lexical.HexLinesOf(p.form)
	j.chars = hex.AppendEncode(j.chars[:0], octets)
	if p.form&1 != 0 {
		for i, c := range j.chars {
			if c >= 'a' {
				j.chars[i] = c - 'a' + 'A'
			}
		}
	}
	if l.Width == 0 {
		j.dst = append(j.dst, j.chars...)
		return
	}
	j.dst = l.Put(j.dst, j.chars, &p.column)
}

// quick appends a text, number or boolean that is whole in the segment, not empty and in its usual
// form; for all else it leaves dst and the segment as they are.
func (j *Joiner) quick(dst []byte, o *code.Op) []byte {
	r := &j.seg
	if o.Type == shape.TypeBoolean {
		if r.Left >= 2+r.Idle && r.Bit&3 < 2 {
			value := booleans[r.Bit&1]
			r.Bit >>= 2
			r.Left -= 2
			dst = append(dst, value...)
		}
		return dst
	}
	rest := r.Seg[r.At:]
	if len(rest) < 8 {
		return dst
	}
	u, n := bin.UvarintAt(rest, 0)
	if n == 0 || u == 0 {
		return dst
	}
	switch u--; o.Type {
	case shape.TypeText, shape.TypeString, shape.TypeOpen:
		if u > uint64(len(rest)-n) {
			return dst
		}
		if u > 0 {
			r.At += n + int(u)
		}
		if end := n + code.LitRoom; end <= len(rest) {
			return appendText(dst, rest, n, n+int(u))
		}
		return append(dst, rest[n:n+int(u)]...)
	case shape.TypeInt, shape.TypeByte:
		r.At += n
		return lexical.Number{M: bin.Unzigzag(u)}.Append(dst)
	case shape.TypeDecimal, shape.TypeFloat:
		if u&7 < 7 {
			r.At += n
			return lexical.Number{M: bin.Unzigzag(u >> 3), Scale: uint8(u & 7)}.Append(dst)
		}
	}
	return dst
}
