package shape

import (
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

// Joiner puts one message after another together from its content (wire-format section 10). What a segment joins to is computed before its
// first octet is written, and refused over 4 MiB. Nothing is allocated once its buffers have grown. Not safe for concurrent use.
type Joiner struct {
	p       *Program
	at      joinState
	before  joinState // at the start of the segment, to write what was measured
	chars   []byte    // of base64, before they are broken into lines
	pending []byte    // texts after the last item, until it is known that they hold
	begun   bool
	text    bool

	seg     segmentReader
	dst     []byte
	mark    int // end of the last item in dst, or in what is measured
	size    int
	measure bool
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

func (s *joinState) copyTo(d *joinState) {
	d.pc, d.inText, d.rows, d.pieces = s.pc, s.inText, s.rows, s.pieces
	d.loops = append(d.loops[:0], s.loops...)
	d.last = append(d.last[:0], s.last...)
	for len(d.slots) < len(s.slots) {
		d.slots = append(d.slots, nil)
	}
	d.slots = d.slots[:len(s.slots)]
	for i := range s.slots {
		d.slots[i] = append(d.slots[i][:0], s.slots[i]...)
	}
}

// Reset begins a message of p's shape.
func (j *Joiner) Reset(p *Program) {
	j.p, j.begun, j.text, j.pending = p, false, false, j.pending[:0]
	s := &j.at
	s.pc, s.inText, s.rows, s.pieces = 0, false, 0, pieceJoiner{}
	s.loops, s.last = s.loops[:0], s.last[:0]
	s.slots = slices.Grow(s.slots[:0], p.shape.slots)[:p.shape.slots]
	for i := range s.slots {
		s.slots[i] = s.slots[i][:0]
	}
}

// Join appends to dst what the segment settles. last tells that it is the message's last. text tells a segment that stands in place of the rest. Errors are of type [Error];
// after one the joiner must be reset.
func (j *Joiner) Join(dst, segment []byte, text, last bool) ([]byte, error) {
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
	j.text = true
	return append(append(dst, j.pending[:keep]...), c.Rest()...), nil
}

func (j *Joiner) join(dst, segment []byte, last bool) ([]byte, error) {
	j.begun = true
	j.at.copyTo(&j.before)
	j.seg, j.size, j.mark, j.measure = newSegmentReader(segment, last), len(j.pending), 0, true
	if err := j.run(last); err != nil {
		return dst, err
	}
	j.at, j.before = j.before, j.at
	start := len(dst)
	j.seg, j.measure = newSegmentReader(segment, last), false
	j.dst = append(slices.Grow(dst, j.size), j.pending...)
	j.mark = start
	err := j.run(last)
	dst, j.dst = j.dst, nil
	if err != nil {
		return dst[:start], err
	}
	if last {
		j.pending = j.pending[:0]
		return dst, nil
	}
	j.pending = append(j.pending[:0], dst[j.mark:]...)
	return dst[:j.mark], nil
}

func (j *Joiner) fail(what string, args ...any) error {
	return &Error{Code: Malformed, At: int64(j.seg.at), What: fmt.Sprintf(what, args...)}
}

// put writes or measures b.
func (j *Joiner) put(b []byte) {
	if j.measure {
		j.size += len(b)
	} else {
		j.dst = append(j.dst, b...)
	}
}

// item notes that the text of an item ends here.
func (j *Joiner) item() { j.mark = len(j.dst) }

// run goes on until the segment has no item for the operation it stands at, or the message is at its end.
func (j *Joiner) run(last bool) error {
	s := &j.at
	for {
		if j.size > maxSegmentJoined {
			return &Error{Code: TooLarge, At: int64(j.seg.at), What: fmt.Sprintf("a segment that joins to more than %d octets", maxSegmentJoined)}
		}
		o := &j.p.ops[s.pc]
		switch o.code {
		case opText:
			j.put(j.p.lits[o.a:o.b])
			s.pc++
			continue
		case opAgain:
			if len(s.slots[o.a]) == 0 {
				return j.fail("slot %d stands again before it got a prefix", o.a)
			}
			j.put(s.slots[o.a])
			s.pc++
			continue
		case opJump:
			s.pc = o.a
			continue
		case opNext:
			if !j.nextRow(o) {
				continue
			}
			s.pc = o.a
			o = &j.p.ops[o.a]
		case opEnd:
			return j.seg.end()
		case opRows:
			if o.fixed {
				s.loops = append(s.loops, joinLoop{pc: s.pc, left: o.min - 1})
				s.pc++
				continue
			}
		}
		if !j.seg.has(o.isBits() && !s.inText) {
			if last {
				return j.fail("content ends before its shape does")
			}
			return j.seg.end()
		}
		if err := j.take(o); err != nil {
			return err
		}
		if j.seg.err != nil {
			return j.seg.err
		}
		if o.code != opColumn {
			j.item()
		}
	}
}

// isBits tells operations whose item begins with a bit.
func (o *op) isBits() bool {
	return o.code == opSlot || o.code == opMaybe || o.code == opChoice || o.code == opValue && o.typ == TypeBoolean
}

// nextRow ends a row; it tells whether the array needs an item to go on.
func (j *Joiner) nextRow(o *op) bool {
	s := &j.at
	l := &s.loops[len(s.loops)-1]
	if l.left > 0 {
		l.left--
		s.pc = o.a + 1
		return false
	}
	if l.more {
		return true
	}
	s.loops = s.loops[:len(s.loops)-1]
	s.pc = j.p.ops[o.a].b
	return false
}

// take reads the item of an operation.
func (j *Joiner) take(o *op) error {
	s := &j.at
	switch o.code {
	case opValue:
		return j.value(o)
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
	j.put(p)
	s.pc++
	return nil
}
