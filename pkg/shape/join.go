package shape

import (
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

// Joiner puts one message after another together from its content (wire-format section 10). A segment that joins to more than 4 MiB is refused before more than that, and
// one text, is written; nothing of it is given out. Nothing is allocated once its buffers have grown. Not safe for concurrent use.
type Joiner struct {
	p       *Program
	at      joinState
	chars   []byte // of base64, before they are broken into lines
	pending []byte // texts after the last item, until it is known that they hold
	given   int    // octets of them that were given out
	begun   bool
	text    bool

	utf8 []byte // of a message in UTF-16: what this segment joins to, behind what is left of the one before

	seg   segmentReader
	dst   []byte
	start int // of the segment in dst
	mark  int // end of the last item in dst

	mantissas, scales [columnChunk]uint64
}

// joinState is where a joiner stands between two segments.
type joinState struct {
	pc     int32
	inText bool
	loops  []joinLoop
	slots  [][]byte
	last   []byte
	rows   uint64 // of the column that is open
	pieces pieceJoiner
}

type joinLoop struct {
	pc   int32
	left uint64 // rows of the group still to come
	rows uint64
	more bool
}

// Reset begins a message of p's shape.
func (j *Joiner) Reset(p *Program) {
	j.p, j.begun, j.text, j.pending, j.given = p, false, false, j.pending[:0], 0
	if p.Encoding().isUTF16() {
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

// Join appends to dst what the segment settles, and may write behind its length up to its capacity. last tells that it is the message's last. text tells a segment that stands in place of the rest. Errors are of type [Error];
// after one the joiner must be reset.
func (j *Joiner) Join(dst, segment []byte, text, last bool) ([]byte, error) {
	if j.p.Encoding().isUTF16() {
		return j.joinWide(dst, segment, text, last)
	}
	return j.joinText(dst, segment, text, last)
}

// joinWide joins a segment and writes it in UTF-16.
func (j *Joiner) joinWide(dst, segment []byte, text, last bool) ([]byte, error) {
	narrow, err := j.joinText(j.utf8, segment, text, last)
	if err != nil {
		return dst, err
	}
	wide, n, ok := widenText(j.p.Encoding(), dst, narrow, last)
	if !ok {
		return dst, &Error{Code: Malformed, What: "content that is no UTF-8"}
	}
	j.utf8 = append(narrow[:0], narrow[n:]...)
	return wide, nil
}

// joinText joins a segment as it is in UTF-8, or in whatever encoding the message has if that is not UTF-16.
func (j *Joiner) joinText(dst, segment []byte, text, last bool) ([]byte, error) {
	if j.text && !text {
		return dst, &Error{Code: Malformed, What: "content after text"}
	}
	if !j.text && text {
		return j.beginText(dst, segment)
	}
	if text {
		return append(dst, segment...), nil
	}
	return j.join(dst, segment, last)
}

// beginText takes the pending texts that hold, and goes on with text (wire-format section 10.6).
func (j *Joiner) beginText(dst, segment []byte) ([]byte, error) {
	if !j.begun {
		var err error
		if dst, err = j.join(dst, nil, false); err != nil {
			return dst, err
		}
	}
	c := bin.NewCursor(segment, 0)
	keep := c.Count(uint64(len(j.pending)))
	if err := c.Err(); err != nil {
		return dst, &Error{Code: Malformed, What: "octets kept before text", Err: err}
	}
	if keep < j.given {
		return dst, &Error{Code: Malformed, What: "fewer octets kept before text than were given out"}
	}
	j.text = true
	return append(append(dst, j.pending[j.given:keep]...), c.Rest()...), nil
}

func (j *Joiner) join(dst, segment []byte, last bool) ([]byte, error) {
	j.begun = true
	j.seg = newSegmentReader(segment, last)
	j.start, j.mark = len(dst), len(dst)
	start := len(dst)
	j.dst = append(slices.Grow(dst, len(j.pending)+4*len(segment)), j.pending...)
	err := j.run(last)
	dst, j.dst = j.dst, nil
	if err != nil {
		return dst[:start], err
	}
	if last {
		j.pending, j.mark = j.pending[:0], len(dst)
	} else {
		j.pending = append(j.pending[:0], dst[j.mark:]...)
	}
	dst = dst[:j.mark]
	if given := j.given; given > 0 && j.mark > start {
		dst = append(dst[:start], dst[start+given:]...)
		j.given = 0
	}
	return dst, nil
}

func (j *Joiner) fail(what string, args ...any) error {
	return &Error{Code: Malformed, At: int64(j.seg.at), What: fmt.Sprintf(what, args...)}
}

// over tells, by an error, that n more octets would make the segment's text too long.
func (j *Joiner) over(n int) error {
	if len(j.dst)-j.start+n <= maxSegmentJoined {
		return nil
	}
	return &Error{Code: TooLarge, At: int64(j.seg.at), What: fmt.Sprintf("a segment that joins to more than %d octets", maxSegmentJoined)}
}

// run goes on until the segment has no item for the operation it stands at, or the message is at its end.
func (j *Joiner) run(last bool) error {
	s, ops, lits := &j.at, j.p.Ops(), j.p.Lits()
	dst, pc := j.dst, s.pc
	for {
		if len(dst)-j.start > maxSegmentJoined {
			j.dst = dst
			return j.over(0)
		}
		o := &ops[pc]
		switch o.code {
		case opText:
			dst = appendText(dst, lits, int(o.a), int(o.b))
			pc++
			continue
		case opValue:
			if n := len(dst); !s.inText && o.typ < TypeUUID {
				if dst = j.quick(dst, o); len(dst) > n {
					j.mark = len(dst)
					pc++
					continue
				}
			}
		case opAgain:
			if len(s.slots[o.a]) == 0 {
				return j.fail("slot %d stands again before it got a prefix", o.a)
			}
			dst = append(dst, s.slots[o.a]...)
			pc++
			continue
		case opJump:
			pc = o.a
			continue
		case opNext:
			l := &s.loops[len(s.loops)-1]
			if l.left > 0 {
				l.left--
				pc = o.a + 1
				continue
			}
			if !l.more {
				s.loops = s.loops[:len(s.loops)-1]
				pc = ops[o.a].b
				continue
			}
			pc = o.a // its next group
			o = &ops[pc]
		case opRows:
			if o.fixed {
				s.loops = append(s.loops, joinLoop{pc: pc, left: o.min - 1})
				pc++
				continue
			}
		}
		j.dst, s.pc = dst, pc
		switch {
		case o.code == opEnd:
			return j.seg.end()
		case j.seg.has(o.isBits() && !s.inText):
		case last:
			return j.fail("content ends before its shape does")
		default:
			return j.seg.end()
		}
		var err error
		if o.code == opValue {
			err = j.value(o)
		} else {
			err = j.take(o)
		}
		if err != nil {
			return err
		}
		if j.seg.err != nil {
			return j.seg.err
		}
		dst, pc = j.dst, s.pc
		if o.code != opColumn {
			j.mark = len(dst)
		}
	}
}

// appendText appends lits[a:b]; lits[a:] has litRoom octets. Most texts are short, and cheaper to copy in words together with what stands behind them.
func appendText(dst, lits []byte, a, b int) []byte {
	n := len(dst)
	if b-a <= litRoom && cap(dst)-n >= litRoom {
		dst = dst[:n+litRoom]
		*(*[litRoom]byte)(dst[n:]) = [litRoom]byte(lits[a:])
		return dst[:n+b-a]
	}
	return append(dst, lits[a:b]...)
}

// quick appends a text, number or boolean that is whole in the segment, not empty and in its usual form; for all else it leaves dst and the segment as they are.
func (j *Joiner) quick(dst []byte, o *op) []byte {
	r := &j.seg
	if o.typ == TypeBoolean {
		if r.left >= 2+r.idle && r.bit&3 < 2 {
			value := booleans[r.bit&1]
			r.bit >>= 2
			r.left -= 2
			dst = append(dst, value...)
		}
		return dst
	}
	rest := r.seg[r.at:]
	if len(rest) < 8 {
		return dst
	}
	u, n := uvarintAt(rest, 0)
	if n == 0 || u == 0 {
		return dst
	}
	switch u--; o.typ {
	case TypeText, TypeString, TypeOpen:
		if u > uint64(len(rest)-n) {
			return dst
		}
		if u > 0 {
			r.at += n + int(u)
		}
		if end := n + litRoom; end <= len(rest) {
			return appendText(dst, rest, n, n+int(u))
		}
		return append(dst, rest[n:n+int(u)]...)
	case TypeInt, TypeByte:
		r.at += n
		return number{m: bin.Unzigzag(u)}.append(dst)
	case TypeDecimal, TypeFloat:
		if u&7 < 7 {
			r.at += n
			return number{m: bin.Unzigzag(u >> 3), scale: uint8(u & 7)}.append(dst)
		}
	}
	return dst
}

// isBits tells operations whose item begins with a bit.
func (o *op) isBits() bool {
	return o.code == opSlot || o.code == opMaybe || o.code == opChoice || o.code == opValue && o.typ == TypeBoolean
}

// take reads the item of an operation other than opValue.
func (j *Joiner) take(o *op) error {
	s := &j.at
	switch o.code {
	case opSlot:
		return j.slot(o)
	case opMaybe:
		s.pc++
		if j.seg.bits(1) == 0 {
			s.pc = o.b
		}
	case opChoice:
		i := j.seg.bits(o.bits)
		if int(i) >= len(o.alts) {
			return j.fail("choice %d of %d", i, len(o.alts))
		}
		s.pc = o.alts[i].pc
	case opRows:
		return j.rows(o)
	case opColumn:
		return j.column(o)
	}
	return nil
}

// rows reads the header of a group of rows, the first or a further one.
func (j *Joiner) rows(o *op) error {
	s := &j.at
	if n := len(s.loops); n == 0 || s.loops[n-1].pc != s.pc {
		s.loops = append(s.loops, joinLoop{pc: s.pc})
	}
	l := &s.loops[len(s.loops)-1]
	g := j.seg.octet()
	n := uint64(g & maxGroup)
	l.rows += n
	l.more = g > maxGroup
	switch {
	case n == 0 && l.more:
		return j.fail("group without rows")
	case o.max != 0 && l.rows > o.max || !l.more && l.rows < o.min:
		return j.fail("%d rows in an array of %d to %d", l.rows, o.min, o.max)
	case n == 0:
		s.loops = s.loops[:len(s.loops)-1]
		s.pc = o.b
	default:
		l.left = n - 1
		s.pc++
	}
	return nil
}

func (j *Joiner) slot(o *op) error {
	s := &j.at
	var buf [maxPrefix + 1]byte
	p := buf[:0]
	if j.seg.bits(1) == 1 {
		p = appendPredicted(p, s.last)
	} else {
		u := j.seg.uvarint()
		if u == 0 {
			return j.fail("prefix in pieces")
		}
		p = j.seg.take(u - 1)
	}
	if j.seg.err == nil && !generated(p) {
		return j.fail("%q is no generated prefix", string(p))
	}
	s.slots[o.a] = append(s.slots[o.a][:0], p...)
	s.last = append(s.last[:0], p...)
	j.dst = append(j.dst, p...)
	s.pc++
	return nil
}
