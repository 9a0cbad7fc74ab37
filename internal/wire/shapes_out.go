package wire

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// shapeAtOnce is the longest shape, in octets of its packed form, whose pieces follow each other
// without those of others: shapes may then stand on it (section 4.1).
const shapeAtOnce = 4096

// sending is the table of numbers of a direction that goes out.
type sending struct {
	byShape  few.Map[shape.Fingerprint, *sentShape]
	byNumber few.Map[uint64, *sentShape]
	free     []uint64
	highest  uint64
	octets   int64
	vacant   int32 // of free, how many from the first on stand for nothing at the peer
	pinned   int32
	uses     uint64
	last     *sentShape // found last; nil: none
	bases    bases
}

// sentShape is a shape with a number.
type sentShape struct {
	program   *program.Program
	number    uint64
	announced bool
	due       bool   // it was announced for content that has not come yet
	open      int    // parts of messages under way that are under it
	times     int    // how often it was used since the last sync
	used      uint64 // when it was used last
	// stated: a text has announced it since the last sync, so that the peer may ask for it by its
	// number alone.
	stated bool
	// pinned: announced by reference on the word of the negotiation, so that the peer may ask for
	// it at any time.
	pinned   bool
	vacant   bool       // its number stands for nothing at the peer, unless it is announced
	referred bool       // announced by reference, and the peer may ask for it
	transfer *Transfer  // it is on its way in full
	plain    *plainPart // it is to be announced by that, as text
	learned  learned    // since the last sync
}

// Transfer is a shape that is on its way in full, in pieces. What is under it waits.
type Transfer struct {
	number uint64
	full   []byte
	at     int
	sent   *sentShape // nil: the number stands for it no more
	since  *resynced  // of the direction, when it began
}

// name is how a sync names the shape behind a number.
func (t *sending) name(number uint64) (name [8]byte, known bool) {
	s := t.last
	if s == nil || s.number != number {
		s = t.byNumber.Get(number)
	}
	if s != nil {
		return frame.NameOf(s.program.Shape().Fingerprint()), true
	}
	return name, false
}

// find gives the number of a shape; nil: it has none. Most messages are of the shape of the one
// before.
func (t *sending) find(p *program.Program) *sentShape {
	if s := t.last; s != nil && s.program == p {
		return s
	}
	s := t.byShape.Get(p.Shape().Fingerprint())
	if s != nil {
		t.last = s
	}
	return s
}

// of gives the number of a shape that is announced.
func (t *sending) of(p *program.Program) *sentShape {
	s := t.find(p)
	if s == nil || !s.announced {
		return nil
	}
	t.use(s)
	return s
}

// stated notes that a text has announced a shape.
func (t *sending) stated(s *sentShape) {
	s.announced, s.plain, s.referred, s.stated = true, nil, true, true
	t.bases.keep(s.program.Shape(), 0, nil)
	t.bases.doubtful = true
}

func (t *sending) use(s *sentShape) {
	t.uses++
	s.used, s.due = t.uses, false
	s.times++
}

// begin binds a part that begins to the number of its shape. Without one it is joined, and goes as
// text.
func (t *sending) begin(m *Outgoing, i int, s *Part, most int) {
	at := &m.parts[i]
	if at.begun || !s.There || at.sent != nil || at.join != nil || s.Program == nil {
		return
	}
	if at.sent = t.of(s.Program); at.sent == nil {
		if n := t.find(s.Program); n != nil && n.plain != nil {
			if at.text = n.plain.of(s, i == 0, most); at.text != nil {
				at.sent = n
				t.use(n)
			}
		}
	}
	if at.sent != nil {
		at.sent.open++
		return
	}
	m.texts = true
	at.join = joiners.Get().(*program.Joiner)
	at.join.Reset(s.Program)
}

// take gives the number of a shape, a new one if it has none; nil if the peer's table takes no
// more. A number that the peer has kept since the last sync can be given to another shape, and only
// a sync takes numbers away.
func (t *sending) take(p *program.Program, l frame.Limits) *sentShape {
	if s := t.find(p); s != nil {
		return s
	}
	size := uint64(len(p.Shape().Octets()))
	full := uint64(t.byNumber.Len()) >= l.MaxShapes
	if full || uint64(t.octets)+size > l.MaxShapeBytes {
		old := t.spare(full, 4*l.MaxShapes)
		if old == nil || uint64(t.octets)-uint64(len(old.program.Shape().Octets()))+size > l.MaxShapeBytes {
			return nil
		}
		t.forget(old)
	}
	s := &sentShape{program: p}
	if n := len(t.free); n > 0 {
		s.number, s.vacant, t.free = t.free[n-1], n <= int(t.vacant), t.free[:n-1]
		t.vacant = min(t.vacant, int32(n-1))
	} else {
		t.highest++
		s.number, s.vacant = t.highest, true
	}
	t.byShape.Put(p.Shape().Fingerprint(), s)
	t.byNumber.Put(s.number, s)
	t.octets += int64(size)
	return s
}

// spare is the shape to be forgotten for another, of those that nothing needs: the one used longest
// ago. Where shapes take turns that is the one that comes next. So where numbers are what there is
// too little of, and none was left alone for that many uses, it is one used least, and of these the
// one that came last: others keep their numbers.
func (t *sending) spare(numbers bool, uses uint64) *sentShape {
	var oldest, rarest *sentShape
	for _, s := range t.byNumber.All {
		if s.open > 0 || s.due || s.transfer != nil || s.pinned || s.stated {
			continue
		}
		if oldest == nil || s.used < oldest.used {
			oldest = s
		}
		if rarest == nil || s.times < rarest.times || s.times == rarest.times && s.used > rarest.used {
			rarest = s
		}
	}
	if numbers && oldest != nil && t.uses-oldest.used < uses {
		return rarest
	}
	return oldest
}

func (t *sending) forget(s *sentShape) {
	t.last = nil
	t.byShape.Delete(s.program.Shape().Fingerprint())
	t.byNumber.Delete(s.number)
	t.octets -= int64(len(s.program.Shape().Octets()))
	t.free = append(t.free, s.number)
}

// pin keeps a number until the peer has its shape for sure; it is false if half of the table is
// pinned already.
func (t *sending) pin(s *sentShape, l frame.Limits) bool {
	if !s.pinned && 2*uint64(t.pinned+1) <= l.MaxShapes {
		s.pinned = true
		t.pinned++
	}
	return s.pinned
}

// epoch ends all announcements but those it lists: of what was used more than once since the last
// sync, and of what is open. What was used once may not come again, and costs no more if it does.
func (t *sending) epoch() (listed []frame.Announced) {
	all := make([]*sentShape, 0, t.byNumber.Len())
	for _, s := range t.byNumber.All {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sentShape) int { return cmp.Compare(a.number, b.number) })
	for _, s := range all {
		switch keep := s.plain == nil && s.open > 0 || s.announced && (s.times > 1 || s.due); {
		case keep && len(listed) < maxSyncShapes:
			listed = append(listed, frame.Announced{Number: s.number,
				Name: frame.NameOf(s.program.Shape().Fingerprint())})
		case s.transfer == nil && !s.pinned && s.plain == nil:
			t.forget(s)
		default:
			s.announced = false
		}
		s.times, s.due, s.stated, s.learned = 0, false, false, learned{}
	}
	t.vacant = int32(len(t.free))
	return listed
}

// placeholder is a shape that no message has.
var placeholder = sync.OnceValue(func() *shape.Shape {
	s, err := learn.FromMessage([]byte("<placeholder/>"))
	if err != nil {
		panic(err) // it is a constant
	}
	return s
})
