package wire

import (
	"maps"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/pkg/shape/learn"

	"github.com/hhfr/hhfr/pkg/shape/program"

	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// shapeAtOnce is the longest shape, in octets of its packed form, whose pieces follow each other
// without those of others: shapes may then stand on it (section 4.1).
const shapeAtOnce = 4096

// sending is the table of numbers of a direction that goes out.
type sending struct {
	byShape  map[shape.Fingerprint]*sentShape
	byNumber map[uint64]*sentShape
	free     []uint64
	highest  uint64
	octets   int64
	pinned   int
	uses     uint64
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
}

// Transfer is a shape that is on its way in full, in pieces. What is under it waits.
type Transfer struct {
	number uint64
	full   []byte
	at     int
	sent   *sentShape // nil: the number stands for it no more
}

func (t *sending) init() {
	t.byShape, t.byNumber = map[shape.Fingerprint]*sentShape{}, map[uint64]*sentShape{}
}

// name is how a sync names the shape behind a number.
func (t *sending) name(number uint64) (name [8]byte, known bool) {
	if s := t.byNumber[number]; s != nil {
		return frame.NameOf(s.program.Shape().Fingerprint()), true
	}
	return name, false
}

// of gives the number of a shape that has one.
func (t *sending) of(p *program.Program) *sentShape {
	s := t.byShape[p.Shape().Fingerprint()]
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
	fp := p.Shape().Fingerprint()
	if s := t.byShape[fp]; s != nil {
		return s
	}
	size := uint64(len(p.Shape().Octets()))
	full := uint64(len(t.byNumber)) >= l.MaxShapes
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
	t.byShape[fp], t.byNumber[s.number] = s, s
	t.octets += int64(size)
	return s
}

// oldest is the shape used longest ago of those that nothing needs.
func (t *sending) oldest() (old *sentShape) {
	for _, s := range t.byNumber {
		if s.open == 0 && !s.due && s.transfer == nil && !s.pinned && (old == nil || s.used < old.used) {
			old = s
		}
	}
	return old
}

func (t *sending) forget(s *sentShape) {
	delete(t.byShape, s.program.Shape().Fingerprint())
	delete(t.byNumber, s.number)
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
	for _, number := range slices.Sorted(maps.Keys(t.byNumber)) {
		s := t.byNumber[number]
		switch keep := s.announced && (s.times > 1 || s.open > 0 || s.due); {
		case keep && len(listed) < maxSyncShapes:
			listed = append(listed, frame.Announced{Number: number,
				Name: frame.NameOf(s.program.Shape().Fingerprint())})
		case s.transfer == nil && !s.pinned:
			t.forget(s)
		default:
			s.announced = false
		}
		s.times, s.due = 0, false
	}
	return listed
}

// The octets of an announcement by name: in a frame of its own, and in the list of a sync.
const (
	referenceOctets = 36
	listedOctets    = 9
)

// price is what epoch would have said again, or lists, in octets.
func (t *sending) price() (octets int64) {
	for _, s := range t.byNumber {
		switch {
		case !s.announced:
		case s.times > 1:
			octets += listedOctets
		default:
			octets += referenceOctets
		}
	}
	return octets
}

// placeholder is a shape that no message has.
var placeholder = sync.OnceValue(func() *shape.Shape {
	s, err := learn.FromMessage([]byte("<placeholder/>"))
	if err != nil {
		panic(err) // it is a constant
	}
	return s
})
