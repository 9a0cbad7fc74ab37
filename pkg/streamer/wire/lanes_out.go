package wire

import (
	"time"

	"github.com/hhfr/hhfr/pkg/shape/columns"
)

// sentLanes are the lanes of a direction that goes out.
type sentLanes struct {
	lanes   map[uint64]*sentLane
	learned map[*sentShape]learned // since the last sync
}

type sentLane struct {
	memory *laneMemory // nil: what comes next resets that of the peer
	trials [2]trials   // of texts, and of packed segments
	used   time.Time
}

// learned is what parts under a shape took on lanes that remembered nothing of the shape, and on
// those that did.
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
func (l *sentLanes) begin(stages uint64, m *Outgoing, at *partOut, alone bool, now time.Time) {
	if !alone || stages&Memory == 0 {
		return
	}
	at.remember, at.fresh = true, !l.memory(m.Lane).Knows(at.sent.program)
	l.of(m.Lane).used = now
}

// note counts what a part took that is remembered.
func (l *sentLanes) note(at *partOut, octets int) {
	if l.learned == nil {
		l.learned = map[*sentShape]learned{}
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
