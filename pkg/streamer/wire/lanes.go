package wire

import (
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/shape/columns"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

var unpackers = sync.Pool{New: func() any { return new(columns.Unpacker) }}

// laneMemory is what a direction of a lane remembers; folded while nobody uses it.
type laneMemory struct {
	open   *columns.Memory
	folded columns.Folded
}

// use gives the memory to be used.
func (m *laneMemory) use() *columns.Memory {
	if m.open == nil {
		m.open = new(columns.Memory)
		m.folded.Unfold(m.open)
	}
	return m.open
}

// fold makes it small.
func (m *laneMemory) fold() {
	if m.open != nil {
		m.folded, m.open = m.open.Fold(), nil
	}
}

// receivedLanes are the lanes of a direction that comes in.
type receivedLanes struct {
	epoch    uint64 // syncs so far
	memories map[uint64]*receivedLane
}

type receivedLane struct {
	memory laneMemory
	epoch  uint64
	lost   bool // what came before was given up
	used   bool // since the last Rest
}

// of gives a lane as it is behind so many syncs.
func (l *receivedLanes) of(lane, epoch uint64) *receivedLane {
	r := l.memories[lane]
	if r == nil {
		if l.memories == nil {
			l.memories = map[uint64]*receivedLane{}
		}
		r = &receivedLane{epoch: epoch}
		l.memories[lane] = r
	}
	if r.epoch != epoch {
		*r = receivedLane{epoch: epoch}
	}
	r.used = true
	return r
}

// next ends the memory of all lanes, but of those of which messages from before are still held.
func (l *receivedLanes) next(h *held) {
	l.epoch++
	for lane := range l.memories {
		if !h.lane(lane) {
			delete(l.memories, lane)
		}
	}
}

// idle gives back what the peer will reset.
func (l *receivedLanes) idle(lanes []uint64, h *held) {
	for _, lane := range lanes {
		if !h.lane(lane) {
			delete(l.memories, lane)
		}
	}
}

// Rest makes the memories of lanes small on which nothing came since the last call; it reports whether others are left.
func (d *Decoder) Rest() (left bool) {
	for _, r := range d.lanes.memories {
		if r.used {
			r.used, left = false, true
		} else {
			r.memory.fold()
		}
	}
	return left
}

// sentLanes are the lanes of a direction that goes out.
type sentLanes struct {
	lanes   map[uint64]*sentLane
	learned map[*sent]learned // since the last sync
}

type sentLane struct {
	memory *laneMemory // nil: what comes next resets that of the peer
	trials [2]trials   // of texts, and of packed segments
	used   time.Time
}

// learned is what parts under a shape took on lanes that remembered nothing of the shape, and on those that did.
type learned struct{ fresh, known cost }

type cost struct{ octets, parts int64 }

// price is how much more the fresh ones took.
func (l learned) price() int64 {
	if l.known.parts == 0 {
		return l.fresh.octets
	}
	return max(0, l.fresh.octets-l.fresh.parts*l.known.octets/l.known.parts)
}

func (l *sentLanes) of(lane uint64) *sentLane {
	s := l.lanes[lane]
	if s == nil {
		if l.lanes == nil {
			l.lanes = map[uint64]*sentLane{}
		}
		s = &sentLane{}
		l.lanes[lane] = s
	}
	return s
}

// memory is what a lane remembers.
func (l *sentLanes) memory(lane uint64) *columns.Memory {
	s := l.of(lane)
	if s.memory == nil {
		s.memory = new(laneMemory)
		s.memory.use().Drop() // whatever the peer remembers
	}
	return s.memory.use()
}

func (l *sentLanes) trials(lane uint64, packed bool) *trials {
	if packed {
		return &l.of(lane).trials[1]
	}
	return &l.of(lane).trials[0]
}

// begin notes whether a part that begins is to be remembered.
func (l *sentLanes) begin(e *Encoder, m *Outgoing, at *partOut, alone bool, now time.Time) {
	if !alone || e.cfg.Origin.Stages&Memory == 0 {
		return
	}
	at.remember, at.fresh = true, !l.memory(m.Lane).Knows(at.sent.program)
	l.of(m.Lane).used = now
}

// note counts what a part took that is remembered.
func (l *sentLanes) note(at *partOut, octets int) {
	if l.learned == nil {
		l.learned = map[*sent]learned{}
	}
	n := l.learned[at.sent]
	c := &n.known
	if at.fresh {
		c = &n.fresh
	}
	c.octets += int64(octets)
	c.parts++
	l.learned[at.sent] = n
}

// price estimates what it takes, in octets, until lanes remember again what the next sync ends.
func (l *sentLanes) price() (octets int64) {
	for _, n := range l.learned {
		octets += n.price()
	}
	return octets
}

// next ends the memory of all lanes.
func (l *sentLanes) next() {
	clear(l.lanes)
	clear(l.learned)
}

// mostFolded is how large the memory of a lane may be while the lane is idle, in octets.
const mostFolded = 4 << 10

// Restart has what comes next on a lane build on nothing that was sent on it before: since the peer gave up messages of it without
// reading them, or since the lane is another client's from now on.
func (e *Encoder) Restart(lane uint64) { delete(e.lanes.lanes, lane) }

// Rest makes the memories of lanes small on which nothing was sent since a moment. Those that are too large for that are given back,
// and the peer is told. It returns when to call it next, zero if no memory is in use.
func (e *Encoder) Rest(since time.Time) (next time.Time) {
	var given []uint64
	for lane, s := range e.lanes.lanes {
		switch {
		case s.memory == nil || s.memory.open == nil:
		case s.used.After(since):
			if next.IsZero() || s.used.Before(next) {
				next = s.used
			}
		default:
			if s.memory.fold(); s.memory.folded.Size() > mostFolded {
				delete(e.lanes.lanes, lane)
				given = append(given, lane)
			}
		}
	}
	if len(given) > 0 {
		slices.Sort(given)
		e.append(frame.Idle{Lanes: given})
	}
	return next
}
