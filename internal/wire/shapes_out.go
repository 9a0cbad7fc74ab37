package wire

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/shape/learn"

	"github.com/hhfr/hhfr/internal/shape/program"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
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
	pinned   int
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
	// pinned: announced by reference on the word of the negotiation, so that the peer may ask for
	// it at any time.
	pinned   bool
	referred bool      // announced by reference, and the peer may ask for it
	transfer *Transfer // it is on its way in full
	learned  learned   // since the last sync
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
	t.uses++
	s.used, s.due = t.uses, false
	s.times++
	return s
}

// begin binds a part that begins to the number of its shape. Without one it is joined, and goes as
// text.
func (t *sending) begin(m *Outgoing, i int, s *Part) {
	at := &m.parts[i]
	if at.begun || !s.There || at.sent != nil || at.join != nil || s.Program == nil {
		return
	}
	if at.sent = t.of(s.Program); at.sent != nil {
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
		old := t.oldest()
		if old == nil || uint64(t.octets)-uint64(len(old.program.Shape().Octets()))+size > l.MaxShapeBytes {
			return nil
		}
		t.forget(old)
	}
	s := &sentShape{program: p}
	if n := len(t.free); n > 0 {
		s.number, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.highest++
		s.number = t.highest
	}
	t.byShape.Put(p.Shape().Fingerprint(), s)
	t.byNumber.Put(s.number, s)
	t.octets += int64(size)
	return s
}

// oldest is the shape used longest ago of those that nothing needs.
func (t *sending) oldest() (old *sentShape) {
	for _, s := range t.byNumber.All {
		if s.open == 0 && !s.due && s.transfer == nil && !s.pinned && (old == nil || s.used < old.used) {
			old = s
		}
	}
	return old
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
		switch keep := s.open > 0 || s.announced && (s.times > 1 || s.due); {
		case keep && len(listed) < maxSyncShapes:
			listed = append(listed, frame.Announced{Number: s.number,
				Name: frame.NameOf(s.program.Shape().Fingerprint())})
		case s.transfer == nil && !s.pinned:
			t.forget(s)
		default:
			s.announced = false
		}
		s.times, s.due, s.learned = 0, false, learned{}
	}
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
