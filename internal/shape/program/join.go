package program

import (
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// Reset begins a message of p's shape.
func (j *Joiner) Reset(program *Program) {
	p := (*code.Code)(program)
	j.p, j.begun, j.text, j.pending, j.given, j.group.n, j.group.from = p, false, false, j.pending[:0], 0, 0, 0
	if p.Encoding().IsUTF16() {
		j.utf8 = j.utf8[:0]
	}
	s := &j.at
	s.pc, s.inText, s.rows, s.pieces = 0, false, 0, pieceJoiner{}
	s.loops, s.last = s.loops[:0], s.last[:0]
	s.slots = slices.Grow(s.slots[:0], p.Shape().Slots())[:p.Shape().Slots()]
	for i := range s.slots {
		s.slots[i] = s.slots[i][:0]
	}
}

// Join appends to dst what the segment settles, and may write behind its length up to its capacity.
// last tells that it is the message's last. text tells a segment that stands in place of the rest.
// Errors are of type [shape.Error]; after one the joiner must be reset.
func (j *Joiner) Join(dst, segment []byte, text, last bool) ([]byte, error) {
	out, _, err := j.JoinSome(dst, segment, text, last, maxSegmentJoined)
	return out, err
}

// JoinSome is Join, but it stops when it has appended most bytes, and what the item that it is at
// comes to: a few kilobytes, unless the shape has longer texts. more: the segment, which is used
// until then, goes on with [Joiner.JoinMore], before anything else.
func (j *Joiner) JoinSome(dst, segment []byte, text, last bool, most int) (out []byte, more bool, err error) {
	j.last, j.most, j.gone, j.more = last, most, 0, false
	to := j.narrow(dst)
	switch {
	case j.text && !text:
		return dst, false, &shape.Error{Code: shape.Malformed, What: "content after text"}
	case !text:
		j.begun = true
		j.seg.Reset(segment, last)
		to, err = j.join(to, 4*len(segment))
	case !j.text:
		to, err = j.beginText(to, segment)
	default:
		to = append(to, segment...)
	}
	return j.joined(dst, to, err)
}

// JoinMore goes on with a segment as JoinSome does.
func (j *Joiner) JoinMore(dst []byte) (out []byte, more bool, err error) {
	j.more = false
	to, err := j.join(j.narrow(dst), j.most)
	return j.joined(dst, to, err)
}

// narrow is where to join what goes to dst: for UTF-16 that is another place.
func (j *Joiner) narrow(dst []byte) []byte {
	if j.p.Encoding().IsUTF16() {
		return j.utf8
	}
	return dst
}

// joined gives out what was joined behind narrow(dst).
func (j *Joiner) joined(dst, to []byte, err error) (out []byte, more bool, _ error) {
	switch {
	case err != nil:
		return dst, false, err
	case !j.p.Encoding().IsUTF16():
		return to, j.more, nil
	}
	wide, n, ok := lexical.Widen(j.p.Encoding(), dst, to, j.last && !j.more)
	if !ok {
		return dst, false, &shape.Error{Code: shape.Malformed, What: "content that is no UTF-8"}
	}
	j.utf8 = append(to[:0], to[n:]...)
	return wide, j.more, nil
}

// beginText takes the pending texts that hold, and goes on with text (wire-format section 10.6).
func (j *Joiner) beginText(dst, segment []byte) ([]byte, error) {
	if !j.begun {
		j.begun = true
		j.seg.Reset(nil, false)
		j.most = maxSegmentJoined
		var err error
		if dst, err = j.join(dst, 0); err != nil {
			return dst, err
		}
	}
	c := bin.NewCursor(segment, 0)
	keep := c.Count(uint64(len(j.pending)))
	if err := c.Err(); err != nil {
		return dst, &shape.Error{Code: shape.Malformed, What: "octets kept before text", Err: err}
	}
	if keep < j.given {
		return dst, &shape.Error{Code: shape.Malformed, What: "fewer octets kept before text than were given out"}
	}
	j.text = true
	return append(append(dst, j.pending[j.given:keep]...), c.Rest()...), nil
}

// join goes on with the segment; room is about what that comes to.
func (j *Joiner) join(dst []byte, room int) ([]byte, error) {
	start := len(dst)
	j.start, j.mark = start, start
	j.dst = append(slices.Grow(dst, len(j.pending)+min(room, j.most)), j.pending...)
	j.stop = min(len(j.dst)+j.most, start+maxSegmentJoined-j.gone)
	err := j.run()
	dst, j.dst = j.dst, nil
	switch {
	case err != nil:
		return dst[:start], err
	case j.last && !j.more:
		j.pending, j.mark = j.pending[:0], len(dst)
	default:
		j.pending = append(j.pending[:0], dst[j.mark:]...)
	}
	dst = dst[:j.mark]
	j.gone += len(dst) - start
	if given := j.given; given > 0 && j.mark > start {
		dst = append(dst[:start], dst[start+given:]...)
		j.given = 0
	}
	return dst, nil
}

// run goes on until the segment has no item for the operation it stands at, the message is at its
// end, or enough is joined: then there is more.
func (j *Joiner) run() error {
	s, ops, lits := &j.at, j.p.Ops(), j.p.Lits()
	if j.group.from < j.group.n {
		if err := j.groupRows(&ops[s.pc]); err != nil || j.more {
			return err
		}
	}
	dst, pc := j.dst, s.pc
	for {
		if len(dst) > j.stop {
			j.dst, s.pc, j.more = dst, pc, true
			return j.over(0)
		}
		o := &ops[pc]
		switch o.Code {
		case code.OpText:
			dst = appendText(dst, lits, int(o.A), int(o.B))
			pc++
			continue
		case code.OpValue:
			if n := len(dst); !s.inText && o.Type < shape.TypeUUID {
				if dst = j.quick(dst, o); len(dst) > n {
					j.mark = len(dst)
					pc++
					continue
				}
			}
		case code.OpAgain:
			if len(s.slots[o.A]) == 0 {
				return j.fail("slot %d stands again before it got a prefix", o.A)
			}
			dst = append(dst, s.slots[o.A]...)
			pc++
			continue
		case code.OpJump:
			pc = o.A
			continue
		case code.OpNext:
			l := &s.loops[len(s.loops)-1]
			if l.left > 0 {
				l.left--
				pc = o.A + 1
				continue
			}
			if !l.more {
				s.loops = s.loops[:len(s.loops)-1]
				pc = ops[o.A].B
				continue
			}
			pc = o.A // its next group
			o = &ops[pc]
		case code.OpRows:
			if o.Fixed {
				s.loops = append(s.loops, joinLoop{pc: pc, left: o.Min - 1})
				pc++
				continue
			}
		}
		j.dst, s.pc = dst, pc
		switch {
		case o.Code == code.OpEnd:
			return j.seg.End()
		case j.seg.Has(o.IsBits() && !s.inText):
		case j.last:
			return j.fail("content ends before its shape does")
		default:
			return j.seg.End()
		}
		var err error
		if o.Code == code.OpValue {
			err = j.value(o)
		} else {
			err = j.take(o)
		}
		if err != nil {
			return err
		}
		if j.seg.Err != nil {
			return j.seg.Err
		}
		dst, pc = j.dst, s.pc
		switch {
		case o.Code != code.OpColumn:
			j.mark = len(dst)
		case j.more:
			return nil
		}
	}
}

// take reads the item of an operation other than code.OpValue.
func (j *Joiner) take(o *code.Op) error {
	s := &j.at
	switch o.Code {
	case code.OpSlot:
		return j.slot(o)
	case code.OpMaybe:
		s.pc++
		if j.seg.Bits(1) == 0 {
			s.pc = o.B
		}
	case code.OpChoice:
		i := j.seg.Bits(o.Bits)
		if int(i) >= len(o.Alts) {
			return j.fail("choice %d of %d", i, len(o.Alts))
		}
		s.pc = o.Alts[i].PC
	case code.OpRows:
		return j.rows(o)
	case code.OpColumn:
		return j.column(o)
	}
	return nil
}

// rows reads the header of a group of rows, the first or a further one.
func (j *Joiner) rows(o *code.Op) error {
	s := &j.at
	if n := len(s.loops); n == 0 || s.loops[n-1].pc != s.pc {
		s.loops = append(s.loops, joinLoop{pc: s.pc})
	}
	l := &s.loops[len(s.loops)-1]
	g := j.seg.Octet()
	n := uint64(g & items.MaxGroup)
	l.rows += n
	l.more = g > items.MaxGroup
	switch {
	case n == 0 && l.more:
		return j.fail("group without rows")
	case o.Max != 0 && l.rows > o.Max || !l.more && l.rows < o.Min:
		return j.fail("%d rows in an array of %d to %d", l.rows, o.Min, o.Max)
	case n == 0:
		s.loops = s.loops[:len(s.loops)-1]
		s.pc = o.B
	default:
		l.left = n - 1
		s.pc++
	}
	return nil
}

func (j *Joiner) slot(o *code.Op) error {
	s := &j.at
	var buf [lexical.MaxPrefix + 1]byte
	p := buf[:0]
	if j.seg.Bits(1) == 1 {
		p = lexical.AppendPredicted(p, s.last)
	} else {
		u := j.seg.Uvarint()
		if u == 0 {
			return j.fail("prefix in pieces")
		}
		p = j.seg.Take(u - 1)
	}
	if j.seg.Err == nil && !lexical.Generated(p) {
		return j.fail("%q is no generated prefix", string(p))
	}
	s.slots[o.A] = append(s.slots[o.A][:0], p...)
	s.last = append(s.last[:0], p...)
	j.dst = append(j.dst, p...)
	s.pc++
	return nil
}

// Settle appends to dst what of the texts behind the last item holds, bytes in all: see
// [Splitter.Flush]. Errors are of type [shape.Error].
func (j *Joiner) Settle(dst []byte, octets int64) ([]byte, error) {
	if j.p.Encoding().IsUTF16() {
		narrow, err := j.settle(j.utf8, octets)
		if err != nil {
			return dst, err
		}
		wide, n, ok := lexical.Widen(j.p.Encoding(), dst, narrow, false)
		if !ok {
			return dst, &shape.Error{Code: shape.Malformed, What: "content that is no UTF-8"}
		}
		j.utf8 = append(narrow[:0], narrow[n:]...)
		return wide, nil
	}
	return j.settle(dst, octets)
}

func (j *Joiner) settle(dst []byte, octets int64) ([]byte, error) {
	if octets < int64(j.given) || octets > int64(len(j.pending)) {
		const what = "more settled than stands behind the last item, or less than before"
		return dst, &shape.Error{Code: shape.Malformed, What: what}
	}
	dst = append(dst, j.pending[j.given:octets]...)
	j.given = int(octets)
	return dst, nil
}
